"""FSx for Lustre: shapes, links to S3, ports, checkpoints."""

from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

P1, P2, S1, S2 = "PERSISTENT_1", "PERSISTENT_2", "SCRATCH_1", "SCRATCH_2"
HDD, TIERING = "HDD", "INTELLIGENT_TIERING"
AUTOMATIC = {"mode": "AUTOMATIC"}


def p2(**properties: Any) -> Thing:
    return b.lustre(**{"deploymentType": P2, "perUnitStorageThroughput": 250, "storageCapacity": 2400, **properties})


def p1(**properties: Any) -> Thing:
    return b.lustre(**{"deploymentType": P1, "perUnitStorageThroughput": 100, "storageCapacity": 1200, **properties})


def scratch(**properties: Any) -> Thing:
    return b.lustre(**{"deploymentType": S2, "storageCapacity": 1200, **properties})


def hdd(**properties: Any) -> Thing:
    kind = {"storageType": HDD, "perUnitStorageThroughput": 12, "storageCapacity": 6000, "driveCacheType": "READ"}
    return p1(**{**kind, **properties})


def tiering(**properties: Any) -> Thing:
    cache = {"sizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"}
    kind = {
        "deploymentType": P2,
        "storageType": TIERING,
        "throughputCapacity": 4000,
        "dataReadCacheConfiguration": cache,
        "metadataConfiguration": AUTOMATIC,
    }
    return b.lustre(**{**kind, **properties})


def cached(mode: Any, size: Any = None, **properties: Any) -> Thing:
    """Tiering with a read cache of this kind."""
    settings = {"sizingMode": mode, "size": size}
    return tiering(dataReadCacheConfiguration={key: value for key, value in settings.items() if value is not None}, **properties)


def fabric(throughput: int, capacity: int, **properties: Any) -> Thing:
    group = ["sg-0123456789abcdef0"]
    kind = {"efaEnabled": True, "metadataConfiguration": AUTOMATIC, "securityGroupIds": group}
    return p2(**{"perUnitStorageThroughput": throughput, "storageCapacity": capacity, **kind, **properties})


def iops(number: Any, **properties: Any) -> Thing:
    return p2(metadataConfiguration={"mode": "USER_PROVISIONED", "iops": number}, **properties)


def without(thing: Thing, *keys: str) -> Thing:
    left = {key: value for key, value in thing.properties.items() if key not in keys}
    return Thing(type=thing.type, name=thing.name, properties=left, sources=thing.sources)


GROUP_BY_NAME = {"securityGroupIDs": None, "securityGroupRefs": [{"from": {"name": "fabric"}}]}


def of_controller(spec: dict[str, Any] | None = None, /, metadata: dict[str, Any] | None = None, **settings: Any) -> Thing:
    """A file system of the FSx controller of ACK; `settings` are those of Lustre, and None takes one away."""
    plain = {"deploymentType": P2, "perUnitStorageThroughput": 250}
    lustre = {key: value for key, value in {**plain, **settings}.items() if value is not None}
    outer = {"fileSystemType": "LUSTRE", "storageCapacity": 4800, "subnetIDs": ["subnet-1"], "securityGroupIDs": ["sg-1"]}
    given = {key: value for key, value in {**outer, "lustreConfiguration": lustre, **(spec or {})}.items() if value is not None}
    properties = {"metadata": {"name": "training", **(metadata or {})}, "spec": given}
    return Thing(type="kubernetes:fsx.services.k8s.aws/v1alpha1:FileSystem", name="training", properties=properties)


