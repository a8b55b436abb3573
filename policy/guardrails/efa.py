"""EFA: interfaces that the instance type has, and one zone."""

from typing import Any

from guardrails.facts import efa_interfaces, first_efa_card, network_cards
from guardrails.launch import class_of, launchers_with, own_types, pools_with, subnets_key
from guardrails.links import demand, targets
from guardrails.lustre import flag
from guardrails.node import Node
from guardrails.pool import INSTANCE_TYPE, ZONE, accelerated_types, allowed_values, possible_types
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.selector import selected
from guardrails.tokens import LAUNCH_TEMPLATE, NODE_CLASS, NODE_GROUP, NODE_POOL, SCALING_GROUP, SUBNET
from guardrails.zones import beyond_one, group_words, zones_place

_EFA_INTERFACES = frozenset({"efa", "efa-only"})
_KINDS = ("interface", "efa", "efa-only")
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


def _types_of(program: Program, resource: Resource) -> list[str]:
    """The instance types that start with these interfaces, as far as they are named."""
    if resource.type == NODE_CLASS:
        return [name for pool in pools_with(program, resource) for name in allowed_values(pool, INSTANCE_TYPE) or ()]
    own = resource.at("instanceType").text()
    named = [name for group in launchers_with(program, resource) for name in own_types(group)]
    return [own, *named] if own else named


def _counts(program: Program, report: Report) -> None:
    for resource in program.of(LAUNCH_TEMPLATE, NODE_CLASS):
        with report.part():
            members = list(interfaces(resource).elements())
            if any(_kind(member) in _EFA_INTERFACES for member in members):
                for name in dict.fromkeys(_types_of(program, resource)):
                    _count(resource, members, name, report)
                for pool in pools_with(program, resource) if resource.type == NODE_CLASS else ():
                    with report.part():
                        _families(resource, members, pool, report)


def _families(node_class: Resource, members: list[Node], pool: Resource, report: Report) -> None:
    """A pool that names families launches whichever type it can; what goes on none of them is refused."""
    types = possible_types(pool) if allowed_values(pool, INSTANCE_TYPE) is None else None
    if types and not any(_fits(members, name) for name in types):
        _count(node_class, members, max(types, key=lambda name: efa_interfaces()[name]), report)


def _fits(members: list[Node], name: str) -> bool:
    count = sum(_kind(member) in _EFA_INTERFACES for member in members)
    return count <= efa_interfaces()[name] and all(_first_card(member, name) <= _card(member) < network_cards(name) for member in members)


def _first_card(member: Node, name: str) -> int:
    """The first network card of the type that takes the interface."""
    return first_efa_card(name) if is_efa(member) else 0


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
        first, place = _first_card(member, name), member.at("networkCardIndex")
        if _card(member) >= cards:
            report.refuse(resource, place, allowed=f"{first} to {cards - 1}: {name} has {cards} network cards")
        elif _card(member) < first:
            report.refuse(resource, place, allowed=f"{first} to {cards - 1}, because card 0 of {name} has no EFA")


def _layout(resource: Resource, report: Report) -> None:
    place = interfaces(resource)
    members = list(place.elements())
    if resource.type == LAUNCH_TEMPLATE:
        with report.part():
            _template_interfaces(resource, members, report)
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


def _template_interfaces(template: Resource, members: list[Node], report: Report) -> None:
    """What EC2 refuses of interfaces of any kind."""
    for member in members:
        if _kind(member) not in _KINDS:
            report.refuse(template, member.at("interfaceType"), allowed=", ".join(_KINDS))
    for key in ("vpcSecurityGroupIds", "securityGroupNames") if members else ():
        with report.part():
            if template.at(key).value not in (None, []):
                allowed = "unset: where a template lists interfaces, each names its groups"
                report.refuse(template, template.at(key), allowed=allowed, found="set beside networkInterfaces")


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
    else:
        places = [member.at("associatePublicIpAddress") for member in members]
    for place in places:
        if flag(place) is True:
            report.refuse(resource, place, allowed=allowed)
    for subnet in _subnets_of(program, resource, members):
        if flag(subnet.at("mapPublicIpOnLaunch")) is True:
            found = f"in subnet {subnet.name}, which gives public addresses"
            report.refuse(resource, interfaces(resource), allowed=f"private subnets, with {len(members)} interfaces", found=found)


