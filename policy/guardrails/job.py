"""Multi-node jobs: every pod starts, every slot has a process, every process has a slot."""

import math
import re
import shlex
from collections.abc import Sequence

from guardrails.node import Node
from guardrails.rule import Report, Resource, Rule
from guardrails.template import GPU, PodTemplate, pod_templates
from guardrails.tokens import MPI_JOB, VOLCANO_JOB

_LAUNCHERS = frozenset({"mpirun", "mpiexec", "orterun"})
_PROCESSES = frozenset({"-np", "-n", "--np", "-c", "--n"})
_PER_NODE = frozenset({"-N", "--npernode", "-npernode"})
_PER_RESOURCE = re.compile(r"ppr:([0-9]+):node")
_GANG_SCHEDULER = "volcano"
_DEFAULT_SLOTS = 1


def _slots(job: Resource) -> int:
    slots = job.at("spec", "slotsPerWorker").integer()
    return _DEFAULT_SLOTS if slots is None else slots


def _role(job: Resource, role: str) -> Node:
    return job.at("spec", "mpiReplicaSpecs", role)


def _process_count(job: Resource, report: Report) -> None:
    workers = _role(job, "Worker").at("replicas").integer() or 0
    slots = _slots(job)
    total = workers * slots
    shape = f"{workers} workers x {slots} slots"
    if job.at("spec", "runLauncherAsWorker").value is True:
        total += slots
        shape = f"({workers} workers + launcher) x {slots} slots"
    for container in _role(job, "Launcher").at("template", "spec", "containers").elements():
        words = _words(container)
        if not any(word.rsplit("/", 1)[-1] in _LAUNCHERS for word in words):
            continue
        place = container.at("command") if container.at("command").present else container.at("args")
        _compare(job, place, words, total, slots, shape, report)


def _compare(job: Resource, place: Node, words: Sequence[str], total: int, slots: int, shape: str, report: Report) -> None:
    processes, per_node = _option(words, _PROCESSES), _option(words, _PER_NODE) or _mapped_per_node(words)
    if processes is None and per_node is None:
        report.refuse(job, place, allowed=f"mpirun with -np {total} ({shape})", found="without -np")
    if processes is not None and processes != str(total):
        report.refuse(job, place, allowed=f"-np {total} ({shape})", found=f"-np {processes}")
    if per_node is not None and per_node != str(slots):
        report.refuse(job, place, allowed=f"{slots} processes per node (slotsPerWorker)", found=f"{per_node} processes per node")


def _words(container: Node) -> list[str]:
    """Command and arguments as words; a shell's command line is split as the shell would."""
    words: list[str] = []
    for node in (*container.at("command").elements(), *container.at("args").elements()):
        text = node.text()
        try:
            words += shlex.split(text) if " " in text else [text]
        except ValueError:
            words += text.split()
    return words


def _option(words: Sequence[str], names: frozenset[str]) -> str | None:
    start = next((index for index, word in enumerate(words) if word.rsplit("/", 1)[-1] in _LAUNCHERS), 0)
    for index in range(start, len(words)):
        name, _, joined = words[index].partition("=")
        if name in names:
            return joined or (words[index + 1] if index + 1 < len(words) else "")
    return None


def _mapped_per_node(words: Sequence[str]) -> str | None:
    return next((found[1] for word in words if (found := _PER_RESOURCE.search(word))), None)


def _slots_match_devices(job: Resource, report: Report) -> None:
    worker = _role(job, "Worker")
    template = PodTemplate(worker.at("template", "spec"), 1, worker.at("template", "metadata"))
    place, slots = job.at("spec", "slotsPerWorker"), _slots(job)
    devices = template.requested(GPU)
    if devices:
        if slots != devices:
            found = f"{slots} (the default)" if not place.present else slots
            report.refuse(job, place, allowed=f"{devices}, the GPUs of each worker", found=found)
        return
    cpus = sum(_cpus(container) for container in template.containers())
    if cpus and slots > math.ceil(cpus):
        report.refuse(job, place, allowed=f"at most {math.ceil(cpus)}, the CPUs of each worker")