SHAPES = (
    valid("FSX01", p2()),
    valid("FSX01", scratch()),
    valid("FSX01", b.lustre(deploymentType=S1, storageCapacity=1200)),
    valid("FSX01", scratch(backupId="backup-0123456789abcdef0", subnetIds="subnet-1")),
    invalid("FSX01", b.lustre(backupId="backup-0123456789abcdef0", subnetIds="subnet-1"), says="is unset (FSx makes SCRATCH_1)"),
    invalid("FSX01", b.lustre(backupId=UNKNOWN), says="is unset (FSx makes SCRATCH_1)"),
    invalid("FSX01", b.lustre(storageCapacity=2400), says="deploymentType is unset (FSx makes SCRATCH_1)"),
    invalid("FSX01", b.lustre(deploymentType="SCRATCH_3", storageCapacity=1200), says="deploymentType is SCRATCH_3"),
    invalid("FSX01", b.lustre(deploymentType="persistent_2", storageCapacity=1200), says="persistent_2", edge=True),
    invalid("FSX01", b.lustre(deploymentType="", storageCapacity=1200), says="allowed: SCRATCH_1, SCRATCH_2"),
    invalid("FSX01", b.lustre(deploymentType=2, storageCapacity=1200), says="deploymentType is 2;"),
    valid("FSX02", scratch()),
    valid("FSX02", b.lustre(deploymentType=S1, storageCapacity=1200)),
    valid("FSX02", p2()),
    valid("FSX02", p1()),
    valid("FSX02", hdd()),
    invalid("FSX02", scratch(perUnitStorageThroughput=200), says="perUnitStorageThroughput is 200; allowed: unset"),
    invalid("FSX02", b.lustre(perUnitStorageThroughput=50, storageCapacity=1200), says="deploymentType is SCRATCH_1"),
    invalid("FSX02", b.lustre(deploymentType=S1, perUnitStorageThroughput=50), says="deploymentType is SCRATCH_1"),
    invalid("FSX02", scratch(perUnitStorageThroughput=UNKNOWN), says="(known after up)"),
    invalid("FSX02", scratch(perUnitStorageThroughput=0), says="perUnitStorageThroughput is 0;", edge=True),
    *(valid("FSX03", p1(perUnitStorageThroughput=number), edge=True) for number in (50, 100, 200)),
    *(valid("FSX03", hdd(perUnitStorageThroughput=number), edge=True) for number in (12, 40)),
    *(valid("FSX03", p2(perUnitStorageThroughput=number), edge=True) for number in (125, 250, 500, 1000)),
    valid("FSX03", tiering()),
    invalid("FSX03", p2(perUnitStorageThroughput=200), says="125, 250, 500, 1000"),
    invalid("FSX03", without(p2(), "perUnitStorageThroughput"), says="perUnitStorageThroughput is unset"),
    invalid("FSX03", p1(perUnitStorageThroughput=125), says="50, 100, 200"),
    invalid("FSX03", hdd(perUnitStorageThroughput=50), says="12, 40"),
    invalid("FSX03", p2(perUnitStorageThroughput=124), says="is 124;", edge=True),
    invalid("FSX03", p2(perUnitStorageThroughput=1001), says="is 1001;", edge=True),
    invalid("FSX03", p2(perUnitStorageThroughput="fast"), says="is fast;"),
    invalid("FSX03", tiering(perUnitStorageThroughput=250), says="throughputCapacity"),
    *(valid("FSX04", p2(storageCapacity=size), edge=True) for size in (1200, 2400, 4800)),
    *(valid("FSX04", b.lustre(deploymentType=S1, storageCapacity=size), edge=True) for size in (1200, 2400, 3600, 7200)),
    valid("FSX04", scratch(storageCapacity=4800)),
    valid("FSX04", hdd(storageCapacity=12000), edge=True),
    valid("FSX04", hdd(perUnitStorageThroughput=40, storageCapacity=1800), edge=True),
    valid("FSX04", tiering()),
    valid("FSX04", b.lustre(deploymentType=P2, backupId="backup-0123456789abcdef0")),
    invalid("FSX04", p2(storageCapacity=3600), says="storageCapacity is 3600; allowed: 1200, or a multiple of 2400 GiB"),
    invalid("FSX04", b.lustre(deploymentType=S1, storageCapacity=4800), says="1200, 2400, or a multiple of 3600"),
    invalid("FSX04", scratch(storageCapacity=1300), says="is 1300;"),
    invalid("FSX04", p2(storageCapacity=0), says="is 0;", edge=True),
    invalid("FSX04", p2(storageCapacity=-2400), says="is -2400;", edge=True),
    invalid("FSX04", p2(storageCapacity=2399), says="is 2399;", edge=True),
    invalid("FSX04", p2(storageCapacity=2400.5), says="is 2400.5;", edge=True),
    invalid("FSX04", hdd(storageCapacity=1800), says="a multiple of 6000 GiB"),
    invalid("FSX04", hdd(perUnitStorageThroughput=40, storageCapacity=6000 + 1799), says="a multiple of 1800 GiB", edge=True),
    invalid("FSX04", without(p2(), "storageCapacity"), says="storageCapacity is unset"),
    invalid("FSX04", tiering(storageCapacity=1200), says="INTELLIGENT_TIERING grows by itself"),
    *(
        valid("FSX05", fabric(throughput, capacity), edge=True)
        for throughput, capacity in ((125, 38400), (250, 19200), (500, 9600), (1000, 4800), (1000, 9600))
    ),
    invalid("FSX05", fabric(1000, 2400), says="storageCapacity is 2400; allowed: a multiple of 4800 GiB with EFA"),
    valid("FSX05", p2(efaEnabled=False)),
    valid("FSX05", tiering(efaEnabled=True, securityGroupIds=["sg-0123456789abcdef0"])),
    invalid("FSX05", p1(efaEnabled=True, securityGroupIds=["sg-0123456789abcdef0"]), says="only with PERSISTENT_2"),
    invalid("FSX05", without(fabric(1000, 4800), "metadataConfiguration"), says="metadataConfiguration is unset"),
    invalid("FSX05", fabric(1000, 4800, securityGroupIds=[]), says="securityGroupIds is []"),
    invalid("FSX05", without(fabric(1000, 4800), "securityGroupIds"), says="securityGroupIds is unset"),
    invalid("FSX05", scratch(efaEnabled="true", securityGroupIds=["sg-0123456789abcdef0"]), says="deploymentType is SCRATCH_2"),
    invalid("FSX05", b.lustre(efaEnabled=True, storageCapacity=1200), says="deploymentType is SCRATCH_1"),
    *(valid("FSX06", iops(number), edge=True) for number in (1500, 3000, 6000, 12000, 24000, 192000)),
    valid("FSX06", p2(metadataConfiguration=AUTOMATIC)),
    valid("FSX06", p2(metadataConfiguration=AUTOMATIC, fileSystemTypeVersion="2.15"), edge=True),
    valid("FSX06", p2(fileSystemTypeVersion="2.12"), edge=True),
    valid("FSX06", p1(fileSystemTypeVersion="2.10")),
    valid("FSX06", tiering()),
    invalid("FSX06", iops(5000), says="metadataConfiguration.iops is 5000"),
    invalid("FSX06", iops(1499), says="is 1499;", edge=True),
    invalid("FSX06", iops(204000), says="up to 192000", edge=True),
    invalid("FSX06", iops(None), says="iops is unset"),
    invalid("FSX06", p2(metadataConfiguration={**AUTOMATIC, "iops": 6000}), says="because the mode is AUTOMATIC"),
    invalid("FSX06", p2(metadataConfiguration={"mode": "MANUAL"}), says="AUTOMATIC or USER_PROVISIONED"),
    invalid("FSX06", p1(metadataConfiguration=AUTOMATIC), says="deploymentType is PERSISTENT_1"),
    invalid("FSX06", p2(fileSystemTypeVersion="2.10"), says="2.12 or 2.15", edge=True),
    invalid("FSX06", p2(metadataConfiguration=AUTOMATIC, fileSystemTypeVersion="2.12"), says="2.15, because", edge=True),
    invalid("FSX06", p1(fileSystemTypeVersion="2.16"), says="2.10, 2.12, 2.15"),
    valid("FSX07", hdd()),
    valid("FSX07", hdd(driveCacheType="NONE")),
    valid("FSX07", p2()),
    valid("FSX07", p2(storageType="SSD")),
    valid("FSX07", tiering()),
    valid("FSX07", tiering(throughputCapacity=2000000), edge=True),
    invalid("FSX07", p2(storageType=HDD, driveCacheType="READ"), says="HDD goes with PERSISTENT_1"),
    invalid("FSX07", without(hdd(), "driveCacheType"), says="driveCacheType is unset"),
    invalid("FSX07", hdd(driveCacheType="WRITE"), says="READ or NONE"),
    invalid("FSX07", p2(driveCacheType="READ"), says="because storageType is SSD"),
    invalid("FSX07", p2(storageType="NVME"), says="storageType is NVME"),
    *(
        invalid("FSX07", make(**{key: value}), says=f"allowed: unset, because storageType is {kind}", edge=True)
        for make, kind in ((p2, "SSD"), (scratch, "SSD"), (hdd, "HDD"))
        for key, value in (("throughputCapacity", 4000), ("dataReadCacheConfiguration", {"sizingMode": "NO_CACHE"}))
    ),
    invalid("FSX07", tiering(deploymentType=P1), says="deploymentType is PERSISTENT_1; allowed: PERSISTENT_2"),
    invalid("FSX07", without(tiering(), "dataReadCacheConfiguration"), says="dataReadCacheConfiguration is unset"),
    invalid("FSX07", without(tiering(), "metadataConfiguration"), says="metadataConfiguration is unset"),
    invalid("FSX07", without(tiering(), "throughputCapacity"), says="throughputCapacity is unset"),
    invalid("FSX07", tiering(throughputCapacity=0), says="a multiple of 4000 MB/s", edge=True),
    invalid("FSX07", tiering(throughputCapacity=2000), says="a multiple of 4000 MB/s", edge=True),
    invalid("FSX07", tiering(throughputCapacity=2004000), says="up to 2000000", edge=True),
    valid("FSX07", cached("NO_CACHE")),
    valid("FSX07", cached("PROPORTIONAL_TO_THROUGHPUT_CAPACITY")),
    valid("FSX07", cached("USER_PROVISIONED", 32), edge=True),
    valid("FSX07", cached("USER_PROVISIONED", 131072), edge=True),
    valid("FSX07", cached("USER_PROVISIONED", "64", throughputCapacity=8000), edge=True),
    invalid("FSX07", cached("USER_PROVISIONED"), says="dataReadCacheConfiguration.size is unset; allowed: a size in GiB"),
    invalid("FSX07", cached("USER_PROVISIONED", 0), says="size is 0; allowed: a size in GiB", edge=True),
    invalid("FSX07", cached("USER_PROVISIONED", "big"), says="size is big; allowed: a size in GiB"),
    invalid("FSX07", cached("USER_PROVISIONED", 31), says="size is 31; allowed: 32 to 131072 GiB at 4000 MB/s", edge=True),
    invalid("FSX07", cached("USER_PROVISIONED", 131073), says="size is 131073; allowed: 32 to 131072 GiB", edge=True),
    invalid("FSX07", cached("USER_PROVISIONED", 63, throughputCapacity=8000), says="allowed: 64 to 262144 GiB at 8000", edge=True),
    invalid("FSX07", cached("BOGUS"), says="sizingMode is BOGUS; allowed: NO_CACHE, USER_PROVISIONED, PROPORTIONAL"),
    invalid("FSX07", cached(None), says="sizingMode is unset"),
    invalid("FSX07", cached("USER_PROVISIONED", -1, throughputCapacity=0), says="size is -1"),
    valid(
        "FSX09", p2(weeklyMaintenanceStartTime="7:23:59", automaticBackupRetentionDays=7, dailyAutomaticBackupStartTime="00:00"), edge=True
    ),
    invalid("FSX09", p2(weeklyMaintenanceStartTime="0:05:00"), says="weeklyMaintenanceStartTime is 0:05:00; allowed: d:HH:MM", edge=True),
    invalid("FSX09", scratch(weeklyMaintenanceStartTime="Sun:05:00"), says="d from 1 for Monday to 7 for Sunday"),
    invalid("FSX09", p2(automaticBackupRetentionDays=7, dailyAutomaticBackupStartTime="5:00"), says="HH:MM, such as 05:00", edge=True),
    invalid("FSX09", p2(automaticBackupRetentionDays=7, dailyAutomaticBackupStartTime="24:00"), says="StartTime is 24:00", edge=True),
    valid("FSX07", p2(dataCompressionType="LZ4")),
    invalid("FSX07", p2(dataCompressionType="ZSTD"), says="dataCompressionType is ZSTD; allowed: NONE or LZ4"),
    valid("FSX08", scratch(importPath="s3://bucket", autoImportPolicy="NEW_CHANGED_DELETED")),
    invalid("FSX08", scratch(importPath="s3://bucket", autoImportPolicy="NEW_AND_CHANGED"), says="autoImportPolicy is NEW_AND_CHANGED"),
    valid("FSX09", p1(automaticBackupRetentionDays=7)),
    valid("FSX09", p2(automaticBackupRetentionDays=90, dailyAutomaticBackupStartTime="03:00"), edge=True),
    valid("FSX09", p2(automaticBackupRetentionDays=0), edge=True),
    valid("FSX09", p2(kmsKeyId="arn:aws:kms:us-east-1:123456789012:key/k")),
    valid("FSX09", scratch(automaticBackupRetentionDays=0), edge=True),
    valid("FSX09", p1(importPath="s3://bucket")),
    invalid("FSX09", scratch(kmsKeyId="k"), says="kmsKeyId is k"),
    invalid("FSX09", scratch(automaticBackupRetentionDays=1), says="automaticBackupRetentionDays is 1;", edge=True),
    invalid("FSX09", scratch(dailyAutomaticBackupStartTime="03:00"), says="dailyAutomaticBackupStartTime is 03:00"),
    invalid("FSX09", p2(automaticBackupRetentionDays=91), says="0 to 90 days", edge=True),
    invalid("FSX09", p2(automaticBackupRetentionDays=-1), says="0 to 90 days", edge=True),
    invalid("FSX09", p1(importPath="s3://bucket", automaticBackupRetentionDays=7), says="import path links"),
    invalid("FSX09", p2(dailyAutomaticBackupStartTime="03:00"), says="above 0"),
)


