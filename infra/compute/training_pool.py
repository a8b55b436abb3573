"""A training pool: EC2NodeClass and NodePool together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra import labels
from infra.component import child_options, token
from infra.compute import node_class, node_pool
from infra.compute.placement import Placement, PlacementArgs
from infra.settings import PoolSettings

# Karpenter drains a node for as long as the pool's grace period, and EC2 takes minutes to end a large instance.
_DELETE_TIMEOUT = "2h"


@dataclass(frozen=True, kw_only=True)
class NodeLaunch:
    """What instances of every pool start with."""

    instance_profile: pulumi.Input[str]
    """Name of the instance profile."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """Private subnet by zone."""
    security_group_ids: Sequence[pulumi.Input[str]]
    """Groups of every node."""
    efa_security_group_id: pulumi.Input[str]
    """Group that nodes with EFA carry as well."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of instances, volumes and interfaces."""


@dataclass(frozen=True, kw_only=True)
class TrainingPoolArgs:
    """What a TrainingPool needs to know."""

    settings: PoolSettings
    """Type, zone, placement and limits."""
    launch: NodeLaunch
    """What its instances start with."""
    after: Sequence[pulumi.Resource] = ()
    """What has to exist before the pool and outlive it: Karpenter, its CRDs, the nodes' access."""


class TrainingPool(pulumi.ComponentResource):
    """Nodes of one instance type that come when jobs need them.

    Deleting the NodePool deletes its NodeClaims with it, in the foreground: the deletion ends when the last instance is gone, so that
    Karpenter, the cluster, roles and subnets can go after it.
    """

    ready: list[pulumi.Resource]
    """NodeClass and NodePool, for what has to go before them."""

    def __init__(self, name: str, args: TrainingPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pool = args.settings
        super().__init__(token("compute", "TrainingPool"), name, {"instance_type": pool.instance_type, "zone": pool.zone}, opts)
        placement = Placement(f"{name}-placement", PlacementArgs(pool=pool), child_options(self)) if pool.placement else None
        wait = pulumi.CustomTimeouts(delete=_DELETE_TIMEOUT)
        metadata = ObjectMetaArgs(
            name=pool.name,
            labels=labels.object_labels(pool.name),
            # Karpenter resolves image, subnet and groups: an update that ends has found them all.
            annotations={labels.PULUMI_WAIT_FOR: "condition=Ready"},
        )
        nodes = CustomResource(
            f"{name}-class",
            api_version=node_class.API_VERSION,
            kind=node_class.KIND,
            metadata=metadata,
            spec=self._class_spec(pool, args.launch, placement),
            # CRDs and controller before their objects; its finalizer needs the controller when it goes.
            opts=child_options(self, depends_on=args.after, custom_timeouts=wait),
        )
        made = CustomResource(
            name,
            api_version=node_pool.API_VERSION,
            kind=node_pool.KIND,
            metadata=metadata,
            spec=node_pool.node_pool_spec(pool),
            # The NodePool names its NodeClass in plain text, which carries no order.
            opts=child_options(self, depends_on=[*args.after, nodes], custom_timeouts=wait),
        )
        self.ready = [nodes, made]
        self.register_outputs({"name": pool.name})

    @staticmethod
    def _class_spec(pool: PoolSettings, launch: NodeLaunch, placement: Placement | None) -> dict:
        groups = [*launch.security_group_ids, *([launch.efa_security_group_id] if pool.efa else [])]
        subnets = [launch.subnet_ids[pool.zone]] if pool.zone else list(launch.subnet_ids.values())
        return node_class.node_class_spec(
            pool,
            instance_profile=launch.instance_profile,
            subnet_ids=subnets,
            security_group_ids=groups,
            group_id=placement.group_id if placement else None,
            reservation_ids=placement.reservation_ids if placement else [],
            tags=launch.tags,
        )
