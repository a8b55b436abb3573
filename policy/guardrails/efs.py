"""EFS: modes that go together, encryption, access points, and a mount target in every zone."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from guardrails.facts import load
from guardrails.firewall import GROUP_TYPES, is_open
from guardrails.links import demand, targets
from guardrails.lustre import flag
from guardrails.node import Node
from guardrails.pool import ZONE
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.tokens import ACCESS_POINT, EFS, MOUNT_TARGET, NODE_CLASS, NODE_GROUP, NODE_POOL, SECURITY_GROUP, SUBNET
from guardrails.zones import group_zones, named_zones

_NFS = 2049
_PERMISSIONS = re.compile(r"[0-7]{3,4}")
_ENTER_AND_WRITE = 0o3
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_ARCHIVE, _INFREQUENT = "transitionToArchive", "transitionToIa"
_DEFAULT_THROUGHPUT = "bursting"


def _modes(resource: Resource, report: Report) -> None:
    facts = load("efs")
    with report.part():
        _throughput(resource, facts, report)
    with report.part():
        _lifecycle(resource, facts, report)
    with report.part():
        performance = resource.at("performanceMode")
        if performance.present and performance.text() not in facts["performanceModes"]:
            report.refuse(resource, performance, allowed=" or ".join(facts["performanceModes"]))
        if performance.text() != "maxIO":
            return
        if resource.at("throughputMode").text() == "elastic":
            report.refuse(resource, performance, allowed="generalPurpose, because throughputMode is elastic")
        if resource.at("availabilityZoneName").present:
            report.refuse(resource, performance, allowed="generalPurpose, because the file system is in one zone")


def _throughput(resource: Resource, facts: Mapping[str, Any], report: Report) -> None:
    mode, rate = resource.at("throughputMode"), resource.at("provisionedThroughputInMibps")
    if mode.present and mode.text() not in facts["throughputModes"]:
        report.refuse(resource, mode, allowed=", ".join(facts["throughputModes"]))
        return
    if (mode.text() or _DEFAULT_THROUGHPUT) != "provisioned":
        if rate.present and _number(rate) != 0:
            report.refuse(resource, rate, allowed="unset, because throughputMode is not provisioned")
        return
    number = _number(rate)
    if number is None or not 1 <= number <= facts["provisionedMost"]:
        report.refuse(resource, rate, allowed=f"1 to {facts['provisionedMost']} MiB/s, because throughputMode is provisioned")


def _lifecycle(resource: Resource, facts: Mapping[str, Any], report: Report) -> None:
    known, days = facts["transitions"], dict[str, int]()
    for policy in resource.at("lifecyclePolicies").elements():
        given = [key for key in known if policy.at(key).text()]
        if len(given) != 1:
            report.refuse(resource, policy, allowed="one transition in each policy", found=f"one with {' and '.join(given) or 'none'}")
        for key in given:
            after = policy.at(key)
            if after.text() not in known[key]:
                report.refuse(resource, after, allowed=", ".join(known[key]))
            elif matched := re.fullmatch("AFTER_([0-9]+)_DAYS?", after.text()):
                days[key] = int(matched[1])
            if key == _ARCHIVE:
                _archive(resource, after, report)
    archived, moved = days.get(_ARCHIVE), days.get(_INFREQUENT)
    if archived and moved and archived <= moved:
        allowed, found = f"{_ARCHIVE} later than {_INFREQUENT}, after {moved} days", f"with {_ARCHIVE} after {archived} days"
        report.refuse(resource, resource.at("lifecyclePolicies"), allowed=allowed, found=found)


def _archive(resource: Resource, place: Node, report: Report) -> None:
    mode = resource.at("throughputMode").text() or _DEFAULT_THROUGHPUT
    if mode != "elastic":
        report.refuse(resource, place, allowed=f"unset, because throughputMode is {mode}: the archive is for elastic")
    if resource.at("performanceMode").text() == "maxIO":
        report.refuse(resource, place, allowed="unset, because performanceMode is maxIO")


def _number(node: Node) -> float | None:
    """The value as a number, also as text, which the provider takes too; None where it is missing or none."""
    value = node.value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _encryption(resource: Resource, report: Report) -> None:
    place, key = resource.at("encrypted"), resource.at("kmsKeyId")
    if flag(place) is not True:
        allowed = "true, because kmsKeyId names a key" if key.present else "true"
        report.refuse(resource, place, allowed=allowed)


def _access_point(resource: Resource, report: Report) -> None:
    facts = load("efs")
    with report.part():
        user = resource.at("posixUser")
        if not user.present:
            report.refuse(resource, user, allowed="a uid and gid: without them every client acts as whoever it says it is")
        else:
            _identities(resource, [user.at("uid"), user.at("gid")], facts, report)
            _secondary_groups(resource, user.at("secondaryGids"), facts, report)
    with report.part():
        _root(resource, facts, report)
    with report.part():
        _writable(resource, report)


def _identities(resource: Resource, places: Sequence[Node], facts: Mapping[str, Any], report: Report) -> None:
    for place in places:
        with report.part():
            number = place.integer()
            if number is None or not 0 <= number <= facts["identityMost"]:
                report.refuse(resource, place, allowed=f"0 to {facts['identityMost']}")


def _secondary_groups(resource: Resource, place: Node, facts: Mapping[str, Any], report: Report) -> None:
    groups, most = list(place.elements()), facts["secondaryGroupsMost"]
    if len(groups) > most:
        report.refuse(resource, place, allowed=f"at most {most} groups", found=f"{len(groups)} groups")
    _identities(resource, groups, facts, report)


def _root(resource: Resource, facts: Mapping[str, Any], report: Report) -> None:
    place = resource.at("rootDirectory", "path")
    path = place.text() or "/"
    if path == "/":
        return
    _path(resource, place, path, facts, report)
    creation = resource.at("rootDirectory", "creationInfo")
    if not creation.present:
        report.refuse(resource, creation, allowed="owner and permissions, because nobody makes the folder else")
        return
    _identities(resource, [creation.at("ownerUid"), creation.at("ownerGid")], facts, report)
    permissions = creation.at("permissions")
    if not _PERMISSIONS.fullmatch(permissions.text()):
        report.refuse(resource, permissions, allowed='3 or 4 octal digits, such as "0750"')


def _writable(resource: Resource, report: Report) -> None:
    """Whether the user may write into the folder that is made for it; one that is there already keeps the owner that it has."""
    if resource.at("rootDirectory", "path").text() in ("", "/"):
        return
    user, creation = resource.at("posixUser"), resource.at("rootDirectory", "creationInfo")
    uid, gid, owner, group = (
        place.integer() for place in (user.at("uid"), user.at("gid"), creation.at("ownerUid"), creation.at("ownerGid"))
    )
    permissions = creation.at("permissions")
    if not uid or owner is None or group is None or not _PERMISSIONS.fullmatch(permissions.text()):
        return
    groups = {gid, *(each.integer() for each in user.at("secondaryGids").elements())}
    shift = 6 if uid == owner else 3 if group in groups else 0
    if int(permissions.text(), 8) >> shift & _ENTER_AND_WRITE != _ENTER_AND_WRITE:
        found = f"{permissions.text()} of owner {owner} and group {group}, by which user {uid} can't write there"
        allowed = f"ownerUid {uid} with 0700 or more, or write for a group of the user, unless it only reads or the folder is there already"
        report.advise(resource, permissions, allowed=allowed, found=found)


def _path(resource: Resource, place: Node, path: str, facts: Mapping[str, Any], report: Report) -> None:
    if len(path) > facts["pathCharacters"]:
        report.refuse(resource, place, allowed=f"at most {facts['pathCharacters']} characters", found=f"{len(path)} characters")
    levels = len([part for part in path.split("/") if part])
    if levels > facts["pathLevels"]:
        report.refuse(resource, place, allowed=f"at most {facts['pathLevels']} levels of folders", found=f"{path}, {levels} levels")
    if not re.fullmatch(f"({facts['pathFolder']})+", path):
        allowed = "folders that each follow one /, begin with no dot and have none of $#<>;`|&?{}^*; no / at the end"
        report.refuse(resource, place, allowed=allowed)


def _mount_targets(program: Program, report: Report) -> None:
    for resource in program.of(EFS):
        mine = [target for target in program.of(MOUNT_TARGET) if program.refers(target, "fileSystemId", resource)]
        with report.part():
            _each_zone(program, resource, mine, report)
    for target in program.of(MOUNT_TARGET):
        with report.part():
            _nfs_open(program, target, report)


def _each_zone(program: Program, resource: Resource, mine: list[Resource], report: Report) -> None:
    if not mine:
        _without_any(program, resource, report)
        return
    if resource.at("availabilityZoneName").present:
        _in_its_zone(program, resource, mine, report)
        return
    zones: dict[str, Resource] = {}
    unseen: Node | None = None
    for target in mine:
        zone = _zone_of(program, target)
        if zone is None:
            unseen = target.at("subnetId")
        elif zone in zones:
            found = f"in {zone}, where {zones[zone].name} is already"
            report.refuse(target, target.at("subnetId"), allowed="one mount target in each zone", found=found)
        else:
            zones[zone] = target
    if unseen is not None:
        demand(unseen)
        return
    for zone, user in _node_zones(program, report).items():
        if zone not in zones:
            found = f"in {', '.join(sorted(zones))} only"
            allowed = f"one in {zone} too, where {user} has nodes"
            report.refuse(resource, Node(None, "mountTargets", resource.name), allowed=allowed, found=found)


def _without_any(program: Program, resource: Resource, report: Report) -> None:
    """Nodes beside a file system without mount targets can't mount it, unless another program makes them."""
    for target in program.of(MOUNT_TARGET):
        if not target.sources.get("fileSystemId"):
            # One whose file system is not known may be this one's.
            demand(target.at("fileSystemId"))
    if program.has({NODE_POOL, NODE_GROUP}):
        allowed = "one in each zone that has nodes, made here or where the network is made"
        report.advise(resource, Node(None, "mountTargets", resource.name), allowed=allowed, found="none in this program")


