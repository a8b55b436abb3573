"""Pod templates, wherever a resource holds them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from guardrails import training_operator
from guardrails.node import Node
from guardrails.quantity import whole
from guardrails.rule import Resource
from guardrails.tokens import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    HYPERPOD_JOB,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    LOGIN_SET,
    MPI_JOB,
    NODE_SET,
    POD,
    PYTORCH_JOB,
    RAY_CLUSTER,
    RAY_JOB,
    RAY_SERVICE,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SLURM_CONTROLLER,
    STATEFUL_SET,
    TRAIN_JOB,
    VOLCANO_JOB,
)

LAUNCHER, WORKER, LEADER = "Launcher", "Worker", "Leader"
GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
NEURON = "aws.amazon.com/neuron"
NEURON_CORE = "aws.amazon.com/neuroncore"
DEVICES = (GPU, NEURON, NEURON_CORE)
"""What computes; EFA only carries."""
SUBMITTER = "Submitter"
"""The pod that hands a RayJob to its cluster; another takes its place where it goes."""


def count(node: Node) -> int:
    """A number of devices; 0 where it is missing or none. To Kubernetes 8000m is 8."""
    return whole(node.text()) or 0


@dataclass(frozen=True)
class PodTemplate:
    """A pod spec and how many pods the resource makes of it."""

    spec: Node
    replicas: int
    metadata: Node
    """Of the template, or of the pod itself."""
    role: str = ""
    """`Launcher`, `Master` or `Worker` in an MPIJob or PyTorchJob, the task's name in a Volcano job; `LEADER` of a
    LeaderWorkerSet; `SUBMITTER` in a RayJob."""
    beside: tuple[Node, ...] = ()
    """Containers that the resource holds outside of the pod spec."""
    first: tuple[Node, ...] = ()
    """Init containers that it holds there."""
    sidecars: tuple[Node, ...] = ()
    """Those of them that its operator keeps running."""

    @property
    def place(self) -> Node:
        """Where to tell what the containers ask for together: at the one that the resource holds itself, where it is alone."""
        within = self.spec.at("containers")
        return self.beside[0].at("resources") if self.beside and not within.present else within

    def containers(self) -> Iterator[Node]:
        """The pod's ordinary containers."""
        yield from self.spec.at("containers").elements()
        yield from self.beside

    def init_containers(self) -> Iterator[Node]:
        """Init containers and sidecars, in the order in which they start."""
        yield from self.first
        yield from self.sidecars
        yield from self.spec.at("initContainers").elements()

    def all_containers(self) -> Iterator[Node]:
        """Init containers, then the ordinary ones."""
        yield from self.init_containers()
        yield from self.containers()

    def is_sidecar(self, container: Node) -> bool:
        """Whether an init container runs beside the pod's other containers."""
        return container in self.sidecars or container.at("restartPolicy").text() == "Always"

    def requested(self, resource: str, kind: str = "limits") -> int:
        """Sum of an extended resource over the containers; 0 where none asks for it."""
        return sum(count(container.at("resources", kind, resource)) for container in self.containers())

    def devices(self) -> int:
        """GPUs, Neuron devices and cores that the pod asks for, all together."""
        return sum(self.requested(device) for device in DEVICES)


def pod_templates(resource: Resource) -> Iterator[PodTemplate]:
    """Every pod template of a resource of one of `POD_TYPES` or `IN_PART`; the same objects each time, once they are all known."""
    if "templates" in resource.memo:
        yield from resource.memo["templates"]
        return
    made: list[PodTemplate] = []
    for template in _TEMPLATES[resource.type](resource):
        made.append(template)
        yield template
    resource.memo["templates"] = made


def _pod(pod: Resource) -> Iterator[PodTemplate]:
    yield PodTemplate(pod.at("spec"), 1, pod.at("metadata"))


def _replicated(owner: Resource) -> Iterator[PodTemplate]:
    yield _template(owner.at("spec"), "replicas")


def _job(job: Resource) -> Iterator[PodTemplate]:
    yield _template(job.at("spec"), "parallelism")


def _cron_job(cron: Resource) -> Iterator[PodTemplate]:
    yield _template(cron.at("spec", "jobTemplate", "spec"), "parallelism")


def _mpi_job(job: Resource) -> Iterator[PodTemplate]:
    for role, replica in job.at("spec", "mpiReplicaSpecs").entries():
        yield replace(_template(replica, "replicas", unset=int(role == LAUNCHER)), role=role)


def _pytorch_job(job: Resource) -> Iterator[PodTemplate]:
    made = [replace(_template(replica, "replicas"), role=role) for role, replica in job.at("spec", "pytorchReplicaSpecs").entries()]
    pods, workers = (sum(template.replicas for template in made if role in ("", template.role)) for role in ("", WORKER))
    given = training_operator.variables(job, pods, workers)
    yield from (replace(template, spec=_with_variables(template.spec, given)) for template in made)


def _hyperpod_job(job: Resource) -> Iterator[PodTemplate]:
    """Spares are pods for which the job only has room in its queue."""
    for replica in job.at("spec", "replicaSpecs").elements():
        name = replica.at("name").raw
        yield replace(_template(replica, "replicas", unset=0), role=name if isinstance(name, str) else "")


def _train_job(job: Resource) -> Iterator[PodTemplate]:
    """What the job sets of containers whose pods its runtime has."""
    nodes, initializer = job.at("spec", "trainer", "numNodes").integer(), job.at("spec", "initializer")
    given = (job.at("spec", "trainer"), initializer.at("dataset"), initializer.at("model"))
    nothing = Node(None, owner=job.properties.owner)
    yield PodTemplate(nothing, 1 if nodes is None else nodes, nothing, beside=tuple(each for each in given if each.present))


