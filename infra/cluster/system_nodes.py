"""The managed node group for controllers and CPU jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from infra import labels
from infra.component import child_options, token
from infra.iam import NodeRole, NodeRoleArgs
from infra.settings import SystemNodesSettings


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """What SystemNodes needs to know."""

    settings: SystemNodesSettings
    """Type, counts and image release."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    region: str
    """AWS region."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets, one a zone."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of instances and volumes, which do not take the provider's default tags."""
    after: Sequence[pulumi.Resource] = ()
    """What a node needs before it can become ready: network plug-in, routes out."""


class SystemNodes(pulumi.ComponentResource):
    """A managed node group with IMDSv2, encrypted disks and a pinned image release."""

    node_group_name: pulumi.Output[str]
    ready: list[pulumi.Resource]
    """The node group, for what has to run on it."""

    def __init__(self, name: str, args: SystemNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("cluster", "SystemNodes"), name, {"instance_type": args.settings.instance_type}, opts)
        role = NodeRole(name, NodeRoleArgs(region=args.region), child_options(self))
        template = self._create_template(name, args)
        settings = args.settings
        group = aws.eks.NodeGroup(
            name,
            cluster_name=args.cluster_name,
            node_role_arn=role.role_arn,
            subnet_ids=list(args.subnet_ids),
            ami_type="AL2023_x86_64_STANDARD",
            capacity_type="ON_DEMAND",
            instance_types=[settings.instance_type],
            release_version=settings.release_version,
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(lambda latest: str(int(latest)))
            ),
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=settings.min_nodes, desired_size=settings.min_nodes, max_size=settings.max_nodes
            ),
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            labels={**labels.pool_selector(settings.name), labels.ACCELERATOR: "none"},
            # A node without its policies or its network plug-in never becomes ready, and the group fails after 20 minutes.
            opts=child_options(self, depends_on=[*role.ready, *args.after]),
        )
        self.node_group_name = group.node_group_name
        self.ready = [group]
        self.register_outputs({"node_group_name": self.node_group_name})

    def _create_template(self, name: str, args: SystemNodesArgs) -> aws.ec2.LaunchTemplate:
        tags = {**args.tags, "Name": name, labels.TAG_POOL: args.settings.name}
        return aws.ec2.LaunchTemplate(
            name,
            description="System nodes",
            update_default_version=True,
            metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
                http_endpoint="enabled",
                http_tokens="required",
                # One hop: pods cannot reach the node's role. They have roles of their own.
                http_put_response_hop_limit=1,
            ),
            block_device_mappings=[
                aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                    device_name="/dev/xvda",
                    ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                        volume_type="gp3", volume_size=args.settings.disk_gib, encrypted="true", delete_on_termination="true"
                    ),
                )
            ],
            tag_specifications=[
                aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags) for kind in ("instance", "volume")
            ],
            opts=child_options(self),
        )
