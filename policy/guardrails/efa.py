"""EFA: interfaces that the instance type has, and one zone."""

from collections.abc import Iterator
from typing import Any

from guardrails.facts import efa_interfaces, network_cards
from guardrails.links import named, targets
from guardrails.lustre import flag
from guardrails.node import Node
from guardrails.pool import INSTANCE_TYPE, ZONE, accelerated_types, allowed_values
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.tokens import LAUNCH_TEMPLATE, NODE_CLASS, NODE_GROUP, NODE_POOL, SUBNET

_EFA_INTERFACES = frozenset({"efa", "efa-only"})
FABRIC_CARDS = 2
"""A type with so many EFA cards is bought for its fabric; one card comes with many types that never use it."""
_ADDRESS_KEYS = (
    *("ipv4Addresses", "ipv4AddressCount", "ipv4PrefixCount", "ipv4Prefixes", "privateIpAddress"),
    *("ipv6Addresses", "ipv6AddressCount", "ipv6PrefixCount", "ipv6Prefixes"),
)


def interfaces(resource: Resource) -> Node:
    """Where a launch template or an EC2NodeClass lists its network interfaces."""
    return resource.at("spec", "networkInterfaces") if resource.type == NODE_CLASS else resource.at("networkInterfaces")


def _kind(interface: Node) -> str:
    return interface.at("interfaceType").text() or "interface"


def _card(interface: Node) -> int:
    return interface.at("networkCardIndex").integer() or 0


def _device(interface: Node) -> int:
    return interface.at("deviceIndex").integer() or 0


def has_efa(resource: Resource) -> bool:
    """Whether any of its interfaces is for EFA."""
    return any(is_efa(interface) for interface in interfaces(resource).elements())


def is_efa(interface: Node) -> bool:
    """Whether the interface carries EFA traffic."""
    return _kind(interface) in _EFA_INTERFACES


def pools_with(program: Program, node_class: Resource) -> Iterator[Resource]:
    """The NodePools that use an EC2NodeClass."""
    name = node_class.at("metadata", "name").text()
    for pool in program.of(NODE_POOL):
        if pool.at("spec", "template", "spec", "nodeClassRef", "name").text() == name:
            yield pool


def class_of(program: Program, pool: Resource) -> Resource | None:
    """The EC2NodeClass that a NodePool uses."""
    name = pool.at("spec", "template", "spec", "nodeClassRef", "name").text()
    return named(program, name, NODE_CLASS) if name else None


def groups_with(program: Program, template: Resource) -> Iterator[Resource]:
    """The managed node groups that use a launch template."""
    for group in program.of(NODE_GROUP):
        ids = _texts(group.at("launchTemplate"))
        own = _texts(template.properties)
        if (template.urn and template.urn in group.sources.get("launchTemplate", ())) or ids & own:
            yield group


def _texts(node: Node) -> set[str]:
    """The literal id and name under a node."""
    return {raw for key in ("id", "name") if isinstance(raw := node.at(key).raw, str)}


def _types_of(program: Program, resource: Resource) -> list[str]:
    """The instance types that start with these interfaces, as far as they are named."""
    if resource.type == NODE_CLASS:
        return [name for pool in pools_with(program, resource) for name in allowed_values(pool, INSTANCE_TYPE) or ()]
    own = resource.at("instanceType").text()
    named = [each.text() for group in groups_with(program, resource) for each in group.at("instanceTypes").elements()]
    return [own, *named] if own else named


def _counts(program: Program, report: Report) -> None:
    for resource in program.of(LAUNCH_TEMPLATE, NODE_CLASS):
        with report.part():
            members = list(interfaces(resource).elements())
            if any(_kind(member) in _EFA_INTERFACES for member in members):
                for name in dict.fromkeys(_types_of(program, resource)):
                    _count(resource, members, name, report)


def _count(resource: Resource, members: list[Node], name: str, report: Report) -> None:
    most = efa_interfaces().get(name)
    if most is None:
        return
    count = sum(_kind(member) in _EFA_INTERFACES for member in members)
    if count > most:
        allowed = f"at most {most} on {name}" if most else f"none: {name} has no EFA"
        report.refuse(resource, interfaces(resource), allowed=allowed, found=f"{count} EFA interfaces")
        return
    cards = network_cards(name)
    for member in members:
        if _card(member) >= cards:
            report.refuse(resource, member.at("networkCardIndex"), allowed=f"0 to {cards - 1}: {name} has {cards} network cards")