def _cpus(container: Node) -> float:
    text = container.at("resources", "limits", "cpu").text() or container.at("resources", "requests", "cpu").text()
    matched = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(m?)", text)
    return 0.0 if not matched else float(matched[1]) / (1000 if matched[2] else 1)


def _gang(job: Resource, report: Report) -> None:
    if job.type == MPI_JOB:
        _mpi_gang(job, report)
        return
    tasks = list(job.at("spec", "tasks").elements())
    for task in tasks:
        with report.part():
            _task_gang(job, task, report)
    with report.part():
        _job_gang(job, sum(_replicas(task) for task in tasks), report)
    with report.part():
        _gang_scheduler(job, report)


def _replicas(task: Node) -> int:
    replicas = task.at("replicas").integer()
    return 1 if replicas is None else replicas


def _task_gang(job: Resource, task: Node, report: Report) -> None:
    least = task.at("minAvailable")
    if (least.integer() or 0) > _replicas(task):
        report.refuse(job, least, allowed=f"at most {_replicas(task)}, the task's replicas")


def _job_gang(job: Resource, pods: int, report: Report) -> None:
    least = job.at("spec", "minAvailable")
    if not least.present:
        return
    count = least.integer()
    if count is None or count > pods:
        report.refuse(job, least, allowed=f"{pods}, the sum of all tasks' replicas (it counts pods, not nodes)")
    elif count < pods and not _is_elastic(job):
        report.refuse(job, least, allowed=f"{pods}, because every rank is needed (torchrun --nnodes=MIN:MAX would make the job elastic)")


def _is_elastic(job: Resource) -> bool:
    for template in pod_templates(job):
        for container in template.containers():
            words = _words(container)
            if any(re.fullmatch(r"(--nnodes=)?[0-9]+:[0-9]+", word) for word in words):
                return True
    return False


def _gang_scheduler(job: Resource, report: Report) -> None:
    scheduler = job.at("spec", "schedulerName")
    templates = list(pod_templates(job))
    pods = sum(template.replicas for template in templates)
    # An absent name is Volcano itself: its admission writes it in.
    if scheduler.present and scheduler.text() != _GANG_SCHEDULER and pods > 1 and any(t.requested(GPU) for t in templates):
        report.refuse(job, scheduler, allowed=f"{_GANG_SCHEDULER}, because {pods} pods must start together")


def _mpi_gang(job: Resource, report: Report) -> None:
    least = job.at("spec", "runPolicy", "schedulingPolicy", "minAvailable")
    if not least.present:
        return
    workers = _role(job, "Worker").at("replicas").integer() or 0
    waits = job.at("spec", "launcherCreationPolicy").text() == "WaitForWorkersReady"
    needed = workers if waits else workers + 1
    if least.integer() != needed:
        reason = "the launcher is only made once the workers run" if waits else "the launcher counts too"
        report.refuse(job, least, allowed=f"{needed} for {workers} workers, because {reason}")


RULES = (
    Rule(
        id="MPI02",
        name="mpi-job-require-process-count",
        title="mpirun starts one process for each slot",
        types=frozenset({MPI_JOB}),
        check=_process_count,
        why="mpirun stops for lack of slots, or GPUs that are paid for stay idle.",
        fix="set -np to workers x slotsPerWorker.",
        source="mpi-operator 0.8.0 validation and hostfile; field guide section on MPI Operator",
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
    ),
    Rule(
        id="VOL01",
        name="gang-require-all-members",
        title="A gang counts every pod it needs, and no more",
        types=frozenset({MPI_JOB, VOLCANO_JOB}),
        check=_gang,
        why="with too many the gang is never placed; with too few half of it holds GPUs and waits for the rest.",
        fix="set minAvailable to the number of pods that must run together, and let Volcano schedule them.",
        source="volcano 1.14.1 admission; kubeflow/mpi-operator#608",
    ),
)
