"""Every rule's truth table, through the analyzer service: what it refuses, what it lets pass, what it says."""

import collections
import re

import pytest

from guardrails import RULES
from guardrails.judge import by_id
from tests.unit.policy.analyzer import analyze, not_evaluated, violations
from tests.unit.policy.case import Case
from tests.unit.policy.cases import CASES
from tests.unit.policy.messages import first_lines, recorded
from tests.unit.policy.named import is_named

pytestmark = pytest.mark.policy

RULE_BY_ID = by_id(RULES)
LEAST = 4
# Rules whose tables are still to be completed; a rule leaves this list with its last case and none may join it.
INCOMPLETE: frozenset[str] = frozenset()


def name(case: Case) -> str:
    return f"{case.rule}-{'refused' if case.refused else 'passes'}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each case, but for the cases that a run by name leaves out: making them all takes longer than judging a hundred."""
    if "case" not in metafunc.fixturenames:
        return
    count: collections.Counter[str] = collections.Counter()
    named: dict[str, Case] = {}
    for case in CASES:
        label = f"{name(case)}{count[name(case)]}"
        count[name(case)] += 1
        if is_named(metafunc.config, f"{metafunc.definition.nodeid}[{label}]"):
            named[label] = case
    metafunc.parametrize("case", named.values(), ids=named)


def test_the_rule_judges_the_case(case: Case) -> None:
    rule = RULE_BY_ID[case.rule]
    said = analyze(*case.things, rules=[rule])
    messages = violations(said, case.rule)
    if not case.refused:
        assert messages == [], "a valid program was refused"
        assert not_evaluated(said, case.rule) == [], "give a valid case no unknown that the rule needs"
        return
    assert messages, f"{case.rule} let it pass: {said}"
    text = "\n".join(messages)
    assert case.says
    assert case.says in text
    for message in messages:
        first, otherwise, fix = message.splitlines()
        assert re.match(rf"{case.rule} \S.*: .+ is .+; allowed: .+\.$", first), f"not rule, resource, path, value, allowed: {first}"
        assert otherwise.startswith("  Otherwise: ")
        assert fix.startswith("  Fix: ")
    assert ".0;" not in text, "numbers are shown as people write them"
    assert first_lines(said) == recorded(case, CASES), "if this is meant: python -m tests.unit.policy.messages"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_truth_table_is_whole(rule) -> None:
    mine = [case for case in CASES if case.rule == rule.id]
    count = collections.Counter((case.refused, case.edge) for case in mine)
    whole = count[False, False] >= LEAST and count[True, False] >= LEAST and count[False, True] + count[True, True] >= 1
    if rule.id in INCOMPLETE:
        assert not whole, f"the table of {rule.id} is whole now: take it off INCOMPLETE"
        return
    assert count[False, False] >= LEAST, "too few valid cases"
    assert count[True, False] >= LEAST, "too few invalid cases"
    assert count[False, True] + count[True, True] >= 1, "no boundary value"


def test_every_case_belongs_to_a_rule() -> None:
    assert {case.rule for case in CASES} <= set(RULE_BY_ID)


def test_ids_and_names_are_unique_and_well_formed() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert len({rule.policy_name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert re.fullmatch(r"[A-Z]{2,4}[0-9]{2}[a-z]?", rule.id)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
        assert re.search(r"(^|-)(require|disallow|limit)-", rule.name), f"{rule.id}: {rule.name} has none of the three verbs"
