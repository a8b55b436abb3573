"""A volume of a file system that exists already, and the claim that jobs mount it by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_kubernetes.core.v1 import (
    CSIPersistentVolumeSourceArgs,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpecArgs,
    PersistentVolumeSpecArgs,
    VolumeResourceRequirementsArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra import labels
from infra.component import child_options, token

LUSTRE_DRIVER = "fsx.csi.aws.com"
EFS_DRIVER = "efs.csi.aws.com"

# A claim gets the whole volume that it names. The size it asks for is fixed: Kubernetes refuses to change it where no class made the
# volume, so a claim that asked for the capacity would stop the file system from growing.
_CLAIM_REQUEST = {"storage": "1Gi"}


@dataclass(frozen=True, kw_only=True)
class StaticVolumeArgs:
    """What a StaticVolume needs to know."""

    claim: str
    """Name of the claim, and part of the volume's."""
    namespace: Namespace
    """Namespace of the claim; a handle, because the claim goes away with it."""
    namespace_name: str
    """The namespace's name, as plain text: the volume is named after it."""
    driver: str
    """CSI driver that mounts the volume."""
    volume_handle: pulumi.Input[str]
    """What the driver mounts."""
    capacity_gib: int
    """Capacity that the volume states; EFS has none and takes any number."""
    volume_attributes: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """What else the driver needs."""
    mount_options: Sequence[str] = ()
    """Mount options. They stand on the volume: those of a class do nothing for a volume made by hand."""
    after: Sequence[pulumi.Resource] = ()
    """Without what a mount would hang."""


class StaticVolume(pulumi.ComponentResource):
    """A PersistentVolume, kept when its claim goes, and the one claim that may have it."""

    claim_name: pulumi.Output[str]

    def __init__(self, name: str, args: StaticVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("storage", "StaticVolume"), name, {"claim": args.claim, "driver": args.driver}, opts)
        volume = PersistentVolume(
            name,
            metadata=ObjectMetaArgs(name=f"{args.namespace_name}-{args.claim}", labels=labels.object_labels(args.claim)),
            spec=PersistentVolumeSpecArgs(
                capacity={"storage": f"{args.capacity_gib}Gi"},
                access_modes=["ReadWriteMany"],
                persistent_volume_reclaim_policy="Retain",
                storage_class_name="",
                mount_options=list(args.mount_options) or None,
                csi=CSIPersistentVolumeSourceArgs(
                    driver=args.driver, volume_handle=args.volume_handle, volume_attributes=dict(args.volume_attributes) or None
                ),
            ),
            # The ids say that the file system is there, not that its ports are open.
            opts=child_options(self, depends_on=args.after),
        )
        claim = PersistentVolumeClaim(
            name,
            metadata=ObjectMetaArgs(name=args.claim, namespace=args.namespace.metadata.name, labels=labels.object_labels(args.claim)),
            spec=PersistentVolumeClaimSpecArgs(
                access_modes=["ReadWriteMany"],
                storage_class_name="",
                volume_name=volume.metadata.name,
                resources=VolumeResourceRequirementsArgs(requests=_CLAIM_REQUEST),
            ),
            # A claim that a running pod mounts is not deleted before the pod: the namespace takes both.
            opts=child_options(self, deleted_with=args.namespace),
        )
        self.claim_name = claim.metadata.name.apply(lambda made: made or "")
        self.register_outputs({"claim_name": self.claim_name})
