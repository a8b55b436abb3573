"""The AWS half of the platform, from its own components: everything that a killed run could leave behind in an account, and no cluster."""

import pulumi

from infra import cluster, compute, network, storage
from infra.component import child_options
from infra.compute.karpenter_events import KarpenterEvents, KarpenterEventsArgs
from infra.iam import NodeRole, NodeRoleArgs
from infra.providers import aws_provider, stack_tags
from infra.settings import PlatformSettings, load


def main(settings: PlatformSettings) -> None:
    on_aws = pulumi.ResourceOptions(providers=[aws_provider(settings.aws)])
    root = pulumi.ComponentResource("trainyard:platform:Platform", "part", {}, on_aws)
    child = child_options(root)
    vpc = make_network(settings, child)
    group = make_cluster(settings, vpc, child)
    make_storage(settings, vpc, group, child)


def make_network(settings: PlatformSettings, child: pulumi.ResourceOptions) -> network.Vpc:
    vpc = network.Vpc("part-vpc", network.VpcArgs(settings=settings.network, cluster_name=settings.cluster.name), child)
    endpoints = network.VpcEndpointsArgs(
        region=settings.aws.region,
        services=settings.network.interface_endpoints,
        vpc_id=vpc.vpc_id,
        vpc_cidr=vpc.cidr,
        route_table_ids=[*vpc.private_route_table_ids, vpc.public_route_table_id],
        subnet_ids=vpc.private_subnet_ids,
    )
    network.VpcEndpoints("part-endpoints", endpoints, child)
    network.EfaSecurityGroup("part-efa", network.EfaSecurityGroupArgs(vpc_id=vpc.vpc_id), child)
    return vpc


def make_cluster(settings: PlatformSettings, vpc: network.Vpc, child: pulumi.ResourceOptions) -> pulumi.Output[str]:
    subnets = list(vpc.private_subnet_ids.values())
    eks = cluster.EksCluster("part-eks", cluster.EksClusterArgs(settings=settings.cluster, vpc_id=vpc.vpc_id, subnet_ids=subnets), child)
    base = cluster.ClusterBaseArgs(
        settings=settings.cluster,
        cluster_name=eks.cluster_name,
        region=settings.aws.region,
        subnet_ids=subnets,
        tags=stack_tags(settings.aws),
        after=vpc.private_routes,
    )
    cluster.ClusterBase("part-base", base, child)
    access = cluster.ClusterAccessArgs(cluster_name=eks.cluster_name, region=settings.aws.region, admins=settings.cluster.admins)
    cluster.ClusterAccess("part-access", access, child)
    KarpenterEvents("part-events", KarpenterEventsArgs(cluster_name=settings.cluster.name), child)
    NodeRole("part-node", NodeRoleArgs(region=settings.aws.region), child)
    for pool in settings.pools:
        compute.Placement(f"part-{pool.name}", compute.PlacementArgs(pool=pool), child)
    return eks.security_group_id


def make_storage(settings: PlatformSettings, vpc: network.Vpc, group: pulumi.Output[str], child: pulumi.ResourceOptions) -> None:
    wanted = settings.storage
    assert wanted.lustre is not None
    assert wanted.efs is not None
    assert wanted.bucket is not None
    where = {"vpc_id": vpc.vpc_id, "subnet_ids": vpc.private_subnet_ids, "node_security_group_id": group, "protect": False}
    storage.Lustre("part-lustre", storage.LustreArgs(settings=wanted.lustre, **where), child)
    storage.Efs("part-efs", storage.EfsArgs(settings=wanted.efs, **where), child)
    storage.CheckpointBucket("part-checkpoints", storage.CheckpointBucketArgs(settings=wanted.bucket, protect=False), child)


main(load())
