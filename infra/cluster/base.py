"""What every cluster runs on: system nodes, with the add-ons that nodes need and those that need nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi

from infra.cluster.addons import AFTER_NODES, BEFORE_NODES, ManagedAddons, ManagedAddonsArgs
from infra.cluster.system_nodes import SystemNodes, SystemNodesArgs
from infra.component import child_options, token
from infra.settings import ClusterSettings


@dataclass(frozen=True, kw_only=True)
class ClusterBaseArgs:
    """What a ClusterBase needs to know."""

    settings: ClusterSettings
    """System nodes and add-on versions."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    region: str
    """AWS region."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets, one a zone."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of instances and volumes."""
    after: Sequence[pulumi.Resource] = ()
    """What nodes need beside the add-ons: routes out."""


class ClusterBase(pulumi.ComponentResource):
    """System nodes and managed add-ons, in the order they need each other."""

    ready: list[pulumi.Resource]
    """What a controller in the cluster waits for: nodes, DNS, CSI drivers."""

    def __init__(self, name: str, args: ClusterBaseArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("cluster", "ClusterBase"), name, {"system_nodes": args.settings.system_nodes.name}, opts)
        before = self._add(f"{name}-before", args, BEFORE_NODES, [])
        nodes = SystemNodes(
            f"{name}-system",
            SystemNodesArgs(
                settings=args.settings.system_nodes,
                cluster_name=args.cluster_name,
                region=args.region,
                subnet_ids=args.subnet_ids,
                tags=args.tags,
                after=[*before, *args.after],
            ),
            child_options(self),
        )
        self.ready = [*nodes.ready, *self._add(f"{name}-after", args, AFTER_NODES, nodes.ready)]
        self.register_outputs({})

    def _add(self, name: str, args: ClusterBaseArgs, names: Sequence[str], after: Sequence[pulumi.Resource]) -> list[pulumi.Resource]:
        addons = ManagedAddonsArgs(
            cluster_name=args.cluster_name,
            region=args.region,
            addons=names,
            version_overrides=args.settings.addon_versions,
            after=after,
        )
        return ManagedAddons(name, addons, child_options(self)).ready
