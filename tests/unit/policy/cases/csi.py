"""Classes, claims and volumes by the CSI drivers."""

from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

EFS = {"provisioningMode": "efs-ap", "fileSystemId": "fs-0123456789abcdef0", "directoryPerms": "0750"}


def named(thing: Thing, **properties: Any) -> Thing:
    return Thing(type=thing.type, name=thing.name, properties={"metadata": {"name": "shared"}, **thing.properties, **properties})


def lustre(**parameters: Any) -> Thing:
    return named(b.storage_class(**parameters))


def efs(**parameters: Any) -> Thing:
    return named(b.storage_class(**{**EFS, **parameters}), provisioner="efs.csi.aws.com")


def efs_only(**parameters: Any) -> Thing:
    return named(b.storage_class(**parameters), provisioner="efs.csi.aws.com")


EBS = Thing(type=tokens.STORAGE_CLASS, name="gp3", properties={"provisioner": "ebs.csi.aws.com", "parameters": {"type": "gp3"}})


def block(mode: Any = None, provisioner: str = "ebs.csi.aws.com", **more: Any) -> Thing:
    binding = {"volumeBindingMode": mode} if mode else {}
    return Thing(type=tokens.STORAGE_CLASS, name="gp3", properties={"provisioner": provisioner, **binding, **more})


