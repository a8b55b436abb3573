"""What the pack tells besides violations."""

import pytest

from guardrails import RULES
from guardrails.judge import by_id
from tests.unit.policy.analyzer import UNKNOWN, Diagnostic, Thing, analyze
from tests.unit.policy.cases import fsx

pytestmark = pytest.mark.policy


def test_what_only_up_knows_is_told_once_for_each_rule_with_all_places() -> None:
    rule = by_id(RULES)["FSX04"]
    shape = fsx.p2(storageCapacity=UNKNOWN).properties
    said = analyze(*(Thing(type=fsx.p2().type, name=name, properties=shape) for name in ("scratch", "home")), rules=[rule])
    words = "FSX04 not evaluated: needs home.storageCapacity, scratch.storageCapacity, which only `up` knows and will judge."
    assert said == [Diagnostic(rule.policy_name, words, mandatory=False)]
