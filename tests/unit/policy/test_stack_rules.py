"""The rules that need several resources: ids that preview can't know are followed to the resource they come from."""

import pytest

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing, analyze_stack, not_evaluated, violations

pytestmark = pytest.mark.unit

ALL_SELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
ALL_OUT = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}
ZONE = "spec/template/spec/requirements/1/values"


def separate_rule(token: str, name: str) -> Thing:
    return Thing(
        type=token,
        name=name,
        properties={"ipProtocol": "-1", "securityGroupId": UNKNOWN, "referencedSecurityGroupId": UNKNOWN},
        sources={"securityGroupId": ["fabric-efa"], "referencedSecurityGroupId": ["fabric-efa"]},
    )


def efa_template(**sources: list[str]) -> Thing:
    return Thing(
        type=tokens.LAUNCH_TEMPLATE,
        name="template",
        properties={"networkInterfaces": [{"interfaceType": "efa", "networkCardIndex": 0, "securityGroups": [UNKNOWN]}]},
        sources=sources,
    )


def node_group(subnets: int) -> Thing:
    return Thing(
        type=tokens.NODE_GROUP,
        name="group",
        properties={"subnetIds": [UNKNOWN] * subnets, "launchTemplate": {"id": UNKNOWN}},
        sources={"launchTemplate": ["template"]},
    )


VALID = [
    ("EFA04", [b.efa_group(ingress=[ALL_SELF], egress=[ALL_SELF, ALL_OUT])]),
    ("EFA04", [b.efa_group(), separate_rule(tokens.INGRESS_RULE, "in"), separate_rule(tokens.EGRESS_RULE, "out")]),
    (
        "EFA04",
        [
            b.efa_group(ingress=UNKNOWN, egress=UNKNOWN),
            separate_rule(tokens.INGRESS_RULE, "in"),
            separate_rule(tokens.EGRESS_RULE, "out"),
        ],
    ),
    ("EFA04", [Thing(type=tokens.SECURITY_GROUP, name="web", properties={"egress": [ALL_OUT]})]),
    ("EFA04", [Thing(type=tokens.SECURITY_GROUP, name="cafeteria", properties={"description": "café"})]),
    ("EFA05", [b.node_pool(), b.node_class()]),
    ("EFA05", [b.cpu_pool()]),
    ("EFA05", [efa_template(), node_group(1)]),
    ("EFA05", [Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties={}), node_group(3)]),
]

INVALID = [
    ("EFA04", [b.efa_group(ingress=[ALL_SELF], egress=[ALL_OUT])], "fabric-efa: egress is without one"),
    ("EFA04", [b.efa_group(egress=[ALL_SELF])], "ingress is without one"),
    ("EFA04", [b.efa_group(), separate_rule(tokens.INGRESS_RULE, "in")], "egress is without one"),
    ("EFA04", [b.efa_group(ingress=[{**ALL_SELF, "protocol": "tcp"}], egress=[ALL_SELF])], "ingress is without one"),
    (
        "EFA04",
        [Thing(type=tokens.SECURITY_GROUP, name="nodes", properties={}), efa_template(networkInterfaces=["nodes"])],
        "nodes: ingress is without one",
    ),
    ("EFA05", [b.node_pool({ZONE: ["us-east-1a", "us-east-1b"]})], "zones us-east-1a, us-east-1b"),
    ("EFA05", [b.node_pool({ZONE: []})], "exactly one zone"),
    ("EFA05", [b.node_pool({"spec/template/spec/requirements/1": {"key": "kubernetes.io/arch", "operator": "In"}})], "without a zone"),
    (
        "EFA05",
        [
            b.node_pool({ZONE: ["a", "b"], "spec/template/spec/requirements/0/values": ["g5.8xlarge"]}),
            b.node_class({"spec/networkInterfaces": [{"interfaceType": "efa-only"}]}),
        ],
        "zones a, b",
    ),
    ("EFA05", [efa_template(), node_group(3)], "3 subnets"),
]


@pytest.mark.parametrize(("rule", "things"), VALID)
def test_a_valid_program_passes(rule: str, things: list[Thing]) -> None:
    said = analyze_stack(things)
    assert violations(said, rule) == []
    assert not_evaluated(said, rule) == []


@pytest.mark.parametrize(("rule", "things", "words"), INVALID)
def test_an_invalid_program_is_refused(rule: str, things: list[Thing], words: str) -> None:
    messages = violations(analyze_stack(things), rule)
    assert messages, f"{rule} let it pass"
    assert words in "\n".join(messages)
