"""Lustre on the network: one subnet beside the nodes, and the ports that a mount needs."""

from collections.abc import Callable, Iterator

from guardrails.facts import instance_types
from guardrails.firewall import GROUP_TYPES, Opening, is_open, openings, peers_of, to_group, to_others, to_themselves
from guardrails.launch import types_of
from guardrails.links import demand, targets
from guardrails.lustre import LUSTRE_TYPES, Shape, shape_of
from guardrails.node import Node
from guardrails.pool import ZONE, is_training_pool
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import LAUNCH_TEMPLATE, LUSTRE, NODE_CLASS, NODE_GROUP, NODE_POOL, SCALING_GROUP, SECURITY_GROUP, SUBNET
from guardrails.zones import group_zones, pool_zones

_PORTS = ((988, 988), (1018, 1023))


def _one_subnet(program: Program, report: Report) -> None:
    _each(program, report, _subnets_of)


def _each(program: Program, report: Report, check: Callable[[Program, Shape, Report], None]) -> None:
    for resource in program.of(*LUSTRE_TYPES):
        with report.part():
            shape = shape_of(resource)
            if shape is not None:
                check(program, shape, report)


def _subnets_of(program: Program, shape: Shape, report: Report) -> None:
    place = shape.at("subnetIds")
    if isinstance(place.raw, list) and len(place.raw) != 1:
        report.refuse(shape.resource, place, allowed="one subnet", found=f"{len(place.raw)} subnets")
    else:
        _zone_of_pools(program, shape, report)


def _named(program: Program, shape: Shape, key: str, kind: str) -> list[Resource]:
    """What a setting names by its ids, or takes them from."""
    return targets(program, shape.resource, shape.source or key, kind, place=shape.at(key) if shape.source else None)


def _zone_of_pools(program: Program, shape: Shape, report: Report) -> None:
    resource, place = shape.resource, shape.at("subnetIds")
    subnets = _named(program, shape, "subnetIds", SUBNET)
    if not subnets:
        # A literal id is that of a subnet made elsewhere: its zone can't be seen here.
        demand(place)
        return
    zones = _training_zones(program)
    if not zones:
        return
    zone = subnets[0].at("availabilityZone")
    if zone.present and zone.text() not in zones:
        found = f"in zone {zone.text()}"
        report.refuse(resource, place, allowed=f"a subnet in the zone of training nodes: {', '.join(zones)}", found=found)


def _training_zones(program: Program) -> list[str]:
    """Zones of the pools and groups of accelerators; none where one of them may be in any zone."""
    found = [pool_zones(program, pool) for pool in program.of(NODE_POOL) if is_training_pool(pool)]
    for group in program.of(NODE_GROUP, SCALING_GROUP):
        if any(name in instance_types() for name in types_of(program, group)):
            found.append(group_zones(program, group))
    if any(zones.others != 0 for zones in found):
        return []
    return list(dict.fromkeys(name for zones in found for name in zones.names))


def _ports(program: Program, report: Report) -> None:
    _each(program, report, _ports_of)


def _ports_of(program: Program, shape: Shape, report: Report) -> None:
    resource, place = shape.resource, shape.at("securityGroupIds")
    ids = list(place.elements())
    if not ids:
        report.refuse(resource, place, allowed="a group with TCP 988 and 1018-1023 open", found="unset (the VPC's default group)")
        return
    groups = _named(program, shape, "securityGroupIds", SECURITY_GROUP)
    missing = list(_closed(program, groups))
    if len(groups) < len(ids):
        # What is closed here may be open in a group that the program does not make.
        for unseen in (place, *(group.at("id") for group in program.of(SECURITY_GROUP))) if missing else ():
            demand(unseen)
        return
    if missing:
        name = ", ".join(group.name for group in groups)
        report.refuse(resource, place, allowed="TCP 988 and 1018-1023 both ways", found=f"{name}, without {'; '.join(missing)}")


def _closed(program: Program, groups: list[Resource]) -> Iterator[str]:
    for direction in ("ingress", "egress"):
        for first, last in _PORTS:
            if not is_open(program, groups, direction, first, last, to_themselves(groups)):
                yield f"{direction} of {_written(first, last)} to itself"
        # Nodes in the same group need nothing more; where others are let in, they are let in for all of it.
        for first, last in _half_open(program, groups, direction):
            yield f"{direction} of {_written(first, last)} to the nodes"


