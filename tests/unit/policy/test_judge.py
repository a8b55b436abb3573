"""What the pack tells besides violations."""

import pytest

from guardrails import RULES
from guardrails.judge import by_id
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Diagnostic, Thing, analyze
from tests.unit.policy.cases import efs, fsx, network

pytestmark = pytest.mark.policy


def test_what_only_up_knows_is_told_once_for_each_rule_with_all_places() -> None:
    rule = by_id(RULES)["FSX04"]
    shape = fsx.p2(storageCapacity=UNKNOWN).properties
    said = analyze(*(Thing(type=fsx.p2().type, name=name, properties=shape) for name in ("scratch", "home")), rules=[rule])
    words = "FSX04 not evaluated: needs home.storageCapacity, scratch.storageCapacity, which only `up` knows and will judge."
    assert said == [Diagnostic(rule.policy_name, words, mandatory=False)]


@pytest.mark.parametrize(
    ("rule", "things", "place"),
    [
        ("FSX10", (fsx.placed(),), "scratch.subnetIds"),
        ("EFS04", (efs.efs(), efs.nfs(), efs.target("a")), "home-a.subnetId"),
        ("EFS04", (efs.efs(), efs.subnet("a"), efs.target("a")), "home-a.securityGroups[0]"),
    ],
)
def test_a_rule_names_the_value_from_elsewhere_that_it_needs(rule: str, things: tuple[Thing, ...], place: str) -> None:
    said = analyze(*things, rules=[by_id(RULES)[rule]])
    assert [diagnostic.message for diagnostic in said] == [f"{rule} not evaluated: needs {place}, which only `up` knows and will judge."]


def test_what_a_program_without_its_cluster_may_find_there_is_advice() -> None:
    rules = [by_id(RULES)["EFA07"]]
    pool, pod = b.node_pool(), network.pod(gpu=8)
    assert [diagnostic.mandatory for diagnostic in analyze(pool, pod, rules=rules)] == [False]
    assert [diagnostic.mandatory for diagnostic in analyze(network.CLUSTER, pool, pod, rules=rules)] == [True]
