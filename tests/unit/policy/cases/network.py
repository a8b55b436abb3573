"""EFA, environment, placement and reserved capacity."""

import datetime
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import NOW, invalid, valid

ALL_SELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
ALL_OUT = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}
REQUIREMENTS = "spec/template/spec/requirements"
TYPES = f"{REQUIREMENTS}/0/values"
ZONE = f"{REQUIREMENTS}/1/values"
PRIMARY = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}


def nic(card: Any, device: Any = 1, kind: Any = "efa-only", **more: Any) -> dict[str, Any]:
    return {"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind, **more}


def nics(count: int) -> list[dict[str, Any]]:
    return [PRIMARY, *(nic(card) for card in range(count))]


def template(
    members: list[dict[str, Any]], name: str | None = "p5.48xlarge", sources: dict[str, list[str]] | None = None, **more: Any
) -> Thing:
    kind = {"instanceType": name} if name else {}
    properties = {**kind, "networkInterfaces": members, **more}
    return Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties=properties, sources=sources or {})


def node_group(subnets: int = 1, sources: dict[str, list[str]] | None = None, **properties: Any) -> Thing:
    plain = {"subnetIds": [UNKNOWN] * subnets, "launchTemplate": {"id": UNKNOWN}, **properties}
    return Thing(type=tokens.NODE_GROUP, name="group", properties=plain, sources={"launchTemplate": ["template"], **(sources or {})})


def node_class(members: list[dict[str, Any]], sources: dict[str, list[str]] | None = None, **spec: Any) -> Thing:
    plain = b.node_class({"spec/networkInterfaces": members, **{f"spec/{key}": value for key, value in spec.items()}})
    return Thing(type=plain.type, name=plain.name, properties=plain.properties, sources=sources or {})


OF_EC2 = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}
OF_EKS = {"group": "eks.amazonaws.com", "kind": "NodeClass"}


def referring(**reference: Any) -> Thing:
    """A pool of two zones and a type of one EFA card, with a class of this kind named p5."""
    changes = {TYPES: ["g5.8xlarge"], ZONE: ["us-east-1a", "us-east-1b"], "spec/template/spec/nodeClassRef": {"name": "p5", **reference}}
    return b.node_pool(changes)


def group(name: str, /, **properties: Any) -> Thing:
    return Thing(type=tokens.SECURITY_GROUP, name=name, properties=properties)


def separate_rule(token: str, name: str) -> Thing:
    return Thing(
        type=token,
        name=name,
        properties={"ipProtocol": "-1", "securityGroupId": UNKNOWN, "referencedSecurityGroupId": UNKNOWN},
        sources={"securityGroupId": ["fabric-efa"], "referencedSecurityGroupId": ["fabric-efa"]},
    )


def subnet(name: str = "private", **properties: Any) -> Thing:
    return Thing(type=tokens.SUBNET, name=name, properties={"cidrBlock": "10.0.0.0/20", **properties})


def carrying(*terms: dict[str, Any], sources: list[str] | None = None, interfaces: int = 2) -> Thing:
    """A class whose nodes carry the groups that the terms select."""
    return node_class(nics(interfaces) if interfaces else [], {"spec": sources or []}, securityGroupSelectorTerms=list(terms))


def zoned(zone: Any, name: str = "private", **properties: Any) -> Thing:
    return subnet(name, availabilityZone=zone, **properties)


def scaling_group(sources: dict[str, list[str]] | None = None, **properties: Any) -> Thing:
    """Nodes that manage themselves, of the launch template."""
    plain = {"launchTemplate": {"id": UNKNOWN}, "maxSize": 8, **properties}
    return Thing(
        type=tokens.SCALING_GROUP,
        name="workers",
        properties={key: value for key, value in plain.items() if value is not None},
        sources=sources if sources is not None else {"launchTemplate": ["template"]},
    )


def pool_of(*requirements: dict[str, Any]) -> Thing:
    """The pool of p5 with these requirements in place of its zone."""
    own = b.node_pool().properties["spec"]["template"]["spec"]["requirements"]
    return b.node_pool({REQUIREMENTS: [own[0], *requirements]})


