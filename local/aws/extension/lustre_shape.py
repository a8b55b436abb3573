"""Which Lustre file systems FSx makes: legal combinations of type, storage, throughput, capacity, metadata and S3 links.

Sources: botocore fsx 2018-03-01 (members of CreateFileSystem); FSx for Lustre user guide, "Deployment and storage class options", "Managing
storage capacity" (EFA grid). Each check takes a request as FSx names it and raises the error that FSx answers.
"""

from collections.abc import Callable

from local.aws.extension.hooks import Params, Refusal

SCRATCH = ("SCRATCH_1", "SCRATCH_2")
TYPES = (*SCRATCH, "PERSISTENT_1", "PERSISTENT_2")
# MB/s per TiB by type and storage.
THROUGHPUT = {
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
# GiB steps with EFA by throughput.
EFA_STEPS = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
METADATA_IOPS = (1500, 3000, 6000, *range(12000, 192001, 12000))
IMPORT_FIELDS = ("ImportPath", "ExportPath", "ImportedFileChunkSize", "AutoImportPolicy")


def check(given: Params) -> None:
    """Refuse what FSx refuses, with FSx's error code. `given` is a CreateFileSystem request."""
    lustre = given.get("LustreConfiguration") or {}
    for rule in RULES:
        rule(given, lustre)


def deployment_type(given: Params) -> str:
    """The type asked for; the API's default is SCRATCH_1."""
    return (given.get("LustreConfiguration") or {}).get("DeploymentType") or "SCRATCH_1"


def storage_type(given: Params) -> str:
    """SSD, HDD or INTELLIGENT_TIERING; the API's default is SSD."""
    return given.get("StorageType") or "SSD"


def _bad(message: str) -> Refusal:
    return Refusal("BadRequest", message)


def _check_types(given: Params, lustre: Params) -> None:
    kind, storage = deployment_type(given), storage_type(given)
    if kind not in TYPES:
        raise _bad(f"DeploymentType {kind} is not valid. Valid values are {', '.join(TYPES)}.")
    if storage not in ("SSD", "HDD", "INTELLIGENT_TIERING"):
        raise _bad(f"StorageType {storage} is not valid. Valid values are SSD, HDD, INTELLIGENT_TIERING.")
    if storage == "HDD" and kind != "PERSISTENT_1":
        raise _bad(f"StorageType HDD is supported on PERSISTENT_1 only, not on {kind}.")
    if storage == "HDD" and lustre.get("DriveCacheType") not in ("READ", "NONE"):
        raise _bad("DriveCacheType must be READ or NONE when StorageType is HDD.")
    if storage != "HDD" and lustre.get("DriveCacheType") not in (None, "NONE"):
        raise _bad(f"DriveCacheType can't be set when StorageType is {storage}.")


def _check_throughput(given: Params, lustre: Params) -> None:
    kind, storage, asked = deployment_type(given), storage_type(given), lustre.get("PerUnitStorageThroughput")
    if kind in SCRATCH or storage == "INTELLIGENT_TIERING":
        if asked is not None:
            raise Refusal(
                "InvalidPerUnitStorageThroughput",
                f"PerUnitStorageThroughput ({asked}) can't be specified for {kind} with storage type {storage}.",
            )
        return
    allowed = THROUGHPUT[(kind, storage)]
    if asked not in allowed:
        fault = "is required" if asked is None else f"({asked}) is not valid"
        listed = ", ".join(map(str, allowed))
        raise Refusal(
            "InvalidPerUnitStorageThroughput", f"PerUnitStorageThroughput {fault} for {kind} {storage}. Valid values are {listed}."
        )


def _check_capacity(given: Params, lustre: Params) -> None:
    kind, storage, capacity = deployment_type(given), storage_type(given), given.get("StorageCapacity")
    if storage == "INTELLIGENT_TIERING":
        if capacity is not None:
            raise _bad("StorageCapacity can't be specified with the storage type INTELLIGENT_TIERING.")
        return
    if capacity is None:
        raise _bad("StorageCapacity is required.")
    if kind == "SCRATCH_1":
        fits, legal = capacity in (1200, 2400) or (capacity >= 3600 and capacity % 3600 == 0), "1200, 2400 and increments of 3600"
    elif storage == "HDD":
        step = 6000 if lustre.get("PerUnitStorageThroughput") == 12 else 1800
        fits, legal = capacity >= step and capacity % step == 0, f"increments of {step}"
    else:
        fits, legal = capacity == 1200 or (capacity >= 2400 and capacity % 2400 == 0), "1200 and increments of 2400"
    if not fits:
        raise _bad(f"StorageCapacity ({capacity} GiB) is not valid for {kind} {storage}. Valid values are {legal}.")


def _check_tiering(given: Params, lustre: Params) -> None:
    throughput = lustre.get("ThroughputCapacity")
    if storage_type(given) != "INTELLIGENT_TIERING":
        if throughput is not None or lustre.get("DataReadCacheConfiguration"):
            raise _bad("ThroughputCapacity and DataReadCacheConfiguration need the storage type INTELLIGENT_TIERING.")
        return
    if deployment_type(given) != "PERSISTENT_2":
        raise _bad("The storage type INTELLIGENT_TIERING is supported on PERSISTENT_2 only.")
    for field in ("ThroughputCapacity", "DataReadCacheConfiguration", "MetadataConfiguration"):
        if not lustre.get(field):
            raise _bad(f"{field} is required with the storage type INTELLIGENT_TIERING.")
    if not throughput or throughput % 4000:
        raise _bad(f"ThroughputCapacity ({throughput}) is not valid. Valid values are increments of 4000.")


def _check_efa(given: Params, lustre: Params) -> None:
    if not lustre.get("EfaEnabled"):
        return
    if deployment_type(given) != "PERSISTENT_2" or not lustre.get("MetadataConfiguration"):
        raise _bad("EfaEnabled needs DeploymentType PERSISTENT_2 and a MetadataConfiguration.")
    throughput, capacity = lustre.get("PerUnitStorageThroughput") or 0, given.get("StorageCapacity") or 0
    step = EFA_STEPS.get(throughput)
    if step and capacity % step:
        raise _bad(
            f"StorageCapacity ({capacity} GiB) is not valid with EFA at {throughput} MB/s per TiB. Valid values are increments of {step}."
        )


def _check_metadata(given: Params, lustre: Params) -> None:
    metadata, version = lustre.get("MetadataConfiguration"), given.get("FileSystemTypeVersion")
    if version not in (None, "2.10", "2.12", "2.15"):
        raise _bad(f"FileSystemTypeVersion {version} is not valid. Valid values are 2.10, 2.12, 2.15.")
    if deployment_type(given) == "PERSISTENT_2" and version == "2.10":
        raise _bad("PERSISTENT_2 supports Lustre 2.12 and 2.15 only.")
    if not metadata:
        return
    mode, iops = metadata.get("Mode"), metadata.get("Iops")
    if deployment_type(given) != "PERSISTENT_2":
        raise _bad("MetadataConfiguration is supported on PERSISTENT_2 only.")
    if version not in (None, "2.15"):
        raise _bad("MetadataConfiguration needs Lustre 2.15.")
    if mode not in ("AUTOMATIC", "USER_PROVISIONED"):
        raise _bad(f"Metadata mode {mode} is not valid. Valid values are AUTOMATIC, USER_PROVISIONED.")
    if mode == "AUTOMATIC" and iops is not None:
        raise _bad("Metadata Iops can't be specified in AUTOMATIC mode.")
    if mode == "USER_PROVISIONED" and iops not in METADATA_IOPS:
        raise _bad(f"Metadata Iops ({iops}) is not valid. Valid values are 1500, 3000, 6000, 12000 and multiples of 12000 up to 192000.")


def _check_imports(given: Params, lustre: Params) -> None:
    used = [field for field in IMPORT_FIELDS if lustre.get(field) is not None]
    if not used:
        return
    if deployment_type(given) == "PERSISTENT_2":
        raise _bad(f"{', '.join(used)} can't be specified for PERSISTENT_2. Use data repository associations.")
    source, target = lustre.get("ImportPath"), lustre.get("ExportPath")
    if not source:
        raise _bad(f"{', '.join(used)} can't be specified without ImportPath.")
    if not source.startswith("s3://"):
        raise Refusal("InvalidImportPath", f"ImportPath {source} is not valid: it must start with s3://.")
    if target is not None and target.split("/")[:3] != source.split("/")[:3]:
        raise Refusal("InvalidExportPath", f"ExportPath {target} is not valid: it must be in the S3 bucket of ImportPath {source}.")
    if lustre.get("AutomaticBackupRetentionDays"):
        raise _bad("Backups are not supported on a file system that is linked to S3.")


def _check_protection(given: Params, lustre: Params) -> None:
    days, start, kind = lustre.get("AutomaticBackupRetentionDays"), lustre.get("DailyAutomaticBackupStartTime"), deployment_type(given)
    if kind in SCRATCH and given.get("KmsKeyId"):
        raise _bad(f"KmsKeyId can't be specified for {kind}.")
    if kind in SCRATCH and (days or start):
        raise _bad(f"Automatic backups are not supported on {kind}.")
    if days is not None and not 0 <= days <= 90:
        raise _bad(f"AutomaticBackupRetentionDays ({days}) is not valid. Valid values are 0 to 90.")
    if start and not days:
        raise _bad("DailyAutomaticBackupStartTime needs AutomaticBackupRetentionDays above 0.")


RULES: tuple[Callable[[Params, Params], None], ...] = (
    _check_types,
    _check_throughput,
    _check_tiering,
    _check_efa,
    _check_capacity,
    _check_metadata,
    _check_imports,
    _check_protection,
)
