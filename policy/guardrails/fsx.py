"""FSx for Lustre: the shapes that the API accepts, one check for each rule, for file systems and for classes of the CSI driver."""

import re
from collections.abc import Callable

from guardrails.facts import load, lustre_throughput
from guardrails.lustre import DEFAULT_DEPLOYMENT, LUSTRE_TYPES, SCRATCH, TIERING, Shape, capacity_grid, flag, grid_words, on_grid, shape_of
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import LUSTRE

_LUSTRE = frozenset(LUSTRE_TYPES)
_DAILY = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
_WEEKLY = re.compile(rf"[1-7]:{_DAILY.pattern}")


def deployment_type(shape: Shape, report: Report) -> None:
    """FSX01: the deployment type is one there is, and said where a file system has settings of its own."""
    place = shape.at("deploymentType")
    known = load("lustre")["deployments"]
    if shape.dynamic and not place.text():
        # The driver sends none, and documents the default that FSx then takes.
        return
    if not place.present:
        # Beside a backupId too: the provider sends its default, whatever the backup is of.
        report.refuse(shape.resource, place, allowed=", ".join(known), found=f"unset (FSx makes {DEFAULT_DEPLOYMENT})")
    elif place.text() not in known:
        report.refuse(shape.resource, place, allowed=", ".join(known))


def scratch_throughput(shape: Shape, report: Report) -> None:
    """FSX02: scratch takes no throughput."""
    throughput = shape.at("perUnitStorageThroughput")
    if throughput.present and shape.deployment in SCRATCH:
        report.refuse(shape.resource, throughput, allowed=f"unset, because deploymentType is {shape.deployment_words}")


def persistent_throughput(shape: Shape, report: Report) -> None:
    """FSX03: persistent storage has a throughput of its own set."""
    throughput = shape.at("perUnitStorageThroughput")
    if shape.storage == TIERING:
        if throughput.present:
            allowed = f"unset, because storageType is {TIERING} (it takes throughputCapacity)"
            report.refuse(shape.resource, throughput, allowed=allowed)
        return
    legal = lustre_throughput().get(shape.kind)
    if legal is not None and throughput.integer() not in legal:
        numbers = ", ".join(str(number) for number in legal)
        report.refuse(shape.resource, throughput, allowed=f"{numbers} MB/s per TiB for {shape.deployment} on {shape.storage}")


def capacity(shape: Shape, report: Report) -> None:
    """FSX04: the capacity is on the grid of its kind."""
    place = shape.at("storageCapacity")
    if shape.storage == TIERING:
        if place.present:
            report.refuse(shape.resource, place, allowed=f"unset, because {TIERING} grows by itself")
        return
    if not place.present:
        if not shape.at("backupId").present:
            # ACK's controller makes none of a backup.
            report.refuse(shape.resource, place, allowed=f"a capacity in GiB{'' if shape.is_object else ', because no backupId gives one'}")
        return
    grid = capacity_grid(shape)
    if grid is None:
        return
    size = place.integer()
    if size is None or not on_grid(size, grid):
        report.refuse(shape.resource, place, allowed=f"{grid_words(grid)} GiB for {shape.deployment} on {shape.storage}")


def fabric(shape: Shape, report: Report) -> None:
    """FSX05: a file system with EFA is PERSISTENT_2 with metadata configuration and a group; its capacity suits its throughput."""
    efa = shape.at("efaEnabled")
    if flag(efa) is not True:
        return
    if shape.deployment != "PERSISTENT_2":
        report.refuse(shape.resource, efa, allowed=f"only with PERSISTENT_2 (deploymentType is {shape.deployment_words})")
    if not shape.metadata.present:
        report.refuse(shape.resource, shape.metadata, allowed="set, because efaEnabled is true")
    groups = shape.at("securityGroupIds")
    if not shape.dynamic and groups.value in (None, []):
        report.refuse(shape.resource, groups, allowed="a group that is open to itself for all protocols, because efaEnabled is true")
    step = load("lustre")["efaStep"].get(shape.at("perUnitStorageThroughput").text())
    size = shape.at("storageCapacity").integer()
    if step and size and size % step:
        # The guide states the steps where it speaks of growing; at creation they are likely, not certain.
        report.advise(shape.resource, shape.at("storageCapacity"), allowed=f"a multiple of {step} GiB with EFA at this throughput")