def requirement(key: str, operator: str, *values: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


ZONE_KEY, ID_KEY = "topology.kubernetes.io/zone", "topology.k8s.aws/zone-id"
FAMILY, CATEGORY, SIZE = (f"karpenter.k8s.aws/instance-{what}" for what in ("family", "category", "size"))
A, B = "us-east-1a", "us-east-1b"
TWO_IN_A = (zoned(A), zoned(A, "more"))
IN_A_AND_B = (zoned(A), zoned(B, "more"))
PAIR = {"subnetIds": ["private", "more"]}
WORKERS = {"launchTemplate": ["template"], "vpcZoneIdentifiers": ["private", "more"]}
TWO_IDS = [UNKNOWN, UNKNOWN]


def mixed(*types: str, **specification: Any) -> dict[str, Any]:
    """A policy of mixed instances, in place of a launch template alone."""
    own = {"launchTemplateSpecification": specification}
    overrides = [{"instanceType": name} for name in types]
    return {"launchTemplate": None, "mixedInstancesPolicy": {"launchTemplate": {**own, "overrides": overrides}}}


CLOSED = {"ingress": [ALL_SELF], "egress": [ALL_OUT]}
OPEN = {"ingress": [ALL_SELF], "egress": [ALL_SELF]}
ML = {"tags": {"team": "ml", "kind": "nodes"}}


def older(way: str, peers: Sequence[str] = (), **peer: Any) -> Thing:
    """A rule of the older kind, on the group fabric-efa."""
    properties = {"type": way, "protocol": "-1", "fromPort": 0, "toPort": 0, "securityGroupId": UNKNOWN, **peer}
    sources = {"securityGroupId": ["fabric-efa"], "sourceSecurityGroupId": list(peers)}
    return Thing(type=tokens.SECURITY_GROUP_RULE, name=way, properties=properties, sources=sources)


NODES_1, ALL_2 = group("nodes", **CLOSED, id="sg-1"), group("all", **OPEN, id="sg-2")


def fast_files(*groups: str) -> Thing:
    return Thing(type=tokens.LUSTRE, name="scratch", properties={"efaEnabled": True, "securityGroupIds": list(groups)})


OLDER = (older("ingress", self=True), older("egress", self=True))
BOTH = (separate_rule(tokens.INGRESS_RULE, "in"), separate_rule(tokens.EGRESS_RULE, "out"))


def two_lists(first: Any, second: Any, *sources: str) -> Thing:
    """The groups of an interface for all traffic, and those of one for EFA."""
    primary = PRIMARY if first is None else {**PRIMARY, "securityGroups": first}
    return template([primary, nic(0, securityGroups=second)], sources={"networkInterfaces": list(sources or ["front"])})


P5EN = b.node_pool({TYPES: ["p5en.48xlarge"]})
NODES = {"networkInterfaces": ["nodes"]}
ANY_TYPE = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
TYPE = "node.kubernetes.io/instance-type"
P5 = {TYPE: "p5.48xlarge"}


def pod(
    selector: dict[str, str] | None = None, env: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **devices: Any
) -> Thing:
    wanted = {GPU: devices.get("gpu"), EFA: devices.get("efa")}
    limits = {key: value for key, value in wanted.items() if value}
    container = {
        "name": "trainer",
        "image": "registry.example/trainer:1",
        "env": [{"name": name, "value": value} for name, value in (env or {}).items()],
        "resources": {"limits": limits, "requests": limits},
    }
    body = {"nodeSelector": selector or P5, "containers": [container]}
    return Thing(type=tokens.POD, name="trainer", properties=b.changed({"metadata": {"name": "trainer"}, "spec": body}, spec or {}))


def compared_with(label: str, operator: str) -> Thing:
    """A pod with an EFA interface that wants nodes by a label that is a number."""
    terms = [{"matchExpressions": [{"key": label, "operator": operator, "values": ["24000"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return pod(spec={"spec/nodeSelector": b.DELETE, "spec/affinity": affinity}, efa=1)


CLUSTER = Thing(type=tokens.CLUSTER, name="cluster", properties={"version": "1.36"})

INTERFACES = (
    valid("EFA01", template(nics(16), "p5en.48xlarge"), edge=True),
    valid("EFA01", template(nics(4), "p4d.24xlarge")),
    valid("EFA01", template([PRIMARY], "m5.large")),
    valid("EFA01", template([nic(0, 0, "efa")], "c5n.18xlarge")),
    valid("EFA01", node_class(nics(16)), P5EN),
    valid("EFA01", template(nics(99), "p99.48xlarge")),
    invalid("EFA01", template(nics(32), "p5en.48xlarge"), says="32 EFA interfaces; allowed: at most 16 on p5en.48xlarge"),
    invalid("EFA01", template(nics(17), "p5en.48xlarge"), says="17 EFA interfaces", edge=True),
    invalid("EFA01", template([nic(0, 0, "efa")], "m5.large"), says="m5.large has no EFA"),
    invalid("EFA01", template([nic(0, 0, "efa")], None), node_group(instanceTypes=["g5.xlarge"]), says="g5.xlarge has no EFA"),
    invalid("EFA01", node_class(nics(32)), P5EN, says="at most 16 on p5en.48xlarge"),
    valid("EFA01", node_class(nics(2)), referring(**OF_EKS)),
    invalid("EFA01", node_class(nics(2)), referring(**OF_EKS), referring(**OF_EC2), says="at most 1 on g5.8xlarge", edge=True),
    invalid("EFA01", node_class(nics(2)), referring(group=UNKNOWN), referring(**OF_EC2), says="at most 1 on g5.8xlarge", edge=True),
    invalid("EFA01", template([PRIMARY, nic(4)], "p4d.24xlarge"), says="0 to 3: p4d.24xlarge has 4 network cards", edge=True),
    invalid("EFA01", template([PRIMARY, nic(0), nic(1)], "c5n.18xlarge"), says="at most 1 on c5n.18xlarge"),
    valid("EFA01", template([PRIMARY, *(nic(card) for card in range(1, 17))], "p6-b300.48xlarge"), edge=True),
    valid("EFA01", template(nics(8), "p6-b200.48xlarge")),
    invalid(
        "EFA01", template(nics(16), "p6-b300.48xlarge"), says="networkCardIndex is 0; allowed: 1 to 16, because card 0 of p6-b300.48xlarge"
    ),
    invalid("EFA01", template([nic(0, 0, "efa")], "p6-b300.48xlarge"), says="because card 0 of p6-b300.48xlarge has no EFA", edge=True),
    invalid("EFA01", template([{"interfaceType": "efa"}], "p6-b300.48xlarge"), says="networkCardIndex is unset", edge=True),
    invalid("EFA01", template([PRIMARY, nic(17)], "p6-b300.48xlarge"), says="allowed: 1 to 16: p6-b300.48xlarge has 17", edge=True),
    valid("EFA02", Thing(type=tokens.LAUNCH_TEMPLATE, name="t", properties={"vpcSecurityGroupIds": ["sg-1"], "networkInterfaces": []})),
    valid(
        "EFA02", Thing(type=tokens.LAUNCH_TEMPLATE, name="t", properties={"networkInterfaces": [{**PRIMARY, "securityGroups": ["sg-1"]}]})
    ),
    invalid(
        "EFA02",
        Thing(
            type=tokens.LAUNCH_TEMPLATE, name="t", properties={"vpcSecurityGroupIds": ["sg-1"], "networkInterfaces": [{"deviceIndex": 0}]}
        ),
        says="vpcSecurityGroupIds is set beside networkInterfaces; allowed: unset",
    ),
    invalid(
        "EFA02",
        Thing(type=tokens.LAUNCH_TEMPLATE, name="t", properties={"networkInterfaces": [{**PRIMARY, "interfaceType": "EFA"}]}),
        says="interfaceType is EFA; allowed: interface, efa, efa-only",
        edge=True,
    ),
    valid("EFA02", template(nics(32))),
    valid("EFA02", template([nic(0, 0, "efa"), nic(1, 1, "efa")])),
    valid("EFA02", node_class(nics(2))),
    valid("EFA02", template([PRIMARY, {"networkCardIndex": 0, "deviceIndex": 1}])),
    valid("EFA02", template([{"interfaceType": "efa"}]), edge=True),
    invalid("EFA02", template(nics(2), vpcSecurityGroupIds=["sg-1"]), says="vpcSecurityGroupIds is set beside networkInterfaces; allowed"),
    invalid("EFA02", template(nics(2), securityGroupNames=["efa"]), says="securityGroupNames is set beside networkInterfaces; allowed"),
    valid("EFA02", template(nics(2), vpcSecurityGroupIds=[]), edge=True),
    invalid("EFA02", template([PRIMARY, nic(0), nic(1), nic(0, 2)]), says="networkInterfaces[3] is a second EFA on card 0"),
    invalid("EFA02", template([nic(0, 0)]), says="it carries the node's address"),
    invalid("EFA02", template([PRIMARY, nic(0), nic(0)]), says="one interface for each card and device"),
    invalid("EFA02", template([PRIMARY, nic(1, 1), nic(1, 2)]), says="a second EFA on card 1"),
    invalid("EFA02", template([nic(0, 0, "efa"), nic(0, 1)]), says="a second EFA on card 0", edge=True),
    invalid("EFA02", node_class([nic(1)]), says="a primary interface on card 0, device 0"),
    invalid("EFA02", node_class([nic(0, 0, "efa")]), says="interface or efa-only in an EC2NodeClass"),
    valid("EFA03", template(nics(2))),
    valid("EFA03", template(nics(4), "p4d.24xlarge")),
    valid("EFA03", template([{**PRIMARY, "associatePublicIpAddress": "true"}]), edge=True),
    valid("EFA03", template(nics(2)), node_group(sources={"subnetIds": ["private"]}), subnet()),
    valid("EFA03", node_class(nics(2), {"spec": ["private"]}, associatePublicIPAddress=False), subnet(mapPublicIpOnLaunch=False)),
    valid("EFA03", template([PRIMARY, nic(0, ipv4AddressCount=0)]), edge=True),
    invalid("EFA03", template([{**PRIMARY, "associatePublicIpAddress": "true"}, nic(0)]), says="associatePublicIpAddress is true"),
    invalid("EFA03", node_class(nics(2), associatePublicIPAddress=True), says="associatePublicIPAddress is true"),
    invalid(
        "EFA03",
        template(nics(2)),
        node_group(sources={"subnetIds": ["private"]}),
        subnet(mapPublicIpOnLaunch=True),
        says="in subnet private, which gives public addresses",
    ),
    invalid("EFA03", node_class(nics(2), {"spec": ["private"]}), subnet(mapPublicIpOnLaunch=True), says="which gives public addresses"),
    invalid("EFA03", template([PRIMARY, nic(0, ipv4AddressCount=1)]), says="ipv4AddressCount is 1;", edge=True),
    invalid("EFA03", template([PRIMARY, nic(0, ipv4Prefixes=["10.0.0.0/28"])]), says="which has no address"),
)

FABRIC = (
    valid("EFA04", b.efa_group(ingress=[ALL_SELF], egress=[ALL_SELF, ALL_OUT])),
    valid("EFA04", b.efa_group(), *BOTH),
    valid("EFA04", b.efa_group(ingress=UNKNOWN, egress=UNKNOWN), *BOTH),
    valid("EFA04", group("web", egress=[ALL_OUT])),
    valid("EFA04", group("cafeteria", description="café"), edge=True),
    valid("EFA04", group("nodes", ingress=[ALL_SELF], egress=[ALL_SELF]), node_class(nics(2), {"spec": ["nodes"]})),
    valid(
        "EFA04",
        group("nodes", ingress=[ALL_SELF], egress=[ALL_OUT]),
        b.efa_group(),
        *BOTH,
        node_class(nics(2), {"spec": ["nodes", "fabric-efa"]}),
    ),
    valid("EFA04", group("nodes", **OPEN, **ML), carrying(ML)),
    valid("EFA04", group("nodes", **CLOSED, tags={"team": "ml"}), carrying(ML)),
    valid("EFA04", group("nodes", **CLOSED, id="sg-1"), carrying({"id": "sg-2"})),
    valid("EFA04", group("nodes", **CLOSED), carrying({"id": UNKNOWN}, {"id": UNKNOWN}, sources=["cluster", "nodes"]), CLUSTER),
    valid("EFA04", group("nodes", **CLOSED, **ML), carrying(ML, {"tags": {"aws:eks:cluster-name": "c"}}, sources=["cluster"]), CLUSTER),
    # The other group was made elsewhere, and may be the open one.
    valid("EFA04", group("nodes", **CLOSED, id="sg-1"), carrying({"id": "sg-1"}, {"id": "sg-9"})),
    valid("EFA04", group("nodes", **CLOSED, id="sg-1"), template(nics(1), vpcSecurityGroupIds=["sg-1", "sg-9"])),
    valid(
        "EFA04",
        group("nodes", **CLOSED),
        template(nics(1), sources={"vpcSecurityGroupIds": ["nodes", "cluster"]}, vpcSecurityGroupIds=[UNKNOWN, UNKNOWN]),
        CLUSTER,
    ),
    # One open group of several is enough, and what carries no EFA needs none.
    valid("EFA04", NODES_1, ALL_2, template(nics(1), vpcSecurityGroupIds=["sg-1", "sg-2"])),
    valid("EFA04", NODES_1, ALL_2, template([{**PRIMARY, "securityGroups": ["sg-1"]}, nic(0, securityGroups=["sg-2"])]), edge=True),
    valid("EFA04", NODES_1, ALL_2, fast_files("sg-1", "sg-2")),
    valid("EFA04", group("nodes", ingress=[ALL_SELF], egress=UNKNOWN, id="sg-1"), ALL_2, carrying({"id": "sg-1"}, {"id": "sg-2"})),
    invalid(
        "EFA04",
        NODES_1,
        ALL_2,
        template([{**PRIMARY, "securityGroups": ["sg-2"]}, nic(0, securityGroups=["sg-1"])]),
        says="nodes: egress is without one",
        edge=True,
    ),
    invalid("EFA04", NODES_1, group("ssh", id="sg-3"), fast_files("sg-1", "sg-3"), says="nodes: egress is without one"),
    valid("EFA04", group("nodes", **CLOSED, id="sg-1"), group("all", **OPEN, **ML), carrying({"id": "sg-1"}, ML)),
    # An id is that of one group, so the others need not be known.
    valid("EFA04", ALL_2, group("nodes", **CLOSED, id=UNKNOWN), carrying({"id": "sg-2"})),
    valid("EFA04", group("nodes", **CLOSED, **ML), carrying(ML, interfaces=0), b.node_pool({TYPES: ["g5.8xlarge"]})),
    invalid("EFA04", group("nodes", **CLOSED, **ML), carrying(ML), says="nodes: egress is without one"),
    invalid("EFA04", group("nodes", **CLOSED, tagsAll=ML["tags"]), carrying({"tags": {"team": "*"}}), says="nodes: egress is without one"),
    invalid("EFA04", group("nodes", **CLOSED, id="sg-1"), carrying({"id": "sg-1"}), says="nodes: egress is without one", edge=True),
    invalid("EFA04", group("nodes", **CLOSED, id="sg-1"), template(nics(1), vpcSecurityGroupIds=["sg-1"]), says="nodes: egress is without"),
    invalid(
        "EFA04", group("nodes", **CLOSED, id="sg-1"), template([{**PRIMARY, "securityGroups": ["sg-1"]}, nic(0)]), says="nodes: egress is"
    ),
    valid("EFA04", group("nodes", **CLOSED, id="sg-1"), template(nics(1), vpcSecurityGroupIds=["sg-2"]), edge=True),
    # The groups of each interface are its own, though the values of all of them come from the same resources.
    invalid(
        "EFA04",
        NODES_1,
        ALL_2,
        template(
            [{**PRIMARY, "securityGroups": ["sg-2"]}, nic(0, securityGroups=["sg-1"])], sources={"networkInterfaces": ["nodes", "all"]}
        ),
        says="nodes: egress is without one",
    ),
    valid(
        "EFA04",
        NODES_1,
        CLUSTER,
        template(
            [{**PRIMARY, "securityGroups": ["sg-1"]}, nic(0, securityGroups=["sg-9"])], sources={"networkInterfaces": ["nodes", "cluster"]}
        ),
        edge=True,
    ),
    valid("EFA04", NODES_1, template([{**PRIMARY, "subnetId": "subnet-1"}, nic(0)], sources=NODES)),
    # Once all ids are known, what EFA carries may still be made elsewhere, and the group of the first interface here.
    valid("EFA04", group("front", **CLOSED), two_lists(["sg-1"], ["sg-0abc"]), edge=True),
    valid("EFA04", group("front", **CLOSED, id="sg-1"), two_lists(["sg-1"], ["sg-0abc"])),
    valid("EFA04", group("front", **OPEN), two_lists([UNKNOWN], ["sg-0abc"])),
    valid("EFA04", ALL_2, group("front", **CLOSED), two_lists([UNKNOWN], ["sg-2"])),
    invalid("EFA04", group("front", **CLOSED), two_lists(["sg-1"], ["sg-1"]), says="front: egress is without one", edge=True),
    invalid("EFA04", group("front", **CLOSED), two_lists(None, ["sg-1"]), says="front: egress is without one"),
    invalid("EFA04", group("front", **CLOSED), two_lists([UNKNOWN], [UNKNOWN]), says="front: egress is without one", edge=True),
    invalid("EFA04", group("front", **CLOSED), NODES_1, two_lists([UNKNOWN], ["sg-1"]), says="nodes: egress is without one"),
    # A list that is not known yet, of one group, and of groups of which one has no id yet.
    invalid(
        "EFA04",
        group("nodes", **CLOSED),
        template(nics(1), sources={"vpcSecurityGroupIds": ["nodes"]}, vpcSecurityGroupIds=UNKNOWN),
        says="nodes: egress is without one",
    ),
    invalid(
        "EFA04",
        group("nodes", **CLOSED),
        subnet(),
        template([PRIMARY, nic(0, securityGroups=UNKNOWN)], sources={"networkInterfaces": ["nodes", "private"]}),
        says="nodes: egress is without one",
    ),
    valid(
        "EFA04",
        NODES_1,
        group("all", **OPEN, id=UNKNOWN),
        template(nics(1), sources={"vpcSecurityGroupIds": ["all"]}, vpcSecurityGroupIds=["sg-1", UNKNOWN]),
    ),
    valid(
        "EFA04",
        group("nodes", **CLOSED),
        group("all", **OPEN),
        CLUSTER,
        template(nics(1), sources={"vpcSecurityGroupIds": ["nodes", "all", "cluster"]}, vpcSecurityGroupIds=UNKNOWN),
    ),
    valid(
        "EFA04",
        group("more", **OPEN),
        group("all", **OPEN),
        CLUSTER,
        template(
            [{**PRIMARY, "securityGroups": [UNKNOWN]}, nic(0, securityGroups=[UNKNOWN])],
            sources={"networkInterfaces": ["all", "more", "cluster"]},
        ),
    ),
    valid(
        "EFA04",
        ALL_2,
        group("nodes", **CLOSED, id=UNKNOWN),
        template([PRIMARY, nic(0, securityGroups=["sg-2", UNKNOWN])], sources={"networkInterfaces": ["nodes", "all"]}),
    ),
    invalid(
        "EFA04",
        group("nodes", **CLOSED),
        subnet(),
        template([PRIMARY, nic(0, securityGroups=[UNKNOWN])], sources={"networkInterfaces": ["nodes", "private"]}),
        says="nodes: egress is without one",
    ),
    invalid("EFA04", NODES_1, fast_files("sg-1", "sg-1"), says="nodes: egress is without one"),
    # Told once, however many carry it; and a group for EFA among others is the one that has to be open.
    invalid(
        "EFA04",
        NODES_1,
        fast_files("sg-1"),
        template(nics(1), vpcSecurityGroupIds=["sg-1"]),
        says="nodes: egress is without one",
    ),
    invalid("EFA04", b.efa_group(**CLOSED, id="sg-1"), fast_files("sg-1"), says="fabric-efa: egress is without one"),
    *(
        invalid(
            "EFA04",
            NODES_1,
            group("more", **CLOSED, id="sg-4", **called),
            template(nics(1), vpcSecurityGroupIds=["sg-1", "sg-4"]),
            says="more: egress is without one",
        )
        for called in ({"description": "EFA traffic"}, {"tags": {"Name": "p5-efa"}})
    ),
    valid("EFA04", group("nodes", **CLOSED, id="sg-1"), template([PRIMARY], vpcSecurityGroupIds=["sg-1"])),
    invalid("EFA04", group("nodes", **CLOSED, name="ml"), carrying({"name": "ml"}), says="nodes: egress is without one"),
    invalid("EFA04", group("nodes", **CLOSED), carrying({"id": UNKNOWN}, sources=["cluster", "nodes"]), CLUSTER, says="nodes: egress is"),
    invalid("EFA04", group("nodes", **CLOSED, **ML), carrying(ML, interfaces=0), b.node_pool(), says="nodes: egress is without one"),
    invalid(
        "EFA04",
        group("nodes", **CLOSED, **ML),
        carrying(ML, interfaces=0),
        b.node_pool({TYPES: ["g5.8xlarge"], "spec/template/metadata/labels": {"pool": "small"}}),
        pod({"pool": "small"}, efa=1),
        says="nodes: egress is without one",
    ),
    invalid("EFA04", b.efa_group(ingress=[ALL_SELF], egress=[ALL_OUT]), says="fabric-efa: egress is without one"),
    invalid("EFA04", b.efa_group(egress=[ALL_SELF]), says="ingress is without one"),
    invalid("EFA04", b.efa_group(), BOTH[0], says="egress is without one"),
    invalid("EFA04", b.efa_group(ingress=[{**ALL_SELF, "protocol": "tcp"}], egress=[ALL_SELF]), says="ingress is without one", edge=True),
    invalid(
        "EFA04", group("nodes"), template([nic(0, 0, "efa", securityGroups=[UNKNOWN])], sources=NODES), says="nodes: ingress is without"
    ),
    invalid(
        "EFA04",
        group("nodes", ingress=[ALL_SELF], egress=[ALL_OUT]),
        node_class(nics(2), {"spec": ["nodes"]}),
        says="nodes: egress is without one",
    ),
    invalid(
        "EFA04",
        group("storage", ingress=[ALL_SELF]),
        Thing(
            type=tokens.LUSTRE,
            name="scratch",
            properties={"efaEnabled": True, "securityGroupIds": [UNKNOWN]},
            sources={"securityGroupIds": ["storage"]},
        ),
        says="storage: egress is without one",
    ),
    # Types of two EFA cards are bought for them; those of one are not, until a pod asks for it.
    invalid(
        "EFA04",
        group("nodes", **CLOSED, **ML),
        carrying(ML, interfaces=0),
        b.node_pool({TYPES: ["g6e.24xlarge"]}),
        says="nodes: egress is without one",
        edge=True,
    ),
    *(
        invalid(
            "EFA04",
            group("nodes", **CLOSED, **ML),
            carrying(ML, interfaces=0),
            b.node_pool({TYPES: ["g5.8xlarge"]}),
            compared_with("karpenter.k8s.aws/instance-gpu-memory", operator),
            says="nodes: egress is without one",
        )
        for operator in ("Gt", "Lt")
    ),
    valid("EFA04", b.efa_group(), *OLDER),
    valid("EFA04", b.efa_group(), *(older(way, ["fabric-efa"], sourceSecurityGroupId=UNKNOWN) for way in ("ingress", "egress"))),
    invalid(
        "EFA04",
        b.efa_group(egress=[ALL_SELF]),
        older("ingress", ["nodes"], sourceSecurityGroupId=UNKNOWN),
        group("nodes"),
        says="ingress is without one",
    ),
    invalid("EFA04", b.efa_group(egress=[ALL_SELF]), older("ingress", self=False, cidrBlocks=["10.0.0.0/16"]), says="ingress is without"),
    valid("EFA05", b.node_pool(), b.node_class()),
    valid("EFA05", b.cpu_pool()),
    valid("EFA05", template([nic(0, 0, "efa")]), node_group(1), edge=True),
    valid("EFA05", template([PRIMARY]), node_group(3)),
    valid("EFA05", b.node_pool({TYPES: ["g5.8xlarge"], ZONE: ["us-east-1a", "us-east-1b"]})),
    invalid("EFA05", b.node_pool({ZONE: ["us-east-1a", "us-east-1b"]}), says="zones us-east-1a, us-east-1b"),
    invalid("EFA05", b.node_pool({ZONE: []}), says="exactly one zone", edge=True),
    invalid("EFA05", b.node_pool({f"{REQUIREMENTS}/1": ANY_TYPE}), says="without a zone"),
    invalid("EFA05", b.node_pool({ZONE: ["a", "b"], TYPES: ["g5.8xlarge"]}), node_class(nics(1)), says="zones a, b"),
    # A class of EKS Auto Mode may have the name of an EC2NodeClass.
    valid("EFA05", referring(**OF_EKS), node_class(nics(1))),
    valid("EFA05", referring(group="eks.amazonaws.com"), node_class(nics(1)), edge=True),
    valid("EFA05", referring(kind="NodeClass"), node_class(nics(1)), edge=True),
    invalid("EFA05", referring(), node_class(nics(1)), says="because the pool uses EFA", edge=True),
    invalid("EFA05", referring(**OF_EC2), node_class(nics(1)), says="because the pool uses EFA"),
    invalid("EFA05", template([nic(0, 0, "efa")]), node_group(3), says="3 subnets"),
    invalid("EFA05", template([nic(0, 0, "efa")]), node_group(2), says="2 subnets", edge=True),
    valid("EFA05", template([nic(0, 0, "efa")], id="lt-1"), node_group(3, {"launchTemplate": ["plain"]}, launchTemplate={"id": "lt-2"})),
)


FINDING = {"gfd": {"enabled": True}}


def daemon(image: str, *paths: str, tolerations: Any = ({"operator": "Exists"},), **pod_spec: Any) -> Thing:
    mounts = [{"name": "devices", "mountPath": path} for path in paths]
    container = {"name": "plugin", "image": image, "volumeMounts": mounts}
    spec = {"template": {"spec": {"containers": [container], "tolerations": list(tolerations), **pod_spec}}}
    return Thing(type=tokens.DAEMON_SET, name="plugin", properties={"metadata": {"name": "plugin"}, "spec": spec})


def chart(name: str, version: Any) -> Thing:
    return Thing(type=tokens.RELEASE, name=name, properties={"chart": name, "version": version, "values": FINDING})


EFA_IMAGE = "registry.example/eks/aws-efa-k8s-device-plugin:v0.5.20"
NVIDIA_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
INFINIBAND = "/dev/infiniband"
NO_EFA = b.node_pool({TYPES: ["g5.xlarge"], "spec/template/metadata/labels": {"pool": "small"}})
NO_EFA_EITHER = b.node_pool({TYPES: ["g5.2xlarge"], "spec/template/metadata/labels": {"pool": "small"}}, name="more")
TAINTS = "spec/template/spec/taints"
NO_GPU = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
NO_NEURON = {"key": "aws.amazon.com/neuron", "effect": "NoSchedule"}
NEURON_IMAGE = "public.ecr.aws/neuron/neuron-device-plugin:2.24.23.0"
MAIN = "spec/containers/0"

CPU_GROUP = Thing(type=tokens.NODE_GROUP, name="cpu", properties={"instanceTypes": ["m7i.large"], "amiType": "AL2023_x86_64_STANDARD"})
AUTO_CLUSTER = Thing(type=tokens.CLUSTER, name="auto", properties={"computeConfig": {"enabled": True}})
AUTO_POOL = b.node_pool({"spec/template/spec/nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}})
AUTO_LABEL = {"eks.amazonaws.com/instance-family": "p5"}
BOTTLEROCKET = {"spec/amiFamily": "Bottlerocket", "spec/amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]}
P5 = {"node.kubernetes.io/instance-type": "p5.48xlarge"}
ANYWHERE = pod(spec={"spec/nodeSelector": b.DELETE}, gpu=8)
OTHER_POOL = b.node_pool({"metadata/name": "p4", TAINTS: [{"key": "team-b", "effect": "NoSchedule"}]}, name="p4")
OF_TEAM_B = {"key": "team-b", "operator": "Exists"}
OF_GPU = {"key": "nvidia.com/gpu", "operator": "Exists"}
TEAM_B_DAEMON = replace(daemon(NVIDIA_IMAGE, tolerations=[OF_TEAM_B]), name="second")


def gpu_group(image: str, *types: str, **properties: Any) -> Thing:
    return Thing(type=tokens.NODE_GROUP, name="gpu", properties={"amiType": image, "instanceTypes": list(types), **properties})


def set_of(application: Thing) -> Thing:
    """A set that makes the Application for each cluster."""
    template = {**application.properties, "metadata": {"name": "{{.name}}-addon"}}
    properties = {"metadata": {"name": "addons"}, "spec": {"generators": [{"clusters": {}}], "template": template}}
    return Thing(type=tokens.APPLICATION_SET, name="addons", properties=properties)


def nvidia_chart(address: str = "nvidia-device-plugin", version: Any = "0.20.0", **values: Any) -> Thing:
    """NVIDIA's chart, which finds the GPUs and labels their nodes, as its pods want, unless `values` say otherwise."""
    properties = {"chart": address, **({"version": version} if version else {}), "values": {**FINDING, **values}}
    return Thing(type=tokens.RELEASE, name="plugin-chart", properties=properties)


def efa_chart(**values: Any) -> Thing:
    return replace(nvidia_chart("aws-efa-k8s-device-plugin", "v0.5.30", **values), name="efa-chart")


OFF: dict[str, Any] = {"devicePlugin": {"enabled": False}}
GPU_OFF = nvidia_chart("gpu-operator", "v25.10.1", **OFF)
ONE_CARD = b.node_pool(
    {"metadata/name": "g6e", TYPES: ["g6e.8xlarge"], TAINTS: [{"key": "team-b", "effect": "NoSchedule"}]},
    name="g6e",
)
ONE_CARD_POD = pod({"node.kubernetes.io/instance-type": "g6e.8xlarge"}, spec={"spec/tolerations": [OF_TEAM_B]}, gpu=1, efa=1)

PRESENT = {"nvidia.com/gpu.present": "true"}
LABELLED = b.node_pool({"spec/template/metadata/labels": PRESENT})
UNLABELLED: dict[str, Any] = {"gfd": {"enabled": False}}
P4_POOL = b.node_pool({TYPES: ["p4d.24xlarge"]})
TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def wish(key: str, *values: str) -> dict[str, Any]:
    """The affinity for nodes with one of the values of a label."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    return {"affinity": {"nodeAffinity": {TERMS: {"nodeSelectorTerms": terms}}}}


PLACES = (
    # NVIDIA's chart wants labels that somebody gives the nodes: their pool, or what discovers features.
    valid("EFA07", LABELLED, nvidia_chart(**UNLABELLED)),
    valid("EFA07", b.node_pool(), nvidia_chart(**UNLABELLED), chart("node-feature-discovery", "0.18.3")),
    valid("EFA07", b.node_pool(), nvidia_chart(**UNLABELLED), b.application_of("x", None, chart=None, path="platform/discovery")),
    valid(
        "EFA07", b.node_pool(), nvidia_chart(**UNLABELLED), replace(daemon("registry.example/nfd/node-feature-discovery:v1"), name="nfd")
    ),
    valid("EFA07", b.node_pool(), nvidia_chart(version="0.14.5", **UNLABELLED), edge=True),
    *(valid("EFA07", b.node_pool(), nvidia_chart(affinity=given, **UNLABELLED), edge=True) for given in (None, {"nodeAffinity": None})),
    valid("EFA07", b.node_pool(), nvidia_chart(**wish("node.kubernetes.io/instance-type", "p5.48xlarge"), **UNLABELLED)),
    valid("EFA07", gpu_group("AL2023_x86_64_NVIDIA", "p5.48xlarge", labels=PRESENT), nvidia_chart(**UNLABELLED)),
    valid("EFA07", b.cpu_pool(), CPU_GROUP, nvidia_chart(**UNLABELLED)),
    *(
        invalid(
            "EFA07", host, nvidia_chart(version=release, **UNLABELLED), says=f"values.affinity is unset, so a wish for {key}", edge=edge
        )
        for key in PRESENT
        for host, release, edge in (
            (b.node_pool(), "0.17.1", False),
            (b.node_pool(), "0.15.0", True),
            (gpu_group("AL2023_x86_64_NVIDIA", "p5.48xlarge"), "0.17.1", False),
        )
    ),
    invalid(
        "EFA07", b.node_pool(), nvidia_chart(affinity={"podAffinity": {}}, **UNLABELLED), says="values.affinity is unset, so", edge=True
    ),
    invalid("EFA07", b.node_pool(), nvidia_chart(nodeSelector={"pool": "gpu"}), says="a wish for pool, which p5 does not give its nodes"),
    # What the plug-in wants and the pool bars is no guess.
    valid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND, nodeSelector=P5)),
    valid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND, nodeSelector={"beta.kubernetes.io/instance-type": "p5.48xlarge"})),
    valid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND, nodeSelector={"karpenter.sh/nodepool": "p5", "kubernetes.io/os": "linux"})),
    valid("EFA07", P4_POOL, daemon(EFA_IMAGE, INFINIBAND, **wish("node.kubernetes.io/instance-type", "p5.48xlarge", "p4d.24xlarge"))),
    valid("EFA07", P4_POOL, daemon(EFA_IMAGE, INFINIBAND, nodeSelector=P5), replace(daemon(EFA_IMAGE, INFINIBAND), name="second")),
    valid("EFA07", LABELLED, daemon(NVIDIA_IMAGE, nodeSelector=PRESENT)),
    valid("EFA07", gpu_group("AL2023_x86_64_NVIDIA", "p5.48xlarge"), daemon(NVIDIA_IMAGE, nodeSelector=P5)),
    # A pool may go without EFA, and without the label of those that have it.
    valid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND, nodeSelector={"team.example/efa": "true"}), edge=True),
    invalid(
        "EFA07",
        *(b.node_pool(), daemon(EFA_IMAGE, INFINIBAND, nodeSelector={"team.example/efa": "true"}), pod(P5, efa=32)),
        says="team.example/efa, which p5 does not give its nodes",
        edge=True,
    ),
    valid("EFA07", b.node_pool(), daemon(NVIDIA_IMAGE, nodeSelector={"eks.amazonaws.com/compute-type": "ec2"}), edge=True),
    invalid("EFA07", P4_POOL, daemon(EFA_IMAGE, INFINIBAND, nodeSelector=P5), says="p5.48xlarge, where nodes of p5 have p4d.24xlarge"),
    invalid(
        "EFA07",
        P4_POOL,
        daemon(EFA_IMAGE, INFINIBAND, **wish("node.kubernetes.io/instance-type", "p5.48xlarge", "p5en.48xlarge")),
        says="p5.48xlarge or p5en.48xlarge, where nodes of p5 have p4d.24xlarge",
        edge=True,
    ),
    invalid("EFA07", b.node_pool(), daemon(NVIDIA_IMAGE, nodeSelector={"karpenter.sh/nodepool": "gpu"}), says="where nodes of p5 have p5"),
    invalid(
        "EFA07",
        gpu_group("AL2023_x86_64_NVIDIA", "p4d.24xlarge"),
        daemon(NVIDIA_IMAGE, nodeSelector=P5),
        says="where nodes of gpu have p4d.24xlarge",
    ),
    invalid("EFA07", b.node_pool(), daemon(NVIDIA_IMAGE, nodeSelector=PRESENT), says="gpu.present, which p5 does not give its nodes"),
)

PLUGINS = (
    *PLACES,
    # Nodes of EKS Auto Mode and of Bottlerocket have the plug-in built in.
    valid("EFA07", AUTO_CLUSTER, pod(gpu=8, efa=32)),
    valid("EFA07", AUTO_CLUSTER, CPU_GROUP, pod(AUTO_LABEL, gpu=8)),
    valid("EFA07", AUTO_CLUSTER, AUTO_POOL, CPU_GROUP, pod(P5, gpu=8)),
    valid("EFA07", CLUSTER, gpu_group("BOTTLEROCKET_x86_64_NVIDIA", "p5.48xlarge"), pod(P5, gpu=8)),
    valid("EFA07", CLUSTER, gpu_group("BOTTLEROCKET_x86_64_NVIDIA_FIPS", "p5.48xlarge", labels={"pool": "a"}), pod({"pool": "a"}, gpu=8)),
    valid("EFA07", CLUSTER, b.node_pool(), b.node_class(BOTTLEROCKET), pod(P5, gpu=8)),
    # A pod that names no nodes goes where its devices are.
    valid("EFA07", CLUSTER, b.node_pool(), b.node_class(BOTTLEROCKET), b.cpu_pool(), ANYWHERE),
    valid("EFA07", CLUSTER, CPU_GROUP, gpu_group("BOTTLEROCKET_x86_64_NVIDIA", "p5.48xlarge"), ANYWHERE),
    invalid(
        "EFA07",
        *(CLUSTER, b.node_pool(), b.node_class(BOTTLEROCKET), gpu_group("AL2023_x86_64_NVIDIA", "p5.48xlarge"), ANYWHERE),
        says="asking for nvidia.com/gpu, which nothing offers",
        edge=True,
    ),
    invalid("EFA07", CLUSTER, b.cpu_pool(), ANYWHERE, says="asking for nvidia.com/gpu, which nothing offers"),
    # Labels that nodes get from EKS or the cloud are no node group's to name.
    *(
        valid("EFA07", CLUSTER, gpu_group("BOTTLEROCKET_x86_64_NVIDIA", "p5.48xlarge"), pod(selector, gpu=8))
        for selector in ({**P5, "topology.kubernetes.io/zone": "us-east-1a"}, {"eks.amazonaws.com/nodegroup": "gpu"})
    ),
    valid(
        "EFA07",
        *(CLUSTER, Thing(type=tokens.LAUNCH_TEMPLATE, name="t", properties={"instanceType": "p5.48xlarge"}), pod(P5, gpu=8)),
        replace(gpu_group("BOTTLEROCKET_x86_64_NVIDIA", launchTemplate={"version": "1"}), sources={"launchTemplate": ["t"]}),
    ),
    invalid("EFA07", AUTO_CLUSTER, CPU_GROUP, pod(P5, gpu=8), says="asking for nvidia.com/gpu, which nothing offers", edge=True),
    invalid("EFA07", CLUSTER, pod(AUTO_LABEL, gpu=8), says="asking for nvidia.com/gpu, which nothing offers", edge=True),
    invalid("EFA07", CLUSTER, gpu_group("AL2023_x86_64_NVIDIA", "p5.48xlarge"), pod(P5, gpu=8), says="which nothing offers"),
    invalid("EFA07", CLUSTER, gpu_group("BOTTLEROCKET_x86_64_NVIDIA", "p5.48xlarge"), pod(P5, efa=32), says="vpc.amazonaws.com/efa, which"),
    invalid("EFA07", CLUSTER, gpu_group("BOTTLEROCKET_x86_64_NVIDIA", "g5.xlarge"), pod(P5, gpu=8), says="which nothing offers", edge=True),
    invalid(
        "EFA07", CLUSTER, gpu_group("BOTTLEROCKET_x86_64_NVIDIA", "p5.48xlarge"), pod({"pool": "a"}, gpu=8), says="which nothing offers"
    ),
    invalid(
        "EFA07", CLUSTER, b.node_pool(), b.node_class({**BOTTLEROCKET, "spec/amiFamily": "AL2023"}), pod(P5, gpu=8), says="which nothing"
    ),
    # Each pool may have a plug-in of its own.
    valid("EFA07", b.node_pool(), OTHER_POOL, daemon(NVIDIA_IMAGE, tolerations=[OF_GPU]), TEAM_B_DAEMON),
    valid("EFA07", OTHER_POOL, daemon(NVIDIA_IMAGE, tolerations=[OF_GPU]), nvidia_chart(tolerations=[OF_TEAM_B])),
    valid("EFA07", OTHER_POOL, daemon(NVIDIA_IMAGE, tolerations=[OF_GPU]), nvidia_chart(), edge=True),
    valid("EFA07", OTHER_POOL, b.node_class(BOTTLEROCKET), daemon(NVIDIA_IMAGE, tolerations=[OF_GPU])),
    invalid("EFA07", b.node_pool(), OTHER_POOL, daemon(NVIDIA_IMAGE, tolerations=[OF_GPU]), says="a toleration of team-b, the taint of p4"),
    invalid(
        "EFA07", OTHER_POOL, daemon(NVIDIA_IMAGE, tolerations=()), nvidia_chart(tolerations=[OF_GPU]), says="team-b, the taint", edge=True
    ),
    # A chart that is given tolerations has these in place of its own.
    invalid("EFA07", OTHER_POOL, nvidia_chart(tolerations=[OF_GPU]), says="values.tolerations is without a toleration of team-b; allowed"),
    invalid("EFA07", OTHER_POOL, nvidia_chart(tolerations=[]), says="values.tolerations is without a toleration of team-b", edge=True),
    valid("EFA07", OTHER_POOL, nvidia_chart("./charts/nvidia-device-plugin", tolerations=[OF_GPU]), edge=True),
    valid("EFA07", OTHER_POOL, nvidia_chart("gpu-operator", "v25.10.1", tolerations=[OF_GPU]), edge=True),
    valid("EFA07", OTHER_POOL, nvidia_chart(tolerations=[OF_GPU]), replace(nvidia_chart(tolerations=[OF_TEAM_B]), name="second")),
    # EFA that no pod asks for, on a type that has it beside, is nobody's to offer.
    valid("EFA07", ONE_CARD, nvidia_chart(), efa_chart(tolerations=[OF_GPU])),
    valid("EFA07", ONE_CARD, nvidia_chart(), daemon(EFA_IMAGE, INFINIBAND, tolerations=[OF_GPU]), edge=True),
    invalid(
        "EFA07", ONE_CARD, nvidia_chart(), efa_chart(tolerations=[OF_GPU]), ONE_CARD_POD, says="a toleration of team-b, the taint of g6e"
    ),
    # A chart may have the plug-in switched off, beside what else it installs.
    *(
        invalid("EFA07", CLUSTER, b.node_pool(), nvidia_chart(name, "v25.10.1", **OFF), pod(P5, gpu=8), says="which nothing offers")
        for name in ("gpu-operator", "nvidia-device-plugin")
    ),
    valid(
        "EFA07",
        CLUSTER,
        b.node_pool(),
        nvidia_chart("gpu-operator", "v25.10.1", **OFF),
        chart("nvidia-device-plugin", "0.20.0"),
        pod(gpu=8),
    ),
    # Its place may be taken by a driver of claims, which is only told.
    *(
        invalid("EFA07", CLUSTER, b.node_pool(), GPU_OFF, replace(other, name="claims"), pod(P5, gpu=8), says="which nothing")
        for other in (chart("nvidia-dra-driver-gpu", "25.8.1"), nvidia_chart("neuron-helm-chart", draDriver={"enabled": True}))
    ),
    valid("EFA07", CLUSTER, b.node_pool(), nvidia_chart("./charts/gpu-operator", None, **OFF), pod(P5, gpu=8), edge=True),
    valid("EFA07", CLUSTER, b.node_pool(), nvidia_chart(devicePlugin={"enabled": True}), pod(P5, gpu=8), edge=True),
    # A chart's version is exact, or the chart is fixed by itself.
    valid("EFA07", b.node_pool(), nvidia_chart("./charts/nvidia-device-plugin", None), pod(gpu=8)),
    valid("EFA07", b.node_pool(), nvidia_chart("/srv/charts/nvidia-device-plugin", None), pod(gpu=8)),
    valid("EFA07", b.node_pool(), nvidia_chart("https://charts.example/nvidia-device-plugin-0.17.1.tgz", None), pod(gpu=8)),
    valid("EFA07", b.node_pool(), nvidia_chart(version="v0.17.1-rc.1"), edge=True),
    valid("EFA07", CLUSTER, b.node_pool(), b.application_of("nvidia-device-plugin", {"valuesObject": FINDING}), pod(P5, gpu=8)),
    valid("EFA07", CLUSTER, b.node_pool(), set_of(b.application_of("nvidia-device-plugin", {"valuesObject": FINDING})), pod(P5, gpu=8)),
    invalid("EFA07", CLUSTER, b.node_pool(), set_of(b.application_of("cert-manager")), pod(P5, gpu=8), says="which nothing offers"),
    valid("EFA07", CLUSTER, b.node_pool(), b.application_of("x", None, chart=None, path="platform/gpu-operator"), pod(P5, gpu=8)),
    valid(
        "EFA07",
        OTHER_POOL,
        daemon(NVIDIA_IMAGE, tolerations=[OF_GPU]),
        b.application_of("nvidia-device-plugin", {"valuesObject": {**FINDING, "tolerations": [OF_TEAM_B]}}),
    ),
    invalid(
        "EFA07",
        OTHER_POOL,
        daemon(NVIDIA_IMAGE, tolerations=[OF_GPU]),
        b.application_of("nvidia-device-plugin", {"valuesObject": {"tolerations": [OF_GPU]}}),
        says="team-b, the taint",
    ),
    invalid("EFA07", CLUSTER, b.node_pool(), b.application_of("cert-manager"), pod(P5, gpu=8), says="which nothing offers"),
    *(
        invalid(
            "EFA07", b.node_pool(), nvidia_chart(version=text), says=f"version is {text}; allowed: a pinned version", edge=text == "0.17"
        )
        for text in (">=0.17.1", "~0.17.1", "0.17.x", "0.17", "^1", "0.17.1 - 0.18.1")
    ),
    invalid(
        "EFA07", b.node_pool(), nvidia_chart("https://charts.example/nvidia-device-plugin.tgz", None), says="a pinned version of the chart"
    ),
    invalid("EFA07", NO_EFA, NO_EFA_EITHER, pod({"pool": "small"}, efa=1), says="no type of p5, more has EFA"),
    invalid(
        "EFA07",
        b.node_pool({TAINTS: [NO_GPU, {"key": "team", "effect": "NoSchedule"}]}),
        daemon(NVIDIA_IMAGE, tolerations=()),
        says="nvidia.com/gpu, the taint of p5",
    ),
    invalid(
        "EFA07",
        b.node_pool({TYPES: ["trn1.32xlarge"], TAINTS: [NO_NEURON]}),
        daemon(NEURON_IMAGE, tolerations=()),
        says="aws.amazon.com/neuron, the taint",
    ),
    invalid(
        "EFA07",
        b.node_pool({TYPES: ["inf2.48xlarge"], TAINTS: [NO_NEURON]}),
        daemon(NEURON_IMAGE, tolerations=()),
        says="aws.amazon.com/neuron, the taint",
    ),
    invalid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND), pod(gpu=8), says="asking for nvidia.com/gpu, which nothing offers"),
    valid(
        "EFA07",
        b.node_pool({TYPES: ["p9.48xlarge"]}),
        pod({"node.kubernetes.io/instance-type": "p9.48xlarge"}, efa=1),
        daemon(EFA_IMAGE, INFINIBAND),
    ),
    valid("EFA07", NO_EFA, daemon(EFA_IMAGE, INFINIBAND, tolerations=())),
    valid("EFA07", b.node_pool(), daemon("k8s-device-plugin:v0.20.0")),
    valid("EFA07", b.node_pool(), daemon(NVIDIA_IMAGE), pod(gpu=8)),
    valid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND), daemon(NVIDIA_IMAGE)),
    valid("EFA07", pod(gpu=8, efa=32)),
    valid("EFA07", b.node_pool(), pod(gpu=8), chart("nvidia-device-plugin", "0.20.0")),
    valid("EFA07", b.node_pool(), pod(gpu=8, efa=32), chart("gpu-operator", "v25.3.2"), chart("aws-efa-k8s-device-plugin", "v0.5.30")),
    valid("EFA07", b.node_pool(), b.cpu_pool()),
    valid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND, tolerations=[{"key": GPU, "operator": "Exists"}]), edge=True),
    valid(
        "EFA07", CLUSTER, b.node_pool(), b.node_class({"spec/amiSelectorTerms": [{"alias": "bottlerocket@v1.40.0"}]}), pod(gpu=8), edge=True
    ),
    invalid("EFA07", CLUSTER, b.node_pool(), pod(gpu=8), says="asking for nvidia.com/gpu, which nothing offers"),
    invalid("EFA07", CLUSTER, b.node_pool(), b.node_class(), pod(gpu=8), says="which nothing offers", edge=True),
    invalid("EFA07", b.node_pool(), pod(gpu=8), says="asking for nvidia.com/gpu, which nothing offers"),
    invalid("EFA07", b.node_pool(), pod(gpu=8, efa=32), chart("nvidia-device-plugin", "0.20.0"), says="asking for vpc.amazonaws.com/efa"),
    invalid("EFA07", b.node_pool(), daemon(EFA_IMAGE), says="containers is without a mount of /dev/infiniband; allowed: one with"),
    invalid("EFA07", b.node_pool(), daemon(EFA_IMAGE, INFINIBAND, tolerations=()), says="without a toleration of nvidia.com/gpu"),
    invalid("EFA07", b.node_pool(), daemon("nvcr.io/nvidia/k8s-device-plugin:latest"), says="a pinned release of the plug-in", edge=True),
    invalid("EFA07", b.node_pool(), daemon("registry.example:5000/nvidia/k8s-device-plugin"), says="a pinned release", edge=True),
    invalid("EFA07", b.node_pool(), chart("nvidia-device-plugin", None), says="a pinned version of the chart"),
    invalid("EFA07", NO_EFA, pod({"pool": "small"}, efa=1), says="no type of p5 has EFA"),
)


def scripted(*command: str) -> Thing:
    return pod(spec={"spec/containers/0/command": list(command)}, gpu=8)


def config_map(text: str) -> Thing:
    return Thing(type=tokens.CONFIG_MAP, name="script", properties={"metadata": {"name": "script"}, "data": {"run.sh": text}})


def settings(**data: str) -> Thing:
    """A ConfigMap that pods take as their environment."""
    return Thing(type=tokens.CONFIG_MAP, name="settings", properties={"metadata": {"name": "settings"}, "data": data})


HOST = {"spec/hostNetwork": True}
SOCKETS = "NCCL_SOCKET_IFNAME"

ENVIRONMENT = (
    invalid(
        "ENV01",
        pod(spec={f"{MAIN}/env": [{"name": "NCCL_ALGO", "valueFrom": {"configMapKeyRef": {"name": "nccl", "key": "algo"}}}]}),
        says="env[0] is NCCL_ALGO=",
    ),
    invalid("ENV01", pod(spec={f"{MAIN}/args": ["NCCL_PROTO=Simple python train.py"]}), says="args[0] is NCCL_PROTO=Simple"),
    valid("ENV01", pod(env={"NCCL_DEBUG": "WARN"})),
    valid("ENV01", pod(env={"FI_PROVIDER": "efa", "FI_EFA_USE_HUGE_PAGE": "0"}, efa=32)),
    valid("ENV01", pod(env={"FI_PROVIDER": "verbs"}, efa=32), edge=True),
    valid("ENV02", pod(env={"GLOO_SOCKET_IFNAME": "eth0"})),
    invalid("ENV02", pod(env={"GLOO_SOCKET_IFNAME": "^lo,docker"}), says="GLOO_SOCKET_IFNAME=^lo,docker; allowed: unset, or names"),
    valid("ENV01", scripted("python", "train.py", "--set", "model.layers=8")),
    valid("ENV01", config_map("export NCCL_DEBUG=INFO\npython train.py\n")),
    valid("ENV01", scripted("sh", "-c", "echo $NCCL_PROTO=x"), edge=True),
    invalid("ENV01", pod(env={"RDMAV_FORK_SAFE": "1"}), says="RDMAV_FORK_SAFE=1; allowed: no RDMAV_* at all"),
    invalid("ENV01", pod(env={"NCCL_PROTO": "Simple"}), says="NCCL_PROTO=Simple"),
    invalid("ENV01", pod(env={"NCCL_ALGO": "Ring", "NCCL_IB_DISABLE": "1"}), says="NCCL_IB_DISABLE=1"),
    invalid("ENV01", scripted("/bin/sh", "-c", "export NCCL_PROTO=Simple; exec python train.py"), says="NCCL_PROTO=Simple"),
    invalid("ENV01", scripted("mpirun", "-np", "8", "-x", "FI_EFA_USE_DEVICE_RDMA=1", "python"), says="FI_EFA_USE_DEVICE_RDMA=1"),
    invalid("ENV01", config_map("#!/bin/sh\nexport RDMAV_HUGEPAGES_SAFE=1\n"), says='data["run.sh"]'),
    invalid("ENV01", pod(env={"NCCL_BUFFSIZE": ""}), says="NCCL_BUFFSIZE=;", edge=True),
    # Quotes, options of mpirun, keys of a ConfigMap, comments.
    invalid("ENV01", scripted("sh", "-c", 'export NCCL_PROTO="Simple" && python x'), says="NCCL_PROTO=Simple;"),
    invalid("ENV01", scripted("mpirun", "-genv", "RDMAV_FORK_SAFE", "1", "python"), says="RDMAV_FORK_SAFE=1"),
    invalid("ENV01", scripted("mpirun", "-x", "RDMAV_FORK_SAFE", "python"), says="RDMAV_FORK_SAFE="),
    invalid("ENV01", scripted("mpirun", "-genv", "RDMAV_FORK_SAFE=1", "python"), says="RDMAV_FORK_SAFE=1"),
    invalid("ENV01", scripted("bash", "-c", "mpiexec -genvlist A,NCCL_ALGO ./a"), says="NCCL_ALGO="),
    invalid("ENV01", settings(RDMAV_FORK_SAFE="1", FI_PROVIDER="efa"), says="data.RDMAV_FORK_SAFE is RDMAV_FORK_SAFE=1"),
    invalid("ENV01", config_map("mpirun -x RDMAV_FORK_SAFE python x"), says='data["run.sh"] is RDMAV_FORK_SAFE='),
    valid("ENV01", settings(FI_PROVIDER="efa", NCCL_DEBUG="WARN"), edge=True),
    valid("ENV01", config_map("# RDMAV_FORK_SAFE=1 is no longer needed\npython x  # NCCL_ALGO=Ring"), edge=True),
    valid("ENV01", scripted("mpirun", "-x", "NCCL_DEBUG", "python", "x", "-x", "RDMAV_FORK_SAFE"), edge=True),
    # A network that no plug-in has, and variables that nobody reads.
    invalid("ENV01", pod(env={"NCCL_NET": "efa"}), says="NCCL_NET=efa; allowed: unset, or AWS Libfabric: no plug-in has"),
    invalid("ENV01", settings(NCCL_NET="EFA"), says="data.NCCL_NET is NCCL_NET=EFA; allowed: unset, or AWS", edge=True),
    invalid("ENV01", scripted("mpirun", "-x", "NCCL_NET=aws-ofi-nccl", "python"), says="NCCL_NET=aws-ofi-nccl; allowed: unset, or AWS"),
    invalid("ENV01", pod(env={"NCCL_EFA_ENABLE": "1"}), says="NCCL_EFA_ENABLE=1; allowed: unset: neither NCCL nor libfabric reads it"),
    invalid("ENV01", settings(EFA_ENABLED="true"), says="EFA_ENABLED=true; allowed: unset: neither"),
    invalid("ENV01", scripted("mpirun", "-x", "NCCL_EFA_ENABLE=1", "python"), says="NCCL_EFA_ENABLE=1; allowed: unset: neither"),
    valid("ENV01", pod(env={"NCCL_NET": "AWS Libfabric"}), edge=True),
    valid("ENV01", pod(env={"NCCL_NET": "Socket"})),
    valid("ENV01", pod(env={"NCCL_NET": "$(NETWORK)"})),
    valid("ENV01", scripted("mpirun", "-x", "NCCL_NET", "python")),
    invalid("ENV02", scripted("sh", "-c", 'NVIDIA_VISIBLE_DEVICES="all" python x'), says="NVIDIA_VISIBLE_DEVICES=all"),
    invalid("ENV02", scripted("sh", "-c", f"export {SOCKETS}='ens5'; python x"), says="=ens5"),
    valid("ENV02", scripted("sh", "-c", f'export {SOCKETS}="eth0"; python x'), edge=True),
    invalid("ENV02", pod(env={"NCCL_DEBUG": "WARN", SOCKETS: "ens5"}), says="NCCL_SOCKET_IFNAME=ens5"),
    invalid("ENV02", pod(env={SOCKETS: "^pod-id-link0"}, spec={f"{MAIN}/command": ["sh", "-c", f"{SOCKETS}=ens5 python x"]}), says="=ens5"),
    invalid("ENV02", pod(env={SOCKETS: "ens5"}, spec={f"{MAIN}/command": ["sh", "-c", f"{SOCKETS}=ens6 python x"]}), says="=ens6"),
    valid("ENV02", pod(env={"NVIDIA_VISIBLE_DEVICES": "none", "NCCL_DEBUG_SUBSYS": "all"})),
    valid("ENV02", pod(env={SOCKETS: "^=pod-id-link0"}), edge=True),
    valid("ENV02", pod(env={SOCKETS: "eth0,eth1"})),
    valid("ENV02", pod(env={SOCKETS: "=eth0"})),
    valid("ENV02", pod(env={"NCCL_DEBUG": "WARN"})),
    valid("ENV02", pod(env={SOCKETS: "eth0"})),
    valid("ENV02", pod(env={SOCKETS: "^lo,docker,veth,pod-id-link0"}), edge=True),
    valid("ENV02", pod(env={SOCKETS: "ens5"}, spec=HOST)),
    valid("ENV02", pod(env={SOCKETS: "^lo,pod-id-link"}), edge=True),
    valid("ENV02", pod(env={"CUDA_VISIBLE_DEVICES": ""})),
    invalid("ENV02", pod(env={SOCKETS: "ens5"}), says="NCCL_SOCKET_IFNAME=ens5"),
    invalid("ENV02", pod(env={SOCKETS: "eth0"}, spec=HOST), says="in the node's network"),
    invalid("ENV02", pod(env={SOCKETS: "^lo,docker"}), says="a list with pod-id-link0"),
    invalid("ENV02", pod(env={"NVIDIA_VISIBLE_DEVICES": "all"}), says="NVIDIA_VISIBLE_DEVICES=all"),
    invalid("ENV02", pod(env={"CUDA_VISIBLE_DEVICES": "0,1"}, gpu=8), says="CUDA_VISIBLE_DEVICES=0,1"),
    invalid("ENV02", pod(env={SOCKETS: "eth0,ib0"}), says="eth0,ib0", edge=True),
)


def placement(strategy: Any = "cluster", **properties: Any) -> Thing:
    return Thing(type=tokens.PLACEMENT_GROUP, name="ranks", properties={"strategy": strategy, **properties})


def in_group(**more: Any) -> Thing:
    return template([], None, {"placement": ["ranks"]}, placement={"groupName": UNKNOWN}, **more)


def class_in(sources: dict[str, list[str]] | None = None, **spec: Any) -> Thing:
    return node_class([], sources, placementGroupSelector={"name": UNKNOWN} if sources else {"name": "ranks"}, **spec)


def reservation(**properties: Any) -> Thing:
    return Thing(
        type=tokens.CAPACITY_RESERVATION, name="kept", properties={"instanceType": "p5.48xlarge", "instanceCount": 4, **properties}
    )


NAMED = placement(name="ranks")
MADE = placement(name="ranks", placementGroupId="pg-1")
IN_TWO_ZONES = b.node_pool({ZONE: ["us-east-1a", "us-east-1b"]})
FROM_GROUP = {"spec": ["ranks"]}
TARGET = {"capacityReservationTarget": {"capacityReservationId": UNKNOWN}}
TO_KEPT = {"placement": ["ranks"], "capacityReservationSpecification": ["kept"]}
TERM: dict[str, Any] = {"capacityReservationSelectorTerms": [{"id": "cr-0123456789abcdef0"}]}

PLACEMENT = (
    valid("PG01", placement()),
    valid("PG01", placement("partition", partitionCount=3)),
    valid("PG01", placement("partition", partitionCount=7), edge=True),
    valid("PG01", placement("spread", spreadLevel="rack")),
    valid("PG01", placement("precision-time")),
    invalid("PG01", placement(partitionCount=3), says="partitionCount is 3; allowed: unset, because strategy is cluster"),
    invalid("PG01", placement("partition", partitionCount=8), says="1 to 7", edge=True),
    invalid("PG01", placement("partition", partitionCount=0), says="1 to 7", edge=True),
    invalid("PG01", placement("clustered"), says="strategy is clustered"),
    invalid("PG01", placement("spread", spreadLevel="host"), says="on Outposts"),
    invalid("PG01", placement(spreadLevel="rack"), says="spreadLevel is rack"),
    valid("PG02", NAMED, class_in(), b.node_pool()),
    valid("PG02", placement(), class_in(FROM_GROUP), b.node_pool()),
    valid("PG02", placement(), in_group(), node_group(1, instanceTypes=["p5.48xlarge"])),
    valid("PG02", placement("partition"), in_group(), node_group(3)),
    valid("PG02", placement("spread"), in_group(), node_group(2, scalingConfig={"maxSize": 14}), edge=True),
    valid("PG02", placement(), template([], None), node_group(3)),
    invalid("PG02", NAMED, class_in(), b.node_pool({ZONE: ["us-east-1a", "us-east-1b"]}), says="ranks can't span zones"),
    invalid("PG02", placement(), class_in(FROM_GROUP), b.node_pool({f"{REQUIREMENTS}/1": ANY_TYPE}), says="without a zone"),
    invalid("PG02", NAMED, class_in(), b.node_pool({TYPES: ["p5.48xlarge", "p5e.48xlarge"]}), says="one instance type"),
    invalid("PG02", NAMED, class_in(), b.node_pool({TYPES: ["t3.large"]}), says="is t3.large"),
    invalid("PG02", placement(), in_group(), node_group(3), says="3 subnets"),
    invalid("PG02", placement("spread"), in_group(), node_group(2, scalingConfig={"maxSize": 15}), says="at most 14", edge=True),
    invalid(
        "PG02",
        placement(),
        in_group(instanceMarketOptions={"spotOptions": {"instanceInterruptionBehavior": "stop"}}),
        says="instanceInterruptionBehavior is stop",
    ),
    valid("PG03", in_group(), placement()),
    valid("PG03", template([], None, instanceMarketOptions={"marketType": "capacity-block"})),
    valid(
        "PG03",
        placement(),
        reservation(placementGroupArn="arn"),
        template([], None, TO_KEPT, placement={"groupName": "ranks"}, capacityReservationSpecification=TARGET),
    ),
    valid("PG03", NAMED, class_in(**TERM)),
    valid("PG03", reservation(), node_class([], {"spec": ["kept"]}, **TERM)),
    valid("PG03", reservation(), class_in({"spec": ["ranks"]}), placement(), edge=True),
    invalid("PG03", in_group(instanceMarketOptions={"marketType": "capacity-block"}), placement(), says="a place of its own"),
    invalid(
        "PG03",
        template([], None, placement={"groupId": "pg-1"}, instanceMarketOptions={"marketType": "capacity-block"}),
        says="a place of its own",
    ),
    invalid(
        "PG03",
        placement(),
        reservation(),
        template([], None, TO_KEPT, placement={"groupName": UNKNOWN}, capacityReservationSpecification=TARGET),
        says="reservation kept was not made in",
    ),
    invalid("PG03", placement(), reservation(), class_in({"spec": ["ranks", "kept"]}, **TERM), says="reservation kept was not made in"),
    invalid("PG03", NAMED, reservation(), class_in({"spec": ["kept"]}, **TERM), says="its placementGroupArn", edge=True),
    valid("PG01", placement("partition", partitionCount=1), edge=True),
    invalid("PG01", placement(None, partitionCount=3, spreadLevel="rack"), says="unset, because strategy is unset"),
    valid("PG02", placement(name="ranks", id=UNKNOWN), class_in(), b.node_pool()),
    valid("PG02", placement(name="others"), class_in(), IN_TWO_ZONES),
    invalid("PG02", placement(id="ranks"), class_in(), IN_TWO_ZONES, says="zones us-east-1a, us-east-1b"),
    invalid("PG02", MADE, node_class([], placementGroupSelector={"id": "pg-1"}), IN_TWO_ZONES, says="zones us-east-1a, us-east-1b"),
    invalid("PG02", NAMED, template([], None, placement={"groupName": "ranks"}), node_group(3), says="3 subnets"),
    invalid("PG02", MADE, template([], None, placement={"groupId": "pg-1"}), node_group(2), says="2 subnets", edge=True),
    invalid("PG02", NAMED, class_in(), b.node_pool({ZONE: []}), says="zones none"),
    invalid("PG02", NAMED, class_in(), b.node_pool({f"{REQUIREMENTS}/0": ANY_TYPE}), says="without an instance type"),
    invalid("PG02", placement(), in_group(instanceType="t3.large"), node_group(1), says="instanceTypes is t3.large"),
    invalid(
        "PG02", placement(), in_group(), node_group(1, instanceTypes=["p5.48xlarge", "p5e.48xlarge"]), says="one instance type", edge=True
    ),
)


def block(sources: dict[str, list[str]] | None = None, **changes: Any) -> Thing:
    plain = {
        "instanceType": "p5.48xlarge",
        "instanceMarketOptions": {"marketType": "capacity-block"},
        "capacityReservationSpecification": TARGET,
    }
    properties = {key: value for key, value in {**plain, **changes}.items() if value is not None}
    return Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties=properties, sources=sources or {})


def buyers(subnets: int = 1, sources: dict[str, list[str]] | None = None, **changes: Any) -> Thing:
    return node_group(subnets, sources, **{"capacityType": "CAPACITY_BLOCK", "scalingConfig": {"maxSize": 4}, **changes})


IN_BOTH = {"subnetIds": ["one", "two"]}


def both(one: str, two: str) -> tuple[Thing, Thing]:
    """Two subnets and their zones."""
    return subnet("one", availabilityZone=one), subnet("two", availabilityZone=two)


KIND = f"{REQUIREMENTS}/2"
KINDS = f"{KIND}/values"
OF_KEPT = {"capacityReservationSpecification": ["kept"]}


def capacity(operator: str, *kinds: str) -> dict[str, Any]:
    return {"key": "karpenter.sh/capacity-type", "operator": operator, "values": list(kinds)}


def reserving(terms: Any) -> Thing:
    return b.node_class({"spec/capacityReservationSelectorTerms": terms})


BLOCK_POOL = b.node_pool(
    {
        REQUIREMENTS: [
            *b.node_pool().properties["spec"]["template"]["spec"]["requirements"][:2],
            {"key": "karpenter.k8s.aws/capacity-reservation-type", "operator": "In", "values": ["capacity-block"]},
        ]
    }
)


def job(seconds: Any = None, selector: dict[str, str] | None = None) -> Thing:
    spec: dict[str, Any] = {"template": {"spec": {"nodeSelector": selector or P5, "containers": [{"name": "trainer"}]}}}
    if seconds is not None:
        spec["activeDeadlineSeconds"] = seconds
    return Thing(type=tokens.JOB, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": spec})


def mpi(seconds: Any) -> Thing:
    return b.mpi_job({"spec/runPolicy/activeDeadlineSeconds": seconds})


def ending(hours: float) -> Thing:
    moment = NOW + datetime.timedelta(hours=hours)
    return reservation(endDate=moment.isoformat())


RESERVING = Thing(
    type=tokens.NODE_CLASS,
    name="p5-class",
    properties=reserving([{"id": UNKNOWN}]).properties,
    sources={"spec": ["kept"]},
)

BOUGHT = Thing(type=tokens.CAPACITY_BLOCK, name="kept", properties={"instanceType": "p5.48xlarge", "instanceCount": 4})

RESERVING_BOTH = Thing(type=RESERVING.type, name=RESERVING.name, properties=RESERVING.properties, sources={"spec": ["kept", "later"]})


def until(name: str, moment: str | None) -> Thing:
    """A reservation that ends at a moment, or when somebody ends it."""
    return Thing(type=tokens.CAPACITY_RESERVATION, name=name, properties={"instanceCount": 4, **({"endDate": moment} if moment else {})})


def targeting(literal: str | None = None, **changes: Any) -> Thing:
    """A launch template whose instances go into the reservation `kept`."""
    target = {"capacityReservationTarget": {"capacityReservationId": literal or UNKNOWN}}
    return template([], None, {} if literal else OF_KEPT, **{"capacityReservationSpecification": target, **changes})


def in_zone(zone: str, changes: dict[str, Any] | None = None, name: str = "p5") -> Thing:
    return b.node_pool({ZONE: [zone], **(changes or {})}, name=name)


OF_ONE, OF_TWO = {"subnetIds": ["one"]}, {"subnetIds": ["one", "two"]}
IN_B = reservation(availabilityZone="us-east-1b", id="cr-1", tags={"team": "ml"})
ONLY_RESERVED = {KINDS: ["reserved"]}
IN_A = Thing(type=IN_B.type, name="later", properties={**IN_B.properties, "availabilityZone": "us-east-1a", "id": "cr-2", "tags": {}})
PLACE = "spec.template.spec.requirements"
ELSEWHERE = "is zones us-east-1a; allowed: topology.kubernetes.io/zone us-east-1b, where the reservations of p5-class are"
ZONELESS = {f"{REQUIREMENTS}/1": ANY_TYPE, **ONLY_RESERVED}


def reserving_in(subnet_id: str) -> Thing:
    return b.node_class({"spec/capacityReservationSelectorTerms": [{"id": "cr-1"}], "spec/subnetSelectorTerms": [{"id": subnet_id}]})


CAPACITY = (
    # The zone of a reservation, and of the groups that launch into it.
    valid("CR01", targeting(), IN_B, node_group(1, OF_ONE), zoned("us-east-1b", "one"), edge=True),
    valid("CR01", targeting(), reservation(), node_group(1, OF_ONE), zoned("us-east-1a", "one")),
    valid("CR01", targeting(), IN_B, node_group(2, OF_ONE), zoned("us-east-1a", "one"), edge=True),
    valid("CR01", targeting(), IN_B, node_group(2)),
    valid("CR01", targeting("cr-9"), IN_B, node_group(1, OF_ONE), zoned("us-east-1a", "one")),
    valid("CR01", targeting(capacityReservationSpecification={"capacityReservationPreference": "open"}), IN_B, node_group(1, OF_ONE)),
    invalid(
        "CR01",
        *(targeting(), IN_B, node_group(1, OF_ONE), zoned("us-east-1a", "one")),
        says="subnetIds is in us-east-1a; allowed: us-east-1b alone, the zone of kept: launches elsewhere fail",
    ),
    invalid(
        "CR01",
        targeting("cr-1"),
        IN_B,
        node_group(1, OF_ONE),
        zoned("us-east-1a", "one"),
        says="allowed: us-east-1b alone, the zone of kept",
    ),
    invalid(
        "CR01",
        *(targeting(), IN_B, node_group(2, OF_TWO), *both("us-east-1a", "us-east-1b")),
        says="subnetIds is in us-east-1a and us-east-1b; allowed: us-east-1b alone, the zone of kept",
        edge=True,
    ),
    invalid("CR01", targeting(), IN_B, scaling_group(availabilityZones=["us-east-1a"]), says="availabilityZones is in us-east-1a; allowed"),
    valid("CR01", targeting(), IN_B, scaling_group(availabilityZones=["us-east-1b"]), edge=True),
    invalid(
        "CR01",
        *(targeting(), IN_B, scaling_group(availabilityZones=["us-east-1a"], mixedInstancesPolicy={"launchTemplate": {}})),
        says="launches elsewhere fail",
        edge=True,
    ),
    # The zone of reservations, and of the pools that are to use them.
    valid("CR02", RESERVING, IN_B, in_zone("us-east-1b", ONLY_RESERVED), edge=True),
    valid("CR02", RESERVING, IN_B, b.node_pool({ZONE: ["us-east-1a", "us-east-1b"], **ONLY_RESERVED}), edge=True),
    valid("CR02", RESERVING_BOTH, IN_B, IN_A, in_zone("us-east-1a", ONLY_RESERVED), edge=True),
    valid("CR02", RESERVING, reservation(), in_zone("us-east-1a", ONLY_RESERVED)),
    valid("CR02", RESERVING_BOTH, IN_B, until("later", None), in_zone("us-east-1a", ONLY_RESERVED), edge=True),
    valid("CR02", RESERVING, IN_B, in_zone("us-east-1a"), in_zone("us-east-1b", name="other"), edge=True),
    valid("CR02", reserving([{"id": "cr-9"}]), IN_B, in_zone("us-east-1a", ONLY_RESERVED)),
    valid("CR02", reserving([{"id": "cr-1"}, {"id": "cr-9"}]), IN_B, in_zone("us-east-1a", ONLY_RESERVED), edge=True),
    valid("CR02", reserving([{"tags": {"team": "ml"}, "ownerID": "123456789012"}]), IN_B, in_zone("us-east-1a", ONLY_RESERVED)),
    valid("CR02", reserving([{"id": "cr-1"}, {"instanceMatchCriteria": "open"}]), IN_B, in_zone("us-east-1a", ONLY_RESERVED)),
    valid("CR02", RESERVING, IN_B, b.node_pool(ZONELESS)),
    valid("CR02", reserving_in("subnet-1"), IN_B, zoned("us-east-1b", id="subnet-1"), b.node_pool(ZONELESS), edge=True),
    invalid("CR02", RESERVING, IN_B, in_zone("us-east-1a", ONLY_RESERVED), says=f"requirements {ELSEWHERE}: none is found elsewhere."),
    invalid("CR02", reserving([{"id": "cr-1"}]), IN_B, in_zone("us-east-1a", ONLY_RESERVED), says=ELSEWHERE),
    invalid("CR02", reserving_in("subnet-1"), IN_B, zoned("us-east-1a", id="subnet-1"), b.node_pool(ZONELESS), says=ELSEWHERE, edge=True),
    invalid(
        "CR02", RESERVING, IN_B, in_zone("us-east-1a", ONLY_RESERVED), in_zone("us-east-1b", name="other"), says=f"p5: {PLACE} {ELSEWHERE}"
    ),
    # Capacity that is bought beside it, or other reservations of these tags: advice.
    invalid("CR02", RESERVING, IN_B, in_zone("us-east-1a"), says=ELSEWHERE, edge=True),
    invalid("CR02", reserving([{"tags": {"team": "ml"}}]), IN_B, in_zone("us-east-1a", ONLY_RESERVED), says=ELSEWHERE, edge=True),
    valid("CR01", block(), buyers()),
    valid("CR01", template([], "p5.48xlarge"), node_group(3, capacityType="ON_DEMAND")),
    valid("CR01", block(OF_KEPT), reservation(), buyers(scalingConfig={"maxSize": 4}), edge=True),
    valid(
        "CR01",
        block(OF_KEPT),
        reservation(availabilityZone="us-east-1a"),
        buyers(1, {"subnetIds": ["private"]}),
        subnet(availabilityZone="us-east-1a"),
    ),
    valid("CR01", node_group(3, {"launchTemplate": []})),
    invalid("CR01", block(), buyers(capacityType="ON_DEMAND"), says="capacityType is ON_DEMAND; allowed: CAPACITY_BLOCK"),
    invalid("CR01", block(instanceMarketOptions=None), buyers(), says="marketType is unset"),
    invalid("CR01", block(capacityReservationSpecification=None), buyers(), says="the id of the block's reservation"),
    invalid("CR01", block(instanceType=None), buyers(), says="instanceType is unset"),
    invalid("CR01", block(), buyers(instanceTypes=["p5.48xlarge"]), says="the launch template names the type"),
    invalid("CR01", block(), buyers(2), says="subnetIds is 2 subnets; allowed: one subnet, or several in one zone", edge=True),
    invalid("CR01", block(), buyers(0), says="subnetIds is 0 subnets", edge=True),
    valid("CR01", block(), buyers(2, IN_BOTH), *both("us-east-1a", "us-east-1a"), edge=True),
    invalid(
        "CR01", block(), buyers(2, IN_BOTH), *both("us-east-1a", "us-east-1b"), says="is 2 subnets in us-east-1a, us-east-1b", edge=True
    ),
    invalid("CR01", block(), buyers(3, IN_BOTH), *both("us-east-1a", "us-east-1a"), says="is 3 subnets; allowed", edge=True),
    invalid("CR01", block(), buyers(2, IN_BOTH), *both("us-east-1a", ""), says="is 2 subnets; allowed"),
    valid("CR01", block(), buyers(2, IN_BOTH), *(subnet(name, availabilityZoneId="use1-az1") for name in ("one", "two"))),
    invalid(
        "CR01",
        block(OF_KEPT),
        reservation(availabilityZone="us-east-1a"),
        buyers(2, IN_BOTH),
        *both("us-east-1b", "us-east-1b"),
        says="a subnet in us-east-1a, the zone of kept",
    ),
    invalid(
        "CR01",
        block(OF_KEPT),
        reservation(),
        buyers(2, IN_BOTH, scalingConfig={"maxSize": 5}),
        *both("us-east-1a", UNKNOWN),
        says="at most 4",
    ),
    invalid("CR01", block(OF_KEPT), reservation(), buyers(scalingConfig={"maxSize": 5}), says="at most 4", edge=True),
    invalid(
        "CR01",
        block(OF_KEPT),
        reservation(availabilityZone="us-east-1a"),
        buyers(1, {"subnetIds": ["private"]}),
        subnet(availabilityZone="us-east-1b"),
        says="the zone of kept",
    ),
    valid("CR01", node_group(3, launchTemplate=None)),
    valid("CR01", block(OF_KEPT), BOUGHT, buyers(scalingConfig={"maxSize": 4}), edge=True),
    invalid(
        "CR01",
        Thing(type=tokens.NODE_GROUP, name="group", properties={"capacityType": "CAPACITY_BLOCK", "subnetIds": ["subnet-1"]}),
        says="launchTemplate is unset; allowed: one that names the reservation",
    ),
    invalid("CR01", block(OF_KEPT), BOUGHT, buyers(scalingConfig={"maxSize": 8}), says="at most 4, the instances of kept"),
    invalid(
        "CR02",
        reserving([{"id": "cr-1", "tags": {"a": "b"}, "ownerID": "123456789012"}]),
        b.node_pool(),
        says="id beside tags, ownerID",
    ),
    valid("CR02", reserving([{"id": "cr-1"}]), b.node_pool()),
    # One pool of several that takes the reservations is enough.
    valid(
        "CR02",
        reserving([{"id": "cr-1"}]),
        b.node_pool({KINDS: ["on-demand"]}),
        b.node_pool({KINDS: ["reserved"]}, name="other"),
        edge=True,
    ),
    valid("CR02", b.node_class(), b.node_pool({KINDS: ["on-demand"]})),
    valid("CR02", reserving([{"tags": {"team": "ml"}}]), b.node_pool({KINDS: ["reserved"]}), edge=True),
    valid("CR02", reserving([{"id": "cr-1"}]), b.node_pool({f"{REQUIREMENTS}/2": ANY_TYPE}), edge=True),
    valid("CR02", b.node_class(), b.cpu_pool()),
    valid("CR02", reserving([{"instanceMatchCriteria": "open", "ownerID": "123456789012"}]), b.node_pool()),
    invalid("CR02", reserving([{"id": "cr-1"}]), b.node_pool({KINDS: ["on-demand"]}), says="reserved too, because p5-class"),
    invalid("CR02", reserving([{"tags": {"a": "b"}}]), b.node_pool({KINDS: ["spot", "on-demand"]}), says="which stay idle else"),
    invalid(
        "CR02",
        reserving([{"id": "cr-1"}]),
        b.node_pool({KINDS: ["on-demand"]}),
        b.node_pool({KINDS: ["spot"]}, name="other"),
        says="other: spec.template.spec.requirements is capacity type spot; allowed: reserved too",
    ),
    invalid("CR02", b.node_class(), b.node_pool({KINDS: ["reserved", "on-demand"]}), says="open ones are not found by themselves"),
    invalid("CR02", reserving([]), b.node_pool(), says="is empty; allowed: the reservations of pool p5", edge=True),
    invalid("CR02", b.node_class(), b.node_pool({KINDS: ["reserved"]}), says="is unset; allowed: the reservations of pool p5", edge=True),
    invalid(
        "CR02", b.node_class(), b.node_pool({KIND: capacity("NotIn", "spot", "on-demand")}), says="allowed: the reservations of pool p5"
    ),
    valid("CR02", b.node_class(), b.node_pool({KIND: capacity("NotIn", "spot")}), edge=True),
    valid("CR02", b.node_class(), b.node_pool({KIND: capacity("Exists")})),
    invalid("CR02", reserving([{"id": "cr-1"}]), b.node_pool({KIND: capacity("NotIn", "reserved")}), says="capacity type spot, on-demand"),
    invalid("CR02", reserving([{"id": "cr-1"}]), b.node_pool({KIND: capacity("DoesNotExist")}), says="capacity type none"),
    valid("CR02", reserving([{"id": "cr-1"}]), b.node_pool({KIND: capacity("NotIn", "spot", "on-demand")}), edge=True),
    invalid("CR02", reserving([{"id": "cr-1", "tags": {"a": "b"}}]), b.node_pool(), says="id beside tags"),
    invalid("CR02", reserving([{"ownerID": "123456789012"}]), b.node_pool(), says="an id, tags or instanceMatchCriteria"),
    # The first of two to end counts; a time without a zone is UTC; 17:00 in +05:00 is noon.
    invalid(
        "CR03",
        BLOCK_POOL,
        RESERVING_BOTH,
        until("kept", "2026-12-01T12:00:00"),
        until("later", "2026-12-02T12:00:00Z"),
        job(30 * 3600),
        says="at most 84000",
    ),
    invalid("CR03", BLOCK_POOL, RESERVING, until("kept", "2026-12-01T17:00:00+05:00"), job(26 * 3600), says="at most 84000"),
    invalid(
        "CR03",
        BLOCK_POOL,
        RESERVING,
        Thing(type=tokens.CAPACITY_BLOCK, name="kept", properties={"endDate": "2026-12-01T12:00:00Z"}),
        job(26 * 3600),
        says="at most 84000",
    ),
    valid("CR03", BLOCK_POOL, RESERVING_BOTH, until("kept", None), until("later", "2026-12-02T12:00:00Z"), job(30 * 3600)),
    valid("CR03", BLOCK_POOL, RESERVING, ending(24), job(84000), edge=True),
    valid("CR03", BLOCK_POOL, job(72000)),
    valid("CR03", b.node_pool(), job()),
    valid("CR03", BLOCK_POOL, job(selector={"pool": "cpu"})),
    valid("CR03", BLOCK_POOL, mpi(3600)),
    valid("CR03", BLOCK_POOL, RESERVING, ending(24), job(20 * 3600)),
    valid("CR03", BLOCK_POOL, RESERVING, ending(24), job(23 * 3600), edge=True),
    invalid("CR03", BLOCK_POOL, job(), says="activeDeadlineSeconds is unset"),
    invalid("CR03", BLOCK_POOL, mpi(None), says="runPolicy.activeDeadlineSeconds is unset"),
    invalid("CR03", BLOCK_POOL, RESERVING, ending(24), job(24 * 3600), says="activeDeadlineSeconds is 86400"),
    invalid("CR03", BLOCK_POOL, RESERVING, ending(24), job(84300), says="40 minutes before the capacity block of p5 ends", edge=True),
    invalid("CR03", BLOCK_POOL, RESERVING, ending(-1), job(60), says="at most 0"),
    # Further than a calendar goes, forwards and backwards.
    invalid("CR03", BLOCK_POOL, RESERVING, ending(24), job(10**15), says="at most 84000", edge=True),
    invalid("CR03", BLOCK_POOL, RESERVING, until("kept", "0001-01-01T00:00:00Z"), job(60), says="at most 0", edge=True),
)

HOST_DEVICES = {"spec/volumes": [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]}

ASKING = {"name": "trainer", "resources": {"limits": {GPU: 8, EFA: 32}}}
LOGGING = {"name": "logs", "env": [{"name": "FI_PROVIDER", "value": "efa"}]}


def ranks(instance: str, **limits: int) -> Thing:
    """Two pods of a job on nodes of a type."""
    asked = {GPU if name == "gpu" else name: count for name, count in limits.items()}
    container = {f"{b.TASK_CONTAINER}/resources": {"limits": asked}}
    return b.volcano_job({"spec/tasks/0/replicas": 2, "spec/tasks/0/template/spec/nodeSelector": {TYPE: instance}, **container})


REQUESTS = (
    valid("EFA06", pod(gpu=8, efa=32)),
    valid("EFA06", pod({"node.kubernetes.io/instance-type": "p4d.24xlarge"}, gpu=8, efa=4), edge=True),
    valid("EFA06", pod(gpu=8, efa=32, env={"FI_PROVIDER": "efa"})),
    invalid("EFA06", pod({"node.kubernetes.io/instance-type": "p4d.24xlarge"}, gpu=8, efa=5), says="at most 4", edge=True),
    invalid("EFA06", pod({"node.kubernetes.io/instance-type": "g6.12xlarge"}, {"FI_PROVIDER": "efa"}, gpu=4), says="FI_PROVIDER"),
    # A pod that has asked for all of the node's interfaces may open whatever the folder shows.
    valid("EFA06", pod(gpu=8, efa=32, spec=HOST_DEVICES), edge=True),
    invalid("EFA06", pod(gpu=8, efa=31, spec=HOST_DEVICES), says="no such volume: the plug-in alone brings what is asked", edge=True),
    invalid("EFA06", pod({"node.kubernetes.io/instance-type": "g5.xlarge"}, gpu=1, efa=1), says="at most 0"),
    valid("EFA06", ranks("g5.xlarge", gpu=1)),
    valid("EFA06", ranks("p5.48xlarge", cpu=8)),
    valid("EFA06", pod(env={"NCCL_DEBUG": "WARN", "FI_PROVIDER": "tcp"}, gpu=8)),
    invalid("EFA06", ranks("g5.8xlarge", gpu=1), says="1 vpc.amazonaws.com/efa on g5.8xlarge, because 2 pods", edge=True),
    invalid("EFA06", pod(env={"NCCL_NET_PLUGIN": "ofi"}, gpu=8), says="is NCCL_NET_PLUGIN=ofi"),
    invalid("EFA06", pod(gpu=8, efa=32, spec={"spec/containers/0/resources/requests": {EFA: 16}}), says="which is 32"),
    invalid("EFA06", pod(spec={"spec/containers/0/resources/requests": {EFA: 4}}), says="which is unset"),
    invalid("EFA06", pod(gpu=8, efa=32, spec={"spec/containers": [ASKING, LOGGING]}), says="containers[1].env[0].value is FI_PROVIDER=efa"),
)

BY_ID: dict[str, Any] = {"subnetSelectorTerms": [{"id": "subnet-1"}]}
NO_ZONE = pool_of()
P5EN_FAMILY = requirement(FAMILY, "In", "p5en")
IN_ONE, IN_BOTH = requirement(ZONE_KEY, "In", A), requirement(ZONE_KEY, "In", A, B)
IN_RANKS = template(nics(1), placement={"groupName": "ranks"})
IN_FABRIC = replace(IN_RANKS, properties={**IN_RANKS.properties, "name": "fabric"})
PUBLIC = subnet(id="subnet-1", mapPublicIpOnLaunch=True)
RANKS = {"placementGroup": ["ranks"], "vpcZoneIdentifiers": ["private", "more"], "launchTemplate": ["template"]}


def in_fabric(**spec: Any) -> Thing:
    """The pool's class, with EFA, in the cluster placement group."""
    return node_class(nics(1), placementGroupSelector={"name": "ranks"}, **spec)


def of_family(*more: dict[str, Any]) -> Thing:
    """A pool in one zone that names no types."""
    return b.node_pool({REQUIREMENTS: [*more, IN_ONE]})


ONE_ZONE = tuple(
    case
    for rule in ("EFA05", "PG02")
    for case in (
        # Subnets of one zone are one zone; what is not known of one is not taken for another.
        valid(rule, NAMED, *TWO_IN_A, IN_RANKS, node_group(2, PAIR)),
        invalid(
            rule,
            NAMED,
            *IN_A_AND_B,
            IN_RANKS,
            node_group(2, PAIR),
            says="2 subnets in us-east-1a, us-east-1b",
            edge=True,
        ),
        invalid(
            rule,
            NAMED,
            zoned(A),
            IN_RANKS,
            node_group(2, {"subnetIds": ["private"]}),
            says="2 s",
        ),
        valid(
            rule,
            NAMED,
            subnet(availabilityZoneId="use1-az1"),
            subnet("more", availabilityZoneId="use1-az1"),
            IN_RANKS,
            node_group(2, PAIR),
        ),
        invalid(rule, NAMED, subnet(), subnet("more"), IN_RANKS, node_group(2, PAIR), says="2 s"),
        # A zone by its id, and one of two that is taken away.
        valid(rule, NAMED, in_fabric(), pool_of(requirement(ID_KEY, "In", "use1-az1"))),
        invalid(rule, NAMED, in_fabric(), pool_of(requirement(ID_KEY, "In", "use1-az1", "use1-az2")), says="without a zone", edge=True),
        valid(rule, NAMED, in_fabric(), pool_of(IN_BOTH, requirement(ID_KEY, "In", "use1-az1"))),
        valid(rule, NAMED, in_fabric(), pool_of(IN_BOTH, requirement(ZONE_KEY, "NotIn", B)), edge=True),
        invalid(
            rule,
            NAMED,
            in_fabric(),
            pool_of(IN_BOTH, requirement(ZONE_KEY, "NotIn", "us-east-1c")),
            says="zones us",
        ),
        invalid(rule, NAMED, in_fabric(), pool_of(IN_ONE, requirement(ZONE_KEY, "NotIn", A)), says="zones none"),
        # The subnets of the class.
        valid(rule, NAMED, in_fabric(**BY_ID), NO_ZONE),
        invalid(rule, NAMED, in_fabric(subnetSelectorTerms=[{"id": "subnet-1"}, {"id": "subnet-2"}]), NO_ZONE, says="without", edge=True),
        valid(rule, NAMED, *TWO_IN_A, in_fabric(subnetSelectorTerms=[{"name": "x"}, {"id": UNKNOWN}]), pool_of(IN_ONE)),
        valid(
            rule,
            NAMED,
            zoned(A, tags={"pool": "p5"}),
            zoned(A, "more", tags={"pool": "p5"}),
            zoned(B, "other", tags={"pool": "cpu"}),
            in_fabric(),
            NO_ZONE,
        ),
        invalid(rule, NAMED, zoned(A, tags={"pool": "p5"}), zoned(B, "more", tags={"pool": "p5"}), in_fabric(), NO_ZONE, says="zones us"),
        valid(
            rule,
            NAMED,
            zoned(A, tags={"pool": "p5"}),
            zoned(B, "more", tags={"pool": "p5"}),
            in_fabric(),
            pool_of(requirement(ZONE_KEY, "NotIn", B)),
            edge=True,
        ),
        invalid(
            rule,
            NAMED,
            zoned(A, tags={"pool": "p5"}),
            in_fabric(subnetSelectorTerms=[{"tags": {"pool": "p5"}}, {"tags": {"pool": "more"}}]),
            NO_ZONE,
            says="is zones us-east-1a",
        ),
        # Nodes that manage themselves.
        invalid(
            rule,
            NAMED,
            IN_FABRIC,
            scaling_group({}, launchTemplate={"name": "fabric"}, vpcZoneIdentifiers=["subnet-1", "subnet-2", "subnet-3"]),
            says="vpcZoneIdentifiers is 3 subnets",
        ),
        invalid(
            rule,
            NAMED,
            IN_FABRIC,
            scaling_group({}, **mixed("p5.48xlarge", launchTemplateName="fabric"), availabilityZones=[A, B]),
            says="availabilityZones is zones us-east-1a, us-east-1b",
            edge=True,
        ),
        invalid(
            rule,
            NAMED,
            *IN_A_AND_B,
            IN_RANKS,
            scaling_group(WORKERS, vpcZoneIdentifiers=TWO_IDS),
            says="2 subnets in us-east-1a, us-east-1b",
        ),
        valid(
            rule,
            NAMED,
            *TWO_IN_A,
            IN_RANKS,
            scaling_group(WORKERS, vpcZoneIdentifiers=TWO_IDS),
        ),
        valid(rule, NAMED, IN_RANKS, scaling_group(availabilityZones=[A]), edge=True),
        valid(rule, NAMED, IN_RANKS, scaling_group(vpcZoneIdentifiers=["subnet-1"])),
        valid(rule, NAMED, IN_RANKS, scaling_group({}, launchTemplate={"name": "other"})),
    )
)
PLACES = (
    valid("EFA04", b.efa_group(ingress=[{**ALL_SELF, "protocol": "ALL"}], egress=[{**ALL_SELF, "protocol": "All"}])),
    invalid("EFA04", b.efa_group(ingress=[{**ALL_SELF, "protocol": "TCP"}], egress=[ALL_SELF]), says="ingress is without one", edge=True),
    *ONE_ZONE,
    invalid("PG02", placement(), scaling_group(RANKS, placementGroup=UNKNOWN, vpcZoneIdentifiers=TWO_IDS), says="2 subnets"),
    invalid("PG02", NAMED, scaling_group({}, placementGroup="ranks", availabilityZones=[A, B]), says="availabilityZones is zones"),
    valid("PG02", NAMED, scaling_group({}, placementGroup="others", availabilityZones=[A, B])),
    invalid(
        "PG02", placement(id="ranks"), scaling_group({}, placementGroup="ranks", availabilityZones=[A, B]), says="availabilityZones is"
    ),
    invalid(
        "PG02",
        NAMED,
        scaling_group({}, placementGroup="ranks", availabilityZones=[A], **mixed("t3.large", launchTemplateId="lt-1")),
        says="mixedInstancesPolicy is t3.large",
    ),
    invalid(
        "PG02",
        NAMED,
        scaling_group({}, placementGroup="ranks", availabilityZones=[A], **mixed("p5.48xlarge", "p5e.48xlarge", launchTemplateId="lt-1")),
        says="is [p5.48xlarge, p5e.48xlarge]; allowed: one instance type",
    ),
    # Seven in each zone, however many subnets there are in it.
    invalid(
        "PG02",
        placement("spread"),
        *TWO_IN_A,
        in_group(),
        node_group(2, PAIR, scalingConfig={"maxSize": 8}),
        says="maxSize is 8; allowed: at most 7",
        edge=True,
    ),
    valid("PG02", placement("spread"), *TWO_IN_A, in_group(), node_group(2, PAIR, scalingConfig={"maxSize": 7}), edge=True),
    valid("PG02", placement("spread"), *IN_A_AND_B, in_group(), node_group(2, PAIR, scalingConfig={"maxSize": 14}), edge=True),
    invalid("PG02", placement("spread"), in_group(), scaling_group(maxSize=15, availabilityZones=[A, B]), says="maxSize is 15", edge=True),
    valid("PG02", placement("spread"), in_group(), scaling_group(maxSize=14, availabilityZones=[A, B]), edge=True),
    valid("PG02", placement("spread"), in_group(), scaling_group(maxSize=15)),
    # Families and categories, where no type is named.
    invalid("PG02", NAMED, class_in(), of_family(requirement(FAMILY, "In", "t3", "t4g")), says="is t3, t4g; allowed: a type that cluster"),
    invalid("PG02", NAMED, class_in(), of_family(requirement(FAMILY, "In", "t3", "m7i")), says="is families t3, m7i", edge=True),
    invalid("PG02", NAMED, class_in(), of_family(requirement(CATEGORY, "In", "t")), says="allowed: a type that cluster"),
    valid("PG02", NAMED, class_in(), of_family(P5EN_FAMILY)),
    valid("PG02", NAMED, class_in(), of_family(requirement(FAMILY, "In", "p5"), requirement(SIZE, "In", "48xlarge"))),
    invalid("PG02", NAMED, class_in(), of_family(requirement(FAMILY, "In", "p5")), says="is families p5; allowed: one instance type"),
    invalid("EFA01", node_class(nics(32)), of_family(P5EN_FAMILY), says="at most 16 on p5en.48xlarge"),
    invalid("EFA01", node_class(nics(17)), of_family(P5EN_FAMILY), says="at most 16 on p5en.48xlarge", edge=True),
    valid("EFA01", node_class(nics(16)), of_family(P5EN_FAMILY), edge=True),
    valid("EFA01", node_class(nics(32)), of_family(requirement(FAMILY, "In", "p5en", "p5"))),
    valid("EFA01", node_class(nics(32)), of_family(requirement(FAMILY, "In", "p5en", "p99"))),
    invalid(
        "EFA01",
        node_class(nics(32)),
        of_family(requirement(FAMILY, "In", "p5"), requirement(SIZE, "In", "4xlarge")),
        says="at most 1 on p5.4xlarge",
    ),
    invalid("EFA01", node_class(nics(1)), of_family(requirement(CATEGORY, "In", "t")), says="has no EFA"),
    invalid("EFA01", node_class([PRIMARY, nic(16)]), of_family(P5EN_FAMILY), says="p5en.48xlarge has 16 network cards"),
    invalid("EFA01", node_class(nics(1)), of_family(requirement(FAMILY, "In", "p6-b300")), says="card 0 of p6-b300.48xlarge has no EFA"),
    valid("EFA01", node_class(nics(1)), of_family(requirement(FAMILY, "In", "p6-b300", "p6-b200")), edge=True),
    # Types bought for EFA beside others: which of them need it, nobody says.
    *(
        invalid("EFA05", b.node_pool({REQUIREMENTS: [named, IN_BOTH]}), says="because some of its types are bought for EFA", edge=True)
        for named in (
            requirement(FAMILY, "In", "g5", "g6", "g6e"),
            requirement(CATEGORY, "In", "g"),
            requirement(TYPE, "In", "g5.8xlarge", "p5.48xlarge"),
        )
    ),
    invalid(
        "EFA05",
        b.node_pool({REQUIREMENTS: [requirement(TYPE, "In", "g6e.48xlarge", "p5.48xlarge"), IN_BOTH]}),
        says="because its types are bought for EFA",
        edge=True,
    ),
    valid("EFA05", b.node_pool({REQUIREMENTS: [requirement(FAMILY, "In", "g5", "g6"), IN_BOTH]}), edge=True),
    valid("EFA05", b.node_pool({REQUIREMENTS: [requirement(FAMILY, "In", "g5", "g6", "g6e"), IN_ONE]})),
    invalid(
        "EFA01",
        template(nics(2), None, id="lt-1"),
        scaling_group({}, **mixed("c5n.18xlarge", launchTemplateId="lt-1")),
        says="at most 1 on c5n.18xlarge",
    ),
    # A subnet that gives public addresses, by whatever way the interfaces come to stand in it.
    invalid(
        "EFA03",
        node_class(nics(1), subnetSelectorTerms=[{"tags": {"pool": "p5"}}]),
        subnet(tags={"pool": "p5"}, mapPublicIpOnLaunch=True),
        says="in subnet private, which gives public addresses",
    ),
    invalid("EFA03", node_class(nics(1), **BY_ID), PUBLIC, says="in subnet private"),
    valid("EFA03", node_class(nics(1), **BY_ID), subnet(id="subnet-2", mapPublicIpOnLaunch=True)),
    valid("EFA03", node_class(nics(1), **BY_ID, associatePublicIPAddress=False), PUBLIC, edge=True),
    invalid("EFA03", template([{**PRIMARY, "subnetId": "subnet-1"}, nic(0)]), PUBLIC, says="in subnet"),
    valid("EFA03", template([PRIMARY, nic(0, subnetId="subnet-1")]), PUBLIC, edge=True),
    valid("EFA03", template([PRIMARY, nic(0, subnetId=UNKNOWN)], sources={"networkInterfaces": ["private"]}), PUBLIC, edge=True),
    invalid(
        "EFA03",
        template([{**PRIMARY, "subnetId": UNKNOWN}, nic(0)], sources={"networkInterfaces": ["private"]}),
        PUBLIC,
        says="in subnet private, which gives public addresses",
    ),
    invalid(
        "EFA03",
        template([{**PRIMARY, "subnetId": "subnet-1"}, nic(1, 1, "efa", subnetId="subnet-2")]),
        PUBLIC,
        subnet("more", id="subnet-2"),
        says="in subnet private",
    ),
    # Each interface stands in its own subnet, though the values of all of them come from the same resources.
    valid(
        "EFA03",
        template([{**PRIMARY, "subnetId": "subnet-2"}, nic(0, subnetId="subnet-1")], sources={"networkInterfaces": ["private", "more"]}),
        PUBLIC,
        subnet("more", id="subnet-2"),
        edge=True,
    ),
    valid(
        "EFA03",
        template([{**PRIMARY, "subnetId": "subnet-1", "associatePublicIpAddress": "false"}, nic(0)]),
        PUBLIC,
    ),
    invalid(
        "EFA03",
        template(nics(1)),
        scaling_group({"launchTemplate": ["template"], "vpcZoneIdentifiers": ["private"]}, vpcZoneIdentifiers=[UNKNOWN]),
        subnet(mapPublicIpOnLaunch=True),
        says="in subnet private",
    ),
    # What is asked of managed node groups is not asked of others.
    valid("CR01", block(OF_KEPT), reservation(), scaling_group(vpcZoneIdentifiers=["subnet-1"], maxSize=4)),
)


def endpoint(service: str, sources: dict[str, list[str]] | None = None, **properties: Any) -> Thing:
    given = {"vpcId": "vpc-1", "serviceName": f"com.amazonaws.us-east-1.{service}", **properties}
    return Thing(type=tokens.VPC_ENDPOINT, name="endpoint", properties=given, sources=sources or {})


def reached(service: str, *rules: dict[str, Any], **properties: Any) -> tuple[Thing, Thing]:
    """An interface endpoint, and the group that it carries."""
    plain = {"vpcEndpointType": "Interface", "privateDnsEnabled": True, "securityGroupIds": [UNKNOWN], **properties}
    return group("door", ingress=list(rules)), endpoint(service, {"securityGroupIds": ["door"]}, **plain)


def ending(kind: str, date: str | None = None) -> Thing:
    given = {"instanceType": "p5.48xlarge", "endDateType": kind, **({} if date is None else {"endDate": date})}
    return Thing(type=tokens.CAPACITY_RESERVATION, name="reserved", properties=given)


HTTPS_IN = {"protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrBlocks": ["10.0.0.0/16"]}
ROUTED: dict[str, Any] = {"routeTableIds": ["rtb-1"]}
INTERFACE: dict[str, Any] = {"vpcEndpointType": "Interface", "privateDnsEnabled": True}
LINK = Thing(
    type=tokens.ROUTE_TABLE_LINK,
    name="link",
    properties={"vpcEndpointId": UNKNOWN, "routeTableId": "rtb-1"},
    sources={"vpcEndpointId": ["endpoint"]},
)
ENDPOINTS = (
    valid("CR01", ending("limited", "2027-01-31T12:00:00Z"), edge=True),
    valid("CR01", ending("unlimited"), edge=True),
    valid("CR01", ending("unlimited", "")),
    invalid("CR01", ending("limited"), says="endDate is unset; allowed: a date, because endDateType is limited"),
    invalid("CR01", ending("limited", ""), says="allowed: a date, because endDateType is limited"),
    invalid("CR01", ending("unlimited", "2027-01-31T12:00:00Z"), says="allowed: unset, because endDateType is unlimited"),
    valid("NET01", endpoint("s3", **ROUTED)),
    valid("NET01", endpoint("s3", vpcEndpointType="Gateway"), LINK),
    valid("NET01", endpoint("s3", vpcEndpointType="Interface", subnetIds=["subnet-1"])),
    valid("NET01", endpoint("ecr.dkr", **INTERFACE)),
    valid("NET01", endpoint("x", **INTERFACE, serviceName="com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0")),
    valid("NET01", endpoint("x", vpcEndpointType="Interface", serviceName="com.amazonaws.vpce.us-east-1.vpce-svc-0123456789abcdef0")),
    valid("NET01", *reached("ecr.api", HTTPS_IN)),
    # Mail has ports of its own, and what isn't known may be nothing.
    valid("NET01", *reached("email-smtp", {**HTTPS_IN, "fromPort": 587, "toPort": 587})),
    valid("NET01", endpoint("ecr.dkr", **INTERFACE, routeTableIds=[]), edge=True),
    valid("NET01", endpoint("s3", **ROUTED, subnetIds=[], securityGroupIds=None)),
    valid("NET01", endpoint("s3express", **ROUTED), edge=True),
    valid("NET01", *reached("sts", {**HTTPS_IN, "fromPort": 0, "toPort": 65535}), edge=True),
    invalid("NET01", endpoint("ecr.dkr"), says="vpcEndpointType is unset (EC2 takes Gateway); allowed: Interface: ecr.dkr has no gateway"),
    invalid("NET01", endpoint("ecr.api", vpcEndpointType="Gateway", **ROUTED), says="vpcEndpointType is Gateway; allowed: Interface"),
    invalid("NET01", endpoint("s3"), says="the route tables of the subnets that are to use it", edge=True),
    invalid("NET01", endpoint("s3", **ROUTED, privateDnsEnabled=True), says="a gateway has no names of its own"),
    invalid("NET01", endpoint("s3", **ROUTED, subnetIds=["subnet-1"]), says="subnetIds is set; allowed: unset: a gateway has routes"),
    invalid("NET01", endpoint("sts", **INTERFACE, **ROUTED), says="routeTableIds is set; allowed: unset: an interface endpoint"),
    invalid("NET01", endpoint("sts", vpcEndpointType="Interface"), says="clients ask for the service's public name"),
    invalid("NET01", *reached("ecr.api", {**HTTPS_IN, "fromPort": 80, "toPort": 80}), says="ingress of TCP 443 from the nodes"),
    invalid("NET01", *reached("eks-auth"), says="is door, which lets nobody in on TCP 443; allowed"),
)
CASES = (*REQUESTS, *INTERFACES, *FABRIC, *PLUGINS, *ENVIRONMENT, *PLACEMENT, *CAPACITY, *PLACES, *ENDPOINTS)
