"""What the training operator gives the pods of a PyTorchJob: variables that count before those of the job's own."""

import re
from typing import Any

from guardrails.node import UNKNOWN, Node
from guardrails.rule import Resource

MASTER = "Master"
ROLES = (MASTER, "Worker")
PORT, PORT_NAME = 23456, "pytorchjob-port"
"""It opens that port on the container `CONTAINER` unless one of that name is there."""
CONTAINER = "pytorch"
_DYNAMIC = "c10d"
_INDEX = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['training.kubeflow.org/replica-index']"}}}


def has_master(job: Resource) -> bool:
    """Whether the job has a pod that the others find by a variable."""
    return job.at("spec", "pytorchReplicaSpecs", MASTER).present


def is_elastic(job: Resource) -> bool:
    """Whether torchrun is told a rendezvous and a range of pods."""
    return job.at("spec", "elasticPolicy").present


def pods_to_train(job: Resource, workers: int) -> tuple[int, int]:
    """Least and most pods that an elasticPolicy has torchrun wait for: one end stands for the other, Workers for both.

    Raises:
        Undecided: an end is unknown.
    """
    policy = job.at("spec", "elasticPolicy")
    least, most = policy.at("minReplicas").integer(), policy.at("maxReplicas").integer()
    if least is None:
        least = workers if most is None else most
    return least, least if most is None else most


def variables(job: Resource, pods: int, workers: int) -> list[dict[str, Any]]:
    """The variables, as entries of `env`, that each pod gets behind its own; the last one of a name counts."""
    found: dict[str, Any] = {"PET_NPROC_PER_NODE": _each(job)}
    name = job.at("metadata", "name").raw
    address = f"{name if isinstance(name, str) else '<job>'}-master-0"
    if has_master(job):
        found |= {"MASTER_ADDR": address, "PET_MASTER_ADDR": address, "MASTER_PORT": str(PORT), "PET_MASTER_PORT": str(PORT)}
        found |= {"WORLD_SIZE": _world(job, pods), "RANK": _INDEX, "PET_NODE_RANK": _INDEX}
    found |= _rendezvous(job, workers) if is_elastic(job) else {"PET_NNODES": str(pods)}
    return [{"name": key, **(value if isinstance(value, dict) else {"value": value})} for key, value in found.items()]


def _each(job: Resource) -> Any:
    policy = job.at("spec", "elasticPolicy")
    elastic = policy.at("nProcPerNode").raw if policy.known else None
    own = job.at("spec", "nprocPerNode").raw if elastic is None else elastic
    return "auto" if own is None else own if own is UNKNOWN else str(own)


def _world(job: Resource, pods: int) -> Any:
    """Processes in all, as far as the job says how many a pod has; else its pods."""
    each = job.at("spec", "nprocPerNode").raw
    if each is UNKNOWN:
        return UNKNOWN
    return str(pods * (int(each) if isinstance(each, str) and re.fullmatch("[0-9]{1,9}", each) else 1))


def _rendezvous(job: Resource, workers: int) -> dict[str, Any]:
    policy = job.at("spec", "elasticPolicy")
    names = ("PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT", "PET_NNODES")
    if not policy.known:
        return dict.fromkeys(names, UNKNOWN)
    name, host = job.at("metadata", "name").raw, policy.at("rdzvHost")
    ends = [policy.at(key) for key in ("minReplicas", "maxReplicas")]
    nodes = UNKNOWN if not all(end.known for end in ends) else ":".join(map(str, pods_to_train(job, workers)))
    endpoint = host.raw if host.present else f"{name if isinstance(name, str) else '<job>'}-worker-0"
    return dict(zip(names, (_or(policy.at("rdzvBackend"), _DYNAMIC), endpoint, nodes), strict=True))


def _or(node: Node, default: str) -> Any:
    return node.raw if node.present else default