def _half_open(program: Program, groups: list[Resource], direction: str) -> list[tuple[int, int]]:
    """The range that is closed to others while the other range is open to them, or to one group of them."""
    checks = [(to_others(groups), to_others(groups))]
    for name in peers_of(program, groups, direction):
        checks.append((to_group(name, by_address=False), to_group(name, by_address=True)))
    found: list[tuple[int, int]] = []
    for named, reached in checks:
        for here, there in (_PORTS, _PORTS[::-1]):
            if is_open(program, groups, direction, *here, named) and not is_open(program, groups, direction, *there, reached):
                found.append(there)
    if not found:
        _demand_peers(program, groups, direction)
    return list(dict.fromkeys(found))


def _demand_peers(program: Program, groups: list[Resource], direction: str) -> None:
    """Which group has one range alone has to be known: it may have the other by another rule."""
    for opening in (each for group in groups for each in openings(program, group, direction)):
        unknown = [name for name in opening.groups if isinstance(name, Node)] if isinstance(opening, Opening) else []
        if isinstance(opening, Opening) and unknown and len({opening.covers(*ports) for ports in _PORTS}) > 1:
            demand(unknown[0])


def _written(first: int, last: int) -> str:
    return f"{first}-{last}" if first != last else str(first)


_GROUP = {
    direction: [
        {"protocol": "tcp", "fromPort": 988, "toPort": 988, "self": True},
        {"protocol": "tcp", "fromPort": 1018, "toPort": 1023, "self": True},
    ]
    for direction in ("ingress", "egress")
}
_FILE_SYSTEM = {"deploymentType": "SCRATCH_2", "storageCapacity": 1200, "subnetIds": "subnet-1"}


def _subnet(zone: str) -> Example:
    return Example(SUBNET, {"availabilityZone": zone, "cidrBlock": "10.0.0.0/20"}, name="private")


def _pool(zone: str) -> Example:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]},
        {"key": ZONE, "operator": "In", "values": [zone]},
    ]
    return Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": {"template": {"spec": {"requirements": requirements}}}}, name="p5")


_BESIDE = Example(LUSTRE, {**_FILE_SYSTEM, "securityGroupIds": ["sg-1"]}, name="scratch", sources={"subnetIds": ["private"]})

RULES = (
    StackRule(
        id="FSX10",
        name="lustre-require-one-near-subnet",
        title="A Lustre file system stands in one subnet, in the zone of the training nodes",
        check=_one_subnet,
        types=frozenset({*LUSTRE_TYPES, SUBNET, NODE_POOL, NODE_CLASS, NODE_GROUP, SCALING_GROUP, LAUNCH_TEMPLATE}),
        why="FSx refuses several subnets; in another zone every read crosses zones, at a charge and with more latency, and not over EFA.",
        fix="name the one private subnet in the zone that the training pool or node group is pinned to.",
        source="botocore 1.44.8 fsx model, SubnetIds; aws-parallelcluster FsxAzValidator",
        valid=(_subnet("us-east-1a"), _BESIDE, _pool("us-east-1a")),
        invalid=(_subnet("us-east-1b"), _BESIDE, _pool("us-east-1a")),
    ),
    StackRule(
        id="FSX11",
        name="lustre-require-open-ports",
        title="A Lustre file system's group opens TCP 988 and 1018 to 1023, both ways",
        check=_ports,
        types=frozenset({*LUSTRE_TYPES, *GROUP_TYPES}),
        why="without 988 FSx refuses to make it (LNET); with 988 alone it is made, and mounts hang.",
        fix="open both ranges, in and out, to the group itself and to the group of the nodes.",
        source="FSx for Lustre guide: limit access with security groups",
        valid=(
            Example(SECURITY_GROUP, _GROUP, name="lustre"),
            Example(LUSTRE, {**_FILE_SYSTEM, "securityGroupIds": ["sg-1"]}, name="scratch", sources={"securityGroupIds": ["lustre"]}),
        ),
        invalid=(
            Example(SECURITY_GROUP, {"ingress": _GROUP["ingress"][:1], "egress": _GROUP["egress"]}, name="lustre"),
            Example(LUSTRE, {**_FILE_SYSTEM, "securityGroupIds": ["sg-1"]}, name="scratch", sources={"securityGroupIds": ["lustre"]}),
        ),
    ),
)