def association(name: str = "data", parent: str = "scratch", **properties: Any) -> Thing:
    plain = {"fileSystemId": UNKNOWN, "fileSystemPath": "/data", "dataRepositoryPath": "s3://bucket/data"}
    return Thing(type=tokens.DRA, name=name, properties={**plain, **properties}, sources={"fileSystemId": [parent]})


def events(kind: str, *names: Any) -> dict[str, Any]:
    return {"s3": {kind: {"events": list(names)}}}


def exporting(*names: Any) -> Thing:
    return association(**events("autoExportPolicy", *names))


def versioning(status: str, bucket: str = "bucket") -> Thing:
    return Thing(
        type=tokens.BUCKET_VERSIONING, name="versions", properties={"bucket": bucket, "versioningConfiguration": {"status": status}}
    )


V2_BUCKET, V2_VERSIONING = "aws:s3/bucketV2:BucketV2", "aws:s3/bucketVersioningV2:BucketVersioningV2"


def own_bucket(kind: str = tokens.BUCKET, **properties: Any) -> Thing:
    """The bucket that associations name, with settings of its own."""
    return Thing(type=kind, name="own", properties={"bucket": "bucket", **properties})


MADE_BUCKET = Thing(type=tokens.BUCKET, name="made", properties={"forceDestroy": False})
MADE_VERSIONING = Thing(
    type=tokens.BUCKET_VERSIONING,
    name="versions",
    properties={"bucket": UNKNOWN, "versioningConfiguration": {"status": "Enabled"}},
    sources={"bucket": ["made"]},
)
MADE_LINK = Thing(
    type=tokens.DRA,
    name="data",
    properties={
        "fileSystemId": UNKNOWN,
        "fileSystemPath": "/data",
        "dataRepositoryPath": UNKNOWN,
        **events("autoExportPolicy", "NEW", "CHANGED", "DELETED"),
    },
    sources={"fileSystemId": ["scratch"], "dataRepositoryPath": ["made"]},
)


def of_volume(name: str, files: list[str] | None, resource: str | None = None) -> Thing:
    """A volume on file systems of the program, or on one from elsewhere."""
    csi = {"driver": "fsx.csi.aws.com", "volumeHandle": UNKNOWN if files else "fs-0123456789abcdef0"}
    properties = {"metadata": {"name": name}, "spec": {"csi": csi}}
    return Thing(type=tokens.PERSISTENT_VOLUME, name=resource or name, properties=properties, sources={"spec": files} if files else {})


def claim_on(volume: str, name: str) -> Thing:
    return Thing(type=tokens.VOLUME_CLAIM, name=name, properties={"metadata": {"name": name}, "spec": {"volumeName": volume}})


