"""FSx for Lustre: the file system, its security group and its associations with S3."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from infra import labels
from infra.component import child_options, token
from infra.settings import LustreSettings, Persistent1Settings, Persistent2Settings, RepositorySettings
from infra.settings.storage import LUSTRE_VERSION

# Lustre's network: 988 to the servers, 1018 to 1023 back. With 988 alone the file system is made, and mounts hang.
PORT_RANGES = ((988, 988), (1018, 1023))


@dataclass(frozen=True, kw_only=True)
class LustreArgs:
    """What Lustre needs to know."""

    settings: LustreSettings
    """Kind, size and zone."""
    vpc_id: pulumi.Input[str]
    """The VPC."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """Private subnet by zone; the file system takes the one of its zone."""
    node_security_group_id: pulumi.Input[str]
    """Group of all nodes, which speak Lustre both ways."""
    protect: bool
    """Whether Pulumi refuses to delete it."""


class Lustre(pulumi.ComponentResource):
    """A Lustre file system beside the nodes that use it."""

    file_system_id: pulumi.Output[str]
    dns_name: pulumi.Output[str]
    mount_name: pulumi.Output[str]
    ready: list[pulumi.Resource]
    """Rules without which a mount hangs."""

    def __init__(self, name: str, args: LustreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        settings = args.settings
        super().__init__(token("storage", "Lustre"), name, {"deployment_type": settings.deployment_type, "zone": settings.zone}, opts)
        child = child_options(self)
        group = aws.ec2.SecurityGroup(
            name, vpc_id=args.vpc_id, description="Lustre traffic between servers and nodes", tags={"Name": name}, opts=child
        )
        self.ready = self._open_ports(name, group.id, args.node_security_group_id)
        file_system = aws.fsx.LustreFileSystem(
            name,
            subnet_ids=args.subnet_ids[settings.zone],
            security_group_ids=[group.id],
            deployment_type=settings.deployment_type,
            storage_capacity=settings.storage_capacity_gib,
            file_system_type_version=LUSTRE_VERSION,
            data_compression_type=settings.compression,
            tags={"Name": name, labels.TAG_ROLE: settings.claim},
            **shape(settings),
            # FSx checks the group's ports when it makes the file system.
            opts=child_options(self, depends_on=self.ready, protect=args.protect),
        )
        self.file_system_id, self.dns_name, self.mount_name = file_system.id, file_system.dns_name, file_system.mount_name
        for repository in settings.repositories:
            self._associate(name, repository)
        self.register_outputs({"file_system_id": self.file_system_id, "dns_name": self.dns_name, "mount_name": self.mount_name})

    def _open_ports(self, name: str, group_id: pulumi.Output[str], nodes: pulumi.Input[str]) -> list[pulumi.Resource]:
        """Open Lustre's ports among the servers and between them and the nodes, both ways."""
        pairs = {"self": (group_id, group_id), "nodes": (group_id, nodes), "servers": (nodes, group_id)}
        rules: list[pulumi.Resource] = []
        for key, (holder, peer) in pairs.items():
            for first, last in PORT_RANGES:
                for way, kind in (("in", aws.vpc.SecurityGroupIngressRule), ("out", aws.vpc.SecurityGroupEgressRule)):
                    if key == "servers" and way == "out":
                        # The cluster's own group lets nodes out everywhere.
                        continue
                    rules.append(
                        kind(
                            f"{name}-{key}-{way}-{first}",
                            security_group_id=holder,
                            referenced_security_group_id=peer,
                            ip_protocol="tcp",
                            from_port=first,
                            to_port=last,
                            description=f"Lustre, {key}",
                            opts=child_options(self),
                        )
                    )
        return rules

    def _associate(self, name: str, repository: RepositorySettings) -> None:
        aws.fsx.DataRepositoryAssociation(
            f"{name}-{repository.path.strip('/').replace('/', '-') or 'root'}",
            file_system_id=self.file_system_id,
            file_system_path=repository.path,
            data_repository_path=repository.bucket_uri,
            batch_import_meta_data_on_create=True,
            # Destroying the link leaves the files in both places.
            delete_data_in_filesystem=False,
            s3=aws.fsx.DataRepositoryAssociationS3Args(
                auto_import_policy=aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=list(repository.auto_import)),
                auto_export_policy=aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=list(repository.auto_export)),
            ),
            opts=child_options(self),
        )


def shape(settings: LustreSettings) -> dict[str, Any]:
    """Return the arguments that only this kind of file system has."""
    own: dict[str, Any]
    match settings:
        case Persistent1Settings():
            own = {
                "storage_type": settings.storage_type,
                "per_unit_storage_throughput": settings.per_unit_storage_throughput,
                "drive_cache_type": settings.drive_cache,
            }
        case Persistent2Settings():
            iops = settings.metadata_iops
            own = {
                "storage_type": "SSD",
                "per_unit_storage_throughput": settings.per_unit_storage_throughput,
                "metadata_configuration": aws.fsx.LustreFileSystemMetadataConfigurationArgs(
                    mode="USER_PROVISIONED" if iops else "AUTOMATIC", iops=iops
                ),
            }
        case _:
            return {}
    backups = settings.backup_retention_days
    own |= {"automatic_backup_retention_days": backups, "kms_key_id": settings.kms_key_arn, "copy_tags_to_backups": backups > 0}
    return {key: value for key, value in own.items() if value is not None}
