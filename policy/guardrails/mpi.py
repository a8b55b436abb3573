"""MPIJobs: every pod starts, every slot has a process, every process has a slot, nothing stays behind."""

import math
from dataclasses import replace

from guardrails import command, gang, mpi_ssh
from guardrails.mpi_launch import Started, all_started, each_of, launching, processes_of
from guardrails.names import HOST_NAME
from guardrails.node import Node
from guardrails.quantity import quantity
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import DEVICES, EFA, GPU, PodTemplate
from guardrails.tokens import DEPLOYMENT, MPI_JOB, UNSERVED

_DEFAULT_SLOTS = 1
_RESTART_POLICIES = ("Never", "OnFailure")
_IMPLEMENTATIONS = ("OpenMPI", "Intel", "MPICH")
_LONGEST_LABEL = 63
_DEVICES = (*DEVICES, EFA)
_DELIVERY = "kubectl-delivery"
_NOT_NEGATIVE = ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
_SERVED = "kubeflow.org/v2beta1, the only version that mpi-operator 0.8 serves"
_OTHER_OPERATOR = " (v1 is that of training operator 1.9, whose definition has the same name: a cluster has one of both)"
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


def _version(job: Resource, report: Report) -> None:
    _, version, kind = job.written.split(":")
    if kind.startswith("MPIJob"):
        report.refuse(job, job.at("apiVersion"), allowed=_SERVED + (_OTHER_OPERATOR if version.endswith("/v1") else ""), found=version)


def _shape(job: Resource, report: Report) -> None:
    if job.type == UNSERVED:
        _version(job, report)
        return
    if job.type == DEPLOYMENT:
        _operator_flags(job, report)
        return
    for check in (
        _worker_count,
        _launcher_count,
        _restart_policies,
        _name,
        _implementation,
        _old_flags,
        _run_policy,
        _containers,
        mpi_ssh.check,
    ):
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
    if role(job, "Worker").present or job.at("spec", "runLauncherAsWorker").value is True:
        for container in _launching(job):
            with report.part():
                _of_launcher(job, container, report)
    # A launcher without workers runs what it likes in its own pod.


def _of_launcher(job: Resource, container: Node, report: Report) -> None:
    pods, each = _pods(job), _due_slots(job)
    many = workers(job)
    total, shape = pods * each, f"{many} workers x {each} slots" if pods == many else f"({many} workers + launcher) x {each} slots"
    # Where mpirun starts launchers, slots that MPI03 refuses may be those of the launchers.
    launched = _launched(job, container)
    other = slots(job) if launched else each
    # A launcher that starts a process for each slot belongs on each worker once, and never in every slot.
    alone = each > 1 and each in launched
    due = f"-np {pods} --map-by ppr:1:node (one launcher on each worker)" if alone else f"-np {total} ({shape})"
    started = all_started(container)
    trains = any(call.per_node != "1" for call in started)
    for call in started:
        # Once on each node, beside a call that trains, is preparation.
        if call.per_node == "1" and (trains or _multiplies(job, container, call, pods)):
            continue
        told = replace(call, per_node=None) if alone and call.per_node == "1" else call
        shared = [(pods * number, number) for number in _sharing(job, launched) if call.per_node == str(number)]
        _compare(job, command.place(container), told, ((total, each), (pods * other, other), *shared), due, report)
    _launchers(job, container, report)


def _pods(job: Resource) -> int:
    """Pods that run ranks."""
    return workers(job) + int(job.at("spec", "runLauncherAsWorker").value is True)


def _due_slots(job: Resource) -> int:
    """The slots of each worker, or those that MPI03 asks for in their place: both tell of one number."""
    devices = _worker_template(job).requested(GPU)
    wrong = devices and slots(job) != devices and not _are_started(job, devices) and not _may_start(job)
    return devices if wrong else slots(job)


def _launchers(job: Resource, container: Node, report: Report) -> None:
    """A torchrun in each slot that starts a process for each GPU: as many times too many."""
    devices = _worker_template(job).requested(GPU)
    for started, call in launching(container):
        many, each = started.fullest(_pods(job)), each_of(container, call, devices)
        if devices and each > 1 and many * each > devices:
            found = f"{many} torchruns x {each} processes = {many * each} on a worker"
            allowed = (
                f"at most {devices}, its GPUs: one torchrun on each worker (-np {_pods(job)} --map-by ppr:1:node) that starts {devices}"
            )
            report.refuse(job, command.place(container), allowed=allowed, found=found)