def _layout(resource: Resource, report: Report) -> None:
    place = interfaces(resource)
    members = list(place.elements())
    if not any(_kind(member) in _EFA_INTERFACES for member in members):
        return
    seen: set[tuple[int, int]] = set()
    efa_cards: set[int] = set()
    for member in members:
        card, device, kind = _card(member), _device(member), _kind(member)
        if (card, device) in seen:
            report.refuse(resource, member, allowed="one interface for each card and device", found=f"a second on {card}, {device}")
        if kind in _EFA_INTERFACES and card in efa_cards:
            report.refuse(resource, member, allowed="one EFA for each network card", found=f"a second EFA on card {card}")
        seen.add((card, device))
        efa_cards |= {card} if kind in _EFA_INTERFACES else set()
        if (card, device) == (0, 0) and kind == "efa-only":
            report.refuse(resource, member, allowed="interface (or efa) for the primary: it carries the node's address", found=kind)
        if resource.type == NODE_CLASS and kind == "efa":
            report.refuse(resource, member.at("interfaceType"), allowed="interface or efa-only in an EC2NodeClass")
    if (0, 0) not in seen:
        report.refuse(resource, place, allowed="a primary interface on card 0, device 0", found="without one")


def _addresses(program: Program, report: Report) -> None:
    for resource in program.of(LAUNCH_TEMPLATE, NODE_CLASS):
        with report.part():
            members = list(interfaces(resource).elements())
            for member in members:
                if _kind(member) == "efa-only":
                    _no_address(resource, member, report)
            if len(members) > 1:
                _no_public(program, resource, members, report)


def _no_address(resource: Resource, member: Node, report: Report) -> None:
    for key in _ADDRESS_KEYS:
        place = member.at(key)
        if place.present and place.value not in ([], 0):
            report.refuse(resource, place, allowed="unset on an efa-only interface, which has no address")


def _no_public(program: Program, resource: Resource, members: list[Node], report: Report) -> None:
    allowed = f"false, because the instance has {len(members)} interfaces"
    if resource.type == NODE_CLASS:
        places = [resource.at("spec", "associatePublicIPAddress")]
        subnets = targets(program, resource, "spec", SUBNET, place=Node([], "spec"))
    else:
        places = [member.at("associatePublicIpAddress") for member in members]
        subnets = targets(program, resource, "networkInterfaces", SUBNET, place=Node([], "networkInterfaces"))
        subnets += [each for group in groups_with(program, resource) for each in targets(program, group, "subnetIds", SUBNET)]
    for place in places:
        if flag(place) is True:
            report.refuse(resource, place, allowed=allowed)
    for subnet in subnets:
        if flag(subnet.at("mapPublicIpOnLaunch")) is True:
            found = f"in subnet {subnet.name}, which gives public addresses"
            report.refuse(resource, interfaces(resource), allowed=f"private subnets, with {len(members)} interfaces", found=found)


def _one_zone(program: Program, report: Report) -> None:
    for pool in program.of(NODE_POOL):
        with report.part():
            _pool_in_one_zone(program, pool, report)
    for template in program.of(LAUNCH_TEMPLATE):
        with report.part():
            if has_efa(template):
                for group in groups_with(program, template):
                    _group_in_one_subnet(group, report)


def _pool_in_one_zone(program: Program, pool: Resource, report: Report) -> None:
    node_class = class_of(program, pool)
    fabric = any(instance.efa >= FABRIC_CARDS for instance in accelerated_types(pool))
    uses = node_class is not None and has_efa(node_class)
    if not (uses or (fabric and (program.whole or node_class))):
        return
    zones = allowed_values(pool, ZONE)
    if zones is None or len(zones) != 1:
        place = pool.at("spec", "template", "spec", "requirements")
        found = "without a zone" if zones is None else f"zones {', '.join(zones) or 'none'}"
        # A class that asks for no interface still gets them for pods that do; whether any does, this program does not say.
        tell = report.refuse if uses or node_class is None else report.advise
        why = "because the pool uses EFA" if uses else "because its types are bought for EFA"
        tell(pool, place, allowed=f"{ZONE} In exactly one zone, {why}", found=found)