def metadata(shape: Shape, report: Report) -> None:
    """FSX06: metadata operations and Lustre version suit the kind."""
    with report.part():
        _metadata_configuration(shape, report)
    with report.part():
        _version(shape, report)


def _metadata_configuration(shape: Shape, report: Report) -> None:
    place, iops = shape.metadata, shape.metadata_iops
    if not place.present:
        if iops.present:
            report.refuse(shape.resource, iops, allowed="only with a metadata mode of USER_PROVISIONED")
        return
    if shape.deployment != "PERSISTENT_2":
        report.refuse(shape.resource, place, allowed=f"unset, because deploymentType is {shape.deployment_words}", found="set")
        return
    mode = shape.metadata_mode
    if mode.text() == "AUTOMATIC":
        if iops.present:
            report.refuse(shape.resource, iops, allowed="unset, because the mode is AUTOMATIC")
    elif mode.text() == "USER_PROVISIONED":
        _iops(shape, iops, report)
    else:
        report.refuse(shape.resource, mode, allowed="AUTOMATIC or USER_PROVISIONED")


def _iops(shape: Shape, place: Node, report: Report) -> None:
    grid = load("lustre")["metadataIops"]
    count = place.integer()
    if count is None or not on_grid(count, grid) or count > grid["most"]:
        report.refuse(shape.resource, place, allowed=f"{grid_words(grid)} up to {grid['most']}")


def _version(shape: Shape, report: Report) -> None:
    place = shape.at("fileSystemTypeVersion")
    if not place.present:
        return
    version, known = place.text(), load("lustre")["versions"]
    if version not in known:
        report.refuse(shape.resource, place, allowed=", ".join(known))
    elif shape.deployment == "PERSISTENT_2" and version == "2.10":
        report.refuse(shape.resource, place, allowed="2.12 or 2.15, because deploymentType is PERSISTENT_2")
    elif shape.metadata.present and version != "2.15":
        report.refuse(shape.resource, place, allowed="2.15, because there is a metadata configuration")


def storage_type(shape: Shape, report: Report) -> None:
    """FSX07: disks and drive cache suit the deployment type."""
    with report.part():
        _compression(shape, report)
    place, cache = shape.at("storageType"), shape.at("driveCacheType")
    known = load("lustre")["storage"]
    if shape.storage not in known:
        report.refuse(shape.resource, place, allowed=", ".join(known))
    elif shape.storage == "HDD":
        if shape.deployment != "PERSISTENT_1":
            report.refuse(
                shape.resource, place, allowed=f"SSD, because deploymentType is {shape.deployment_words} (HDD goes with PERSISTENT_1)"
            )
        if cache.text() not in ("READ", "NONE"):
            report.refuse(shape.resource, cache, allowed="READ or NONE, because storageType is HDD")
    elif cache.present:
        report.refuse(shape.resource, cache, allowed=f"unset, because storageType is {shape.storage}")
    if shape.storage == TIERING:
        _tiering(shape, report)
    elif shape.storage in known:
        for key in ("throughputCapacity", "dataReadCacheConfiguration"):
            if shape.at(key).present:
                report.advise(shape.resource, shape.at(key), allowed=f"unset, because storageType is {shape.storage}")


def _compression(shape: Shape, report: Report) -> None:
    place, known = shape.at("dataCompressionType"), load("lustre")["compressions"]
    if place.text() not in ("", *known):
        report.refuse(shape.resource, place, allowed=" or ".join(known))


