"""Which pool a pod may go to, what it tolerates, and which resource a property names."""

from typing import Any

import pytest

from guardrails import tokens
from guardrails.node import UNKNOWN, Node
from guardrails.placing import POOL_LABEL, chooses_nodes, names_pools, selects, tolerates, wanted_labels
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.template import PodTemplate

pytestmark = pytest.mark.policy

ZONE = "topology.kubernetes.io/zone"


def pod(**spec: Any) -> PodTemplate:
    return PodTemplate(Node(spec, "spec"), 1, Node({}, "metadata"))


def wanting(*terms: list[tuple[str, str, list[str]]]) -> PodTemplate:
    def expressions(term: list[tuple[str, str, list[str]]]) -> list[dict[str, Any]]:
        return [{"key": key, "operator": operator, "values": values} for key, operator, values in term]

    written = [{"matchExpressions": expressions(term)} for term in terms]
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}})


def pool(requirements: dict[str, list[str]] | None = None, labels: dict[str, str] | None = None) -> Resource:
    needs = [{"key": key, "operator": "In", "values": values} for key, values in (requirements or {}).items()]
    template = {"metadata": {"labels": labels or {}}, "spec": {"requirements": needs}}
    return Resource(type=tokens.NODE_POOL, name="p5", properties=Node({"metadata": {"name": "p5"}, "spec": {"template": template}}))


def test_labels_are_wanted_by_selector_and_by_the_only_term_of_an_affinity() -> None:
    assert wanted_labels(pod(nodeSelector={"a": "b"})) == {"a": ["b"]}
    assert wanted_labels(wanting([("a", "In", ["b", "c"]), ("d", "NotIn", ["e"])])) == {"a": ["b", "c"]}
    assert wanted_labels(wanting([("a", "In", ["b"])], [("c", "In", ["d"])])) == {}
    assert wanted_labels(wanting([("a", "In", ["b"])], [("a", "In", ["c"]), ("d", "In", ["e"])])) == {"a": ["b", "c"]}
    assert wanted_labels(wanting([("a", "In", ["b"])], [("a", "Exists", [])])) == {}


def test_a_selector_and_an_affinity_of_one_label_both_hold() -> None:
    spec = wanting([("a", "In", ["b", "c"])]).spec.raw
    assert wanted_labels(pod(nodeSelector={"a": "b"}, **spec)) == {"a": ["b"]}
    assert wanted_labels(pod(nodeSelector={"a": "x"}, **spec)) == {"a": []}
    assert not selects(pod(nodeSelector={"a": "x"}, **spec), pool(labels={"a": "x"}))


def test_a_pod_chooses_nodes_by_whatever_it_says_of_them() -> None:
    assert not chooses_nodes(pod())
    assert not chooses_nodes(pod(affinity={"podAffinity": {}}))
    assert chooses_nodes(pod(nodeSelector={"a": "b"}))
    assert chooses_nodes(wanting([("a", "NotIn", ["b"])]))


@pytest.mark.parametrize(
    ("label", "is_a_pools"),
    [(POOL_LABEL, True), ("team.example/pool", True), (ZONE, False), ("kubernetes.io/os", False), ("karpenter.sh/capacity-type", False)],
)
def test_a_label_that_any_node_may_have_names_no_pool(label: str, is_a_pools: bool) -> None:
    assert names_pools(pod(nodeSelector={label: "x"})) is is_a_pools