def annotated(note: str) -> Thing:
    """A volume of datasets with a note."""
    plain = of_volume("datasets", ["scratch"])
    return Thing(
        type=plain.type,
        name=plain.name,
        properties=b.changed(plain.properties, {"metadata/annotations": {"note": note}}),
        sources=plain.sources,
    )


def literal(name: str, files: str) -> Thing:
    """An association of a file system by its id."""
    properties = {"fileSystemId": files, "fileSystemPath": "/data", "dataRepositoryPath": f"s3://bucket/{name}"}
    return Thing(type=tokens.DRA, name=name, properties=properties)


def exporting_from(files: str) -> Thing:
    return association(parent=files, **events("autoExportPolicy", "NEW", "CHANGED"))


VOLUME = of_volume("jobs-checkpoints", ["scratch"])
DATA = Thing(type=tokens.LUSTRE, name="datasets", properties={"deploymentType": S2, "storageCapacity": 1200})
KEPT = {"tags": {"role": "checkpoints"}}

LINKS = (
    valid("FSX08", scratch(importPath="s3://b", exportPath="s3://b/out")),
    valid("FSX08", p1(importPath="s3://b/in", autoImportPolicy="NEW", importedFileChunkSize=1024)),
    valid("FSX08", p2(), association()),
    valid("FSX08", scratch(importPath="s3://b"), association(parent="other"), b.lustre(deploymentType=P2), edge=True),
    valid("FSX08", scratch()),
    invalid("FSX08", p2(importPath="s3://b"), says="importPath is s3://b; allowed: unset on PERSISTENT_2"),
    invalid("FSX08", p2(autoImportPolicy="NEW"), says="autoImportPolicy is NEW"),
    invalid("FSX08", scratch(exportPath="s3://b/out"), says="only beside importPath"),
    invalid("FSX08", scratch(importedFileChunkSize=1024), says="importedFileChunkSize is 1024"),
    invalid("FSX08", scratch(importPath="s3://b", exportPath="s3://c/out"), says="in the bucket of the import path, b"),
    invalid("FSX08", scratch(importPath="s3://bb", exportPath="s3://b/out"), says="import path, bb", edge=True),
    invalid("FSX08", scratch(importPath="/data"), says="begins with s3://"),
    invalid("FSX08", scratch(importPath="s3://b"), association(), says="data is a data repository association of it"),
    valid("FSX12", scratch(), annotated("filled from the last checkpoint")),
    valid("FSX12", scratch(), of_volume("jobs-checkpoints", ["other"])),
    invalid("FSX12", scratch(id="fs-0123456789abcdef0"), of_volume("checkpoints", None), says="SCRATCH_2 for a volume of checkpoints"),
    valid("FSX12", scratch(id="fs-1"), of_volume("checkpoints", None), edge=True),
    invalid("FSX12", scratch(), of_volume("state", ["scratch"]), claim_on("state", "run-ckpt"), says="SCRATCH_2 for a volume"),
    valid("FSX12", scratch(), of_volume("state", ["scratch"]), claim_on("state", "datasets"), edge=True),
    valid("FSX12", scratch(), of_volume("state", ["scratch"]), claim_on("elsewhere", "run-ckpt"), edge=True),
    valid("FSX12", scratch(), of_volume("jobs-checkpoints", None)),
    invalid("FSX12", scratch(), of_volume("checkpoints", ["scratch"], "jobs"), says="SCRATCH_2 for a volume of checkpoints"),
    invalid("FSX12", DATA, scratch(**KEPT), says="SCRATCH_2 for a volume of checkpoints"),
    invalid("FSX12", p2(**KEPT), DATA, exporting_from("datasets"), says="it holds checkpoints"),
    valid("FSX12", p2(**KEPT), exporting("NEW", "CHANGED")),
    valid("FSX12", p2(**KEPT, automaticBackupRetentionDays=1), edge=True),
    valid("FSX12", scratch()),
    valid("FSX12", scratch(tags={"role": "cache"}), edge=True),
    valid("FSX12", p2(**KEPT), exporting("NEW", "CHANGED", "DELETED")),
    valid("FSX12", p2(automaticBackupRetentionDays=7), VOLUME),
    invalid("FSX12", scratch(**KEPT), says="SCRATCH_2 for a volume of checkpoints"),
    invalid("FSX12", scratch(), VOLUME, says="SCRATCH_2 for a volume of checkpoints"),
    invalid("FSX12", p2(**KEPT), says="automaticBackupRetentionDays is unset"),
    invalid("FSX12", p2(**KEPT, automaticBackupRetentionDays=0), says="automaticBackupRetentionDays is 0;", edge=True),
    invalid("FSX12", p2(**KEPT), exporting("NEW"), says="it holds checkpoints", edge=True),
    invalid("FSX12", Thing(type=tokens.LUSTRE, name="ckpt", properties={"deploymentType": S1}), says="SCRATCH_1 for a volume"),
    valid("DRA01", p2(), association()),
    valid("DRA01", scratch(fileSystemTypeVersion="2.12"), association(), edge=True),
    valid("DRA01", p1(fileSystemTypeVersion="2.15"), association()),
    valid("DRA01", b.lustre(deploymentType=S1)),
    # The backup's version may be 2.12 or later.
    valid("DRA01", p1(backupId="backup-0123456789abcdef0"), association()),
    valid("DRA01", scratch(backupId=UNKNOWN), association()),
    invalid("DRA01", p1(backupId="backup-1", fileSystemTypeVersion="2.10"), association(), says="scratch with Lustre 2.10", edge=True),
    invalid("DRA01", b.lustre(deploymentType=S1, backupId="backup-1"), association(), says="a SCRATCH_1 file system"),
    valid("DRA01", tiering()),
    valid("DRA01", tiering(), p2(), association(parent="elsewhere")),
    valid("DRA01", p1(storageType=HDD, fileSystemTypeVersion="2.12"), association()),
    invalid("DRA01", tiering(), association(), says="an INTELLIGENT_TIERING file system; allowed: a file system on SSD or HDD"),
    invalid("DRA01", tiering(fileSystemTypeVersion="2.15"), association(), says="an INTELLIGENT_TIERING file system"),
    valid("DRA01", p2(), *(association(f"data-{index}", fileSystemPath=f"/{index}") for index in range(8)), edge=True),
    invalid("DRA01", DATA, b.lustre(deploymentType=S1, storageCapacity=1200), association(), says="a SCRATCH_1 file system"),
    invalid("DRA01", b.lustre(deploymentType=S1, storageCapacity=1200), association(), says="a SCRATCH_1 file system"),
    invalid("DRA01", b.lustre(storageCapacity=1200), association(), says="a SCRATCH_1 file system"),
    invalid("DRA01", scratch(), association(), says="scratch with Lustre 2.10", edge=True),
    invalid("DRA01", p1(fileSystemTypeVersion="2.10"), association(), says="2.12 or later"),
    invalid(
        "DRA01", p2(), *(association(f"data-{index}", fileSystemPath=f"/{index}") for index in range(9)), says="9 of scratch", edge=True
    ),
    valid("DRA02", b.lustre(id="fs-1", deploymentType=S2), literal("data", "fs-1"), literal("models", "fs-2")),
    valid("DRA02", p2(), association()),
    valid("DRA02", p2(), association(), association("models", fileSystemPath="/data2", dataRepositoryPath="s3://bucket/data2"), edge=True),
    valid("DRA02", p2(), association(fileSystemPath="/")),
    valid("DRA02", association(), association("models", "other"), p2(), Thing(type=tokens.LUSTRE, name="other", properties={})),
    invalid("DRA02", p2(), association(fileSystemPath="data"), says="fileSystemPath is data"),
    invalid("DRA02", p2(), association(fileSystemPath=None), says="fileSystemPath is unset"),
    invalid("DRA02", p2(), association(dataRepositoryPath="bucket/data"), says="dataRepositoryPath is bucket/data"),
    valid("DRA02", p2(), association(dataRepositoryPath="s3://b"), edge=True),
    invalid("DRA02", p2(), association(dataRepositoryPath="s3://"), says="dataRepositoryPath is s3://; allowed: a bucket", edge=True),
    invalid("DRA02", p2(), association(dataRepositoryPath="s3:///data"), says="dataRepositoryPath is s3:///data"),
    invalid(
        "FSX08", scratch(importPath="s3://"), says="importPath is s3://; allowed: a path that begins with s3:// and a bucket", edge=True
    ),
    invalid(
        "DRA02",
        p2(),
        association(fileSystemPath="/ns1"),
        association("models", fileSystemPath="/ns1/ns2", dataRepositoryPath="s3://bucket/models"),
        says="does not overlap /ns1 of data",
    ),
    invalid(
        "DRA02",
        p2(),
        association(fileSystemPath="/"),
        association("models", fileSystemPath="/models", dataRepositoryPath="s3://other/models"),
        says="does not overlap / of data",
        edge=True,
    ),
    invalid("DRA02", p2(), association(), association("again", fileSystemPath="/again"), says="does not overlap s3://bucket/data"),
    invalid(
        "DRA02",
        Thing(type=tokens.DRA, name="a", properties={"fileSystemId": "fs-1", "fileSystemPath": "/a", "dataRepositoryPath": "s3://b/a"}),
        Thing(type=tokens.DRA, name="z", properties={"fileSystemId": "fs-1", "fileSystemPath": "/a/", "dataRepositoryPath": "s3://b/z"}),
        says="does not overlap /a of a",
    ),
    invalid("DRA02", p2(dataRepositoryAssociations=[{"fileSystemPath": "/a"}]), says="no such property"),
    valid("DRA02", of_controller()),
    invalid("DRA02", of_controller({"dataRepositoryAssociations": [{"fileSystemPath": "/a"}]}), says="no such field"),
    invalid(
        "DRA02",
        of_controller(dataRepositoryAssociations=[{"fileSystemPath": "/data", "dataRepositoryPath": "s3://bucket/data"}]),
        says="spec.lustreConfiguration.dataRepositoryAssociations is set; allowed: associations of their own",
    ),
    invalid("FSX04", of_controller({"storageCapacity": None}), says="spec.storageCapacity is unset; allowed: a capacity in GiB."),
    *(valid(rule, of_controller()) for rule in ("FSX01", "FSX03", "FSX04", "FSX08", "FSX09", "FSX10", "FSX11")),
    *(valid(rule, of_controller({"fileSystemType": "WINDOWS", "lustreConfiguration": None})) for rule in ("FSX01", "FSX04")),
    valid("FSX01", of_controller({"fileSystemType": None, "lustreConfiguration": "none"}), edge=True),
    *(
        valid("FSX01", of_controller(metadata={"annotations": {f"services.k8s.aws/{key}": value}}, deploymentType=None), edge=True)
        for key, value in (("adoption-policy", "adopt"), ("read-only", "true"))
    ),
    invalid(
        "FSX01",
        of_controller(metadata={"annotations": {"services.k8s.aws/adoption-policy": "adopt-or-create"}}, deploymentType=None),
        says="spec.lustreConfiguration.deploymentType is unset (FSx makes SCRATCH_1)",
        edge=True,
    ),
    invalid("FSX01", of_controller({"lustreConfiguration": None}), says="spec.lustreConfiguration.deploymentType is unset"),
    invalid("FSX01", of_controller(deploymentType="PERSISTENT_3"), says="spec.lustreConfiguration.deploymentType is PERSISTENT_3"),
    invalid("FSX02", of_controller(deploymentType=S2), says="spec.lustreConfiguration.perUnitStorageThroughput is 250; allowed: unset"),
    invalid("FSX03", of_controller(perUnitStorageThroughput=200), says="spec.lustreConfiguration.perUnitStorageThroughput is 200"),
    invalid("FSX04", of_controller({"storageCapacity": 3600}), says="spec.storageCapacity is 3600; allowed: 1200, or a multiple of 2400"),
    invalid("FSX04", of_controller({"storageCapacity": None}), says="spec.storageCapacity is unset"),
    valid("FSX05", of_controller({**GROUP_BY_NAME, "storageCapacity": 19200}, efaEnabled=True, metadataConfiguration=AUTOMATIC)),
    invalid(
        "FSX05",
        of_controller({"securityGroupIDs": None}, efaEnabled=True, metadataConfiguration=AUTOMATIC),
        says="spec.securityGroupIDs is unset",
    ),
    invalid("FSX06", of_controller({"fileSystemTypeVersion": "2.10"}), says="spec.fileSystemTypeVersion is 2.10"),
    invalid(
        "FSX06",
        of_controller(metadataConfiguration={"mode": "USER_PROVISIONED", "iops": 5000}),
        says="spec.lustreConfiguration.metadataConfiguration.iops is 5000",
    ),
    invalid("FSX07", of_controller({"storageType": HDD}), says="spec.storageType is HDD"),
    invalid(
        "FSX07",
        of_controller(
            {"storageType": TIERING, "storageCapacity": None},
            perUnitStorageThroughput=None,
            throughputCapacity=4000,
            metadataConfiguration=AUTOMATIC,
            dataReadCacheConfiguration={"sizingMode": "USER_PROVISIONED", "sizeGiB": 31},
        ),
        says="spec.lustreConfiguration.dataReadCacheConfiguration.sizeGiB is 31",
        edge=True,
    ),
    invalid("FSX08", of_controller(importPath="s3://bucket"), says="spec.lustreConfiguration.importPath is s3://bucket; allowed: unset on"),
    valid("FSX08", of_controller(deploymentType=S2, perUnitStorageThroughput=None, importPath="s3://bucket")),
    *(
        invalid("FSX09", of_controller({key: value}, deploymentType=S2, perUnitStorageThroughput=None), says=f"spec.{key} is")
        for key, value in (("kmsKeyID", "k"), ("kmsKeyRef", {"from": {"name": "k"}}))
    ),
    invalid(
        "FSX09", of_controller(automaticBackupRetentionDays=91), says="automaticBackupRetentionDays is 91; allowed: 0 to 90", edge=True
    ),
    valid("FSX10", of_controller({"subnetIDs": None, "subnetRefs": [{"from": {"name": "private"}}]})),
    invalid("FSX10", of_controller({"subnetIDs": ["subnet-1", "subnet-2"]}), says="spec.subnetIDs is 2 subnets; allowed: one subnet"),
    valid("FSX11", of_controller(GROUP_BY_NAME)),
    invalid("FSX11", of_controller({"securityGroupIDs": None}), says="spec.securityGroupIDs is unset (the VPC's default group)"),
    invalid("DRA02", of_controller(dataRepositoryAssociations=UNKNOWN), says="no such field", edge=True),
    valid(
        "DRA03",
        p2(),
        Thing(type=tokens.BUCKET, name="made", properties={"id": "bucket"}),
        exporting("NEW", "CHANGED", "DELETED"),
        versioning("Enabled"),
    ),
    valid("DRA03", p2(), exporting("NEW", "CHANGED")),
    valid("DRA03", p2(), association(**events("autoImportPolicy", "NEW", "CHANGED", "DELETED")), edge=True),
    valid("DRA03", p2(), association()),
    valid("DRA03", p2(), exporting("NEW", "CHANGED", "DELETED"), versioning("Enabled")),
    valid("DRA03", p2(), MADE_BUCKET, MADE_VERSIONING, MADE_LINK),
    valid("DRA03", p2(), own_bucket(versioning={"enabled": True}), exporting("DELETED")),
    valid("DRA03", p2(), own_bucket(versioning={"enabled": "true"}), exporting("DELETED"), edge=True),
    valid("DRA03", p2(), own_bucket(V2_BUCKET, versionings=[{"enabled": True}]), exporting("DELETED")),
    valid("DRA03", p2(), own_bucket(V2_BUCKET), replace(versioning("Enabled"), type=V2_VERSIONING), exporting("DELETED")),
    valid("DRA03", p2(), replace(MADE_BUCKET, properties={"versioning": {"enabled": True}}), MADE_LINK),
    valid("DRA03", p2(), MADE_BUCKET, replace(MADE_VERSIONING, type=V2_VERSIONING), MADE_LINK),
    invalid("DRA03", p2(), own_bucket(versioning={"enabled": False}), exporting("DELETED"), says="keeps versions", edge=True),
    invalid("DRA03", p2(), own_bucket(versioning={"mfaDelete": True}), exporting("DELETED"), says="keeps versions"),
    invalid("DRA03", p2(), own_bucket(V2_BUCKET, versionings=[]), exporting("DELETED"), says="keeps versions"),
    invalid(
        "DRA03", p2(), own_bucket(bucket="other", versioning={"enabled": True}), exporting("DELETED"), says="keeps versions", edge=True
    ),
    invalid("DRA03", p2(), MADE_BUCKET, own_bucket(versioning={"enabled": True}), MADE_LINK, says="keeps versions"),
    invalid("DRA03", p2(), replace(versioning("Suspended"), type=V2_VERSIONING), exporting("DELETED"), says="keeps versions"),
    invalid("DRA03", p2(), exporting("NEW", "CHANGED", "DELETED"), says="DELETED removes the copy in S3 too"),
    invalid("DRA03", p2(), exporting("DELETED"), versioning("Suspended"), says="keeps versions", edge=True),
    invalid("DRA03", p2(), exporting("DELETED"), versioning("Enabled", "elsewhere"), says="keeps versions"),
    invalid("DRA03", p2(), exporting("NEW", "MODIFIED"), says="events[1] is MODIFIED"),
    invalid("DRA03", p2(), exporting("NEW", "CHANGED", "NEW", "NEW"), says="4 events", edge=True),
)


