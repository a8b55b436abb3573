"""The file systems of a platform and the volumes that jobs mount them by."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import Namespace

from infra.component import child_options, token
from infra.settings import EfsSettings, LustreSettings, StorageSettings
from infra.storage.claims import EFS_DRIVER, LUSTRE_DRIVER, StaticVolume, StaticVolumeArgs
from infra.storage.efs import Efs, EfsArgs
from infra.storage.lustre import Lustre, LustreArgs

# EFS has no capacity, and no claim limits it; the API wants a number.
_EFS_CLAIM_GIB = 1024


@dataclass(frozen=True, kw_only=True)
class JobVolumesArgs:
    """What JobVolumes needs to know."""

    settings: StorageSettings
    """Which file systems."""
    vpc_id: pulumi.Input[str]
    """The VPC."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """Private subnet by zone."""
    node_security_group_id: pulumi.Input[str]
    """Group of all nodes."""
    namespace: Namespace
    """Namespace of the jobs, which the claims go away with."""
    namespace_name: str
    """Its name, as plain text."""
    protect: bool
    """Whether Pulumi refuses to delete the file systems."""


class JobVolumes(pulumi.ComponentResource):
    """Lustre and EFS, as far as the settings ask for them, each with its volume claims."""

    file_system_ids: dict[str, pulumi.Output[str]]
    """Id by kind: lustre, efs."""
    claims: dict[str, pulumi.Output[str]]
    """Claim name by purpose."""

    def __init__(self, name: str, args: JobVolumesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        settings = args.settings
        kinds = [kind for kind, wanted in (("lustre", settings.lustre), ("efs", settings.efs)) if wanted]
        super().__init__(token("storage", "JobVolumes"), name, {"kinds": kinds}, opts)
        self.file_system_ids, self.claims = {}, {}
        if settings.lustre:
            self._create_lustre(name, args, settings.lustre)
        if settings.efs:
            self._create_efs(name, args, settings.efs)
        self.register_outputs({"file_system_ids": self.file_system_ids, "claims": self.claims})

    def _create_lustre(self, name: str, args: JobVolumesArgs, settings: LustreSettings) -> None:
        lustre = Lustre(
            f"{name}-lustre",
            LustreArgs(
                settings=settings,
                vpc_id=args.vpc_id,
                subnet_ids=args.subnet_ids,
                node_security_group_id=args.node_security_group_id,
                protect=args.protect,
            ),
            child_options(self),
        )
        self.file_system_ids["lustre"] = lustre.file_system_id
        volume = StaticVolumeArgs(
            claim=settings.claim,
            namespace=args.namespace,
            namespace_name=args.namespace_name,
            driver=LUSTRE_DRIVER,
            volume_handle=lustre.file_system_id,
            volume_attributes={"dnsname": lustre.dns_name, "mountname": lustre.mount_name},
            capacity_gib=settings.storage_capacity_gib,
            # Without it file locks fail, which frameworks take around caches and checkpoints.
            mount_options=["flock"],
            after=lustre.ready,
        )
        self.claims[settings.claim] = StaticVolume(f"{name}-{settings.claim}", volume, child_options(self)).claim_name

    def _create_efs(self, name: str, args: JobVolumesArgs, settings: EfsSettings) -> None:
        efs = Efs(
            f"{name}-efs",
            EfsArgs(
                settings=settings,
                vpc_id=args.vpc_id,
                subnet_ids=args.subnet_ids,
                node_security_group_id=args.node_security_group_id,
                protect=args.protect,
            ),
            child_options(self),
        )
        self.file_system_ids["efs"] = efs.file_system_id
        for point, access_point_id in efs.access_point_ids.items():
            volume = StaticVolumeArgs(
                claim=point,
                namespace=args.namespace,
                namespace_name=args.namespace_name,
                driver=EFS_DRIVER,
                volume_handle=pulumi.Output.concat(efs.file_system_id, "::", access_point_id),
                capacity_gib=_EFS_CLAIM_GIB,
                after=efs.ready,
            )
            self.claims[point] = StaticVolume(f"{name}-{point}", volume, child_options(self)).claim_name
