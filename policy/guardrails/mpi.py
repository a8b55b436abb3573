"""MPIJobs: every pod starts, every slot has a process, every process has a slot, nothing stays behind."""

import math
import re

from guardrails import command, environment
from guardrails.names import HOST_NAME
from guardrails.node import Node, Undecided
from guardrails.quantity import quantity
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import DEVICES, EFA, GPU, PodTemplate
from guardrails.tokens import DEPLOYMENT, MPI_JOB, MPI_JOBS_OF_OLD

# Options of mpirun without their dashes; those of Open MPI are told apart by case (-n is not -N).
_PROCESSES = frozenset({"np", "n", "c"})
_PER_NODE = frozenset({"N", "npernode", "ppn", "perhost"})
_ONE_PER_NODE = "pernode"
_PER_RESOURCE = re.compile(r"ppr:([0-9]+):node")
_DEFAULT_SLOTS = 1
_RESTART_POLICIES = ("Never", "OnFailure")
_IMPLEMENTATIONS = ("OpenMPI", "Intel", "MPICH")
_LONGEST_LABEL = 63
_DEVICES = (*DEVICES, EFA)
_DELIVERY = "kubectl-delivery"
_NOT_NEGATIVE = ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
_CONTROLLERS = ("kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue")


def slots(job: Resource) -> int:
    """Processes that the job's hostfile gives to each worker."""
    count = job.at("spec", "slotsPerWorker").integer()
    return _DEFAULT_SLOTS if count is None else count


def role(job: Resource, name: str) -> Node:
    """The replica spec of `Launcher` or `Worker`."""
    return job.at("spec", "mpiReplicaSpecs", name)


def workers(job: Resource) -> int:
    """Worker pods; the operator takes a missing number for none."""
    return role(job, "Worker").at("replicas").integer() or 0


def _shape(job: Resource, report: Report) -> None:
    if job.type in MPI_JOBS_OF_OLD:
        version = job.at("apiVersion")
        found = version.text() or job.type.split(":")[1]
        report.refuse(job, version, allowed="kubeflow.org/v2beta1, the only version that mpi-operator 0.8 serves", found=found)
        return
    if job.type == DEPLOYMENT:
        _operator_flags(job, report)
        return
    for check in (_worker_count, _launcher_count, _restart_policies, _name, _implementation, _old_flags, _run_policy, _containers):
        with report.part():
            check(job, report)


def _operator_flags(operator: Resource, report: Report) -> None:
    for container in operator.at("spec", "template", "spec", "containers").elements():
        for argument in (*container.at("command").elements(), *container.at("args").elements()):
            if argument.text().lstrip("-").startswith(_DELIVERY):
                report.refuse(operator, argument, allowed=f"no {_DELIVERY} flag: the operator has had none since 0.4")


def _worker_count(job: Resource, report: Report) -> None:
    worker, count = role(job, "Worker"), role(job, "Worker").at("replicas")
    if worker.present and not (count.integer() or 0) > 0:
        report.refuse(job, count, allowed="at least 1; a missing number is taken for 0")


def _launcher_count(job: Resource, report: Report) -> None:
    launcher, count = role(job, "Launcher"), role(job, "Launcher").at("replicas")
    if not launcher.present:
        report.refuse(job, launcher, allowed="one Launcher")
    elif count.present and count.integer() != 1:
        report.refuse(job, count, allowed="1")


def _restart_policies(job: Resource, report: Report) -> None:
    for _, spec in job.at("spec", "mpiReplicaSpecs").entries():
        policy = spec.at("restartPolicy")
        if policy.present and policy.text() not in _RESTART_POLICIES:
            report.refuse(job, policy, allowed=" or ".join(_RESTART_POLICIES))


def _name(job: Resource, report: Report) -> None:
    name = job.at("metadata", "name")
    if not name.present:
        return
    last = f"{name.text()}-worker-{max(0, workers(job) - 1)}"
    if not HOST_NAME.fullmatch(last):
        report.refuse(job, name, allowed="a lower-case letter, then lower-case letters, digits and dashes: it becomes a host name")
    elif len(last) > _LONGEST_LABEL:
        most = _LONGEST_LABEL - (len(last) - len(name.text()))
        report.refuse(job, name, allowed=f"at most {most} characters, so that {name.text()[:12]}...-worker-N is a host name")


def _implementation(job: Resource, report: Report) -> None:
    implementation = job.at("spec", "mpiImplementation")
    if implementation.present and implementation.text() not in _IMPLEMENTATIONS:
        report.refuse(job, implementation, allowed=", ".join(_IMPLEMENTATIONS))


