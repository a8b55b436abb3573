"""The NodePool of a training pool: which nodes Karpenter may make, and when it may take them away. Pure functions of settings."""

from typing import Any

from infra import catalogue, labels
from infra.compute import node_class
from infra.compute.budgets import disruption_budgets
from infra.settings import PoolSettings

API_VERSION = "karpenter.sh/v1"
KIND = "NodePool"


def pool_labels(pool: PoolSettings) -> dict[str, str]:
    """Return the labels of the pool's nodes."""
    accelerator = catalogue.require(pool.instance_type).accelerator
    found = {**labels.pool_selector(pool.name), labels.ACCELERATOR: accelerator.kind if accelerator else "none"}
    if accelerator and accelerator.kind == "nvidia":
        found[labels.GPU_PRESENT] = "true"
    if pool.efa:
        found[labels.EFA] = "true"
    return found


def pool_taints(pool: PoolSettings) -> list[labels.Taint]:
    """Return the taints of the pool's nodes."""
    accelerator = catalogue.require(pool.instance_type).accelerator
    return labels.pool_taints(accelerator.kind if accelerator else None)


def node_pool_spec(pool: PoolSettings) -> dict[str, Any]:
    """Return the spec of the pool's NodePool, with the defaults that are safe for training.

    Nodes never expire, leave when empty only, and are of one type and one zone; what a running job could lose a node to is off.
    """
    return {
        "template": {
            "metadata": {"labels": pool_labels(pool)},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": node_class.KIND, "name": pool.name},
                "requirements": _requirements(pool),
                "taints": pool_taints(pool),
                "expireAfter": "Never",
                "terminationGracePeriod": pool.termination_grace_period,
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": pool.consolidate_after,
            "budgets": disruption_budgets(pool.disruption_windows),
        },
        "limits": _limits(pool),
    }


def _requirements(pool: PoolSettings) -> list[dict[str, Any]]:
    kind = catalogue.require(pool.instance_type)
    wanted = {
        labels.INSTANCE_TYPE: [pool.instance_type],
        labels.CAPACITY_TYPE: [pool.capacity_type],
        labels.ARCH: [kind.arch],
        labels.OS: ["linux"],
    }
    if pool.zone:
        wanted[labels.ZONE] = [pool.zone]
    return [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()]


def _limits(pool: PoolSettings) -> dict[str, str]:
    kind = catalogue.require(pool.instance_type)
    limits = {"cpu": str(kind.vcpus * pool.max_nodes)}
    if kind.accelerator:
        limits[kind.accelerator.resource] = str(kind.accelerator.count * pool.max_nodes)
    return limits
