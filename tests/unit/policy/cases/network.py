"""Security groups and zones of EFA."""

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

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


CASES = (
    valid("EFA04", b.efa_group(ingress=[ALL_SELF], egress=[ALL_SELF, ALL_OUT])),
    valid("EFA04", b.efa_group(), separate_rule(tokens.INGRESS_RULE, "in"), separate_rule(tokens.EGRESS_RULE, "out")),
    valid(
        "EFA04",
        b.efa_group(ingress=UNKNOWN, egress=UNKNOWN),
        separate_rule(tokens.INGRESS_RULE, "in"),
        separate_rule(tokens.EGRESS_RULE, "out"),
    ),
    valid("EFA04", Thing(type=tokens.SECURITY_GROUP, name="web", properties={"egress": [ALL_OUT]})),
    valid("EFA04", Thing(type=tokens.SECURITY_GROUP, name="cafeteria", properties={"description": "café"})),
    invalid("EFA04", b.efa_group(ingress=[ALL_SELF], egress=[ALL_OUT]), says="fabric-efa: egress is without one"),
    invalid("EFA04", b.efa_group(egress=[ALL_SELF]), says="ingress is without one"),
    invalid("EFA04", b.efa_group(), separate_rule(tokens.INGRESS_RULE, "in"), says="egress is without one"),
    invalid("EFA04", b.efa_group(ingress=[{**ALL_SELF, "protocol": "tcp"}], egress=[ALL_SELF]), says="ingress is without one"),
    invalid(
        "EFA04",
        Thing(type=tokens.SECURITY_GROUP, name="nodes", properties={}),
        efa_template(networkInterfaces=["nodes"]),
        says="nodes: ingress is without one",
    ),
    valid("EFA05", b.node_pool(), b.node_class()),
    valid("EFA05", b.cpu_pool()),
    valid("EFA05", efa_template(), node_group(1)),
    valid("EFA05", Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties={}), node_group(3)),
    invalid("EFA05", b.node_pool({ZONE: ["us-east-1a", "us-east-1b"]}), says="zones us-east-1a, us-east-1b"),
    invalid("EFA05", b.node_pool({ZONE: []}), says="exactly one zone"),
    invalid(
        "EFA05", b.node_pool({"spec/template/spec/requirements/1": {"key": "kubernetes.io/arch", "operator": "In"}}), says="without a zone"
    ),
    invalid(
        "EFA05",
        b.node_pool({ZONE: ["a", "b"], "spec/template/spec/requirements/0/values": ["g5.8xlarge"]}),
        b.node_class({"spec/networkInterfaces": [{"interfaceType": "efa-only"}]}),
        says="zones a, b",
    ),
    invalid("EFA05", efa_template(), node_group(3), says="3 subnets"),
)