def _with_variables(spec: Node, given: list[dict[str, Any]]) -> Node:
    """The pod spec as its operator makes it, whose variables come behind the pod's own."""
    if not isinstance(spec.raw, dict) or not isinstance(spec.raw.get("containers"), list):
        return spec
    containers = [_with_env(container, given) for container in spec.raw["containers"]]
    return Node({**spec.raw, "containers": containers}, spec.path, spec.owner)


def _with_env(container: Any, given: list[dict[str, Any]]) -> Any:
    own = container.get("env") if isinstance(container, dict) else None
    if not isinstance(container, dict) or not isinstance(own, list | None):
        return container
    return {**container, "env": [*(own or ()), *given]}


def _volcano_job(job: Resource) -> Iterator[PodTemplate]:
    for task in job.at("spec", "tasks").elements():
        name = task.at("name").raw
        yield replace(_template(task, "replicas", unset=0), role=name if isinstance(name, str) else "")


def _job_set(jobs: Resource) -> Iterator[PodTemplate]:
    for group in jobs.at("spec", "replicatedJobs").elements():
        template, copies = _template(group.at("template", "spec"), "parallelism"), group.at("replicas").integer()
        yield replace(template, replicas=template.replicas * (1 if copies is None else copies))


def _leader_worker_set(groups: Resource) -> Iterator[PodTemplate]:
    """Each group has one leader, which is made of the workers' template where it has none of its own."""
    spec, pods = groups.at("spec"), groups.at("spec", "leaderWorkerTemplate")
    copies, size = spec.at("replicas").integer(), pods.at("size").integer() or 1
    copies = 1 if copies is None else copies
    leader, worker = pods.at("leaderTemplate"), pods.at("workerTemplate")
    if leader.present:
        yield replace(_copies(leader, copies), role=LEADER)
    yield _copies(worker, copies * (size - int(leader.present)))


def _ray_cluster(cluster: Resource) -> Iterator[PodTemplate]:
    yield from _ray_pods(cluster.at("spec"))


def _ray_service(service: Resource) -> Iterator[PodTemplate]:
    yield from _ray_pods(service.at("spec", "rayClusterConfig"))


def _ray_job(job: Resource) -> Iterator[PodTemplate]:
    yield from _ray_pods(job.at("spec", "rayClusterSpec"))
    submitter = job.at("spec", "submitterPodTemplate")
    if submitter.present:
        yield replace(_copies(submitter, 1), role=SUBMITTER)


def _ray_pods(cluster: Node) -> Iterator[PodTemplate]:
    autoscaler = cluster.at("autoscalerOptions")
    scales = autoscaler.present and cluster.at("enableInTreeAutoscaling").value is True
    yield replace(_copies(cluster.at("headGroupSpec", "template"), 1), beside=(autoscaler,) if scales else ())
    for group in cluster.at("workerGroupSpecs").elements():
        yield _copies(group.at("template"), _ray_workers(group))


def _slurm(owner: Resource, *, container: str, first: Sequence[str] = (), sidecars: Sequence[str] = ()) -> Iterator[PodTemplate]:
    """Slinky's operator has its own containers beside the template, and adds those of the template's lists."""
    spec = owner.at("spec")
    beside, initial, kept = (tuple(spec.at(name) for name in names if spec.at(name).present) for names in ((container,), first, sidecars))
    yield replace(_template(spec, "replicas"), beside=beside, first=initial, sidecars=kept)


def only_launches(resource: Resource, template: PodTemplate) -> bool:
    """Whether the pod, of an MPIJob, hands its command and variables over to the ranks and is none itself."""
    return resource.type == MPI_JOB and template.role == LAUNCHER and resource.at("spec", "runLauncherAsWorker").value is not True


def _ray_workers(group: Node) -> int:
    """The pods of a worker group: its replicas, of several hosts each; one that the autoscaler sizes has a replica once it is used."""
    replicas, least = group.at("replicas").integer(), group.at("minReplicas").integer() or 0
    return max(1 if replicas is None else replicas, least) * (group.at("numOfHosts").integer() or 1)


def _template(owner: Node, count_key: str, *, unset: int = 1) -> PodTemplate:
    """The template of `owner`; `unset` is what its controller takes for a count that is left out."""
    replicas = owner.at(count_key).integer()
    return _copies(owner.at("template"), unset if replicas is None else replicas)


def _copies(template: Node, replicas: int) -> PodTemplate:
    return PodTemplate(template.at("spec"), replicas, template.at("metadata"))


_TEMPLATES: Mapping[str, Callable[[Resource], Iterator[PodTemplate]]] = {
    POD: _pod,
    JOB: _job,
    CRON_JOB: _cron_job,
    **dict.fromkeys((DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER), _replicated),
    MPI_JOB: _mpi_job,
    PYTORCH_JOB: _pytorch_job,
    HYPERPOD_JOB: _hyperpod_job,
    TRAIN_JOB: _train_job,
    VOLCANO_JOB: _volcano_job,
    JOB_SET: _job_set,
    LEADER_WORKER_SET: _leader_worker_set,
    RAY_CLUSTER: _ray_cluster,
    RAY_JOB: _ray_job,
    RAY_SERVICE: _ray_service,
    NODE_SET: partial(_slurm, container="slurmd", sidecars=("logfile",)),
    LOGIN_SET: partial(_slurm, container="login", first=("initconf",)),
    SLURM_CONTROLLER: partial(_slurm, container="slurmctld", sidecars=("reconfigure", "logfile")),
}
IN_PART = frozenset({TRAIN_JOB})
"""Kinds that say a part of their pods: what they leave out is in another object, so that nothing is missing."""
POD_TYPES = frozenset(_TEMPLATES) - IN_PART