def _in_its_zone(program: Program, resource: Resource, mine: list[Resource], report: Report) -> None:
    """A file system in one zone takes one mount target, in that zone."""
    for target in mine[1:]:
        allowed = f"one mount target: {resource.name} is in one zone"
        report.refuse(target, target.at("fileSystemId"), allowed=allowed, found=f"{resource.name}, which has {mine[0].name} already")
    for target in mine:
        with report.part():
            own, zone = resource.at("availabilityZoneName").text(), _zone_of(program, target)
            if zone is None:
                demand(target.at("subnetId"))
            elif zone != own:
                allowed = f"a subnet in {own}, the zone of {resource.name}"
                report.refuse(target, target.at("subnetId"), allowed=allowed, found=f"in {zone}")


def _zone_of(program: Program, target: Resource) -> str | None:
    """The zone a mount target is in; None where its subnet is made elsewhere."""
    subnets = targets(program, target, "subnetId", SUBNET)
    return subnets[0].at("availabilityZone").text() or None if subnets else None


def _node_zones(program: Program, report: Report) -> dict[str, str]:
    """Zones that nodes are in -> what says so; what can't be told of one pool or group is noted, and hides no other."""
    zones: dict[str, str] = {}
    for pool in program.of(NODE_POOL):
        with report.part():
            for zone in named_zones(program, pool):
                zones.setdefault(zone, pool.name)
    for group in program.of(NODE_GROUP):
        with report.part():
            for zone in group_zones(program, group).names:
                zones.setdefault(zone, group.name)
    return zones


