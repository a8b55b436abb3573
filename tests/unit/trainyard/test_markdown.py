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


def test_errors_stand_as_they_are():
    text = plan_markdown("dev", {"refused": Summary(errors=["net: | refused"])})
    assert text.endswith("#### Errors\n\n```text\nnet: | refused\n```\n")
