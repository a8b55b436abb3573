"""Nodes without machines: real objects for the real scheduler, kept alive by kwok, on which pods only seem to run."""

from collections.abc import Mapping, Sequence

from local.errors import LocalStackError
from local.node.api import Json, KubernetesApi
from local.node.csi import register_csi_node

FAKE_ANNOTATION = "kwok.x-k8s.io/node"
"""Nodes with this annotation, value `fake`, are kwok's."""
FAKE_LABEL = "trainyard.local/fake-node"
"""Value: the instance type that the node stands for."""

_REQUIRED = ("cpu", "memory", "pods")


def fake_node(
    name: str,
    instance_type: str,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    capacity: Mapping[str, str | int],
) -> Json:
    """A Node object whose allocatable resources are `capacity`, e.g. `{"cpu": 190, "memory": "1900Gi", "pods": 110, "nvidia.com/gpu": 8}`.

    Raises:
        LocalStackError: `capacity` misses one of cpu, memory and pods.
    """
    missing = [key for key in _REQUIRED if key not in capacity]
    if missing:
        raise LocalStackError(f"fake node {name}: capacity misses {', '.join(missing)}; given: {', '.join(capacity) or 'nothing'}")
    amounts = {key: str(value) for key, value in capacity.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {FAKE_ANNOTATION: "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "node.kubernetes.io/instance-type": instance_type,
                FAKE_LABEL: instance_type,
                **labels,
            },
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def add_fake_nodes(
    api: KubernetesApi,
    instance_type: str,
    count: int,
    *,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    capacity: Mapping[str, str | int],
) -> list[str]:
    """Add `count` fake nodes beside those of the same type that exist. Returns the new names.

    Raises:
        ApiError: the API server refuses one. LocalStackError: see `fake_node`.
    """
    if count < 1:
        raise LocalStackError(f"fake nodes: count must be at least 1, not {count}")
    stem = f"fake-{instance_type.replace('.', '-')}"
    existing = set(fake_node_names(api, instance_type))
    numbers = (number for number in range(len(existing) + count) if f"{stem}-{number}" not in existing)
    names = [f"{stem}-{number}" for number, _ in zip(numbers, range(count), strict=False)]
    for name in names:
        register_csi_node(api, api.create("/api/v1/nodes", fake_node(name, instance_type, labels, taints, capacity)))
    return names


def fake_node_names(api: KubernetesApi, instance_type: str | None = None) -> list[str]:
    """Names of all fake nodes, or of those that stand for `instance_type`. Raises ApiError."""
    selector = FAKE_LABEL if instance_type is None else f"{FAKE_LABEL}%3D{instance_type}"
    return [item["metadata"]["name"] for item in api.get(f"/api/v1/nodes?labelSelector={selector}")["items"]]


def remove_fake_nodes(api: KubernetesApi, instance_type: str | None = None) -> list[str]:
    """Remove fake nodes, all or those of one type, and the pods bound to them. Returns the nodes' names. Raises ApiError."""
    names = fake_node_names(api, instance_type)
    for name in names:
        api.delete(f"/api/v1/nodes/{name}")
    # Kubernetes would notice by itself, a minute later. Nodes go first, or the scheduler might bind a replacement to one.
    for pod in api.get("/api/v1/pods")["items"]:
        if pod["spec"].get("nodeName") in names:
            api.delete(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
    return names