def _nfs_open(program: Program, target: Resource, report: Report) -> None:
    place = target.at("securityGroups")
    ids = list(place.elements())
    if not ids:
        report.refuse(target, place, allowed=f"a group that lets nodes in on TCP {_NFS}", found="unset (the VPC's default group)")
        return
    groups = targets(program, target, "securityGroups", SECURITY_GROUP)
    if is_open(program, groups, "ingress", _NFS, _NFS):
        return
    if len(groups) < len(ids):
        demand(place)
        return
    found = f"{', '.join(group.name for group in groups)}, which lets nobody in on it"
    report.refuse(target, place, allowed=f"a group with ingress of TCP {_NFS} from the nodes", found=found)


_NODES_IN = {"ingress": [{"protocol": "tcp", "fromPort": _NFS, "toPort": _NFS, "securityGroups": ["sg-nodes"]}]}


def _file_system(**properties: object) -> tuple[Example, ...]:
    return (Example(EFS, properties, name="home"),)


def _point(path: str) -> tuple[Example, ...]:
    creation = {"ownerUid": 1000, "ownerGid": 1000, "permissions": "0750"}
    properties = {
        "fileSystemId": "fs-0123456789abcdef0",
        "posixUser": {"uid": 1000, "gid": 1000},
        "rootDirectory": {"path": path, "creationInfo": creation},
    }
    return (Example(ACCESS_POINT, properties, name="team"),)