def subnet(zone: str | None, name: str = "private") -> Thing:
    zoned = {"availabilityZone": zone} if zone else {}
    return Thing(type=tokens.SUBNET, name=name, properties={"cidrBlock": "10.0.0.0/20", **zoned})


def of_id(known: Any) -> Thing:
    return Thing(type=tokens.SUBNET, name="other", properties={"id": known, "availabilityZone": "us-east-1b"})


def placed(**properties: Any) -> Thing:
    shape = {"deploymentType": S2, "storageCapacity": 1200, "subnetIds": UNKNOWN, **properties}
    return Thing(type=tokens.LUSTRE, name="scratch", properties=shape, sources={"subnetIds": ["private"]})


ZONES = "spec/template/spec/requirements/1/values"


def rule(first: int, last: int, **peer: Any) -> dict[str, Any]:
    return {"protocol": "tcp", "fromPort": first, "toPort": last, **(peer or {"self": True})}


OPEN = [rule(988, 988), rule(1018, 1023)]
NODES = {"securityGroups": ["sg-nodes"]}
ANY = {"protocol": "-1", "fromPort": 0, "toPort": 0}


def group(ingress: Any = (), egress: Any = (), name: str = "lustre") -> Thing:
    return Thing(type=tokens.SECURITY_GROUP, name=name, properties={"ingress": list(ingress), "egress": list(egress)})