def topologies(*zones: str) -> list[dict[str, Any]]:
    return [{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": list(zones)}]}]


LATE = "WaitForFirstConsumer"


def claim(size: Any = "1200Gi", changes: dict[str, Any] | None = None, sources: dict[str, list[str]] | None = None) -> Thing:
    spec = {"storageClassName": "shared", "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}}
    properties = b.changed({"metadata": {"name": "data"}, "spec": spec}, changes or {})
    return Thing(type=tokens.VOLUME_CLAIM, name="data-claim", properties=properties, sources=sources or {})


def volume(changes: dict[str, Any] | None = None, sources: dict[str, list[str]] | None = None) -> Thing:
    spec = {
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "mountOptions": ["flock"],
        "csi": {
            "driver": "fsx.csi.aws.com",
            "volumeHandle": "fs-0123456789abcdef0",
            "volumeAttributes": {"dnsname": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com", "mountname": "fndzdbev"},
        },
    }
    properties = b.changed({"metadata": {"name": "data"}, "spec": spec}, changes or {})
    return Thing(type=tokens.PERSISTENT_VOLUME, name="data-volume", properties=properties, sources=sources or {})


CSI = "spec/csi"
HARD_DISKS = lustre(deploymentType="PERSISTENT_1", storageType="HDD", perUnitStorageThroughput="12", driveCacheType="NONE")
OTHER_VOLUME = Thing(
    type=tokens.PERSISTENT_VOLUME,
    name="home-volume",
    properties=volume({"metadata/name": "home", CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-1"}}).properties,
)
MOUNT = "spec/csi/volumeAttributes/mountname"
FILES = b.lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=250, storageCapacity=1200)
FROM_FILES = {"spec": ["scratch"]}
MADE = Thing(type=FILES.type, name="scratch", properties={**FILES.properties, "id": "fs-0123456789abcdef0"})
FIRST = b.lustre(deploymentType="SCRATCH_1", storageCapacity=1200, id="fs-0123456789abcdef0")
OUTPUTS = {f"{CSI}/volumeHandle": UNKNOWN, f"{CSI}/volumeAttributes": {"dnsname": UNKNOWN, "mountname": UNKNOWN}}
STATIC = {"spec/storageClassName": "", "spec/volumeName": "data"}
NAMING, OF_SHARED, NO_CLASS = {"spec/volumeName": "data"}, {"spec/storageClassName": "shared"}, {"spec/storageClassName": b.DELETE}
DEFAULT = named(
    b.storage_class(deploymentType="SCRATCH_2"),
    metadata={"name": "shared", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
)
FLOCK = Thing(
    type=tokens.STORAGE_CLASS,
    name="dynamic",
    properties={
        "metadata": {"name": "dynamic"},
        "provisioner": "fsx.csi.aws.com",
        "parameters": {"deploymentType": "SCRATCH_2"},
        "mountOptions": ["flock"],
    },
)
POINT = Thing(type=tokens.ACCESS_POINT, name="team", properties={"posixUser": {"uid": 1000, "gid": 1000}})
EFS_VOLUME = volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": UNKNOWN}}, {"spec": ["team"]})
STATIC_EFS = volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-0123456789abcdef0"}, "spec/storageClassName": "shared"})
HOME = {"driver": "efs.csi.aws.com", "volumeHandle": "fs-0123456789abcdef0"}
FROM_CLASS = volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}, "spec/storageClassName": UNKNOWN}, {"spec": ["bare"]})
BARE_EFS = Thing(type=tokens.STORAGE_CLASS, name="bare", properties={"metadata": {"name": "shared"}, "provisioner": "efs.csi.aws.com"})
BY_HANDLE = volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-1"}})
MADE_POINT = Thing(type=POINT.type, name="team", properties={**POINT.properties, "id": "fsap-1"})
NEW_POINT = Thing(type=POINT.type, name="team", properties={**POINT.properties, "id": UNKNOWN})
OTHER_POINT = Thing(type=POINT.type, name="guests", properties={"posixUser": {"uid": 2000, "gid": 2000}, "id": "fsap-2"})
BY_FOLDER = volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1:/team:fsap-1"}})
FROM_HOME = volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": UNKNOWN}}, {"spec": ["home"]})
BARE = {"spec/mountOptions": b.DELETE}
DYNAMIC = {"spec/storageClassName": "dynamic"}
CHOWN = {"name": "own", "command": ["sh", "-c", "chown -R 1000 /data"], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}


def annotated(name: str) -> dict[str, Any]:
    """The class of a volume or claim as it was named before there was a field."""
    return {"metadata/annotations": {"volume.beta.kubernetes.io/storage-class": name}}


def pod(*init: dict[str, Any], user: Any = None) -> Thing:
    spec: dict[str, Any] = {
        "initContainers": list(init),
        "containers": [{"name": "trainer", "image": "registry.example/trainer:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    if user is not None:
        spec["securityContext"] = {"runAsUser": user}
    return Thing(type=tokens.POD, name="trainer", properties={"metadata": {"name": "trainer"}, "spec": spec})


def scratch_pod() -> Thing:
    """A pod without a claim."""
    spec = {"containers": [{"name": "trainer", "image": "registry.example/trainer:1"}], "volumes": [{"name": "tmp", "emptyDir": {}}]}
    return Thing(type=tokens.POD, name="trainer", properties={"metadata": {"name": "trainer"}, "spec": spec})


def lustre_of_unknown_id() -> Thing:
    return replace(FILES, properties={**FILES.properties, "id": UNKNOWN})


def by_efs(handle: Any) -> Thing:
    return volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": handle}})


CASES = (
    valid("CSI02", efs()),
    invalid("CSI03", named(EBS, metadata={"name": "gp3"}), lustre(deploymentType="SCRATCH_2"), claim("1Gi"), says="makes 1200 GiB"),
    valid(
        "CSI03", named(lustre(deploymentType="SCRATCH_2"), metadata={"name": UNKNOWN}), claim("1Gi", {"spec/storageClassName": b.DELETE})
    ),
    valid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("plenty")),
    valid("CSI03", lustre(deploymentType="SCRATCH_9"), claim("100Gi")),
    valid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("9600Gi")),
    valid("CSI01", lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput="100")),
    valid("CSI01", lustre(deploymentType="SCRATCH_2", weeklyMaintenanceStartTime="7:09:00", dataCompressionType="LZ4")),
    invalid("CSI01", lustre(deploymentType="SCRATCH_2", weeklyMaintenanceStartTime="7:9:00"), says="weeklyMaintenanceStartTime is 7:9:00"),
    invalid(
        "CSI01", lustre(deploymentType="SCRATCH_2", dataCompressionType="lz4"), says="dataCompressionType is lz4; allowed: NONE or LZ4"
    ),
    valid("CSI01", lustre(deploymentType="SCRATCH_1")),
    valid("CSI01", lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput="1000", automaticBackupRetentionDays="90"), edge=True),
    valid("CSI01", lustre(deploymentType="SCRATCH_2", s3ImportPath="s3://b", s3ExportPath="s3://b/out")),
    valid("CSI01", lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput="125", metadataConfigurationMode="AUTOMATIC")),
    valid("CSI01", EBS),
    invalid("CSI01", lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput="200"), says="parameters.perUnitStorageThroughput is 200"),
    # The driver passes on what it is given, so FSx takes its default where that is nothing.
    valid("CSI01", lustre(), edge=True),
    valid("CSI01", lustre(deploymentType="")),
    valid("CSI01", lustre(subnetId="subnet-1", securityGroupIds="sg-1", storageType="SSD", s3ImportPath="s3://b")),
    invalid("CSI01", lustre(perUnitStorageThroughput="200"), says="allowed: unset, because deploymentType is SCRATCH_1, the default"),
    invalid(
        "CSI01", lustre(storageType="HDD", driveCacheType="NONE"), says="allowed: SSD, because deploymentType is SCRATCH_1, the default"
    ),
    invalid("CSI01", lustre(deploymentType="", automaticBackupRetentionDays="7"), says="because deploymentType is SCRATCH_1, the default"),
    invalid("CSI01", lustre(efaEnabled="true"), says="only with PERSISTENT_2 (deploymentType is SCRATCH_1, the default)"),
    invalid("CSI01", lustre(deploymentType="SCRATCH_3"), says="is SCRATCH_3; allowed: SCRATCH_1, SCRATCH_2, PERSISTENT_1, PERSISTENT_2"),
    invalid("CSI01", lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput="fast"), says="a whole number, as text"),
    invalid("CSI01", lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput=100), says="100, which is no text", edge=True),
    invalid("CSI01", lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput="200"), says="125, 250, 500, 1000"),
    invalid("CSI01", lustre(deploymentType="SCRATCH_2", kmsKeyId="k"), says="parameters.kmsKeyId is k"),
    invalid("CSI01", lustre(deploymentType="SCRATCH_2", s3ExportPath="s3://b"), says="only beside s3ImportPath"),
    invalid("CSI01", lustre(deploymentType="SCRATCH_2", copyTagsToBackups="yes"), says="true or false, as text"),
    valid("CSI01", lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput="100", copyTagsToBackups="1"), edge=True),
    invalid("CSI01", lustre(deploymentType="SCRATCH_2", copyTagsToBackups="tRue"), says="copyTagsToBackups is tRue", edge=True),
    invalid("CSI01", lustre(deploymentType="PERSISTENT_2", storageType="INTELLIGENT_TIERING"), says="the driver can't pass"),
    invalid("CSI01", lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput="100", metadataIops="6000"), says="USER_PROVISIONED"),
    valid("CSI02", lustre(deploymentType="SCRATCH_2", subnetId="subnet-1", securityGroupIds="sg-1")),
    valid("CSI02", efs(gidRangeStart="1000", gidRangeEnd="9000", directoryPerms="700")),
    valid("CSI02", EBS),
    valid("CSI02", efs(**{"csi.storage.k8s.io/provisioner-secret-name": "other-account", "az": "us-east-1a"})),
    *(
        invalid("CSI02", efs(**{key: "true"}), says="allowed: a secret with it, named by csi.storage.k8s.io/provisioner-secret-name")
        for key in ("awsRoleArn", "crossaccount", "externalId", "awsrolearn")
    ),
    invalid("CSI02", lustre(deploymentType="SCRATCH_2", awsRoleArn="arn"), says="does not read; allowed: subnetId"),
    valid("CSI02", lustre(**{"deploymentType": "SCRATCH_2", "csi.storage.k8s.io/fstype": "lustre"}), edge=True),
    invalid("CSI02", lustre(deploymenttype="SCRATCH_2"), says="a parameter that fsx.csi.aws.com does not read; allowed: deploymentType"),
    invalid("CSI02", lustre(deploymentType="SCRATCH_2", throughput="200"), says="parameters.throughput"),
    invalid("CSI02", efs(uidRangeStart="1"), says="efs.csi.aws.com does not read"),
    invalid("CSI02", efs(fileSystemID="fs-1"), says="allowed: fileSystemId", edge=True),
    invalid("CSI02", lustre(deploymentType="SCRATCH_2", storageCapacity="1200"), says="parameters.storageCapacity"),
    valid("CSI03", lustre(deploymentType="SCRATCH_1"), claim("3600Gi"), edge=True),
    valid("CSI03", lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput="250"), claim("4800Gi")),
    valid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1200Gi"), edge=True),
    valid("CSI03", EBS, claim("100Gi", {"spec/storageClassName": "gp3"})),
    valid("CSI03", claim("100Gi")),
    invalid("CSI03", lustre(deploymentType="SCRATCH_1"), claim("4800Gi"), says="the driver makes 7200 GiB of it"),
    invalid("CSI03", lustre(), claim("4800Gi"), says="7200 GiB"),
    # Nothing is made for a claim on a volume that exists already.
    valid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1Gi", {"spec/volumeName": "data"})),
    invalid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1Gi", {"spec/volumeName": ""}), says="makes 1200 GiB", edge=True),
    invalid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1201Gi"), says="makes 2400 GiB", edge=True),
    invalid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1Ti"), says="makes 1200 GiB"),
    invalid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1000Ei"), says="makes 1073741824800 GiB", edge=True),
    invalid("CSI03", HARD_DISKS, claim("-1Gi"), says="makes 6000 GiB", edge=True),
    invalid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1200G"), says="makes 1200 GiB"),
    invalid(
        "CSI03",
        HARD_DISKS,
        claim("1800Gi"),
        says="makes 6000 GiB",
    ),
    invalid("CSI04", OTHER_VOLUME, volume(), claim("1Gi", {"spec/volumeName": "data"}), says="data-claim: spec.storageClassName is shared"),
    invalid(
        "CSI04", volume(), claim("1Gi", {"spec/volumeName": UNKNOWN}, {"spec": ["data-volume"]}), says="data-claim: spec.storageClassName"
    ),
    invalid(
        "CSI04",
        *(OTHER_VOLUME, volume(), claim("1Gi", {"spec/volumeName": UNKNOWN}, {"spec": ["data-volume"]})),
        says="data-claim: spec.storageClassName",
    ),
    valid("CSI04", named(EBS, mountOptions=["noatime"]), volume({"spec/mountOptions": b.DELETE})),
    valid("CSI04", lustre(deploymentType="SCRATCH_2"), volume({"spec/mountOptions": b.DELETE})),
    valid("CSI04", volume()),
    valid("CSI04", FILES, volume(OUTPUTS, FROM_FILES), claim("1Gi", STATIC)),
    valid("CSI04", b.lustre(deploymentType="SCRATCH_1"), volume({MOUNT: "fsx"}, FROM_FILES), edge=True),
    valid("CSI04", volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-1"}})),
    valid("CSI04", FLOCK, volume()),
    valid("CSI04", volume({"spec/accessModes": ["ReadWriteMany", "ReadOnlyMany"]}), edge=True),
    invalid(
        "CSI04", volume({"spec/accessModes": ["ReadOnlyMany", "ReadWriteMany"]}), says="allowed: ReadWriteMany as the first", edge=True
    ),
    invalid("CSI04", volume({"spec/accessModes": []}), says="accessModes is []"),
    invalid("CSI04", volume({"spec/accessModes": b.DELETE}), says="accessModes is unset"),
    invalid("CSI04", volume({f"{CSI}/volumeAttributes/dnsname": ""}), says='dnsname is ""; allowed: the file system\'s dnsname', edge=True),
    invalid("CSI04", volume({MOUNT: ""}), says='mountname is ""; allowed: the file system\'s mountname', edge=True),
    invalid("CSI04", MADE, volume({MOUNT: b.DELETE}), says="mountname is unset"),
    invalid("CSI04", FIRST, volume({f"{CSI}/volumeAttributes/dnsname": b.DELETE}), says="dnsname is unset"),
    invalid("CSI04", replace(FIRST, properties={**FIRST.properties, "id": "fs-1"}), volume({MOUNT: ""}), says="mountname is", edge=True),
    valid("CSI04", FIRST, volume({MOUNT: b.DELETE}), edge=True),
    valid("CSI04", FIRST, volume({MOUNT: ""}), edge=True),
    valid("CSI04", b.lustre(deploymentType="SCRATCH_1"), volume({MOUNT: b.DELETE}, FROM_FILES)),
    # A class whose options nothing else can take, or one that the volume or a claim on it names, is more than advice.
    invalid(
        "CSI04",
        *(FLOCK, volume({"spec/mountOptions": b.DELETE}), claim("1200Gi", {"spec/storageClassName": "dynamic"})),
        says="those of class dynamic",
        edge=True,
    ),
    invalid("CSI04", FLOCK, volume({"spec/mountOptions": b.DELETE, "spec/storageClassName": "dynamic"}), says="those of class dynamic"),
    # Whether the class makes a volume: for a claim that names it and no volume.
    invalid("CSI04", FLOCK, volume(BARE), claim("1Gi", {"spec/storageClassName": "gp3"}), says="those of class dynamic", edge=True),
    invalid("CSI04", FLOCK, volume(BARE), claim("1Gi", {**DYNAMIC, "spec/volumeName": "elsewhere"}), says="those of class dynamic"),
    invalid(
        "CSI04",
        *(FLOCK, volume(BARE), claim("1Gi", {**DYNAMIC, "spec/volumeName": "data"})),
        replace(claim("1200Gi", DYNAMIC), name="other-claim"),
        says="data-claim: spec.storageClassName is dynamic",
        edge=True,
    ),
    invalid(
        "CSI04",
        *(lustre(deploymentType="SCRATCH_2"), FLOCK, volume({"spec/mountOptions": b.DELETE})),
        claim("1Gi", {"spec/volumeName": "data", "spec/storageClassName": "dynamic"}),
        says="those of class dynamic",
    ),
    invalid("CSI04", FLOCK, volume({"spec/mountOptions": b.DELETE}), claim("1Gi", STATIC), says="those of class dynamic", edge=True),
    # A claim may still name its class by the annotation of old, which goes before the field.
    invalid("CSI04", FLOCK, volume(BARE), claim("1Gi", {**NO_CLASS, **annotated("dynamic")}), says="those of class dynamic"),
    invalid("CSI04", FLOCK, volume(BARE), claim("1Gi", {**DYNAMIC, **annotated("gp3")}), says="those of class dynamic", edge=True),
    invalid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1Gi", {**NO_CLASS, **annotated("shared")}), says="makes 1200 GiB"),
    valid("CSI03", lustre(deploymentType="SCRATCH_2"), claim("1Gi", annotated("elsewhere")), edge=True),
    valid("CSI05", BARE_EFS, volume({CSI: HOME, **NO_CLASS, **annotated("shared")})),
    invalid("CSI05", BARE_EFS, volume({CSI: HOME, **OF_SHARED, **annotated("elsewhere")}), says="parameters is unset", edge=True),
    invalid("CSI06", efs(), claim("10Gi", {**NO_CLASS, **annotated("shared")}), pod(CHOWN), says="no chown"),
    valid("CSI06", efs(), claim("10Gi", annotated("elsewhere")), pod(CHOWN), edge=True),
    valid("CSI04", volume(), claim("1200Gi")),
    # The driver mounts by DNS and mount name: a handle is any text, and says of which file system the volume is where it begins with an id.
    invalid("CSI04", volume({f"{CSI}/volumeHandle": "lustre"}), says="volumeHandle is lustre"),
    invalid("CSI04", volume({f"{CSI}/volumeHandle": ""}), says='volumeHandle is ""; allowed: the id of a file system, fs-...', edge=True),
    invalid("CSI04", FILES, volume({f"{CSI}/volumeHandle": b.DELETE}, FROM_FILES), says="volumeHandle is unset", edge=True),
    valid("CSI04", volume({f"{CSI}/volumeHandle": "fs-0123456789abcdef0/scratch"})),
    valid("CSI04", volume({f"{CSI}/volumeHandle": "fs-0123456789abcdef0-scratch"})),
    invalid("CSI04", volume({f"{CSI}/volumeHandle": "fs-0123456789abcdefg"}), says="volumeHandle is fs-0123456789abcdefg", edge=True),
    valid("CSI04", MADE, volume({f"{CSI}/volumeHandle": "my-volume"}, FROM_FILES)),
    valid("CSI04", FILES, volume({**OUTPUTS, f"{CSI}/volumeHandle": "my-volume"}, FROM_FILES)),
    *(
        invalid(
            "CSI04",
            MADE,
            volume({MOUNT: "fsx", f"{CSI}/volumeHandle": handle}),
            says="only SCRATCH_1 is called fsx, and this is PERSISTENT_2",
        )
        for handle in ("fs-0123456789abcdef0/a", "my-volume")
    ),
    valid(
        "CSI04", b.lustre(deploymentType="SCRATCH_1"), volume({f"{CSI}/volumeHandle": "my-volume", MOUNT: b.DELETE}, FROM_FILES), edge=True
    ),
    valid("CSI04", FIRST, volume({f"{CSI}/volumeHandle": "fs-0123456789abcdef0/a", MOUNT: b.DELETE}), edge=True),
    valid("CSI04", MADE, volume({f"{CSI}/volumeHandle": "fs-0123456789abcdef1/a", MOUNT: "fsx"}), edge=True),
    # What the id of another file system may decide hides nothing else.
    invalid("CSI04", lustre_of_unknown_id(), volume({"spec/accessModes": ["ReadWriteOnce"]}), says="accessModes is [ReadWriteOnce]"),
    invalid("CSI04", volume({f"{CSI}/volumeAttributes/dnsname": b.DELETE}), says="dnsname is unset"),
    invalid("CSI04", volume({MOUNT: b.DELETE}), says="mountname is unset"),
    invalid("CSI04", MADE, volume({MOUNT: "fsx"}), says="only SCRATCH_1 is called fsx, and this is PERSISTENT_2"),
    # The class need not exist; it is the name by which Kubernetes holds a claim against the volume it names.
    valid("CSI04", volume(OF_SHARED)),
    valid("CSI04", volume(OF_SHARED), claim("1Gi", NAMING)),
    valid("CSI04", lustre(deploymentType="SCRATCH_2"), volume(OF_SHARED), claim("1Gi", NAMING), edge=True),
    valid("CSI04", volume(OF_SHARED), claim("1Gi"), edge=True),
    valid("CSI04", volume({"spec/storageClassName": b.DELETE}), claim("1Gi", STATIC), edge=True),
    invalid("CSI04", volume(OF_SHARED), claim("1Gi", STATIC), says='storageClassName is ""; allowed: shared, the class of data-volume'),
    invalid("CSI04", volume({"spec/storageClassName": "other"}), claim("1Gi", NAMING), says="is shared; allowed: other, the class of"),
    invalid(
        "CSI04", volume(OF_SHARED), claim("1Gi", {**NAMING, **NO_CLASS}), says="unset (the default class is written in); allowed: shared"
    ),
    # The default class, where the program makes it.
    valid("CSI04", DEFAULT, volume(OF_SHARED), claim("1Gi", {**NAMING, **NO_CLASS}), edge=True),
    invalid("CSI04", DEFAULT, volume(), claim("1Gi", {**NAMING, **NO_CLASS}), says='allowed: "", the class of data-volume', edge=True),
    # An annotation of old stands before the field.
    valid("CSI04", volume(annotated("shared")), claim("1Gi", NAMING)),
    valid("CSI04", volume(OF_SHARED), claim("1Gi", {**NAMING, **NO_CLASS, **annotated("shared")}), edge=True),
    invalid(
        "CSI04", volume({**OF_SHARED, **annotated("old")}), claim("1Gi", NAMING), says="is shared; allowed: old, the class of data-volume"
    ),
    # Where the volume names a claim, nothing else is compared.
    valid("CSI04", volume({"spec/claimRef": {"name": "data", "namespace": "default"}}), claim("1Gi", NAMING), edge=True),
    # A class of the driver may be quicker than the volume.
    *(
        invalid("CSI04", lustre(), given, claim("1Gi"), says="data-claim: spec.volumeName is unset; allowed: the name of data-volume")
        for given in (
            volume(OF_SHARED),
            volume({"spec/claimRef": {"name": "data", "namespace": "default"}}),
            volume({"spec/claimRef": {"name": "data"}, **OF_SHARED}),
        )
    ),
    invalid("CSI04", lustre(), volume(OF_SHARED), claim("1Gi", {"spec/volumeName": ""}), says='spec.volumeName is ""', edge=True),
    *(
        valid("CSI04", lustre(), given, claim("1Gi"), edge=True)
        for given in (
            volume(),
            volume({"spec/claimRef": {"name": "home", "namespace": "default"}, **OF_SHARED}),
            volume({"spec/claimRef": {"name": "data", "namespace": "research"}, **OF_SHARED}),
            volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}, **OF_SHARED}),
        )
    ),
    valid("CSI04", efs(), volume(OF_SHARED), claim("1Gi")),
    valid("CSI04", lustre(), volume(OF_SHARED), claim("1Gi", {"spec/selector": {"matchLabels": {"data": "tokens"}}}), edge=True),
    # Another claim has the volume, and this one has its class make it a file system.
    valid(
        "CSI04",
        lustre(),
        volume(OF_SHARED),
        replace(claim("1Gi", NAMING), name="first"),
        claim("1Gi", {"metadata/name": "scratch"}),
        edge=True,
    ),
    invalid("CSI04", volume({"spec/accessModes": ["ReadWriteOnce"]}), says="accessModes is [ReadWriteOnce]"),
    invalid("CSI04", volume({"spec/persistentVolumeReclaimPolicy": "Delete"}), says="with Delete the file system goes"),
    invalid(
        "CSI04", volume({"spec/persistentVolumeReclaimPolicy": "Recycle"}), says="is Recycle; allowed: Retain: no volume of a CSI driver"
    ),
    invalid("CSI04", FLOCK, volume({"spec/mountOptions": b.DELETE}), says="those of class dynamic do not reach"),
    invalid("CSI04", FLOCK, volume({"spec/mountOptions": []}), says="those of class dynamic", edge=True),
    invalid("CSI04", volume(), claim("1Gi", {"spec/volumeName": "data", "spec/storageClassName": b.DELETE}), says="the default class"),
    invalid("CSI04", volume(), claim("1Gi", {"spec/volumeName": "data"}), says="data-claim: spec.storageClassName is shared"),
    invalid("CSI04", volume(), claim("1Gi", {**STATIC, "spec/accessModes": ["ReadWriteOnce"]}), says="data-claim: spec.accessModes"),
    invalid("CSI05", efs(gid="-1"), says="gid is -1;", edge=True),
    valid("CSI05", efs(gidRangeStart="1", gidRangeEnd="10"), edge=True),
    valid("CSI05", efs()),
    valid("CSI05", efs(gidRangeStart="1000", gidRangeEnd="1001"), edge=True),
    valid("CSI05", efs(directoryPerms="0750", uid="0", gid="0"), edge=True),
    valid("CSI05", efs(provisioningMode="s3files-ap")),
    valid("CSI05", efs_only(provisioningMode="efs-ap", fileSystemIdConfigRef="config/key", directoryPerms="700")),
    valid("CSI05", EBS),
    invalid("CSI05", efs(provisioningMode="efs"), says="provisioningMode is efs; allowed: efs-ap"),
    invalid("CSI05", efs_only(fileSystemId="fs-0123456789abcdef0"), says="provisioningMode is unset"),
    invalid("CSI05", efs_only(provisioningMode="efs-ap"), says="none of them"),
    invalid("CSI05", efs(fileSystemIdConfigRef="config/key"), says="exactly one of"),
    invalid("CSI05", efs(gidRangeStart="1000"), says="gidRangeEnd is unset"),
    invalid("CSI05", efs(gidRangeEnd="1000"), says="gidRangeStart is unset"),
    invalid("CSI05", efs(gidRangeStart="0", gidRangeEnd="10"), says="gidRangeStart is 0; allowed: above 0", edge=True),
    invalid("CSI05", efs(gidRangeStart="1000", gidRangeEnd="1000"), says="above gidRangeStart, which is 1000", edge=True),
    invalid("CSI05", efs(directoryPerms="rwx"), says="octal digits"),
    # A class without parameters is the name by which a claim finds a volume that exists already.
    valid("CSI05", BARE_EFS, STATIC_EFS, edge=True),
    valid("CSI05", replace(BARE_EFS, properties={**BARE_EFS.properties, "parameters": {}}), STATIC_EFS),
    valid("CSI05", replace(BARE_EFS, properties={**BARE_EFS.properties, "metadata": {"name": UNKNOWN}}), FROM_CLASS),
    invalid("CSI05", BARE_EFS, says="parameters is unset; allowed: provisioningMode and the like, unless volumes"),
    invalid("CSI05", BARE_EFS, EFS_VOLUME, says="unless volumes that exist already are of the class", edge=True),
    invalid("CSI05", efs_only(uid="1000"), STATIC_EFS, says="provisioningMode is unset", edge=True),
    invalid("CSI05", efs(directoryPerms=None), says="directoryPerms is unset; allowed: 3 or 4 octal digits"),
    invalid("CSI05", efs(directoryPerms="70"), says="octal digits", edge=True),
    invalid("CSI05", efs(directoryPerms="778"), says="octal digits", edge=True),
    invalid("CSI05", efs(uid="-1"), says="uid is -1;", edge=True),
    valid("CSI05", efs(uid="4294967295", gid="4294967295"), edge=True),
    invalid("CSI05", efs(gid="4294967296"), says="gid is 4294967296; allowed: 0 to 4294967295, as text", edge=True),
    valid("CSI06", efs(), claim("10Gi"), pod()),
    valid("CSI06", claim("1Gi", STATIC), EFS_VOLUME, POINT, pod(user=1000)),
    valid("CSI06", claim("1Gi", STATIC), EFS_VOLUME, POINT, pod()),
    valid("CSI06", efs(), claim("10Gi"), pod({**CHOWN, "volumeMounts": [{"name": "other", "mountPath": "/data"}]}), edge=True),
    valid("CSI06", lustre(deploymentType="SCRATCH_2"), claim(), pod(CHOWN)),
    invalid("CSI06", efs(), claim("10Gi"), pod(CHOWN), says="no chown"),
    invalid("CSI06", efs(), claim("10Gi"), pod({**CHOWN, "command": ["chown", "-R", "0", "/data"]}), says="no chown"),
    invalid(
        "CSI06", efs(), claim("10Gi"), pod({**CHOWN, "command": ["sh"], "args": ["-c", "chown 1 /data"]}), says="[0].args is [-c, chown"
    ),
    invalid("CSI06", efs(), claim("10Gi"), pod({**CHOWN, "command": None, "args": ["chown", "1", "/data"]}), says="[0].args is [chown"),
    invalid("CSI06", claim("1Gi", STATIC), EFS_VOLUME, POINT, pod(user=0), says="runAsUser is 0; allowed: 1000", edge=True),
    invalid("CSI06", claim("1Gi", STATIC), EFS_VOLUME, POINT, pod(user=2000), says="access point team"),
    valid("CSI07", block(LATE)),
    valid("CSI07", block(LATE, "ebs.csi.eks.amazonaws.com")),
    valid("CSI07", block(LATE, "kubernetes.io/aws-ebs")),
    valid("CSI07", efs()),
    valid("CSI07", block("Immediate", "fsx.csi.aws.com")),
    valid("CSI07", block(provisioner="ebs.csi.example.com"), edge=True),
    valid("CSI07", block("Immediate", allowedTopologies=topologies("us-west-2a")), edge=True),
    invalid("CSI07", block("Immediate", allowedTopologies=topologies("us-west-2a", "us-west-2b")), says="is Immediate", edge=True),
    invalid("CSI07", EBS, says="volumeBindingMode is unset, so Immediate; allowed: WaitForFirstConsumer"),
    invalid("CSI07", block("Immediate"), says="volumeBindingMode is Immediate; allowed"),
    invalid("CSI07", block(provisioner="ebs.csi.eks.amazonaws.com"), says="unset, so Immediate"),
    invalid("CSI07", block("Immediate", "kubernetes.io/aws-ebs"), says="volumeBindingMode is Immediate"),
    invalid("CSI07", block("waitForFirstConsumer"), says="volumeBindingMode is waitForFirstConsumer", edge=True),
    # The claim takes its size from the volume and leaves the choice to its class; the volume of the other is made elsewhere.
    valid("CSI04", volume(), claim("1Gi", None, {"spec": ["data-volume"]})),
    valid("CSI04", claim("1Gi", {"spec/volumeName": "elsewhere"})),
    valid("CSI04", volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-1"}}), claim("1Gi", {"spec/volumeName": "data"})),
    valid("CSI06", claim("1Gi", {"metadata/name": UNKNOWN}), scratch_pod()),
    valid("CSI06", named(EBS, metadata={"name": UNKNOWN}), claim("1Gi", STATIC), EFS_VOLUME, POINT, pod(user=1000)),
    valid("CSI06", claim("1Gi", STATIC), volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}}), pod(user=0)),
    valid("CSI06", claim("1Gi", STATIC), BY_HANDLE, OTHER_POINT, pod(user=0)),
    valid("CSI06", claim("1Gi", STATIC), volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}}), NEW_POINT, pod(user=0)),
    valid("CSI06", claim("1Gi", STATIC), volume({CSI: {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::"}}), NEW_POINT, pod(user=0)),
    valid("CSI06", claim("1Gi", STATIC), FROM_HOME, POINT, pod(user=0)),
    # A handle may begin with the type of the file system.
    *(
        invalid(
            "CSI06",
            claim("1Gi", STATIC),
            by_efs(f"efs:fs-1:{folder}:fsap-1"),
            MADE_POINT,
            pod(user=0),
            says="runAsUser is 0; allowed: 1000",
        )
        for folder in ("", "/team")
    ),
    invalid(
        "CSI06", claim("1Gi", STATIC), by_efs("efs:fs-1::fsap-2"), MADE_POINT, OTHER_POINT, pod(user=1000), says="allowed: 2000", edge=True
    ),
    valid("CSI06", claim("1Gi", STATIC), by_efs("efs:fs-1::fsap-1"), MADE_POINT, OTHER_POINT, pod(user=1000)),
    *(
        valid("CSI06", claim("1Gi", STATIC), by_efs(handle), MADE_POINT, pod(user=0), edge=True)
        for handle in ("efs:fs-1", "efs:fs-1:fsap-1", "efs:fs-1::", "s3files:fs-1::fsap-1", "EFS:fs-1::fsap-1", "efs", "s3files")
    ),
    # Claims of one name in two namespaces, and one whose name is not known yet.
    invalid("CSI06", claim("1Gi", {"metadata/name": UNKNOWN}), efs(), claim("10Gi"), pod(CHOWN), says="no chown"),
    valid("CSI06", efs(), claim("10Gi", {"metadata/namespace": "research"}), pod(CHOWN), edge=True),
    valid("CSI06", efs(), claim("10Gi", {"metadata/namespace": "default"}), pod()),
    invalid(
        "CSI06",
        *(lustre(deploymentType="SCRATCH_2"), replace(efs(), properties={**efs().properties, "metadata": {"name": "home"}})),
        claim("1200Gi", {"metadata/namespace": "research"}),
        replace(claim("10Gi", {"spec/storageClassName": "home"}), name="home-claim"),
        pod(CHOWN),
        says="no chown",
        edge=True,
    ),
    invalid("CSI06", claim("1Gi", STATIC), BY_FOLDER, OTHER_POINT, MADE_POINT, pod(user=0), says="runAsUser is 0; allowed: 1000"),
    invalid("CSI06", claim("1Gi", STATIC), BY_HANDLE, OTHER_POINT, MADE_POINT, pod(user=0), says="runAsUser is 0; allowed: 1000"),
)