def _target(zone: str) -> tuple[Example, ...]:
    sources = {"fileSystemId": ["home"], "subnetId": [f"private-{zone}"], "securityGroups": ["nfs"]}
    properties = {"fileSystemId": "fs-1", "subnetId": f"subnet-{zone}", "securityGroups": ["sg-1"]}
    return (
        Example(SUBNET, {"availabilityZone": f"us-east-1{zone}", "cidrBlock": "10.0.0.0/20"}, name=f"private-{zone}"),
        Example(MOUNT_TARGET, properties, name=f"home-{zone}", sources=sources),
    )


_ZONES = {"key": ZONE, "operator": "In", "values": ["us-east-1a", "us-east-1b"]}
_POOL = Example(NODE_POOL, {"metadata": {"name": "general"}, "spec": {"template": {"spec": {"requirements": [_ZONES]}}}}, name="general")
_HOME = Example(EFS, {"encrypted": True}, name="home")
_GROUP = Example(SECURITY_GROUP, _NODES_IN, name="nfs")

RULES = (
    Rule(
        id="EFS01",
        name="file-system-require-legal-modes",
        title="The throughput and performance modes of an EFS file system go together, and its files move as these allow",
        types=frozenset({EFS}),
        check=_modes,
        why="EFS refuses the file system when it is created.",
        fix="use elastic with generalPurpose, or provisioned with provisionedThroughputInMibps; one transition in each lifecycle policy.",
        source="botocore 1.44.8 efs model, PutLifecycleConfiguration; EFS guide: performance; cloudposse/terraform-aws-efs#103",
        valid=_file_system(encrypted=True, throughputMode="elastic"),
        invalid=_file_system(encrypted=True, throughputMode="provisioned"),
    ),
    Rule(
        id="EFS02",
        name="file-system-require-encryption",
        title="An EFS file system is encrypted",
        types=frozenset({EFS}),
        check=_encryption,
        why="it can't be encrypted later: everything would have to be copied to a new one; a key without it is refused.",
        fix="set encrypted to true.",
        source="botocore 1.44.8 efs model; Checkov CKV_AWS_42",
        valid=_file_system(encrypted=True),
        invalid=_file_system(throughputMode="elastic"),
    ),
    Rule(
        id="EFS03",
        name="access-point-require-user-and-folder",
        title="An EFS access point has a user, and says how its folder is made",
        types=frozenset({ACCESS_POINT}),
        check=_access_point,
        why="EFS refuses a path that is too long, too deep or ill-formed; without creationInfo nobody makes the folder, and mounts fail.",
        fix="set posixUser, a path of at most 4 levels, and creationInfo with ownerUid, ownerGid and permissions.",
        source="botocore 1.44.8 efs model, RootDirectory, Path, CreationInfo and PosixUser",
        valid=_point("/ml"),
        invalid=_point("/a/b/c/d/e"),
    ),
    StackRule(
        id="EFS04",
        name="mount-target-require-each-zone",
        title="An EFS file system has one mount target, open to NFS, in each zone that has nodes, or in its one zone",
        check=_mount_targets,
        types=frozenset({EFS, MOUNT_TARGET, SUBNET, NODE_POOL, NODE_CLASS, NODE_GROUP, *GROUP_TYPES}),
        why="pods in the zone without one can't resolve the file system; a closed one times out; a second in a zone is refused.",
        fix="make one mount target for each private subnet's zone, in a group with ingress of TCP 2049 from the nodes.",
        source="botocore 1.44.8 efs model, CreateMountTarget; kubernetes-sigs/aws-efs-csi-driver#489",
        valid=(_HOME, _GROUP, *_target("a"), *_target("b"), _POOL),
        invalid=(_HOME, _GROUP, *_target("a"), _POOL),
    ),
)