def guarded(*ids: Any, groups: tuple[str, ...] = ("lustre",)) -> Thing:
    shape = {"deploymentType": S2, "storageCapacity": 1200, "subnetIds": "subnet-1", "securityGroupIds": list(ids or (UNKNOWN,))}
    return Thing(type=tokens.LUSTRE, name="scratch", properties=shape, sources={"securityGroupIds": list(groups)})


def separate(direction: str, first: int, last: int, peer: str = "lustre", holder: str = "lustre") -> Thing:
    return Thing(
        type=tokens.INGRESS_RULE if direction == "ingress" else tokens.EGRESS_RULE,
        name=f"{direction}-{first}-{peer}",
        properties={
            "securityGroupId": UNKNOWN,
            "referencedSecurityGroupId": UNKNOWN,
            "ipProtocol": "tcp",
            "fromPort": first,
            "toPort": last,
        },
        sources={"securityGroupId": [holder], "referencedSecurityGroupId": [peer]},
    )


def older(way: str, peers: tuple[str, ...] = (), **properties: Any) -> Thing:
    """A rule of the older kind, on the group lustre."""
    plain = {"type": way, "protocol": "tcp", "fromPort": 988, "toPort": 1023, "securityGroupId": UNKNOWN, **properties}
    sources = {"securityGroupId": ["lustre"], "sourceSecurityGroupId": list(peers)}
    return Thing(type=tokens.SECURITY_GROUP_RULE, name=f"older-{way}", properties=plain, sources=sources)