def test_a_pool_is_selected_by_its_name_its_labels_and_its_requirements() -> None:
    assert selects(pod(nodeSelector={POOL_LABEL: "p5"}), pool())
    assert not selects(pod(nodeSelector={POOL_LABEL: "p4"}), pool())
    assert selects(pod(nodeSelector={"team": "a"}), pool(labels={"team": "a"}))
    assert not selects(pod(nodeSelector={"team": "a"}), pool(labels={"team": "b"}))
    assert not selects(pod(nodeSelector={"team": "a"}), pool())
    assert selects(pod(nodeSelector={ZONE: "a"}), pool())
    assert selects(wanting([(ZONE, "In", ["a", "b"])]), pool({ZONE: ["b", "c"]}))
    assert not selects(wanting([(ZONE, "In", ["a"])]), pool({ZONE: ["b", "c"]}))
    assert not selects(pod(nodeSelector={ZONE: "b", "team": "a"}), pool({ZONE: ["b"]}))
    assert not selects(pod(), pool())


def test_a_pool_is_selected_by_any_alternative_of_a_pod() -> None:
    either = wanting([("team", "In", ["a"])], [("team", "In", ["b"])])
    assert selects(either, pool(labels={"team": "a"}))
    assert selects(either, pool(labels={"team": "b"}))
    assert not selects(either, pool(labels={"team": "c"}))
    assert selects(wanting([("team", "Exists", [])]), pool(labels={"team": "c"}))
    assert not selects(wanting([("team", "Exists", [])]), pool())
    assert selects(wanting([(POOL_LABEL, "Exists", [])]), pool())
    assert not names_pools(wanting([("team", "In", ["a"])], [(ZONE, "In", ["a"])]))


@pytest.mark.parametrize(
    ("operator", "values", "offered"),
    [("Exists", [], True), ("NotIn", ["b"], True), ("NotIn", ["a"], False), ("DoesNotExist", [], False)],
)
def test_a_pool_gives_a_label_that_it_leaves_open_the_value_that_a_pod_wants(operator: str, values: list[str], offered: bool) -> None:
    requirement = {"key": "team", "operator": operator, "values": values}
    template = {"metadata": {"labels": {}}, "spec": {"requirements": [requirement]}}
    open_pool = Resource(type=tokens.NODE_POOL, name="p5", properties=Node({"metadata": {"name": "p5"}, "spec": {"template": template}}))
    assert selects(pod(nodeSelector={"team": "a"}), open_pool) is offered


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "gpu"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_toleration_matches_key_value_and_effect(toleration: dict[str, str], tolerated: bool) -> None:
    taint = Node({"key": "gpu", "value": "yes", "effect": "NoSchedule"})
    assert tolerates(pod(tolerations=[toleration]), taint) is tolerated


def thing(kind: str, urn: str, sources: dict[str, list[str]] | None = None, **properties: Any) -> Resource:
    return Resource(type=kind, name=urn, urn=urn, properties=Node(properties), sources=sources or {})


def test_a_property_s_source_is_found_among_the_types_asked_for() -> None:
    subnet, group = thing(tokens.SUBNET, "s"), thing(tokens.SECURITY_GROUP, "g")
    user = thing("x", "u", {"ids": ["gone", "g", "s"]})
    program = Program([subnet, group, user])
    assert program.source(user, "ids") is group
    assert program.source(user, "ids", tokens.SUBNET) is subnet
    assert program.source(user, "ids", tokens.VPC) is None
    assert program.source(user, "other") is None


def test_a_property_refers_by_where_it_comes_from_or_by_a_known_id() -> None:
    target = thing(tokens.VPC, "v", id="vpc-1")
    program = Program([target])
    assert program.refers(thing("x", "u", {"vpcId": ["v"]}, vpcId=UNKNOWN), "vpcId", target)
    assert program.refers(thing("x", "u", vpcId="vpc-1"), "vpcId", target)
    assert not program.refers(thing("x", "u", vpcId="vpc-2"), "vpcId", target)
    assert not program.refers(thing("x", "u"), "vpcId", thing(tokens.VPC, "w"))
    assert not program.refers(thing("x", "u", vpcId=UNKNOWN), "vpcId", thing(tokens.VPC, "w", id=UNKNOWN))
    assert not program.refers(thing("x", "u", vpcId="vpc-1"), "vpcId", thing(tokens.VPC, "w", id=UNKNOWN))