def _old_flags(job: Resource, report: Report) -> None:
    for container in role(job, "Launcher").at("template", "spec", "initContainers").elements():
        image = container.at("image")
        if _DELIVERY in image.text():
            report.refuse(job, image, allowed="no kubectl-delivery container: ranks are reached by ssh since v2")


def _run_policy(job: Resource, report: Report) -> None:
    policy = job.at("spec", "runPolicy")
    for place in (job.at("spec", "slotsPerWorker"), *(policy.at(key) for key in _NOT_NEGATIVE)):
        with report.part():
            if (place.integer() or 0) < 0:
                report.refuse(job, place, allowed="0 or more")
    manager = policy.at("managedBy")
    if manager.present and manager.text() not in _CONTROLLERS:
        report.refuse(job, manager, allowed=" or ".join(_CONTROLLERS))


def _containers(job: Resource, report: Report) -> None:
    for name in ("Launcher", "Worker"):
        with report.part():
            place = role(job, name).at("template", "spec", "containers")
            if role(job, name).present and not any(place.elements()):
                report.refuse(job, place, allowed="at least one container")


def _process_count(job: Resource, report: Report) -> None:
    each, many = slots(job), workers(job)
    total, shape = many * each, f"{many} workers x {each} slots"
    if job.at("spec", "runLauncherAsWorker").value is True:
        total, shape = total + each, f"({many} workers + launcher) x {each} slots"
    elif not role(job, "Worker").present:
        # A launcher without workers runs what it likes in its own pod.
        return
    for container in role(job, "Launcher").at("template", "spec", "containers").elements():
        with report.part():
            started = [_started(container, call) for call in command.invocations(command.commands(container), command.MPIRUN)]
            trains = any(per_node != "1" for _, per_node in started)
            for processes, per_node in started:
                # Once on each node, beside a call that trains, is preparation.
                if per_node != "1" or not trains:
                    _compare(job, command.place(container), (processes, per_node), (total, each), shape, report)


def _started(container: Node, call: command.Invocation) -> tuple[str | None, str | None]:
    """Processes in all and on each node that a call of mpirun asks for. Raises `Undecided` where only the shell knows."""
    counts: list[str] = []
    per_node = None
    for options in command.parts(call):
        for name, values in options:
            value = _number(container, values[0]) if values and name in _PROCESSES | _PER_NODE else next(iter(values), "")
            if name in _PROCESSES:
                counts.append(value)
            elif name in _PER_NODE:
                per_node = value
            elif name == _ONE_PER_NODE:
                per_node = "1"
            elif found := _PER_RESOURCE.search(value):
                per_node = found[1]
    if len(counts) > 1 and all(count.isdigit() for count in counts):
        return str(sum(int(count) for count in counts)), per_node
    return next(iter(counts), None), per_node


def _number(container: Node, written: str) -> str:
    value = environment.expanded(container, written)
    if "$" in value or "`" in value:
        raise Undecided(command.place(container).place)
    return value


def _compare(
    job: Resource, place: Node, started: tuple[str | None, str | None], wanted: tuple[int, int], shape: str, report: Report
) -> None:
    (processes, per_node), (total, each) = started, wanted
    if processes is None and per_node is None:
        report.refuse(job, place, allowed=f"mpirun with -np {total} ({shape})", found="without -np")
    if processes is not None and processes != str(total):
        report.refuse(job, place, allowed=f"-np {total} ({shape})", found=f"-np {processes}")
    if per_node is not None and per_node != str(each):
        report.refuse(job, place, allowed=f"{each} processes per node (slotsPerWorker)", found=f"{per_node} processes per node")


def _slots_match_devices(job: Resource, report: Report) -> None:
    worker = role(job, "Worker").at("template")
    template = PodTemplate(worker.at("spec"), 1, worker.at("metadata"))
    place, each = job.at("spec", "slotsPerWorker"), slots(job)
    devices = template.requested(GPU)
    if devices:
        if each != devices:
            found = f"{each} (the default)" if not place.present else each
            report.refuse(job, place, allowed=f"{devices}, the GPUs of each worker", found=found)
        return
    cpus = [_cpus(container) for container in template.containers()]
    # A container that names none may use all of the node's.
    if cpus and all(cpus) and each > math.ceil(sum(cpus)):
        report.refuse(job, place, allowed=f"at most {math.ceil(sum(cpus))}, the CPUs of each worker")


def _cpus(container: Node) -> float:
    text = container.at("resources", "limits", "cpu").text() or container.at("resources", "requests", "cpu").text()
    return quantity(text) or 0.0