def _tiering(shape: Shape, report: Report) -> None:
    if shape.dynamic:
        report.refuse(shape.resource, shape.at("storageType"), allowed="SSD or HDD: the driver can't pass what tiering needs")
        return
    if shape.deployment != "PERSISTENT_2":
        report.refuse(shape.resource, shape.at("deploymentType"), allowed=f"PERSISTENT_2, because storageType is {TIERING}")
    for key in ("dataReadCacheConfiguration", "metadataConfiguration"):
        if not shape.at(key).present:
            report.refuse(shape.resource, shape.at(key), allowed=f"set, because storageType is {TIERING}")
    with report.part():
        _read_cache(shape, report)
    place, facts = shape.at("throughputCapacity"), load("lustre")
    step, most = facts["tieringStep"], facts["tieringMost"]
    rate = place.integer()
    if rate is None or rate <= 0 or rate % step or rate > most:
        report.refuse(shape.resource, place, allowed=f"a multiple of {step} MB/s up to {most}")


def _read_cache(shape: Shape, report: Report) -> None:
    cache, facts = shape.at("dataReadCacheConfiguration"), load("lustre")
    if not cache.present:
        return
    mode, place = cache.at("sizingMode"), shape.read_cache_size
    if mode.text() not in facts["readCaches"]:
        report.refuse(shape.resource, mode, allowed=", ".join(facts["readCaches"]))
    if mode.text() != "USER_PROVISIONED":
        return
    size = place.integer()
    if size is None or size <= 0:
        report.refuse(shape.resource, place, allowed="a size in GiB, because sizingMode is USER_PROVISIONED")
        return
    rate, bounds = shape.at("throughputCapacity").integer() or 0, facts["readCachePer1000"]
    least, most = (rate * bounds[end] // 1000 for end in ("least", "most"))
    if rate > 0 and not least <= size <= most:
        report.refuse(shape.resource, place, allowed=f"{least} to {most} GiB at {rate} MB/s")


def repository_paths(shape: Shape, report: Report) -> None:
    """FSX08, first part: the older link to S3 belongs to scratch and PERSISTENT_1, and to one bucket."""
    come, go = shape.at("importPath"), shape.at("exportPath")
    others = [shape.at(key) for key in ("autoImportPolicy", "importedFileChunkSize")]
    given = [place for place in (come, go, *others) if place.present]
    if given and shape.deployment == "PERSISTENT_2":
        for place in given:
            report.refuse(shape.resource, place, allowed="unset on PERSISTENT_2, which takes data repository associations")
        return
    if not come.present:
        for place in given:
            report.refuse(shape.resource, place, allowed=f"only beside {come.path.rpartition('.')[2]}")
        return
    policy, known = shape.at("autoImportPolicy"), load("lustre")["importPolicies"]
    if policy.text() not in ("", *known):
        report.refuse(shape.resource, policy, allowed=", ".join(known))
    for place in (come, go):
        if place.present and not in_bucket(place.text()):
            report.refuse(shape.resource, place, allowed="a path that begins with s3:// and a bucket")
    if go.present and bucket_of(go.text()) != bucket_of(come.text()):
        report.refuse(shape.resource, go, allowed=f"a path in the bucket of the import path, {bucket_of(come.text())}")


def in_bucket(path: str) -> bool:
    """Whether a path is one of S3 and names a bucket."""
    return path.startswith("s3://") and bool(bucket_of(path))


def bucket_of(path: str) -> str:
    """The bucket of a path such as s3://bucket/prefix."""
    return path.removeprefix("s3://").partition("/")[0]


def _times(shape: Shape, report: Report) -> None:
    for key, pattern, allowed in (
        ("weeklyMaintenanceStartTime", _WEEKLY, "d:HH:MM, d from 1 for Monday to 7 for Sunday, such as 7:05:00"),
        ("dailyAutomaticBackupStartTime", _DAILY, "HH:MM, such as 05:00"),
    ):
        with report.part():
            place = shape.at(key)
            # YAML takes a time without quotes for a number.
            if place.text() and not pattern.fullmatch(place.text()):
                report.refuse(shape.resource, place, allowed=allowed)


def backups(shape: Shape, report: Report) -> None:
    """FSX09: keys and backups are for persistent file systems without a link of the older kind, and times are written as FSx does."""
    _times(shape, report)
    most = load("lustre")["backupDaysMost"]
    days, start = shape.at("automaticBackupRetentionDays"), shape.at("dailyAutomaticBackupStartTime")
    if shape.deployment in SCRATCH:
        kept = [shape.at("kmsKeyId"), *([days] if days.integer() != 0 else []), *([start] if start.text() else [])]
        for place in kept:
            # A key that the program makes is no less one before it is known.
            if not place.known or place.text():
                report.refuse(shape.resource, place, allowed=f"unset, because deploymentType is {shape.deployment_words}")
        return
    count = days.integer()
    if days.present and (count is None or not 0 <= count <= most):
        report.refuse(shape.resource, days, allowed=f"0 to {most} days")
    if count and shape.at("importPath").present:
        report.refuse(shape.resource, days, allowed="0, because an import path links the file system to S3")
    if start.text() and not count:
        report.refuse(shape.resource, start, allowed="only with automaticBackupRetentionDays above 0")


SHAPE_CHECKS = (
    deployment_type,
    scratch_throughput,
    persistent_throughput,
    fabric,
    metadata,
    storage_type,
    repository_paths,
    backups,
)
"""What holds for every way to make a file system; a capacity comes with the claim where the driver makes it."""


def _of(check: Callable[[Shape, Report], None]) -> Callable[[Resource, Report], None]:
    """The check as a rule over whatever is a Lustre file system."""

    def judge(resource: Resource, report: Report) -> None:
        shape = shape_of(resource)
        if shape is not None:
            check(shape, report)

    return judge


def _lustre(**properties: object) -> tuple[Example, ...]:
    return (Example(LUSTRE, properties, name="scratch"),)


RULES = (
    Rule(
        id="FSX01",
        name="lustre-require-deployment-type",
        title="A Lustre file system says its deployment type",
        types=_LUSTRE,
        check=_of(deployment_type),
        why="FSx makes SCRATCH_1: no encryption in transit, no key, no associations with S3, and it can't grow.",
        fix="set deploymentType to SCRATCH_2 for scratch space or PERSISTENT_2 for data that must last.",
        source="botocore 1.44.8 fsx model; aws-fsx-csi-driver 1.9.0; terraform-provider-aws lustre_file_system.go (backups)",
        valid=_lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=250, storageCapacity=2400),
        invalid=_lustre(storageCapacity=2400),
    ),
    Rule(
        id="FSX02",
        name="lustre-disallow-scratch-throughput",
        title="A scratch Lustre file system takes no throughput setting",
        types=_LUSTRE,
        check=_of(scratch_throughput),
        why="FSx refuses the file system with BadRequest after the rest is made.",
        fix="remove perUnitStorageThroughput, or choose PERSISTENT_2 with 125, 250, 500 or 1000.",
        source="botocore 1.44.8 fsx model; kubernetes-sigs/aws-fsx-csi-driver#287",
        valid=_lustre(deploymentType="SCRATCH_2", storageCapacity=1200),
        invalid=_lustre(deploymentType="SCRATCH_2", storageCapacity=1200, perUnitStorageThroughput=200),
    ),
    Rule(
        id="FSX03",
        name="lustre-require-legal-throughput",
        title="A persistent Lustre file system needs a throughput of its type",
        types=_LUSTRE,
        check=_of(persistent_throughput),
        why="FSx refuses the file system when it is created; the provider checks one flat set for all types.",
        fix="set perUnitStorageThroughput to one of the values allowed for this deployment and storage type.",
        source="botocore 1.44.8 fsx model; aws/aws-cdk#18626",
        valid=_lustre(deploymentType="PERSISTENT_1", storageCapacity=1200, perUnitStorageThroughput=100),
        invalid=_lustre(deploymentType="PERSISTENT_2", storageCapacity=1200, perUnitStorageThroughput=200),
    ),
    Rule(
        id="FSX04",
        name="lustre-require-legal-capacity",
        title="The capacity of a Lustre file system is a size of its kind",
        types=_LUSTRE,
        check=_of(capacity),
        why="FSx refuses the file system when it is created; the provider only checks that it is at least 1200.",
        fix="choose a capacity in GiB that this deployment and storage type has.",
        source="botocore 1.44.8 fsx model, CreateFileSystem",
        valid=_lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=250, storageCapacity=4800),
        invalid=_lustre(deploymentType="PERSISTENT_2", perUnitStorageThroughput=250, storageCapacity=3600),
    ),
    Rule(
        id="FSX05",
        name="lustre-require-efa-shape",
        title="A Lustre file system with EFA is PERSISTENT_2 with metadata configuration and a group of its own",
        types=_LUSTRE,
        check=_of(fabric),
        why="FSx refuses it, and neither efaEnabled nor the throughput can be changed afterwards.",
        fix="use PERSISTENT_2, set metadataConfiguration.mode to AUTOMATIC, and name a group that is open to itself.",
        source="pulumi-aws 7.51.1 LustreFileSystem.efaEnabled; FSx for Lustre guide: increase storage capacity",
        valid=_lustre(
            deploymentType="PERSISTENT_2",
            efaEnabled=True,
            perUnitStorageThroughput=1000,
            storageCapacity=4800,
            metadataConfiguration={"mode": "AUTOMATIC"},
            securityGroupIds=["sg-0123456789abcdef0"],
        ),
        invalid=_lustre(deploymentType="PERSISTENT_2", efaEnabled=True, perUnitStorageThroughput=1000, storageCapacity=4800),
    ),
    Rule(
        id="FSX06",
        name="lustre-require-legal-metadata",
        title="Metadata operations and Lustre version suit the deployment type",
        types=_LUSTRE,
        check=_of(metadata),
        why="FSx refuses the file system when it is created.",
        fix="use AUTOMATIC without iops, or USER_PROVISIONED with a legal number, on PERSISTENT_2 with Lustre 2.15.",
        source="botocore 1.44.8 fsx model, CreateFileSystemLustreMetadataConfiguration and FileSystemTypeVersion",
        valid=_lustre(deploymentType="PERSISTENT_2", metadataConfiguration={"mode": "USER_PROVISIONED", "iops": 24000}),
        invalid=_lustre(deploymentType="PERSISTENT_2", metadataConfiguration={"mode": "USER_PROVISIONED", "iops": 5000}),
    ),
    Rule(
        id="FSX07",
        name="lustre-require-legal-storage",
        title="Disks, drive cache and tiering suit the deployment type, and compression is one there is",
        types=_LUSTRE,
        check=_of(storage_type),
        why="FSx refuses the file system when it is created.",
        fix="use HDD only with PERSISTENT_1 and a driveCacheType, tiering only with all that it requires, and compression NONE or LZ4.",
        source="botocore 1.44.8 fsx model, LustreReadCacheConfiguration among it; pulumi-aws 7.51.1 LustreFileSystem",
        valid=_lustre(
            deploymentType="PERSISTENT_1", storageType="HDD", driveCacheType="READ", perUnitStorageThroughput=12, storageCapacity=6000
        ),
        invalid=_lustre(deploymentType="PERSISTENT_2", storageType="HDD", perUnitStorageThroughput=125, storageCapacity=1200),
    ),
    Rule(
        id="FSX09",
        name="lustre-disallow-scratch-backups",
        title="Keys and backups belong to persistent file systems, and times are written as FSx writes them",
        types=_LUSTRE,
        check=_of(backups),
        why="FSx refuses the file system when it is created, so data that should be backed up has no home.",
        fix="remove the setting, or choose a persistent type; keep backups for 0 to 90 days; write times as HH:MM, of a week as d:HH:MM.",
        source="botocore 1.44.8 fsx model; aws-parallelcluster FsxPersistentOptionsValidator",
        valid=_lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput=100, automaticBackupRetentionDays=7),
        invalid=_lustre(deploymentType="SCRATCH_2", storageCapacity=1200, kmsKeyId="arn:aws:kms:us-east-1:123456789012:key/k"),
    ),
)
