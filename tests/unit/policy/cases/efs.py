"""EFS: modes, encryption, access points, mount targets."""

from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid


def efs(**properties: Any) -> Thing:
    return Thing(type=tokens.EFS, name="home", properties={"encrypted": True, **properties})


def point(changes: dict[str, Any] | None = None) -> Thing:
    plain = {
        "fileSystemId": "fs-0123456789abcdef0",
        "posixUser": {"uid": 1000, "gid": 1000},
        "rootDirectory": {"path": "/ml", "creationInfo": {"ownerUid": 1000, "ownerGid": 1000, "permissions": "0750"}},
    }
    return Thing(type=tokens.ACCESS_POINT, name="team", properties=b.changed(plain, changes or {}))


PATH, CREATION = "rootDirectory/path", "rootDirectory/creationInfo"


def made_by_root(permissions: str, **user: Any) -> Thing:
    """A point whose folder belongs to root, where its user is another one."""
    root = {f"{CREATION}/ownerUid": 0, f"{CREATION}/ownerGid": 0, f"{CREATION}/permissions": permissions}
    return point({"posixUser": {"uid": 1000, "gid": 1000, **user}, **root})


def subnet(zone: str) -> Thing:
    return Thing(type=tokens.SUBNET, name=f"private-{zone}", properties={"availabilityZone": f"us-east-1{zone}"})


def target(zone: str, name: str | None = None, groups: Any = (UNKNOWN,)) -> Thing:
    return Thing(
        type=tokens.MOUNT_TARGET,
        name=name or f"home-{zone}",
        properties={"fileSystemId": UNKNOWN, "subnetId": UNKNOWN, "securityGroups": list(groups)},
        sources={"fileSystemId": ["home"], "subnetId": [f"private-{zone}"], "securityGroups": ["nfs"]},
    )


def nfs(**rule: Any) -> Thing:
    plain = {"protocol": "tcp", "fromPort": 2049, "toPort": 2049, "securityGroups": ["sg-nodes"], **rule}
    return Thing(type=tokens.SECURITY_GROUP, name="nfs", properties={"ingress": [plain], "egress": []})


