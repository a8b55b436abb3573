"""EFS: the file system, a mount target in every zone, and an access point per team."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import labels
from infra.component import child_options, token
from infra.settings import AccessPointSettings, EfsSettings

NFS_PORT = 2049


@dataclass(frozen=True, kw_only=True)
class EfsArgs:
    """What Efs needs to know."""

    settings: EfsSettings
    """Throughput and access points."""
    vpc_id: pulumi.Input[str]
    """The VPC."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """Private subnet by zone: each gets exactly one mount target, or pods in that zone cannot resolve the file system's name."""
    node_security_group_id: pulumi.Input[str]
    """Group of all nodes."""
    protect: bool
    """Whether Pulumi refuses to delete it."""


class Efs(pulumi.ComponentResource):
    """An encrypted EFS file system that every node can reach."""

    file_system_id: pulumi.Output[str]
    access_point_ids: dict[str, pulumi.Output[str]]
    """Id of the access point by its name in the settings."""
    ready: list[pulumi.Resource]
    """Mount targets and rules, without which a mount times out."""

    def __init__(self, name: str, args: EfsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("storage", "Efs"), name, {"zones": list(args.subnet_ids)}, opts)
        settings = args.settings
        file_system = aws.efs.FileSystem(
            name,
            encrypted=True,
            kms_key_id=settings.kms_key_arn,
            performance_mode="generalPurpose",
            throughput_mode=settings.throughput_mode,
            provisioned_throughput_in_mibps=settings.provisioned_mibps,
            tags={"Name": name},
            opts=child_options(self, protect=args.protect),
        )
        self.file_system_id = file_system.id
        self.ready = self._create_mount_targets(name, args)
        self.access_point_ids = {point.name: self._create_access_point(name, point) for point in settings.access_points}
        self.register_outputs({"file_system_id": self.file_system_id, "access_point_ids": self.access_point_ids})

    def _create_mount_targets(self, name: str, args: EfsArgs) -> list[pulumi.Resource]:
        child = child_options(self)
        group = aws.ec2.SecurityGroup(name, vpc_id=args.vpc_id, description="NFS from nodes", tags={"Name": name}, opts=child)
        rule = aws.vpc.SecurityGroupIngressRule(
            f"{name}-nfs",
            security_group_id=group.id,
            referenced_security_group_id=args.node_security_group_id,
            ip_protocol="tcp",
            from_port=NFS_PORT,
            to_port=NFS_PORT,
            description="NFS from nodes",
            opts=child,
        )
        targets = [
            aws.efs.MountTarget(
                f"{name}-{zone}", file_system_id=self.file_system_id, subnet_id=subnet_id, security_groups=[group.id], opts=child
            )
            for zone, subnet_id in args.subnet_ids.items()
        ]
        return [rule, *targets]

    def _create_access_point(self, name: str, point: AccessPointSettings) -> pulumi.Output[str]:
        made = aws.efs.AccessPoint(
            f"{name}-{point.name}",
            file_system_id=self.file_system_id,
            posix_user=aws.efs.AccessPointPosixUserArgs(uid=point.uid, gid=point.gid),
            root_directory=aws.efs.AccessPointRootDirectoryArgs(
                path=point.path,
                creation_info=aws.efs.AccessPointRootDirectoryCreationInfoArgs(
                    owner_uid=point.uid, owner_gid=point.gid, permissions=point.permissions
                ),
            ),
            tags={"Name": point.name, labels.TAG_ROLE: point.name},
            opts=child_options(self),
        )
        return made.id
