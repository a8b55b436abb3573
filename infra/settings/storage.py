"""Settings of the file systems and the checkpoint bucket. Each kind of Lustre has only the keys it really has."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from infra.settings.base import DnsName, Settings
from infra.settings.network import ZoneName

Event = Literal["NEW", "CHANGED", "DELETED"]
# Lustre 2.15 takes data repository associations and the metadata configuration; 2.10 takes neither.
LUSTRE_VERSION = "2.15"
_HDD_STEP_GIB = {12: 6000, 40: 1800}
_LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"


def _check_ssd_capacity(value: int) -> int:
    if value != 1200 and (value <= 0 or value % 2400):
        raise ValueError("SSD capacity is 1200 or a multiple of 2400 GiB (rule FSX04)")
    return value


class RepositorySettings(Settings):
    """A data repository association: a folder of the file system that mirrors a prefix of a bucket."""

    path: str = Field(pattern=r"^/([A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)?$")
    """Folder in the file system, for instance /data."""
    bucket_uri: str = Field(pattern=r"^s3://[a-z0-9.-]{3,63}(/.*)?$")
    """Prefix in S3, for instance s3://my-bucket/data."""
    auto_import: tuple[Event, ...] = ("NEW", "CHANGED")
    """Changes in S3 that appear in the file system."""
    auto_export: tuple[Event, ...] = ("NEW", "CHANGED")
    """Changes in the file system that are written to S3."""


class _Lustre(Settings):
    """What every kind of Lustre file system has."""

    zone: ZoneName
    """Availability zone of the file system: that of the pool that uses it."""
    storage_capacity_gib: int
    """Capacity in GiB."""
    compression: Literal["NONE", "LZ4"] = "LZ4"
    """Compression of what is stored."""
    repositories: tuple[RepositorySettings, ...] = Field(default=(), max_length=8)
    """Associations with S3."""

    @field_validator("repositories")
    @classmethod
    def _check_repositories(cls, value: tuple[RepositorySettings, ...]) -> tuple[RepositorySettings, ...]:
        paths = [f"{repository.path.rstrip('/')}/" for repository in value]
        for index, path in enumerate(paths):
            for other in paths[index + 1 :]:
                if path.startswith(other) or other.startswith(path):
                    raise ValueError(f"paths {path} and {other} overlap; each folder may belong to one association (rule DRA02)")
        uris = [repository.bucket_uri.rstrip("/") for repository in value]
        if len(set(uris)) != len(uris):
            raise ValueError("names the same S3 prefix twice (rule DRA02)")
        return value


class Scratch2Settings(_Lustre):
    """Lustre without replication: for data that exists elsewhere."""

    foreign_keys: ClassVar[dict[str, str]] = {
        "perUnitStorageThroughput": "SCRATCH_2 has a fixed throughput: leave the key out, or choose PERSISTENT_2 with 125, 250, 500"
        f" or 1000 (rule FSX02, {_LUSTRE})",
        "backupRetentionDays": f"SCRATCH_2 has no backups: leave the key out, or choose PERSISTENT_2 (rule FSX09, {_LUSTRE})",
        "kmsKeyArn": f"SCRATCH_2 takes no key: leave it out, or choose PERSISTENT_2 (rule FSX09, {_LUSTRE})",
    }

    deployment_type: Literal["SCRATCH_2"]
    """Kind of file system."""
    claim: DnsName = "scratch"
    """Name of the volume claim that jobs mount it by."""

    _capacity = field_validator("storage_capacity_gib")(_check_ssd_capacity)

    @field_validator("claim")
    @classmethod
    def _check_claim(cls, value: str) -> str:
        if value == "checkpoints":
            raise ValueError("checkpoints must not live on SCRATCH_2: one lost server loses them all; choose PERSISTENT_2 (rule FSX12)")
        return value


class _Persistent(_Lustre):
    """What both kinds of replicated Lustre have."""

    claim: DnsName = "checkpoints"
    """Name of the volume claim that jobs mount it by."""
    backup_retention_days: int = Field(default=7, ge=0, le=90)
    """Days that daily backups are kept; 0 for none."""
    kms_key_arn: str | None = None
    """ARN of the KMS key that encrypts it, or the account's own key for FSx."""