def pool(*zones: str) -> Thing:
    return b.cpu_pool(
        {"spec/template/spec/requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(zones)}]}
    )


A, B = "us-east-1a", "us-east-1b"
BOTH = (efs(), nfs(), subnet("a"), subnet("b"), target("a"), target("b"))
ONE = (efs(), nfs(), subnet("a"), subnet("b"), target("a"))
GROUP = Thing(
    type=tokens.NODE_GROUP, name="group", properties={"subnetIds": [UNKNOWN, UNKNOWN]}, sources={"subnetIds": ["private-a", "private-b"]}
)

BARE = Thing(type=tokens.SECURITY_GROUP, name="nfs", properties={"description": "NFS"})


MORE = Thing(type=tokens.SECURITY_GROUP, name="more", properties={"description": "NFS too"})


def both_groups(zone: str) -> Thing:
    plain = target(zone, groups=(UNKNOWN, UNKNOWN))
    sources = {**plain.sources, "securityGroups": ["nfs", "more"]}
    return Thing(type=plain.type, name=plain.name, properties=plain.properties, sources=sources)


def into(**peer: Any) -> Thing:
    """A rule of its own that opens NFS of the group to a peer."""
    properties = {"securityGroupId": UNKNOWN, "ipProtocol": "tcp", "fromPort": 2049, "toPort": 2049, **peer}
    return Thing(type=tokens.INGRESS_RULE, name="nfs-in", properties=properties, sources={"securityGroupId": ["nfs"]})


def elsewhere(zone: str) -> Thing:
    """A mount target in a subnet that the program does not make."""
    plain = target(zone)
    return Thing(type=plain.type, name=plain.name, properties={**plain.properties, "subnetId": f"subnet-{zone}"}, sources=plain.sources)


ANYWHERE = b.cpu_pool()


def in_subnets(*zones: str, **spec: Any) -> Thing:
    """The class of `ANYWHERE`, with the subnets of these zones or those that its terms select."""
    properties = {"metadata": {"name": "cpu"}, "spec": {"subnetSelectorTerms": [{"id": UNKNOWN} for _ in zones], **spec}}
    return Thing(type=tokens.NODE_CLASS, name="cpu-class", properties=properties, sources={"spec": [f"private-{zone}" for zone in zones]})


def tagged(zone: str, **tags: str) -> Thing:
    return replace(subnet(zone), properties={**subnet(zone).properties, "tags": tags})


NOT_B = b.cpu_pool(
    {"spec/template/spec/requirements": [{"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["us-east-1b"]}]}
)
PRIVATE = {"subnetSelectorTerms": [{"tags": {"tier": "private"}}]}


CAPITALS = ("TCP", "Tcp", "6", "ALL", "all", "-1")
OTHER_TARGET = replace(target("a"), sources={**target("a").sources, "fileSystemId": ["other"]})
UNKNOWN_TARGET = replace(target("a"), sources={})
ZONAL = efs(availabilityZoneName=A)


IA = {"transitionToIa": "AFTER_30_DAYS"}


def moving(mode: str, *policies: dict[str, str]) -> Thing:
    return efs(throughputMode=mode, lifecyclePolicies=list(policies))


CASES = (
    *(valid("EFS04", efs(), nfs(protocol=name), subnet("a"), target("a")) for name in CAPITALS),
    invalid("EFS04", efs(), nfs(protocol="UDP"), subnet("a"), target("a"), says="nfs, which lets nobody in", edge=True),
    valid("EFS04", ZONAL, nfs(), subnet("a"), target("a"), edge=True),
    invalid("EFS04", ZONAL, nfs(), subnet("b"), target("b"), says="in us-east-1b; allowed: a subnet in us-east-1a, the zone of home"),
    invalid("EFS04", ZONAL, nfs(), subnet("a"), target("a"), target("a", "more"), says="home, which has home-a already", edge=True),
    valid("EFS04", ZONAL, nfs(), elsewhere("a")),
    invalid("EFS04", efs(), pool(A), says="mountTargets is none in this program"),
    invalid("EFS04", efs(), OTHER_TARGET, pool(A), says="home: mountTargets is none in this program", edge=True),
    invalid("EFS04", ZONAL, GROUP, subnet("a"), subnet("b"), says="mountTargets is none in this program"),
    valid("EFS04", efs(), subnet("a"), edge=True),
    valid("EFS02", efs(performanceMode="generalPurpose")),
    invalid("EFS02", Thing(type=tokens.EFS, name="home", properties={"throughputMode": "elastic"}), says="encrypted is unset"),
    valid("EFS03", point({PATH: "/teams/vision"})),
    valid("EFS03", point({f"{CREATION}/permissions": "0700"})),
    valid("EFS01", efs(throughputMode="elastic")),
    valid("EFS01", moving("elastic", {**IA, "transitionToArchive": ""}), edge=True),
    valid("EFS01", efs()),
    valid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps=1), edge=True),
    valid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps=3414), edge=True),
    valid("EFS01", efs(throughputMode="bursting", performanceMode="maxIO")),
    valid("EFS01", efs(availabilityZoneName=A, performanceMode="generalPurpose")),
    invalid("EFS01", efs(throughputMode="provisioned"), says="provisionedThroughputInMibps is unset"),
    invalid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps=0), says="1 to 3414", edge=True),
    invalid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps=3415), says="1 to 3414", edge=True),
    invalid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps=0.5), says="is 0.5;", edge=True),
    invalid("EFS01", efs(provisionedThroughputInMibps=128), says="throughputMode is not provisioned"),
    invalid("EFS01", efs(throughputMode="Elastic"), says="bursting, provisioned, elastic", edge=True),
    invalid("EFS01", efs(throughputMode="elastic", performanceMode="maxIO"), says="because throughputMode is elastic"),
    invalid("EFS01", efs(availabilityZoneName=A, performanceMode="maxIO"), says="in one zone"),
    invalid("EFS01", efs(performanceMode="fast"), says="performanceMode is fast"),
    valid("EFS01", moving("elastic", IA, {"transitionToArchive": "AFTER_60_DAYS"}, {"transitionToPrimaryStorageClass": "AFTER_1_ACCESS"})),
    valid("EFS01", moving("bursting", {"transitionToIa": "AFTER_1_DAY"}), edge=True),
    invalid("EFS01", moving("elastic", {**IA, "transitionToArchive": "AFTER_60_DAYS"}), says="one transition in each policy"),
    invalid("EFS01", moving("bursting", {"transitionToIa": "AFTER_45_DAYS"}), says="transitionToIa is AFTER_45_DAYS"),
    invalid(
        "EFS01", moving("elastic", IA, {"transitionToArchive": "AFTER_30_DAYS"}), says="later than transitionToIa, after 30", edge=True
    ),
    invalid("EFS01", moving("bursting", {"transitionToArchive": "AFTER_90_DAYS"}), says="the archive is for elastic"),
    invalid("EFS01", moving("bursting", {"transitionToPrimaryStorageClass": "AFTER_1_DAY"}), says="allowed: AFTER_1_ACCESS"),
    valid("EFS02", efs()),
    valid("EFS02", efs(kmsKeyId="arn:aws:kms:us-east-1:123456789012:key/k")),
    valid("EFS02", efs(throughputMode="elastic")),
    valid("EFS02", efs(encrypted="true"), edge=True),
    invalid("EFS02", efs(encrypted=False), says="encrypted is false"),
    invalid("EFS02", efs(encrypted=None), says="encrypted is unset"),
    invalid("EFS02", efs(encrypted=False, kmsKeyId="k"), says="kmsKeyId names a key"),
    invalid("EFS02", efs(encrypted="yes"), says="encrypted is yes", edge=True),
    valid("EFS03", point()),
    valid("EFS03", point({"rootDirectory": b.DELETE})),
    valid("EFS03", point({"rootDirectory": {"path": "/"}}), edge=True),
    valid("EFS03", point({PATH: "/a/b/c/d"}), edge=True),
    valid("EFS03", point({PATH: "/" + "a" * 99}), edge=True),
    valid("EFS03", point({f"{CREATION}/permissions": "750"}), edge=True),
    invalid("EFS03", point({"posixUser": b.DELETE}), says="posixUser is unset"),
    invalid("EFS03", point({PATH: "/a/b/c/d/e"}), says="/a/b/c/d/e, 5 levels", edge=True),
    invalid("EFS03", point({PATH: "/" + "a" * 100}), says="101 characters", edge=True),
    invalid("EFS03", point({CREATION: b.DELETE}), says="creationInfo is unset"),
    invalid("EFS03", point({f"{CREATION}/permissions": "rwxr-x---"}), says="octal digits"),
    invalid("EFS03", point({f"{CREATION}/permissions": "75"}), says="octal digits", edge=True),
    invalid("EFS03", point({f"{CREATION}/ownerUid": b.DELETE}), says="ownerUid is unset"),
    invalid("EFS03", point({f"{CREATION}/ownerGid": -1}), says="ownerGid is -1", edge=True),
    invalid("EFS04", efs(), nfs(toPort=None), subnet("a"), target("a"), says="lets nobody in"),
    invalid("EFS04", efs(), nfs(fromPort=None, toPort=None), subnet("a"), target("a"), says="lets nobody in"),
    invalid("EFS04", *BOTH, pool(A, B, "us-east-1c"), says="in us-east-1a, us-east-1b only"),
    invalid("EFS04", efs(), BARE, MORE, subnet("a"), both_groups("a"), says="nfs, more, which lets nobody in"),
    valid("EFS04", efs(), nfs(securityGroups=[], prefixListIds=["pl-0123456789abcdef0"]), subnet("a"), target("a")),
    valid("EFS04", efs(), nfs(securityGroups=[], ipv6CidrBlocks=["fd00::/8"]), subnet("a"), target("a")),
    valid("EFS04", *BOTH, pool(A, B)),
    valid("EFS04", *ONE, pool(A), edge=True),
    valid("EFS04", *BOTH, GROUP),
    valid("EFS04", *ONE),
    valid("EFS04", efs()),
    valid("EFS04", efs(availabilityZoneName=A), nfs(), subnet("a"), target("a"), pool(A, B)),
    valid("EFS04", efs(), nfs(securityGroups=[], cidrBlocks=["10.0.0.0/16"]), subnet("a"), target("a")),
    valid("EFS04", *BOTH, ANYWHERE, in_subnets("a", "b")),
    valid("EFS04", *ONE, ANYWHERE, in_subnets("a"), edge=True),
    valid("EFS04", *ONE, ANYWHERE, in_subnets()),
    valid("EFS04", *ONE, ANYWHERE),
    valid("EFS04", *ONE, pool(A), replace(in_subnets("a", "b"), name="other")),
    valid("EFS04", *ONE, NOT_B, in_subnets("a", "b")),
    invalid("EFS04", *ONE, ANYWHERE, in_subnets("a", "b"), says="one in us-east-1b too, where cpu has nodes", edge=True),
    invalid(
        "EFS04",
        *(efs(), nfs(), tagged("a", tier="private"), tagged("b", tier="private"), target("a")),
        *(ANYWHERE, in_subnets(**PRIVATE)),
        says="one in us-east-1b too, where cpu has nodes",
    ),
    invalid("EFS04", *ONE, pool(A, B), says="one in us-east-1b too, where cpu has nodes"),
    invalid("EFS04", *ONE, GROUP, says="where group has nodes"),
    invalid("EFS04", *BOTH, target("a", "home-more"), says="in us-east-1a, where home-a is already"),
    invalid("EFS04", efs(), subnet("a"), target("a", groups=()), says="unset (the VPC's default group)", edge=True),
    invalid("EFS04", efs(), nfs(fromPort=2050, toPort=2050), subnet("a"), target("a"), says="lets nobody in", edge=True),
    invalid("EFS04", efs(), nfs(securityGroups=[]), subnet("a"), target("a"), says="nfs, which lets nobody in"),
    valid("EFS01", efs(provisionedThroughputInMibps=0), edge=True),
    invalid("EFS01", efs(provisionedThroughputInMibps=1), says="throughputMode is not provisioned", edge=True),
    valid("EFS03", point({"posixUser": {"uid": 0, "gid": 0}, f"{CREATION}/ownerUid": 0, f"{CREATION}/ownerGid": 0}), edge=True),
    # Who may write into the folder that is made.
    valid("EFS03", made_by_root("0777")),
    valid("EFS03", made_by_root("0775", secondaryGids=[5, 0]), edge=True),
    valid("EFS03", made_by_root("2770", gid=0), edge=True),
    valid("EFS03", made_by_root("0703"), edge=True),
    valid("EFS03", made_by_root("0700", uid=0)),
    valid("EFS03", point({f"{CREATION}/permissions": "0300"}), edge=True),
    *(
        invalid("EFS03", made_by_root(given), says=f"{given} of owner 0 and group 0, by which user 1000")
        for given in ("0755", "0700", "770")
    ),
    invalid("EFS03", made_by_root("0776"), says="can't write there", edge=True),
    invalid("EFS03", made_by_root("0757", secondaryGids=[0]), says="can't write there", edge=True),
    invalid("EFS03", point({f"{CREATION}/permissions": "0577"}), says="owner 1000 and group 1000, by which user 1000", edge=True),
    valid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps="100")),
    valid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps="3414"), edge=True),
    valid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps="1.5")),
    valid("EFS01", efs(provisionedThroughputInMibps="0"), edge=True),
    invalid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps="3415"), says="is 3415; allowed: 1 to", edge=True),
    invalid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps="fast"), says="is fast; allowed: 1 to"),
    invalid("EFS01", efs(throughputMode="provisioned", provisionedThroughputInMibps=True), says="is true; allowed: 1 to"),
    invalid("EFS01", efs(provisionedThroughputInMibps="100"), says="throughputMode is not provisioned"),
    *(valid("EFS03", point({PATH: path})) for path in ("/a b", "/ml.v2/x", "/ml-2_x:y", "/~x")),
    *(
        invalid("EFS03", point({PATH: path}), says=f"rootDirectory.path is {path}; allowed: folders that", edge=True)
        for path in ("ml", "/ml/", "//ml", "/a//b", "/.ml", "/ml/.x", "/..", "/$x", "/a*", "/a{b}", "/a;b", "//")
    ),
    valid("EFS03", point({"posixUser": {"uid": 0, "gid": 4294967295, "secondaryGids": [0, 4294967295]}}), edge=True),
    valid("EFS03", point({"posixUser/uid": "4294967295", f"{CREATION}/ownerUid": "4294967295"}), edge=True),
    valid("EFS03", point({"posixUser/secondaryGids": list(range(16))}), edge=True),
    invalid("EFS03", point({"posixUser/secondaryGids": list(range(17))}), says="secondaryGids is 17 groups", edge=True),
    invalid("EFS03", point({"posixUser/secondaryGids": [1, 4294967296]}), says="secondaryGids[1] is 4294967296", edge=True),
    invalid("EFS03", point({"posixUser/uid": 4294967296}), says="posixUser.uid is 4294967296; allowed: 0 to 4294967295", edge=True),
    invalid("EFS03", point({"posixUser/gid": -1}), says="posixUser.gid is -1", edge=True),
    invalid("EFS03", point({"posixUser/gid": b.DELETE}), says="posixUser.gid is unset"),
    invalid("EFS03", point({f"{CREATION}/ownerUid": 4294967296}), says="ownerUid is 4294967296", edge=True),
    invalid("EFS03", point({f"{CREATION}/ownerGid": 5000000000}), says="ownerGid is 5000000000"),
    valid("EFS04", efs(), nfs(), elsewhere("a"), elsewhere("b"), pool(A, B)),
    valid("EFS04", efs(), BARE, into(cidrIpv4="10.0.0.0/16"), subnet("a"), target("a")),
    valid("EFS04", efs(), BARE, into(prefixListId="pl-0123456789abcdef0"), subnet("a"), target("a")),
    valid("EFS04", efs(), BARE, into(referencedSecurityGroupId="sg-nodes"), subnet("a"), target("a")),
    invalid("EFS04", efs(), BARE, into(), subnet("a"), target("a"), says="nfs, which lets nobody in"),
)
