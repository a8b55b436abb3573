"""What jobs have to know of the pools: pure functions of settings."""

from infra import catalogue, labels
from infra.compute.node_pool import pool_taints
from infra.outputs import PoolOutput
from infra.settings import PlatformSettings, PoolSettings, SystemNodesSettings
from infra.settings.base import seconds


def pool_outputs(settings: PlatformSettings) -> dict[str, PoolOutput]:
    """Return every pool of the platform by name, the system nodes included: CPU jobs run on them."""
    nodes = settings.cluster.system_nodes
    return {nodes.name: _system_pool(nodes), **{pool.name: _training_pool(pool) for pool in settings.pools}}


def queue_capability(settings: PlatformSettings) -> dict[str, str]:
    """Return the accelerators that all pools together may grow to, by resource; what the queue may hold unless settings say otherwise.

    CPU and memory stay open: system nodes serve jobs too, and share them with controllers.
    """
    totals: dict[str, int] = {}
    for pool in settings.pools:
        kind = catalogue.require(pool.instance_type)
        if kind.accelerator:
            totals[kind.accelerator.resource] = totals.get(kind.accelerator.resource, 0) + kind.accelerator.count * pool.max_nodes
    return {resource: str(count) for resource, count in totals.items()}


def _training_pool(pool: PoolSettings) -> PoolOutput:
    return PoolOutput(
        name=pool.name,
        instance_type=pool.instance_type,
        zone=pool.zone,
        capacity_type=pool.capacity_type,
        efa=pool.efa,
        labels=labels.pool_selector(pool.name),
        taints=tuple(pool_taints(pool)),
        max_nodes=pool.max_nodes,
        termination_grace_seconds=seconds(pool.termination_grace_period),
    )


def _system_pool(nodes: SystemNodesSettings) -> PoolOutput:
    return PoolOutput(
        name=nodes.name,
        instance_type=nodes.instance_type,
        zone=None,
        capacity_type="on-demand",
        efa=False,
        labels=labels.pool_selector(nodes.name),
        taints=(),
        max_nodes=nodes.max_nodes,
    )