def _subnets_of(program: Program, resource: Resource, members: list[Node]) -> list[Resource]:
    """The subnets whose setting decides whether an interface has a public address: those where the interface does not say."""
    if resource.type == NODE_CLASS:
        says = resource.at("spec", "associatePublicIPAddress")
        return selected(program, resource, SUBNET) if flag(says) is not False else []
    # The others have no address at all.
    silent = [each for each in members if _kind(each) != "efa-only" and flag(each.at("associatePublicIpAddress")) is not False]
    subnets: list[Resource] = []
    for member in (each for each in silent if each.at("subnetId").present):
        if not resource.sources.get("networkInterfaces"):
            demand(member.at("subnetId"))
        subnets += targets(program, resource, "networkInterfaces", SUBNET, place=member.at("subnetId"))
    for group in launchers_with(program, resource) if silent else ():
        subnets += targets(program, group, subnets_key(group), SUBNET)
    return [subnet for index, subnet in enumerate(subnets) if all(subnet is not each for each in subnets[:index])]


def _one_zone(program: Program, report: Report) -> None:
    for pool in program.of(NODE_POOL):
        with report.part():
            _pool_in_one_zone(program, pool, report)
    for template in program.of(LAUNCH_TEMPLATE):
        with report.part():
            if has_efa(template):
                for group in launchers_with(program, template):
                    with report.part():
                        _group_in_one_zone(program, group, report)


def _pool_in_one_zone(program: Program, pool: Resource, report: Report) -> None:
    node_class = class_of(program, pool)
    bought = [instance.efa >= FABRIC_CARDS for instance in accelerated_types(pool)]
    uses = node_class is not None and has_efa(node_class)
    if not (uses or (any(bought) and (program.whole or node_class))):
        return
    zones = beyond_one(program, pool)
    if zones is not None:
        place = pool.at("spec", "template", "spec", "requirements")
        # A class that asks for no interface still gets them for pods that do; whether any does, this program does not say.
        # Nor whether pods go to the types of many cards or to the others, where a pool takes both.
        tell = report.refuse if uses or (node_class is None and all(bought)) else report.advise
        types = "its types" if all(bought) else "some of its types"
        why = "because the pool uses EFA" if uses else f"because {types} are bought for EFA"
        tell(pool, place, allowed=f"{ZONE} In exactly one zone, {why}", found=zones.words())


def _group_in_one_zone(program: Program, group: Resource, report: Report) -> None:
    zones = beyond_one(program, group)
    if zones is not None:
        allowed = "one subnet, or several of one zone, because the launch template uses EFA"
        report.refuse(group, zones_place(group), allowed=allowed, found=group_words(group, zones))


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
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS, NODE_POOL, NODE_GROUP, SCALING_GROUP}),
        early=True,
        why="EC2 refuses the launch: the node group ends in CREATE_FAILED, or Karpenter launches nothing and pods stay Pending.",
        fix="list one EFA interface for each card that the type has, and no more.",
        source="Karpenter 1.14.1 instance-type reference and VPC limits; awsome-distributed-ai add-cng-p6-b300.yaml",
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
        source="EC2 guide: EFA interfaces; botocore 1.44.8 ec2 model; karpenter-provider-aws 1.14.1 ec2nodeclass.go; "
        "hashicorp/terraform-provider-aws#4570",
        valid=_template("p5.48xlarge", _nics(2)),
        invalid=_template("p5.48xlarge", [{"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "efa-only"}]),
    ),
    StackRule(
        id="EFA03",
        name="interfaces-disallow-public-address",
        title="An instance with several interfaces has no public address, and efa-only ones have none at all",
        check=_addresses,
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS, NODE_GROUP, SCALING_GROUP, SUBNET}),
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
        types=frozenset({NODE_POOL, NODE_CLASS, LAUNCH_TEMPLATE, NODE_GROUP, SCALING_GROUP, SUBNET}),
        early=True,
        why="EFA traffic does not leave its zone, so ranks in two zones can't reach each other, or train over TCP.",
        fix="pin the pool to one zone (or the node group to subnets of one), the one of its placement group and Lustre.",
        source="EC2 guide: EFA limitations; aws-parallelcluster EfaMultiAzValidator",
        valid=(pool_example("us-east-1a"),),
        invalid=(pool_example("us-east-1a", "us-east-1b"),),
    ),
)