def _group_in_one_subnet(group: Resource, report: Report) -> None:
    place = group.at("subnetIds")
    count = len(list(place.elements()))
    if count != 1:
        report.refuse(group, place, allowed="one subnet, because the launch template uses EFA", found=f"{count} subnets")


def _nics(count: int, kind: str = "efa-only") -> list[dict[str, Any]]:
    first = {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    return [first, *({"networkCardIndex": card, "deviceIndex": 1, "interfaceType": kind} for card in range(count))]


def _template(name: str, members: list[dict[str, Any]], **more: Any) -> tuple[Example, ...]:
    return (Example(LAUNCH_TEMPLATE, {"instanceType": name, "networkInterfaces": members, **more}, name="template"),)


def pool_example(*zones: str) -> Example:
    """A pool of p5 in these zones, for the documentation."""
    requirements = [
        {"key": INSTANCE_TYPE, "operator": "In", "values": ["p5.48xlarge"]},
        {"key": ZONE, "operator": "In", "values": list(zones)},
    ]
    return Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": {"template": {"spec": {"requirements": requirements}}}}, name="p5")


RULES = (
    StackRule(
        id="EFA01",
        name="interfaces-limit-efa-count",
        title="An instance gets as many EFA interfaces as its type has",
        check=_counts,
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS, NODE_POOL, NODE_GROUP}),
        early=True,
        why="EC2 refuses the launch: the node group ends in CREATE_FAILED, or Karpenter launches nothing and pods stay Pending.",
        fix="list one EFA interface for each card that the type has, and no more.",
        source="Karpenter 1.14.1 instance-type reference and VPC limits",
        valid=_template("p5en.48xlarge", _nics(16)),
        invalid=_template("p5en.48xlarge", _nics(32)),
    ),
    Rule(
        id="EFA02",
        name="interfaces-require-efa-layout",
        title="EFA interfaces stand one to a card, beside a primary that has an address",
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS}),
        check=_layout,
        why="EC2 refuses the launch, or the API server refuses the EC2NodeClass.",
        fix="put an interface on card 0, device 0, and one efa-only interface on device 1 of each card.",
        source="EC2 guide: EFA interfaces; karpenter-provider-aws 1.14.1 ec2nodeclass.go",
        valid=_template("p5.48xlarge", _nics(2)),
        invalid=_template("p5.48xlarge", [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa-only"}]),
    ),
    StackRule(
        id="EFA03",
        name="interfaces-disallow-public-address",
        title="An instance with several interfaces has no public address, and efa-only ones have none at all",
        check=_addresses,
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS, NODE_GROUP, SUBNET}),
        why="EC2 refuses the launch with InvalidParameterCombination.",
        fix="use private subnets, leave associatePublicIpAddress unset, and give efa-only interfaces no addresses or prefixes.",
        source="botocore 1.44.8 ec2 model; karpenter-provider-aws designs/efa-for-static-capacity",
        valid=_template("p5.48xlarge", _nics(2)),
        invalid=_template("p5.48xlarge", [{**_nics(2)[0], "associatePublicIpAddress": "true"}, *_nics(2)[1:]]),
    ),
    StackRule(
        id="EFA05",
        name="node-pool-require-one-efa-zone",
        title="A pool that uses EFA stays in one zone",
        check=_one_zone,
        types=frozenset({NODE_POOL, NODE_CLASS, LAUNCH_TEMPLATE, NODE_GROUP}),
        early=True,
        why="EFA traffic does not leave its zone, so ranks in two zones can't reach each other, or train over TCP.",
        fix="pin the pool to one zone (or the node group to one subnet), the one of its placement group and Lustre.",
        source="EC2 guide: EFA limitations; aws-parallelcluster EfaMultiAzValidator",
        valid=(pool_example("us-east-1a"),),
        invalid=(pool_example("us-east-1a", "us-east-1b"),),
    ),
)
