"""The platform: the one place that knows all areas and wires them.

Order comes from outputs; `after` lists carry what outputs cannot. Read backwards it is the order of a destroy: jobs, pools with their
instances, controllers, nodes, cluster, network.
"""

from collections.abc import Mapping

import pulumi

from infra import addons, cluster, compute, network, storage
from infra.component import child_options, token
from infra.outputs import PlatformOutputs
from infra.pool_outputs import pool_outputs, queue_capability
from infra.providers import kubeconfig_text, kubernetes_provider, stack_tags
from infra.settings import PlatformSettings

# What a job names that asks for no queue of ours; Volcano always has it.
_DEFAULT_QUEUE = "default"


class Platform(pulumi.ComponentResource):
    """Network, cluster, compute, storage and add-ons of one stack."""

    outputs: PlatformOutputs

    def __init__(self, name: str, settings: PlatformSettings, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("platform", "Platform"), name, {"cluster": settings.cluster.name, "region": settings.aws.region}, opts)
        self._name, self._settings, self._child = name, settings, child_options(self)
        self._vpc = self._create_network()
        self._cluster = self._create_cluster()
        base = self._create_base()
        kubeconfig = kubeconfig_text(settings.kubernetes, self._cluster.kubeconfig)
        self._in_cluster = self._enter_cluster(kubeconfig)
        volcano = self._install_volcano(base)
        controllers = [*(volcano.ready if volcano else []), *self._install_controllers(base, volcano)]
        pools = self._create_pools(base)
        bucket = self._create_bucket()
        jobs = self._create_jobs_namespace([*base, *pools, *controllers], bucket)
        volumes = self._create_volumes(jobs)
        self.outputs = PlatformOutputs(
            cluster_name=self._cluster.cluster_name,
            region=pulumi.Output.from_input(settings.aws.region),
            kubeconfig=kubeconfig,
            namespace=jobs.namespace_name,
            service_account=jobs.service_account_name,
            queue=volcano.queue_name if volcano else pulumi.Output.from_input(_DEFAULT_QUEUE),
            pools=pulumi.Output.from_input(pool_outputs(settings)),
            claims=_together(volumes.claims),
            file_systems=_together(volumes.file_system_ids),
            bucket=bucket.bucket_name if bucket else pulumi.Output.from_input(None),
        )
        self.register_outputs({"cluster_name": self.outputs.cluster_name, "namespace": self.outputs.namespace})

    def _create_network(self) -> network.Vpc:
        settings = self._settings
        vpc = network.Vpc(f"{self._name}-vpc", network.VpcArgs(settings=settings.network, cluster_name=settings.cluster.name), self._child)
        endpoints = network.VpcEndpointsArgs(
            region=settings.aws.region,
            services=settings.network.interface_endpoints,
            vpc_id=vpc.vpc_id,
            vpc_cidr=vpc.cidr,
            route_table_ids=[*vpc.private_route_table_ids, vpc.public_route_table_id],
            subnet_ids=vpc.private_subnet_ids,
        )
        network.VpcEndpoints(f"{self._name}-endpoints", endpoints, self._child)
        return vpc

    def _create_cluster(self) -> cluster.EksCluster:
        args = cluster.EksClusterArgs(
            settings=self._settings.cluster, vpc_id=self._vpc.vpc_id, subnet_ids=list(self._vpc.private_subnet_ids.values())
        )
        return cluster.EksCluster(f"{self._name}-eks", args, self._child)

    def _create_base(self) -> list[pulumi.Resource]:
        """Make system nodes and managed add-ons; returns what everything in the cluster waits for."""
        settings = self._settings
        args = cluster.ClusterBaseArgs(
            settings=settings.cluster,
            cluster_name=self._cluster.cluster_name,
            region=settings.aws.region,
            subnet_ids=list(self._vpc.private_subnet_ids.values()),
            tags=stack_tags(settings.aws),
            after=self._vpc.private_routes,
        )
        return cluster.ClusterBase(f"{self._name}-base", args, self._child).ready

    def _enter_cluster(self, kubeconfig: pulumi.Output[str]) -> pulumi.ResourceOptions:
        """Return the options of components that make objects in the cluster."""
        settings = self._settings
        args = cluster.ClusterAccessArgs(
            cluster_name=self._cluster.cluster_name, region=settings.aws.region, admins=settings.cluster.admins
        )
        access = cluster.ClusterAccess(f"{self._name}-access", args, self._child)
        # Whoever uses the provider comes after the access entries on the way up, and goes before them on the way down.
        options = child_options(self, depends_on=access.ready)
        provider = kubernetes_provider(f"{self._name}-kubernetes", settings.kubernetes, kubeconfig, options)
        return child_options(self, providers=[provider])

    def _install_volcano(self, base: list[pulumi.Resource]) -> addons.Volcano | None:
        settings = self._settings
        if not settings.addons.volcano.enabled:
            return None
        args = addons.VolcanoArgs(
            settings=settings.addons.volcano,
            queue=settings.jobs.queue,
            system_pool=settings.cluster.system_nodes.name,
            capability=queue_capability(settings),
            after=base,
        )
        return addons.Volcano(f"{self._name}-volcano", args, self._in_cluster)

    def _install_controllers(self, base: list[pulumi.Resource], volcano: addons.Volcano | None) -> list[pulumi.Resource]:
        """Install device plug-ins and the MPI Operator; returns what has to outlive the jobs."""
        settings = self._settings.addons
        if settings.nvidia_device_plugin.enabled:
            nvidia = addons.nvidia_plugin(settings.nvidia_device_plugin.image, base)
            addons.DevicePlugin(f"{self._name}-nvidia-device-plugin", nvidia, self._in_cluster)
        if settings.efa_device_plugin.enabled:
            efa = addons.efa_plugin(self._settings.aws.region, settings.efa_device_plugin.image, base)
            addons.DevicePlugin(f"{self._name}-efa-device-plugin", efa, self._in_cluster)
        if not settings.mpi_operator.enabled:
            return []
        args = addons.MpiOperatorArgs(
            settings=settings.mpi_operator,
            system_pool=self._settings.cluster.system_nodes.name,
            after=[*base, *(volcano.ready if volcano else [])],
        )
        return addons.MpiOperator(f"{self._name}-mpi-operator", args, self._in_cluster).ready

    def _create_pools(self, base: list[pulumi.Resource]) -> list[pulumi.Resource]:
        """Install Karpenter and make the training pools; returns what has to outlive the jobs."""
        settings = self._settings
        if not settings.addons.karpenter.enabled:
            return []
        args = compute.KarpenterArgs(
            settings=settings.addons.karpenter,
            region=settings.aws.region,
            cluster_name=settings.cluster.name,
            cluster_arn=self._cluster.cluster_arn,
            cluster_endpoint=self._cluster.endpoint,
            system_pool=settings.cluster.system_nodes.name,
            after=base,
        )
        karpenter = compute.Karpenter(f"{self._name}-karpenter", args, self._in_cluster)
        group = network.EfaSecurityGroup(f"{self._name}-efa", network.EfaSecurityGroupArgs(vpc_id=self._vpc.vpc_id), self._child)
        launch = compute.NodeLaunch(
            instance_profile=karpenter.instance_profile,
            subnet_ids=self._vpc.private_subnet_ids,
            security_group_ids=[self._cluster.security_group_id],
            efa_security_group_id=group.group_id,
            tags=stack_tags(settings.aws),
        )
        pools = [
            compute.TrainingPool(
                f"{self._name}-pool-{pool.name}",
                # Nodes need their way out of the VPC for as long as they run.
                compute.TrainingPoolArgs(settings=pool, launch=launch, after=[*karpenter.ready, *self._vpc.private_routes]),
                self._in_cluster,
            )
            for pool in settings.pools
        ]
        return [*karpenter.ready, *(resource for pool in pools for resource in pool.ready)]

    def _create_bucket(self) -> storage.CheckpointBucket | None:
        settings = self._settings
        if settings.storage.bucket is None:
            return None
        args = storage.CheckpointBucketArgs(settings=settings.storage.bucket, protect=settings.protect)
        return storage.CheckpointBucket(f"{self._name}-checkpoints", args, self._child)

    def _create_jobs_namespace(self, after: list[pulumi.Resource], bucket: storage.CheckpointBucket | None) -> addons.JobsNamespace:
        args = addons.JobsNamespaceArgs(
            settings=self._settings.jobs,
            cluster_name=self._cluster.cluster_name,
            bucket_arn=bucket.bucket_arn if bucket else None,
            after=after,
        )
        return addons.JobsNamespace(f"{self._name}-jobs", args, self._in_cluster)

    def _create_volumes(self, jobs: addons.JobsNamespace) -> storage.JobVolumes:
        settings = self._settings
        args = storage.JobVolumesArgs(
            settings=settings.storage,
            vpc_id=self._vpc.vpc_id,
            subnet_ids=self._vpc.private_subnet_ids,
            node_security_group_id=self._cluster.security_group_id,
            namespace=jobs.namespace,
            namespace_name=settings.jobs.namespace,
            protect=settings.protect,
        )
        return storage.JobVolumes(f"{self._name}-volumes", args, self._in_cluster)


def _together(values: Mapping[str, pulumi.Output[str]]) -> pulumi.Output[Mapping[str, str]]:
    """Return a map of outputs as an output of a map; of nothing too, which `Output.all` would make a list."""
    return pulumi.Output.all(**values) if values else pulumi.Output.from_input({})