class Persistent1Settings(_Persistent):
    """Replicated Lustre of the first generation, on SSD or HDD."""

    deployment_type: Literal["PERSISTENT_1"]
    """Kind of file system."""
    storage_type: Literal["SSD", "HDD"] = "SSD"
    """Kind of disk."""
    per_unit_storage_throughput: Literal[12, 40, 50, 100, 200]
    """MB/s per TiB: 50, 100 or 200 on SSD, 12 or 40 on HDD."""
    drive_cache: Literal["NONE", "READ"] | None = None
    """SSD read cache of an HDD file system; HDD needs it stated."""

    @model_validator(mode="after")
    def _check_disk(self) -> "Persistent1Settings":
        throughput, capacity = self.per_unit_storage_throughput, self.storage_capacity_gib
        allowed = (50, 100, 200) if self.storage_type == "SSD" else (12, 40)
        if throughput not in allowed:
            raise ValueError(
                f"perUnitStorageThroughput {throughput} is not one of PERSISTENT_1 {self.storage_type}: "
                f"{', '.join(map(str, allowed))} (rule FSX03, {_LUSTRE})"
            )
        if self.storage_type == "SSD":
            _check_ssd_capacity(capacity)
            if self.drive_cache:
                raise ValueError("driveCache belongs to HDD file systems (rule FSX07)")
        elif capacity <= 0 or capacity % _HDD_STEP_GIB[throughput]:
            raise ValueError(f"HDD capacity at {throughput} MB/s per TiB is a multiple of {_HDD_STEP_GIB[throughput]} GiB (rule FSX04)")
        elif self.drive_cache is None:
            raise ValueError("driveCache is required on HDD; allowed: NONE, READ (rule FSX07)")
        return self


class Persistent2Settings(_Persistent):
    """Replicated Lustre of the second generation, on SSD: the choice for checkpoints."""

    deployment_type: Literal["PERSISTENT_2"]
    """Kind of file system."""
    per_unit_storage_throughput: Literal[125, 250, 500, 1000]
    """MB/s per TiB."""
    metadata_iops: int | None = None
    """Provisioned metadata IOPS: 1500, 3000, 6000 or a multiple of 12000 up to 192000. Unset: what comes with the capacity."""

    _capacity = field_validator("storage_capacity_gib")(_check_ssd_capacity)

    @field_validator("metadata_iops")
    @classmethod
    def _check_iops(cls, value: int | None) -> int | None:
        if value is not None and value not in (1500, 3000, 6000) and (value % 12000 or not 0 < value <= 192000):
            raise ValueError("allowed: 1500, 3000, 6000, or a multiple of 12000 up to 192000 (rule FSX06)")
        return value


LustreSettings = Annotated[Scratch2Settings | Persistent1Settings | Persistent2Settings, Field(discriminator="deployment_type")]


class AccessPointSettings(Settings):
    """A folder of the EFS file system that one team reaches, always as the same user."""

    name: DnsName
    """Name of the access point and of the volume claim that jobs mount it by."""
    path: str = Field(pattern=r"^(/[A-Za-z0-9._-]+){1,4}$", max_length=100)
    """Folder, at most four levels deep."""
    uid: int = Field(default=1000, ge=1, le=4294967295)
    """User id that every access is made as."""
    gid: int = Field(default=1000, ge=1, le=4294967295)
    """Group id that every access is made as."""
    permissions: str = Field(default="0750", pattern=r"^0?[0-7]{3}$")
    """Mode of the folder when it is made, octal."""


class EfsSettings(Settings):
    """An EFS file system with a mount target in every zone."""

    throughput_mode: Literal["elastic", "bursting", "provisioned"] = "elastic"
    """How throughput is paid for."""
    provisioned_mibps: float | None = Field(default=None, ge=1, le=3414)
    """Throughput in MiB/s; with throughputMode provisioned, and only then."""
    kms_key_arn: str | None = None
    """ARN of the KMS key that encrypts it, or the account's own key for EFS."""
    access_points: tuple[AccessPointSettings, ...] = Field(min_length=1)
    """Folders for teams."""

    @model_validator(mode="after")
    def _check_throughput(self) -> "EfsSettings":
        if (self.throughput_mode == "provisioned") != (self.provisioned_mibps is not None):
            raise ValueError("provisionedMibps is required with throughputMode provisioned, and forbidden with the others (rule EFS01)")
        names = [point.name for point in self.access_points]
        if len(set(names)) != len(names):
            raise ValueError("accessPoints has two of the same name")
        return self


class BucketSettings(Settings):
    """The bucket that checkpoints are copied to. It keeps versions, refuses plain HTTP and is never emptied by a destroy."""

    noncurrent_days: int = Field(default=30, ge=1, le=3650)
    """Days that overwritten or deleted objects are kept."""


class StorageSettings(Settings):
    """File systems and bucket; leave one out to do without it."""

    lustre: LustreSettings | None = None
    """FSx for Lustre."""
    efs: EfsSettings | None = None
    """EFS."""
    bucket: BucketSettings | None = BucketSettings()
    """Checkpoint bucket."""
