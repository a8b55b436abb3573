"""The platform as a job sees it once the stack's outputs are known, and the place it gives to a job's pods."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from infra import catalogue, labels
from infra.outputs import PlatformOutputs, PoolOutput
from workloads.errors import JobError
from workloads.spec import JobSpec


@dataclass(frozen=True, kw_only=True)
class Platform:
    """The plain values of a platform stack's outputs."""

    namespace: str
    """Namespace of training jobs."""
    service_account: str
    """Service account of training pods."""
    queue: str
    """Volcano queue that jobs without one of their own go through."""
    pools: Mapping[str, PoolOutput]
    """Node pools by name."""
    claims: Mapping[str, str]
    """Names of volume claims by purpose."""

    @classmethod
    def resolve(cls, outputs: PlatformOutputs) -> pulumi.Output["Platform"]:
        """Return the platform behind the outputs of its stack."""
        return pulumi.Output.all(
            namespace=outputs.namespace,
            service_account=outputs.service_account,
            queue=outputs.queue,
            pools=outputs.pools,
            claims=outputs.claims,
        ).apply(lambda values: cls(**values))

    def claim(self, purpose: str, path: str) -> str:
        """Return the name of the claim for a purpose; raises JobError naming `path` and the purposes there are."""
        if purpose not in self.claims:
            raise JobError(path, purpose, f"a claim of the platform: {', '.join(sorted(self.claims)) or '(it has none)'}")
        return self.claims[purpose]

    def pools_of(self, spec: JobSpec) -> list[PoolOutput]:
        """Return the pools that a job's pods may run in; by instance type it is every one that offers it."""
        launcher = [spec.launcher_pool] if spec.kind == "mpi" else []
        return [
            pool
            for name, pool in self.pools.items()
            if name in (spec.pool, *launcher) or (spec.pool is None and pool.instance_type == spec.instance_type)
        ]

    def pool_place(self, name: str, path: str) -> "Place":
        """Return the place a pool's nodes are; raises JobError naming `path` and the pools there are."""
        pool = self.pools.get(name)
        if pool is None:
            raise JobError(path, name, f"a node pool of the platform: {', '.join(sorted(self.pools)) or '(it has none)'}")
        return Place(
            name=f"pool {name!r}",
            node=catalogue.require(pool.instance_type),
            selector=dict(pool.labels),
            tolerations=[{"key": taint["key"], "operator": "Exists", "effect": taint["effect"]} for taint in pool.taints],
            efa=pool.efa,
            max_nodes=pool.max_nodes,
        )


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where pods run: what selects the nodes, what their taints ask for, and what a node carries."""

    name: str
    """What messages call it."""
    node: catalogue.InstanceType
    """Instance type of the nodes."""
    selector: Mapping[str, str]
    """Node labels that select the nodes."""
    tolerations: list[Mapping[str, str]]
    """Tolerations of the nodes' taints."""
    efa: bool
    """Whether the nodes have EFA interfaces."""
    max_nodes: int | None
    """Most nodes there may be, or None where no limit is known."""


def type_place(instance_type: str) -> Place:
    """Return the place that all nodes of an instance type make, in whatever pool they are."""
    node = catalogue.require(instance_type)
    kind = node.accelerator.kind if node.accelerator else None
    return Place(
        name=f"instance type {instance_type!r}",
        node=node,
        selector={labels.INSTANCE_TYPE: instance_type},
        tolerations=[{"key": taint["key"], "operator": "Exists", "effect": taint["effect"]} for taint in labels.pool_taints(kind)],
        efa=node.efa_max > 0,
        max_nodes=None,
    )