def _launcher_devices(job: Resource, report: Report) -> None:
    if job.at("spec", "runLauncherAsWorker").value is True:
        return
    for container in role(job, "Launcher").at("template", "spec", "containers").elements():
        for device in _DEVICES:
            asked = container.at("resources", "limits", device)
            if asked.integer():
                report.refuse(job, asked, allowed="none for a launcher that runs no rank, or spec.runLauncherAsWorker: true")


def _clean_up(job: Resource, report: Report) -> None:
    policy = job.at("spec", "runPolicy", "cleanPodPolicy")
    if policy.text() not in ("Running", "All"):
        found = "unset, so None" if not policy.present else policy.raw
        report.refuse(job, policy, allowed="Running (keeps finished pods' logs) or All", found=found)


def _job(launcher: dict[str, object] | None = None, worker: dict[str, object] | None = None, **spec: object) -> Example:
    replicas = {
        "Launcher": {"template": {"spec": launcher or _asking()}},
        "Worker": worker or {"replicas": 4, "template": {"spec": _asking()}},
    }
    return Example(MPI_JOB, {"metadata": {"name": "pretrain"}, "spec": {**spec, "mpiReplicaSpecs": replicas}})


def _mpirun(processes: str) -> dict[str, object]:
    return {"containers": [{"name": "mpi", "command": ["mpirun", "-np", processes, "python3", "train.py"]}]}


def _asking(**limits: object) -> dict[str, object]:
    return {"containers": [{"name": "main", "resources": {"limits": limits}}]}


def _gpu_worker() -> dict[str, object]:
    return {"replicas": 4, "template": {"spec": _asking(**{GPU: 8})}}


RULES = (
    Rule(
        id="MPI01",
        name="mpi-job-require-served-shape",
        title="The MPI operator takes the job",
        types=frozenset({MPI_JOB, DEPLOYMENT}) | MPI_JOBS_OF_OLD,
        check=_shape,
        why="the operator writes an event that nobody reads and makes no pod, or the API server knows no such kind.",
        fix="use kubeflow.org/v2beta1 with one Launcher and a number of workers, and a short lower-case name.",
        source="mpi-operator 0.8.0: validation.go, default.go",
        valid=(_job(),),
        invalid=(_job(worker={"template": {}}),),
    ),
    Rule(
        id="MPI02",
        name="mpi-job-require-process-count",
        title="mpirun starts one process for each slot",
        types=frozenset({MPI_JOB}),
        check=_process_count,
        why="mpirun stops for lack of slots, or GPUs that are paid for stay idle.",
        fix="set -np to workers x slotsPerWorker.",
        source="mpi-operator 0.8.0 validation and hostfile; mpirun of Open MPI 5.0, MPICH 4.3, Intel MPI 2021.14",
        valid=(_job(_mpirun("32"), slotsPerWorker=8),),
        invalid=(_job(_mpirun("4"), slotsPerWorker=8),),
    ),
    Rule(
        id="MPI03",
        name="mpi-job-require-device-slots",
        title="A worker has one slot for each of its GPUs",
        types=frozenset({MPI_JOB}),
        check=_slots_match_devices,
        why="slotsPerWorker defaults to 1, so one GPU of eight is used; too many slots and ranks share a device.",
        fix="set slotsPerWorker to the worker's GPU limit (for CPU jobs, at most its CPUs).",
        source="mpi-operator 0.8.0 default.go; kubeflow/mpi-operator#558",
        valid=(_job(worker=_gpu_worker(), slotsPerWorker=8),),
        invalid=(_job(worker=_gpu_worker()),),
    ),
    Rule(
        id="MPI04",
        name="mpi-job-disallow-launcher-devices",
        title="A launcher that runs no rank holds no device",
        types=frozenset({MPI_JOB}),
        check=_launcher_devices,
        why="a whole accelerator node is held, and paid for, by a process that only opens ssh connections.",
        fix="drop the devices from the launcher, or set spec.runLauncherAsWorker: true and count it.",
        source="mpi-operator 0.8.0: runLauncherAsWorker",
        valid=(_job(_asking(cpu="1")),),
        invalid=(_job(_asking(**{GPU: 1})),),
    ),
    Rule(
        id="MPI05",
        name="mpi-job-require-clean-up",
        title="Workers go when the job has ended",
        types=frozenset({MPI_JOB}),
        check=_clean_up,
        why="the code's default is None (a comment beside the field says Running): workers keep their GPUs after success.",
        fix="set spec.runPolicy.cleanPodPolicy: Running.",
        source="mpi-operator 0.8.0: default.go",
        valid=(_job(runPolicy={"cleanPodPolicy": "Running"}),),
        invalid=(_job(),),
    ),
)