BARE = Thing(type=tokens.SECURITY_GROUP, name="lustre", properties={"description": "Lustre"})
OLDER = (older("ingress", self=True), older("egress", cidrBlocks=["10.0.0.0/16"]))
EVERY = tuple(separate(way, first, last) for way in ("ingress", "egress") for first, last in ((988, 988), (1018, 1023)))

TRAINING = Thing(
    type=tokens.NODE_GROUP,
    name="gpu",
    properties={"subnetIds": [UNKNOWN], "instanceTypes": ["p5.48xlarge"]},
    sources={"subnetIds": ["nodes"], "launchTemplate": ["template"]},
)
P5_TEMPLATE = Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties={"instanceType": "p5.48xlarge"})
BY_TEMPLATE = replace(TRAINING, properties={"subnetIds": [UNKNOWN], "launchTemplate": {"id": UNKNOWN}})
PLAIN_GROUP = replace(TRAINING, properties={"subnetIds": [UNKNOWN], "instanceTypes": ["m7i.large"]})
SELF_MANAGED = Thing(
    type=tokens.SCALING_GROUP,
    name="gpu",
    properties={"launchTemplate": {"id": UNKNOWN}, "availabilityZones": ["us-east-1a"]},
    sources={"launchTemplate": ["template"]},
)
NO_ZONE = b.node_pool({"spec/template/spec/requirements/1": {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}})
TAGGED = Thing(type=tokens.SUBNET, name="nodes", properties={"availabilityZone": "us-east-1a", "tags": {"pool": "p5"}})


def of_protocol(name: str) -> list[dict[str, Any]]:
    return [{**each, "protocol": name} for each in OPEN]


def named(name: str, ingress: Any = (), egress: Any = (), sources: tuple[str, ...] = (), **more: Any) -> Thing:
    return replace(
        group(ingress, egress, name),
        properties={**group(ingress, egress).properties, **more},
        sources={"ingress": list(sources), "egress": list(sources)},
    )


def from_group(name: str, first: int = 0, last: int = 65535) -> dict[str, Any]:
    return rule(first, last, securityGroups=[name])


ALL_OUT = [{**ANY, "cidrBlocks": ["0.0.0.0/0"]}]
A_FROM_B = named("a", [from_group("sg-b")], ALL_OUT, id="sg-a")
B_CLOSED = named("b", id="sg-b")
OF_A_AND_B = guarded("sg-a", "sg-b", groups=())