def _sharing(job: Resource, launched: set[int | None]) -> list[int]:
    """Launchers on each worker that have its GPUs between them."""
    devices = _worker_template(job).requested(GPU)
    return [devices // each for each in launched if each and 1 < each < devices and devices % each == 0]


def _multiplies(job: Resource, container: Node, started: Started, pods: int) -> bool:
    """Whether mpirun starts one launcher on each node, and that as many processes as the node has slots."""
    return started.processes in (None, str(pods)) and _due_slots(job) in _launched(job, container)


def _compare(job: Resource, place: Node, started: Started, counts: tuple[tuple[int, int], ...], due: str, report: Report) -> None:
    """Hold a call against the processes in all and of each node: those that are due, and others that are right as well."""
    total, each = counts[0]
    totals, of_nodes = ({str(count) for count in kind} for kind in zip(*counts, strict=True))
    if started.processes is None and started.per_node is None:
        report.refuse(job, place, allowed=f"mpirun with {due}", found="without -np")
    if started.processes is not None and started.processes not in totals:
        found = f"-np {started.processes}"
        _tell(job, place, started, (started.processes, total), (due, found), report)
    if started.per_node is not None and started.per_node not in of_nodes:
        found = f"{started.per_node} processes per node"
        _tell(job, place, started, (started.per_node, each), (f"{each} processes per node (slotsPerWorker)", found), report)


def _tell(job: Resource, place: Node, started: Started, counts: tuple[str, int], words: tuple[str, str], report: Report) -> None:
    """Where mpirun does not stop for lack of slots, only processes that leave GPUs idle are refused."""
    (count, wanted), (allowed, found) = counts, words
    enough = not _worker_template(job).requested(GPU) or (count.isdigit() and int(count) > wanted)
    if started.oversubscribes and enough:
        report.advise(job, place, allowed=f"{allowed}, or a slotsPerWorker that says how many there are", found=found)
    else:
        report.refuse(job, place, allowed=allowed, found=found)


def _worker_template(job: Resource) -> PodTemplate:
    worker = role(job, "Worker").at("template")
    return PodTemplate(worker.at("spec"), 1, worker.at("metadata"))


def _launched(job: Resource, container: Node) -> set[int | None]:
    """Processes that each launcher which mpirun runs starts on its node; None where only the shell knows."""
    if not any(command.invocations(command.commands(container), command.MPIRUN)):
        return set()
    devices = _worker_template(job).requested(GPU)
    return {processes_of(container, call, devices) for call in gang.calls(container)}


def _slots_match_devices(job: Resource, report: Report) -> None:
    template, place, each = _worker_template(job), job.at("spec", "slotsPerWorker"), slots(job)
    devices = template.requested(GPU)
    if devices:
        if each != devices:
            _fewer_slots(job, devices, report)
        return
    cpus = [_cpus(container) for container in template.containers()]
    # A container that names none may use all of the node's.
    if cpus and all(cpus) and each > math.ceil(sum(cpus)):
        report.refuse(job, place, allowed=f"at most {math.ceil(sum(cpus))}, the CPUs of each worker")


def _fewer_slots(job: Resource, devices: int, report: Report) -> None:
    """Slots that are not as many as GPUs, unless a launcher in each of them starts the rest."""
    if _are_started(job, devices):
        return
    place, each = job.at("spec", "slotsPerWorker"), slots(job)
    found, allowed = f"{each} (the default)" if not place.present else each, f"{devices}, the GPUs of each worker"
    if _may_start(job):
        report.advise(job, place, allowed=f"{allowed}, unless the program starts a process for each itself", found=found)
    else:
        report.refuse(job, place, allowed=allowed, found=found)


def _are_started(job: Resource, devices: int) -> bool:
    """Whether launchers in the slots start as many processes as there are GPUs."""
    launched = {count for container in _launching(job) for count in _launched(job, container)}
    return any(count and slots(job) * count == devices for count in launched)


def _may_start(job: Resource) -> bool:
    """Whether the program of which mpirun starts one on each node, in the one slot that it is given, may start the rest."""
    known = {count for container in _launching(job) for count in _launched(job, container)} - {None}
    one = job.at("spec", "slotsPerWorker").present and slots(job) == 1
    return one and not known and any(call.per_node == "1" for each in _launching(job) for call in all_started(each))


def _launching(job: Resource) -> list[Node]:
    """The containers of the launcher."""
    return list(role(job, "Launcher").at("template", "spec", "containers").elements())


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
        title="The MPI operator takes the job, and its launcher gets into the workers",
        types=frozenset({MPI_JOB, DEPLOYMENT, UNSERVED}),
        check=_shape,
        why="the operator writes an event that nobody reads and makes no pod, the launcher gets into no worker, or no such kind is known.",
        fix="use kubeflow.org/v2beta1 with one Launcher, a number of workers that run sshd, and a short lower-case name.",
        source="mpi-operator 0.8.0: validation.go, default.go, mpi_job_controller.go (setupSSHOnPod); kubeflow/mpi-operator#429, #642",
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
        source="mpi-operator 0.8.0 validation and hostfile; mpirun of Open MPI 5.0 (also --oversubscribe), MPICH 4.3, Intel MPI 2021.14",
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
