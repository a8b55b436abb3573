"""The plan that a pull request shows."""

from collections import Counter

import pytest

from trainyard.events import Summary, Violation
from trainyard.markdown import plan_markdown

pytestmark = pytest.mark.unit


def test_a_plan_lists_each_projects_changes():
    text = plan_markdown("dev", {"platform": Summary(changes=Counter(create=2, same=1)), "workloads": Summary()})
    assert "### Plan of stack `dev`" in text
    assert "| platform | create 2, same 1 |" in text
    assert "| workloads | nothing |" in text
    assert "No rule objects." in text
    assert "Errors" not in text


def test_a_finding_cannot_break_its_table():
    violation = Violation(policy="krp02-node-pool-require-when-empty", resource="r", message="a | b\nc", mandatory=True)
    text = plan_markdown("dev", {"platform": Summary(violations=[violation])})
    assert "| KRP02 |  | a \\| b c |" in text
    assert "No rule objects." not in text


def test_an_error_cannot_end_its_frame():
    text = plan_markdown("dev", {"refused": Summary(errors=["````", "# heading"])})
    assert text.endswith("#### Errors\n\n`````text\n````\n# heading\n`````\n")


def test_a_plan_fits_into_a_comment_with_all_of_its_sections():
    violations = [Violation(policy="x", resource="r", message=f"{number} {'a' * 500}", mandatory=True) for number in range(200)]
    text = plan_markdown("dev", {"platform": Summary(violations=violations, errors=["e" * 70_000], charts=["a_b"])})
    assert 50_000 < len(text) <= 60_500
    assert "There is more than a comment holds" in text
    assert "objects: a\\_b" in text
    assert text.endswith("e\n... there is more in the job's log\n```\n")


def test_errors_stand_as_they_are():
    text = plan_markdown("dev", {"refused": Summary(errors=["net: | refused"])})
    assert text.endswith("#### Errors\n\n```text\nnet: | refused\n```\n")
