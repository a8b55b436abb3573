"""Gangs and queues: a job starts whole, in a queue that takes it, and restarts on purpose."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice

from guardrails import command, gang, volcano_room
from guardrails.facts import load
from guardrails.links import demand, named
from guardrails.node import Node
from guardrails.program import Program
from guardrails.quantity import exact
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import GPU, pod_templates
from guardrails.tokens import MPI_JOB, PYTORCH_JOB, QUEUE, VOLCANO_JOB
from guardrails.volcano_hierarchy import hierarchy

_GANG_SCHEDULER = "volcano"
_ROOT = "root"
_ELASTIC = re.compile(r"(--nnodes=)?[0-9]+:[0-9]+")
_ANY = "*"
_EVICTED = "PodEvicted"
_FAILURES = frozenset({"PodFailed", _ANY})
# An evicted pod ends by SIGTERM, or by SIGKILL after its grace period.
_SIGNAL_CODES = (143, 137)
_ENDING = frozenset({"AbortJob", "TerminateJob", "CompleteJob"})
_DEFAULT_RETRIES = 3
# Volcano counts these whole, and all else in thousandths.
_WHOLE = frozenset({"memory", "pods"})
# Of these nothing is 0 to it, of all else less.
_NOUGHT = frozenset({"cpu", "memory"})
_LIMITED = _NOUGHT | {"pods", "ephemeral-storage"}
_OFFERED = ("hugepages-", "attachable-volumes-")
_DOMAIN = "kubernetes.io/"
_OBJECTS = "count/"
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_EXTENDED = re.compile(rf"(?!requests\.)(?=[^/]{{1,244}}/.{{1,63}}$){_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?", re.ASCII)
"""The names of devices and the like, as Kubernetes has them."""


def _gang(job: Resource, report: Report) -> None:
    if job.type == MPI_JOB:
        _mpi_gang(job, report)
        return
    tasks = list(job.at("spec", "tasks").elements())
    for task in tasks:
        with report.part():
            _task_gang(job, task, report)
    with report.part():
        _job_gang(job, tasks, report)
    with report.part():
        _gang_scheduler(job, report)


def _task_gang(job: Resource, task: Node, report: Report) -> None:
    least = task.at("minAvailable")
    if (least.integer() or 0) > volcano_room.replicas(task):
        report.refuse(job, least, allowed=f"at most {volcano_room.replicas(task)}, the task's replicas")


def _job_gang(job: Resource, tasks: Sequence[Node], report: Report) -> None:
    """The gang is judged as admission leaves it: the sum over the tasks where the job names no number, or 0."""
    least, later = job.at("spec", "minAvailable"), [task for task in tasks if _waits(task, tasks)]
    pods, all_pods = (sum(map(volcano_room.replicas, among)) for among in ([task for task in tasks if task not in later], tasks))
    named = least.integer() if least.present else 0
    written = sum(volcano_room.least(task) for task in tasks)
    count = written if named == 0 else named
    found = f"{least.text() or 'unset'}, so {written}" if named == 0 else None
    if count is None or (count > all_pods and found is None):
        allowed = f"{pods}, the sum of all tasks' replicas (it counts pods, not nodes)"
        report.refuse(job, least, allowed=_first(pods) if later else allowed)
    elif later and count > pods:
        report.refuse(job, least, allowed=_first(pods), found=found)
    elif count < pods and not _is_elastic(job):
        _too_few(job, least, pods, found, report)
    elif count >= written:
        # Only then does the gang plug-in look at the tasks one by one.
        _later_tasks(job, later, report)


def _first(pods: int) -> str:
    return f"{pods}, the pods of the tasks that wait for no other: those of the others are only made once these run"


def _waits(task: Node, tasks: Sequence[Node]) -> bool:
    """Whether the pods of a task are only made once others run; a task that needs no pod at least is not waited for."""
    depends = task.at("dependsOn")
    names = [name.text() for name in depends.at("name").elements()]
    awaited = [any(other.at("name").text() == name and volcano_room.least(other) > 0 for other in tasks) for name in names]
    return all(awaited) if len(names) > 1 and depends.at("iteration").text() == "any" else any(awaited)


def _too_few(job: Resource, least: Node, pods: int, found: str | None, report: Report) -> None:
    if _trains(job):
        hint = "torchrun --nnodes=MIN:MAX would make the job elastic" if found is None else "Volcano adds up what the tasks need at least"
        report.refuse(job, least, allowed=f"{pods}, because every rank is needed ({hint})", found=found)
    else:
        report.advise(job, least, allowed=f"{pods}, unless the job's pods can do without each other", found=found)


def _trains(job: Resource) -> bool:
    """Whether the pods are ranks of one run: they have devices, or one of them calls what starts ranks."""
    return any(template.devices() or any(map(gang.starts_ranks, template.containers())) for template in pod_templates(job))


def _later_tasks(job: Resource, later: Sequence[Node], report: Report) -> None:
    for task in later:
        if volcano_room.least(task) > 0:
            least = task.at("minAvailable")
            allowed = "0: the gang would wait for pods of this task, which are only made once those of others run"
            report.refuse(job, least, allowed=allowed, found=None if least.present else f"unset, so {volcano_room.least(task)}")


def _is_elastic(job: Resource) -> bool:
    containers = (container for template in pod_templates(job) for container in template.containers())
    return any(_ELASTIC.fullmatch(word) for container in containers for word in command.words(container))


def _gang_scheduler(job: Resource, report: Report) -> None:
    scheduler = job.at("spec", "schedulerName")
    templates = list(pod_templates(job))
    pods = sum(template.replicas for template in templates)
    # An absent name is Volcano itself: its admission writes it in.
    if scheduler.present and scheduler.text() != _GANG_SCHEDULER and pods > 1 and any(t.requested(GPU) for t in templates):
        report.refuse(job, scheduler, allowed=f"{_GANG_SCHEDULER}, because {pods} pods must start together")
    for template in templates if pods > 1 else ():
        with report.part():
            # A pod's own goes before the job's.
            own = template.spec.at("schedulerName")
            if template.replicas and template.requested(GPU) and own.present and own.text() != _GANG_SCHEDULER:
                allowed = f"unset, or {_GANG_SCHEDULER}: any other places the {pods} pods one by one, and minAvailable is of no use"
                report.refuse(job, own, allowed=allowed)


def _mpi_gang(job: Resource, report: Report) -> None:
    policy = job.at("spec", "runPolicy", "schedulingPolicy")
    least = policy.at("minAvailable")
    workers = job.at("spec", "mpiReplicaSpecs", "Worker", "replicas").integer() or 0
    waits = job.at("spec", "launcherCreationPolicy").text() == "WaitForWorkersReady"
    needed = workers if waits else workers + 1
    reason = "the launcher is only made once the workers run" if waits else "the launcher counts too"
    allowed = f"{needed} for {workers} workers, because {reason}"
    if least.present and least.integer() != needed:
        report.refuse(job, least, allowed=allowed)
    elif not least.present and waits and (policy.present or _names_gang_scheduler(job)):
        # Only an operator that is told to schedule gangs reads it, and that is not in the program.
        report.advise(job, least, allowed=allowed, found=f"unset, so {workers + 1}")


def _names_gang_scheduler(job: Resource) -> bool:
    return any(template.spec.at("schedulerName").text() == _GANG_SCHEDULER for template in pod_templates(job))


def _queues(program: Program, report: Report) -> None:
    below: dict[str, list[Resource]] = {}
    for queue in program.of(QUEUE):
        below.setdefault(_parent(queue, report), []).append(queue)
    for job in program.of(VOLCANO_JOB, MPI_JOB, PYTORCH_JOB):
        with report.part():
            _job_queue(job, program, below, report)
    for queue in program.of(QUEUE):
        with report.part():
            _shares(queue, report)
        with report.part():
            hierarchy(program, queue, report)
        # Whatever the root says, Volcano holds no queue against it, nor it against one.
        with report.part():
            if _name(queue) != _ROOT:
                _place(queue, program, report)
        with report.part():
            if _name(queue) not in ("", _ROOT):
                _promises(queue, below.get(_name(queue), ()), report)


def _parent(queue: Resource, report: Report) -> str:
    """The queue above; an unknown one is noted."""
    with report.part():
        return queue.at("spec", "parent").text() or _ROOT
    return ""


def _name(queue: Resource) -> str:
    """The name by which others speak of a queue; empty where it is unknown or Pulumi makes one, which nothing written down can be."""
    name = queue.at("metadata", "name")
    return name.text() if name.known else ""


def _job_queue(job: Resource, program: Program, below: Mapping[str, Sequence[Resource]], report: Report) -> None:
    place = job.at("spec", "queue") if job.type == VOLCANO_JOB else job.at("spec", "runPolicy", "schedulingPolicy", "queue")
    name = place.text()
    if not name:
        if job.type == VOLCANO_JOB:
            report.advise(job, place, allowed="a queue of its own, with limits", found="unset, so `default`")
    elif name == _ROOT:
        report.refuse(job, place, allowed="a leaf queue; no job is taken by the root")
    elif name in below:
        report.refuse(job, place, allowed=f"a leaf queue; {name} is the parent of others")
    else:
        queue = named(program, name, QUEUE)
        if queue is None:
            return
        with report.part():
            if queue.at("status", "state").text() == "Closed":
                report.refuse(job, place, allowed=f"a queue that is open; {name} is Closed")
        if job.type == VOLCANO_JOB:
            volcano_room.fits(job, place, (queue, *_above(queue, program)), report)


def _place(queue: Resource, program: Program, report: Report) -> None:
    """A queue is not below itself, and may use no more than its parent."""
    place = queue.at("spec", "parent")
    with report.part():
        if any(_name(parent) == _name(queue) for parent in _above(queue, program)):
            report.refuse(queue, place, allowed="another queue" if place.text() == _name(queue) else "a queue that is not below this one")
            return
    for parent in islice(_above(queue, program), 1):
        for resource, own in _counted(queue.at("spec", "capability")):
            _hold(queue, (resource, own), parent.at("spec", "capability"), f"the capability of {_name(parent)}", report)


def _above(queue: Resource, program: Program) -> Iterator[Resource]:
    """The queues above, from the parent up, each once, as far as the program has them."""
    seen, name = {_ROOT, ""}, queue.at("spec", "parent").text()
    while name not in seen and (parent := named(program, name, QUEUE)) is not None:
        yield parent
        seen.add(name)
        name = parent.at("spec", "parent").text()


def _counted(amounts: Node) -> Iterator[tuple[str, Node]]:
    """The amounts that Volcano reads; it passes over quotas on objects and names that no node offers."""
    for resource, own in amounts.entries():
        named_so = resource in _LIMITED or resource.startswith(_OFFERED) or _DOMAIN in resource or _EXTENDED.fullmatch(resource)
        if own.present and named_so and not resource.startswith(_OBJECTS):
            yield resource, own


def _is_amount(queue: Resource, resource: str, own: Node, report: Report) -> None:
    """Of what no node has a part of, whole numbers; of all, nothing below 0."""
    number = exact(own.text())
    if number is None:
        return
    if number < 0:
        report.refuse(queue, own, allowed="at least 0")
    elif number.denominator != 1 and (resource == "pods" or (_DOMAIN not in resource and _EXTENDED.fullmatch(resource))):
        report.refuse(queue, own, allowed="a whole number")


def _hold(queue: Resource, share: tuple[str, Node], limits: Node, whose: str, report: Report) -> None:
    resource, own = share
    with report.part():
        limit = limits.at(resource)
        if _is_short(resource, limit, lambda: _amount(resource, own)):
            zero = "0" if resource in _NOUGHT else "less than 0"
            unset = f"unset, or {resource} in {whose}, where Volcano 1.14.1 takes what is left out for {zero}"
            report.refuse(queue, own, allowed=f"at most {limit.text()}, {whose}" if limit.present else unset)


def _is_short(resource: str, limit: Node, wanted: Callable[[], int]) -> bool:
    """Whether a limit is below an amount; one that is left out is below any, and below 0 too, but for cpu and memory."""
    return (not limit.present and resource not in _NOUGHT) or wanted() > _amount(resource, limit)


def _amount(name: str, node: Node) -> int:
    """An amount as Volcano counts it, rounded up: bytes of memory, whole pods, and thousandths of all else."""
    return math.ceil((exact(node.text()) or 0) * _parts(name))


def _parts(name: str) -> int:
    return 1 if name in _WHOLE else 1000


def _written(name: str, amount: int) -> str:
    return f"{Decimal(amount) / _parts(name):f}"


def _shares(queue: Resource, report: Report) -> None:
    """A queue is guaranteed no more than it deserves, and deserves no more than it may use."""
    deserved, capability = queue.at("spec", "deserved"), queue.at("spec", "capability")
    for amounts in (deserved, capability, queue.at("spec", "guarantee", "resource")):
        with report.part():
            for resource, own in amounts.entries():
                with report.part():
                    _is_amount(queue, resource, own, report)
    with report.part():
        for share in _counted(queue.at("spec", "guarantee", "resource")):
            _hold(queue, share, deserved, "the queue's own deserved", report)
    for share in _counted(deserved):
        if _says(capability):
            _hold(queue, share, capability, "the queue's own capability", report)


def _says(amounts: Node) -> bool:
    return any(own.present for _, own in amounts.entries())


def _promises(parent: Resource, children: Sequence[Resource], report: Report) -> None:
    """What the queues below are guaranteed and deserve comes out of what their parent is and does, or at least may use."""
    for keys, told in ((("guarantee", "resource"), "are guaranteed"), (("deserved",), "deserve")):
        shares: dict[str, list[Node]] = {}
        for child in children:
            with report.part():
                for resource, own in _counted(child.at("spec", *keys)):
                    shares.setdefault(resource, []).append(own)
        for resource, parts in shares.items():
            with report.part():
                _add_up(parent, keys, resource, parts, f"what the queues below {told}", report)


def _add_up(parent: Resource, keys: Sequence[str], resource: str, parts: Sequence[Node], told: str, report: Report) -> None:
    own, capability = parent.at("spec", *keys), parent.at("spec", "capability")
    limits = own if _says(own) else capability
    if not _says(limits):
        return
    limit, promised = limits.at(resource), sum(_amount(resource, part) for part in parts if part.known)
    if _is_short(resource, limit, lambda: promised):
        report.refuse(parent, limit, allowed=f"at least {_written(resource, promised)}, {told} together")
    else:
        for part in parts:
            demand(part)


def _restarts(job: Resource, report: Report) -> None:
    places = [job.at("spec", "policies"), *(task.at("policies") for task in job.at("spec", "tasks").elements())]
    for place in places:
        with report.part():
            _policies(job, place, report)
    with report.part():
        _evictions(job, report)
    with report.part():
        _retries(job, places, report)


def _policies(job: Resource, place: Node, report: Report) -> None:
    events: dict[str, Node] = {}
    codes: dict[str, Node] = {}
    for policy in place.elements():
        named, code = _events(policy), policy.at("exitCode")
        if bool(named) == code.present:
            report.refuse(job, policy, allowed="an event or an exitCode, one of both", found="with both" if named else "with neither")
            continue
        for node in named or [code]:
            _occasion(job, node, events if named else codes, is_event=bool(named), report=report)
        _action(job, policy.at("action"), report)
    if _ANY in events and len(events) > 1:
        report.refuse(job, events[_ANY], allowed="no other event beside *")


def _events(policy: Node) -> list[Node]:
    """The events of a policy; one that it names twice counts once."""
    named: dict[str, Node] = {}
    for event in (*policy.at("events").elements(), *([policy.at("event")] if policy.at("event").text() else [])):
        named.setdefault(event.text(), event)
    return list(named.values())


def _occasion(job: Resource, node: Node, seen: dict[str, Node], *, is_event: bool, report: Report) -> None:
    known, text = load("volcano")["events"], node.text()
    if is_event and text not in known:
        report.refuse(job, node, allowed=", ".join(known))
    elif not is_event and node.integer() in (0, None):
        report.refuse(job, node, allowed="a code other than 0, which is success")
    elif text in seen:
        report.refuse(job, node, allowed=f"{text} once; it is named at {seen[text].path} already")
    seen.setdefault(text, node)


def _action(job: Resource, action: Node, report: Report) -> None:
    known = load("volcano")["actions"]
    if action.text() not in known:
        report.refuse(job, action, allowed=", ".join(known))


def _evictions(job: Resource, report: Report) -> None:
    """The pod fails before it is gone, so what ends the job on a failure comes before what restarts it on an eviction."""
    general = list(job.at("spec", "policies").elements())
    told: set[str] = set()
    # A task's own policies come before the job's; of several that fit, Volcano takes the first.
    for own in [list(task.at("policies").elements()) for task in job.at("spec", "tasks").elements()] or [[]]:
        chain = [*own, *general]
        if not any(_EVICTED in _names(policy) and policy.at("action").text().startswith("Restart") for policy in chain):
            continue
        for policy in _taken_on_eviction(chain):
            action = policy.at("action")
            if action.text() in _ENDING and action.path not in told:
                told.add(action.path)
                allowed = f"Restart* as on {_EVICTED}, or an exitCode of its own: an evicted pod fails first, and this ends the job"
                report.refuse(job, action, allowed=allowed)


def _names(policy: Node) -> set[str]:
    return {event.text() for event in _events(policy)}


def _taken_on_eviction(chain: Sequence[Node]) -> Iterator[Node]:
    """The policy that Volcano takes of a pod that an eviction made fail, for each code that it may end with."""
    for code in _SIGNAL_CODES:
        for policy in chain:
            if _names(policy) & _FAILURES or policy.at("exitCode").integer() == code:
                yield policy
                break


def _retries(job: Resource, places: Sequence[Node], report: Report) -> None:
    if not any(policy.at("action").text() == "RestartJob" for place in places for policy in place.elements()):
        return
    most = job.at("spec", "maxRetry")
    if not most.present:
        allowed = "the number of restarts that the job may make, counting those after a lost node"
        report.advise(job, most, allowed=allowed, found=f"unset, so {_DEFAULT_RETRIES}")
    elif (most.integer() or 0) <= _DEFAULT_RETRIES:
        report.advise(job, most, allowed=f"more than {_DEFAULT_RETRIES}: every eviction and every lost node uses one up")


def _job(*, replicas: int = 4, gpus: int = 0, **spec: object) -> Example:
    container = {"name": "trainer", "resources": {"limits": {GPU: gpus}}}
    template = {"template": {"spec": {"containers": [container]}}} if gpus else {}
    task = {"name": "worker", "replicas": replicas, **template}
    return Example(VOLCANO_JOB, {"metadata": {"name": "finetune"}, "spec": {"tasks": [task], **spec}})


RULES = (
    Rule(
        id="VOL01",
        name="gang-require-all-members",
        title="A gang counts every pod it needs, and no more",
        types=frozenset({MPI_JOB, VOLCANO_JOB}),
        check=_gang,
        why="with too many the gang is never placed; with too few half of it holds GPUs and waits for the rest.",
        fix="set minAvailable to the number of pods that must run together, and let Volcano schedule them.",
        source="volcano 1.14.1 admission, job controller (dependsOn, schedulerName) and gang plug-in; kubeflow/mpi-operator#608",
        valid=(_job(gpus=8, minAvailable=4),),
        invalid=(_job(gpus=8, minAvailable=3),),
    ),
    StackRule(
        id="VOL02",
        name="job-require-open-leaf-queue",
        title="A job goes to an open leaf queue whose limits fit in those above it and hold the gang",
        types=frozenset({VOLCANO_JOB, MPI_JOB, PYTORCH_JOB, QUEUE}),
        check=_queues,
        why="Volcano's admission refuses the job or the queue, or the gang waits for ever; a job without a queue shares `default` with "
        "everybody.",
        fix="name a leaf queue; keep guarantee within deserved, that within capability, and each within that of the queue above.",
        source="volcano 1.14.1 admission: jobs, queues; scheduler/api/resource_info.go (NewResource, LessPartly); plugins/proportion, "
        "drf; volcano-sh/volcano#1331",
        valid=(_job(queue="research"),),
        invalid=(_job(queue="root"),),
    ),
    Rule(
        id="VOL03",
        name="job-require-restart-policy",
        title="Restart policies are ones that Volcano knows, and an evicted pod restarts the job",
        types=frozenset({VOLCANO_JOB}),
        check=_restarts,
        why="Volcano's admission refuses the job; or an eviction ends it, as a failure or after a few restarts that nobody chose.",
        fix="use events (or exit codes other than 0) and actions of Volcano's lists, each once; end by exit code; set maxRetry.",
        source="volcano 1.14.1 admission: jobs/validate/util.go; volcano-sh/volcano#5885, #2560",
        valid=(_job(policies=[{"event": "PodFailed", "action": "RestartJob"}], maxRetry=5),),
        invalid=(_job(policies=[{"event": "PodRunning", "action": "RestartJob"}], maxRetry=5),),
    ),
)
