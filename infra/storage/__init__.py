"""Storage: Lustre, EFS, the checkpoint bucket, and the volumes that jobs mount."""

from infra.storage.bucket import CheckpointBucket, CheckpointBucketArgs
from infra.storage.claims import StaticVolume, StaticVolumeArgs
from infra.storage.efs import Efs, EfsArgs
from infra.storage.lustre import Lustre, LustreArgs
from infra.storage.volumes import JobVolumes, JobVolumesArgs

__all__ = [
    "CheckpointBucket",
    "CheckpointBucketArgs",
    "Efs",
    "EfsArgs",
    "JobVolumes",
    "JobVolumesArgs",
    "Lustre",
    "LustreArgs",
    "StaticVolume",
    "StaticVolumeArgs",
]