NETWORK = (
    *(valid("FSX11", group(of_protocol(name), of_protocol(name)), guarded()) for name in ("TCP", "Tcp", "ALL", "All", "6")),
    invalid("FSX11", group(of_protocol("UDP"), OPEN), guarded(), says="ingress of 988 to itself", edge=True),
    # Rules for parts of a range open it together.
    valid("FSX11", group([rule(988, 988), rule(1018, 1020), rule(1021, 1023)], OPEN), guarded()),
    valid("FSX11", group([rule(1021, 1023), rule(1000, 1022), rule(988, 988)], OPEN), guarded()),
    invalid("FSX11", group([rule(988, 988), rule(1018, 1020), rule(1022, 1023)], OPEN), guarded(), says="ingress of 1018-1023", edge=True),
    invalid("FSX11", group([rule(988, 988), rule(1019, 1020), rule(1021, 1023)], OPEN), guarded(), says="ingress of 1018-1023", edge=True),
    invalid(
        "FSX11",
        group([*OPEN, rule(988, 988, **NODES), rule(1018, 1020, **NODES), rule(1021, 1023, securityGroups=["sg-more"])], OPEN),
        guarded(),
        says="ingress of 1018-1023 to the nodes",
    ),
    valid(
        "FSX11",
        group([*OPEN, rule(988, 988, **NODES), rule(1018, 1020, **NODES), rule(1021, 1023, **NODES)], OPEN),
        guarded(),
        edge=True,
    ),
    # Either range alone is of no use to nodes, and what one group of them has is of none to another.
    invalid("FSX11", group([*OPEN, rule(1018, 1023, **NODES)], OPEN), guarded(), says="without ingress of 988 to the nodes", edge=True),
    invalid("FSX11", group(OPEN, [*OPEN, rule(1018, 1023, **NODES)]), guarded(), says="without egress of 988 to the nodes"),
    invalid(
        "FSX11",
        group([*OPEN, from_group("sg-one"), rule(1018, 1023, securityGroups=["sg-two"])], OPEN),
        guarded(),
        says="without ingress of 988 to the nodes",
    ),
    valid("FSX11", group([*OPEN, from_group("sg-one"), from_group("sg-two"), from_group("sg-web", 443, 443)], OPEN), guarded()),
    valid("FSX11", group([*OPEN, rule(988, 988, cidrBlocks=["10.0.0.0/16"]), rule(1018, 1023, **NODES)], OPEN), guarded()),
    valid("FSX11", group([*OPEN, rule(900, 1100, cidrBlocks=["10.0.0.0/16"]), rule(1018, 1023, **NODES)], OPEN), guarded()),
    # What carries two groups is in both.
    valid("FSX11", A_FROM_B, B_CLOSED, OF_A_AND_B),
    invalid("FSX11", A_FROM_B, B_CLOSED, guarded("sg-a", groups=()), says="a, without ingress of 988 to itself", edge=True),
    invalid("FSX11", named("a", [from_group("sg-c")], ALL_OUT, id="sg-a"), B_CLOSED, OF_A_AND_B, says="a, b, without ingress of 988"),
    valid(
        "FSX11",
        named("a", [from_group(UNKNOWN)], ALL_OUT, ("b",)),
        named("b"),
        guarded(UNKNOWN, UNKNOWN, groups=("a", "b")),
    ),
    valid("FSX11", named("a", [rule(988, 988)], ALL_OUT), named("b", [rule(1018, 1023)]), guarded(UNKNOWN, UNKNOWN, groups=("a", "b"))),
    invalid("FSX10", subnet("us-east-1b"), placed(), subnet("us-east-1a", "nodes"), TRAINING, says="zone of training nodes: us-east-1a"),
    valid("FSX10", subnet("us-east-1a"), placed(), subnet("us-east-1a", "nodes"), TRAINING),
    invalid("FSX10", subnet("us-east-1b"), placed(), subnet("us-east-1a", "nodes"), P5_TEMPLATE, BY_TEMPLATE, says="in zone us-east-1b"),
    valid("FSX10", subnet("us-east-1b"), placed(), subnet("us-east-1a", "nodes"), PLAIN_GROUP),
    # One group of training nodes is where the file system is, or may be.
    valid(
        "FSX10", subnet("us-east-1b"), placed(), subnet("us-east-1a", "nodes"), TRAINING, b.node_pool({ZONES: ["us-east-1b"]}), edge=True
    ),
    valid("FSX10", subnet("us-east-1b"), placed(), subnet(None, "nodes"), TRAINING),
    valid("FSX10", subnet("us-east-1b"), placed(), replace(TRAINING, sources={}), b.node_pool()),
    invalid("FSX10", subnet("us-east-1b"), placed(), P5_TEMPLATE, SELF_MANAGED, says="in zone us-east-1b"),
    invalid("FSX10", subnet("us-east-1b"), placed(), TAGGED, b.node_class(), NO_ZONE, says="zone of training nodes: us-east-1a"),
    valid("FSX10", subnet("us-east-1a"), placed(), TAGGED, b.node_class(), NO_ZONE),
    valid("FSX10", subnet("us-east-1b"), placed(), b.node_class(), NO_ZONE),
    invalid("FSX10", of_id("subnet-1"), scratch(subnetIds="subnet-1"), b.node_pool(), says="in zone us-east-1b"),
    valid("FSX10", subnet("us-east-1a"), of_id(UNKNOWN), placed(), b.node_pool()),
    valid("FSX10", subnet("us-east-1a"), placed(), b.node_pool(), b.node_pool({ZONES: ["us-east-1b"]}, name="p5-b")),
    valid("FSX10", subnet("us-east-1a"), placed(), b.node_pool()),
    valid("FSX10", subnet("us-east-1b"), placed(), b.node_pool({ZONES: ["us-east-1a", "us-east-1b"]}), edge=True),
    valid("FSX10", subnet("us-east-1b"), placed(), b.cpu_pool()),
    valid("FSX10", subnet("us-east-1b"), placed()),
    valid("FSX10", scratch(subnetIds="subnet-elsewhere"), b.node_pool()),
    valid("FSX10", scratch(subnetIds=["subnet-1"]), edge=True),
    invalid("FSX10", subnet("us-east-1b"), placed(), b.node_pool(), says="in zone us-east-1b; allowed: a subnet in the zone"),
    invalid("FSX10", scratch(subnetIds=["subnet-1", "subnet-2"]), says="2 subnets", edge=True),
    invalid("FSX10", scratch(subnetIds=[]), says="0 subnets", edge=True),
    invalid("FSX10", subnet("us-west-2a"), placed(), b.node_pool(), says="us-east-1a"),
    invalid("FSX10", subnet("us-east-1c"), placed(), b.node_pool({ZONES: ["us-east-1a", "us-east-1b"]}), says="us-east-1a, us-east-1b"),
    invalid(
        "FSX11", group(), group(name="more"), guarded(UNKNOWN, UNKNOWN, groups=("lustre", "more")), says="lustre, more, without ingress"
    ),
    valid("FSX11", BARE, *EVERY, separate("ingress", 988, 988, "nodes"), separate("ingress", 1018, 1023, "nodes"), guarded()),
    invalid("FSX11", BARE, *EVERY, separate("ingress", 988, 988, "nodes"), guarded(), says="ingress of 1018-1023 to the nodes"),
    valid("FSX11", BARE, *OLDER, guarded()),
    valid("FSX11", BARE, *EVERY, older("ingress", ("lustre",), fromPort=988, toPort=988, sourceSecurityGroupId=UNKNOWN), guarded()),
    *(
        invalid(
            "FSX11",
            BARE,
            *EVERY,
            older("ingress", sources, fromPort=988, toPort=988, **peer),
            guarded(),
            says="lustre, without ingress of 1018-1023 to the nodes",
        )
        for sources, peer in (
            ((), {"cidrBlocks": ["10.0.0.0/16"]}),
            ((), {"ipv6CidrBlocks": ["2001:db8::/56"]}),
            ((), {"prefixListIds": ["pl-0123456789abcdef0"]}),
            ((), {"sourceSecurityGroupId": "sg-nodes"}),
            (("nodes",), {"sourceSecurityGroupId": UNKNOWN}),
        )
    ),
    valid("FSX11", BARE, *EVERY, older("ingress", ("nodes",), sourceSecurityGroupId=UNKNOWN), guarded(), edge=True),
    valid("FSX11", group(OPEN, OPEN), guarded()),
    valid("FSX11", BARE, *EVERY, guarded()),
    valid("FSX11", group([{**ANY, "self": True}], [{**ANY, "cidrBlocks": ["0.0.0.0/0"]}]), guarded()),
    valid("FSX11", group([rule(988, 1023)], [rule(0, 65535)]), guarded(), edge=True),
    valid("FSX11", guarded("sg-elsewhere", groups=())),
    valid("FSX11", group([*OPEN, rule(988, 988, **NODES), rule(1018, 1023, **NODES)], OPEN), guarded()),
    valid("FSX11", group(OPEN), group((), OPEN, "more"), guarded(UNKNOWN, UNKNOWN, groups=("lustre", "more"))),
    invalid("FSX11", scratch(subnetIds="subnet-1"), says="securityGroupIds is unset (the VPC's default group)"),
    invalid("FSX11", scratch(securityGroupIds=[]), says="unset", edge=True),
    invalid("FSX11", group(OPEN[:1], OPEN), guarded(), says="lustre, without ingress of 1018-1023 to itself"),
    invalid("FSX11", group(OPEN, OPEN[1:]), guarded(), says="egress of 988 to itself"),
    invalid("FSX11", group([rule(988, 988), rule(1018, 1022)], OPEN), guarded(), says="ingress of 1018-1023", edge=True),
    invalid("FSX11", group([rule(989, 1023), rule(1018, 1023)], OPEN), guarded(), says="ingress of 988", edge=True),
    invalid("FSX11", group([*OPEN, rule(988, 988, **NODES)], OPEN), guarded(), says="ingress of 1018-1023 to the nodes"),
    invalid("FSX11", BARE, *EVERY[:3], guarded(), says="egress of 1018-1023 to itself"),
    invalid("FSX11", group([{**r, "protocol": "udp"} for r in OPEN], OPEN), guarded(), says="ingress of 988"),
)

PLAIN = (
    valid("FSX03", p2()),
    valid("FSX03", p1(perUnitStorageThroughput="200")),
    valid("FSX03", scratch()),
    valid("FSX04", p1()),
    valid("FSX05", p2()),
    valid("FSX05", fabric(500, 19200)),
    valid("FSX06", iops(36000)),
    valid("FSX09", p2()),
    valid("FSX09", p2(weeklyMaintenanceStartTime="", dailyAutomaticBackupStartTime="")),
    valid("FSX09", scratch(dailyAutomaticBackupStartTime="")),
    valid("FSX07", p2(dataCompressionType="")),
    valid("FSX08", p1(importPath="s3://bucket", autoImportPolicy="")),
    valid("DRA01", scratch()),
    invalid("DRA01", p1(), association(), says="scratch with Lustre 2.10"),
    valid("DRA02", p2()),
    invalid("DRA03", p2(), association(**events("autoImportPolicy", "new")), says="events[0] is new"),
    invalid("FSX10", scratch(subnetIds=["subnet-1", "subnet-2", "subnet-3"]), says="3 subnets"),
)

CASES = (*SHAPES, *LINKS, *NETWORK, *PLAIN)
