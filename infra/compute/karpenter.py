"""Karpenter: its identity, the identity of its nodes, its warnings, and its two charts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from infra import labels, versions
from infra.charts import PinnedChart, PinnedChartArgs, merge_values
from infra.component import child_options, token
from infra.compute.karpenter_events import KarpenterEvents, KarpenterEventsArgs
from infra.iam import NodeRole, NodeRoleArgs, PodRole, PodRoleArgs, ServiceAccountRef
from infra.iam.karpenter import karpenter_controller
from infra.settings.addons import KarpenterSettings

SERVICE_ACCOUNT = "karpenter"
_CHART = "oci://public.ecr.aws/karpenter/karpenter"
_CRD_CHART = "oci://public.ecr.aws/karpenter/karpenter-crd"


@dataclass(frozen=True, kw_only=True)
class KarpenterArgs:
    """What Karpenter needs to know."""

    settings: KarpenterSettings
    """Versions, replicas and chart values."""
    region: str
    """AWS region."""
    cluster_name: str
    """Name of the EKS cluster, as plain text: policies and tags are named after it."""
    cluster_arn: pulumi.Input[str]
    """ARN of the EKS cluster; waiting for it is waiting for the cluster."""
    cluster_endpoint: pulumi.Input[str]
    """URL of the API server, for the nodes' boot configuration."""
    system_pool: str
    """Name of the system node pool that the controller runs on."""
    after: Sequence[pulumi.Resource] = ()
    """What has to exist first: system nodes, Pod Identity agent."""


class Karpenter(pulumi.ComponentResource):
    """The controller that makes and removes nodes, and all it needs on both sides."""

    node_role_arn: pulumi.Output[str]
    instance_profile: pulumi.Output[str]
    """Name of the profile that its nodes start with."""
    ready: list[pulumi.Resource]
    """What has to exist before a pool, and outlive it: charts with CRDs and controller, node access, node policies."""

    def __init__(self, name: str, args: KarpenterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("compute", "Karpenter"), name, {"cluster_name": args.cluster_name}, opts)
        child = child_options(self)
        node_role = NodeRole(f"{name}-node", NodeRoleArgs(region=args.region), child)
        # Made here so that it goes away here: a profile made by Karpenter outlives the cluster, and holds on to the role.
        profile = aws.iam.InstanceProfile(f"{name}-node", role=node_role.role_name, opts=child)
        self.node_role_arn, self.instance_profile = node_role.role_arn, profile.name
        access = aws.eks.AccessEntry(
            f"{name}-node",
            cluster_name=args.cluster_name,
            principal_arn=node_role.role_arn,
            type="EC2_LINUX",
            # The cluster's name is plain text here; only its ARN would say that the cluster has to be there.
            opts=child_options(self, depends_on=args.after),
        )
        events = KarpenterEvents(f"{name}-events", KarpenterEventsArgs(cluster_name=args.cluster_name), child)
        controller = self._create_controller_role(name, args, events, node_role)
        release = self._install(name, args, events, [*controller.ready, access])
        self.ready = [*release, access, profile, *node_role.ready]
        self.register_outputs({"node_role_arn": self.node_role_arn, "instance_profile": self.instance_profile})

    def _create_controller_role(self, name: str, args: KarpenterArgs, events: KarpenterEvents, node_role: NodeRole) -> PodRole:
        policy = pulumi.Output.all(queue=events.queue_arn, role=node_role.role_arn, cluster=args.cluster_arn).apply(
            lambda arns: karpenter_controller(
                region=args.region,
                cluster_name=args.cluster_name,
                queue_arn=arns["queue"],
                node_role_arn=arns["role"],
                cluster_arn=arns["cluster"],
            )
        )
        return PodRole(
            f"{name}-controller",
            PodRoleArgs(
                cluster_name=args.cluster_name,
                service_accounts=[ServiceAccountRef(namespace=args.settings.namespace, name=SERVICE_ACCOUNT)],
                policies={"controller": pulumi.Output.json_dumps(policy)},
            ),
            # See the node's access entry: the association needs the cluster.
            child_options(self, depends_on=args.after),
        )

    def _install(self, name: str, args: KarpenterArgs, events: KarpenterEvents, after: Sequence[pulumi.Resource]) -> list[pulumi.Resource]:
        settings = args.settings
        crds = PinnedChart(
            f"{name}-crd",
            PinnedChartArgs(
                release_name="karpenter-crd",
                chart=_CRD_CHART,
                version=versions.KARPENTER,
                override_chart=settings.crd_chart,
                override_version=settings.version,
                namespace=settings.namespace,
                timeout_seconds=settings.timeout_seconds,
                after=args.after,
            ),
            child_options(self),
        )
        values = controller_values(settings, args.cluster_name, args.system_pool)
        known_later = {"settings": {"clusterEndpoint": args.cluster_endpoint, "interruptionQueue": events.queue_name}}
        controller = PinnedChart(
            name,
            PinnedChartArgs(
                release_name="karpenter",
                chart=_CHART,
                version=versions.KARPENTER,
                override_chart=settings.chart,
                override_version=settings.version,
                namespace=settings.namespace,
                values=merge_values(merge_values(values, known_later), settings.values),
                # They come with a chart of their own, which Helm updates; those in a crds folder it never touches again.
                skip_crds=True,
                timeout_seconds=settings.timeout_seconds,
                after=[*args.after, *after, *crds.ready],
            ),
            child_options(self),
        )
        return [*crds.ready, *controller.ready]


def controller_values(settings: KarpenterSettings, cluster_name: str, system_pool: str) -> dict[str, Any]:
    """Return the chart values of the controller that are known beforehand."""
    environment = [{"name": key, "value": value} for key, value in settings.env.items()]
    resources: Mapping[str, str] = {"cpu": "500m", "memory": "512Mi"}
    return {
        "replicas": settings.replicas,
        "serviceAccount": {"create": True, "name": SERVICE_ACCOUNT},
        "settings": {"clusterName": cluster_name},
        "nodeSelector": labels.pool_selector(system_pool),
        "controller": {
            # A chart taken from a source tree may name an older image than its own release.
            "image": {"tag": settings.version or versions.KARPENTER},
            "env": environment,
            "resources": {"requests": dict(resources), "limits": {"memory": "1Gi"}},
        },
    }
