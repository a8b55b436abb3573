"""Pod templates, wherever a resource holds them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from guardrails.node import Node
from guardrails.rule import Resource
from guardrails.tokens import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    MPI_JOB,
    NODE_SET,
    POD,
    RAY_CLUSTER,
    RAY_JOB,
    STATEFUL_SET,
    VOLCANO_JOB,
)

POD_TYPES = frozenset({POD, JOB, CRON_JOB, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, MPI_JOB, VOLCANO_JOB, RAY_CLUSTER, RAY_JOB, NODE_SET})
GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"
DEVICES = (GPU, NEURON, NEURON_CORE)
"""What computes; EFA only carries."""


@dataclass(frozen=True)
class PodTemplate:
    """A pod spec and how many pods the resource makes of it."""

    spec: Node
    replicas: int
    metadata: Node
    """Of the template, or of the pod itself."""
    role: str = ""
    """`Launcher` or `Worker` in an MPIJob."""

    def containers(self) -> Iterator[Node]:
        """The pod's ordinary containers."""
        return self.spec.at("containers").elements()

    def all_containers(self) -> Iterator[Node]:
        """Init containers, then the ordinary ones."""
        yield from self.spec.at("initContainers").elements()
        yield from self.containers()

    def requested(self, resource: str, kind: str = "limits") -> int:
        """Sum of an extended resource over the containers; 0 where none asks for it."""
        return sum(container.at("resources", kind, resource).integer() or 0 for container in self.containers())

    def devices(self) -> int:
        """GPUs, Neuron devices and cores that the pod asks for, all together."""
        return sum(self.requested(device) for device in DEVICES)

    def instance_type(self) -> str:
        """The EC2 instance type that the pod's selector names, or an empty text."""
        return self.spec.at("nodeSelector", "node.kubernetes.io/instance-type").text()


def pod_templates(resource: Resource) -> Iterator[PodTemplate]:
    """Every pod template of a resource of one of `POD_TYPES`."""
    spec = resource.at("spec")
    if resource.type == POD:
        yield PodTemplate(spec, 1, resource.at("metadata"))
    elif resource.type == CRON_JOB:
        yield _template(spec.at("jobTemplate", "spec"), "parallelism")
    elif resource.type == JOB:
        yield _template(spec, "parallelism")
    elif resource.type == MPI_JOB:
        for role, replica in spec.at("mpiReplicaSpecs").entries():
            yield replace(_template(replica, "replicas", unset=int(role == "Launcher")), role=role)
    elif resource.type == VOLCANO_JOB:
        for task in spec.at("tasks").elements():
            yield _template(task, "replicas", unset=0)
    elif resource.type in (RAY_CLUSTER, RAY_JOB):
        cluster = spec if resource.type == RAY_CLUSTER else spec.at("rayClusterSpec")
        yield _template(cluster.at("headGroupSpec"), "replicas")
        for group in cluster.at("workerGroupSpecs").elements():
            yield replace(_template(group, "replicas"), replicas=_ray_workers(group))
    elif resource.type in POD_TYPES:
        yield _template(spec, "replicas")


def _ray_workers(group: Node) -> int:
    """The pods of a worker group: its replicas, of several hosts each; one that the autoscaler sizes has a replica once it is used."""
    replicas, least = group.at("replicas").integer(), group.at("minReplicas").integer() or 0
    return max(1 if replicas is None else replicas, least) * (group.at("numOfHosts").integer() or 1)


def _template(owner: Node, count_key: str, *, unset: int = 1) -> PodTemplate:
    """The template of `owner`; `unset` is what its controller takes for a count that is left out."""
    replicas = owner.at(count_key).integer()
    template = owner.at("template")
    return PodTemplate(template.at("spec"), unset if replicas is None else replicas, template.at("metadata"))
