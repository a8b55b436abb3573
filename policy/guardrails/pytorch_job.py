"""PyTorchJobs: the training operator takes the job, and its pods find each other."""

from collections.abc import Iterator, Mapping

from guardrails import command, gang
from guardrails.names import HOST_NAME
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, MASTER, WORKER, pod_templates
from guardrails.tokens import PYTORCH_JOB

_ROLES = (MASTER, WORKER)
_CONTAINER = "pytorch"
_CONTROLLERS = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")
_LONGEST_LABEL = 63
_BY_MASTER = "one Master, or an elasticPolicy"


def _role(job: Resource, name: str) -> Node:
    return job.at("spec", "pytorchReplicaSpecs", name)


def _shape(job: Resource, report: Report) -> None:
    for check in (_name, _roles, _counts, _elastic_policy, _manager):
        with report.part():
            check(job, report)


def _name(job: Resource, report: Report) -> None:
    """The name is that of the pods and of a Service for each of them, with role and number behind it."""
    name = job.at("metadata", "name")
    if not name.present:
        return
    last = max((f"{name.text()}-{role.lower()}-{number - 1}" for role, number in _numbers(job)), key=len, default=name.text())
    if not HOST_NAME.fullmatch(name.text()):
        report.refuse(job, name, allowed="a lower-case letter, then lower-case letters, digits and dashes: it becomes a host name")
    elif len(last) > _LONGEST_LABEL:
        most = _LONGEST_LABEL - (len(last) - len(name.text()))
        report.refuse(job, name, allowed=f"at most {most} characters, so that {name.text()[:12]}...-worker-N is a host name")


def _numbers(job: Resource) -> Iterator[tuple[str, int]]:
    """Pods of each role, at least one: how many a name is to hold."""
    for template in pod_templates(job):
        yield template.role, max(template.replicas, 1)


def _roles(job: Resource, report: Report) -> None:
    specs = job.at("spec", "pytorchReplicaSpecs")
    if not any(specs.entries()):
        report.refuse(job, specs, allowed="Worker, and Master beside it")
    for name, spec in specs.entries():
        with report.part():
            if name not in _ROLES:
                report.refuse(job, spec, allowed="no role but Master and Worker", found=f"the role {name}")
        with report.part():
            _containers(job, spec.at("template", "spec", "containers"), report)


def _containers(job: Resource, place: Node, report: Report) -> None:
    containers = list(place.elements())
    names = [container.at("name").text() for container in containers]
    if _CONTAINER not in names:
        found = ", ".join(names) or None
        report.refuse(job, place, allowed=f"a container {_CONTAINER}: the operator gives its port to that one", found=found)
    for container in containers:
        with report.part():
            image = container.at("image")
            if not image.text():
                report.refuse(job, image, allowed="an image")


def _counts(job: Resource, report: Report) -> None:
    for name, least, allowed in ((MASTER, _is_one, "1"), (WORKER, _is_some, "at least 1")):
        with report.part():
            count = _role(job, name).at("replicas")
            if _role(job, name).present and not least(count.integer()):
                report.refuse(job, count, allowed=allowed)


def _is_one(count: int | None) -> bool:
    """The operator's admission reads the number before any default is there."""
    return count == 1


def _is_some(count: int | None) -> bool:
    return count is None or count >= 1


def _elastic_policy(job: Resource, report: Report) -> None:
    policy, worker = job.at("spec", "elasticPolicy"), _role(job, WORKER)
    if not policy.present:
        return
    with report.part():
        if not worker.present:
            report.refuse(job, worker, allowed="Worker, which an elasticPolicy scales")
    with report.part():
        each = policy.at("nProcPerNode")
        if each.present and job.at("spec", "nprocPerNode").present:
            report.refuse(job, each, allowed="only spec.nprocPerNode, which is there too")
    with report.part():
        alone = policy.at("standalone")
        if alone.value is True:
            report.refuse(job, alone, allowed="false: torchrun can't read what the operator makes of it, and ends")
    with report.part():
        _range(job, policy, report)


def _range(job: Resource, policy: Node, report: Report) -> None:
    """torchrun waits for the least number of pods, and no longer once the most have come."""
    least, most = _least(policy), policy.at("maxReplicas").integer()
    if least is None:
        return
    if least < 1:
        report.refuse(job, policy.at("minReplicas"), allowed="at least 1")
    elif most is not None and most < least:
        report.refuse(job, policy.at("maxReplicas"), allowed=f"at least {least}, the minReplicas")
    elif _pods(job) < least:
        place = policy.at("minReplicas" if policy.at("minReplicas").present else "maxReplicas")
        report.refuse(job, place, allowed=f"at most {_pods(job)}, the pods that there are")
    elif most is not None and _pods(job) > most:
        report.advise(job, policy.at("maxReplicas"), allowed=f"at least {_pods(job)}, the pods that there are: others only wait")


def _least(policy: Node) -> int | None:
    """The pods that torchrun waits for; the operator takes either end of the range for the other where one is missing."""
    least = policy.at("minReplicas").integer()
    return policy.at("maxReplicas").integer() if least is None else least


def _pods(job: Resource) -> int:
    return sum(template.replicas for template in pod_templates(job))


def _manager(job: Resource, report: Report) -> None:
    manager = job.at("spec", "runPolicy", "managedBy")
    if manager.present and manager.text() not in _CONTROLLERS:
        report.refuse(job, manager, allowed=" or ".join(_CONTROLLERS))


def _ranks(job: Resource, report: Report) -> None:
    for check in (_gang, _meeting_point, _processes):
        with report.part():
            check(job, report)
    for template in pod_templates(job):
        for container in template.containers():
            with report.part():
                _single_process(job, container, report)


def _gang(job: Resource, report: Report) -> None:
    """A gang that is let in without all of its pods waits for the others, with its devices held."""
    least, policy = job.at("spec", "runPolicy", "schedulingPolicy", "minAvailable"), job.at("spec", "elasticPolicy")
    number, pods = least.integer(), _pods(job)
    needed = (_least(policy) if policy.present else None) or pods
    if number is None:
        return
    if number < needed:
        report.refuse(job, least, allowed=f"at least {needed}, the pods that have to be there to train")
    elif number > pods:
        report.refuse(job, least, allowed=f"at most {pods}, the pods of the job")


def _meeting_point(job: Resource, report: Report) -> None:
    """Without a Master or an elasticPolicy the operator tells the number of pods, and no address."""
    pods = _pods(job)
    if pods < 2 or _role(job, MASTER).present or job.at("spec", "elasticPolicy").present:
        return
    containers = [container for template in pod_templates(job) for container in template.containers()]
    calls = [(container, call) for container in containers for call in gang.calls(container)]
    if any(gang.addresses(container, *(call for where, call in calls if where is container)) for container in containers):
        return
    place, found = _role(job, MASTER), f"unset, with {pods} pods and no elasticPolicy"
    if any(call.launcher in command.TORCHRUN for _, call in calls):
        report.refuse(job, place, allowed=_BY_MASTER, found=found)
    else:
        report.advise(job, place, allowed=f"{_BY_MASTER}, unless the program finds its peers itself", found=found)


def _processes(job: Resource, report: Report) -> None:
    """What the operator tells torchrun, where its own command line does not say."""
    place = _each(job)
    if not place.text().isdigit():
        return
    each = int(place.text())
    told = [devices for template in pod_templates(job) for one in template.containers() if (devices := _gpus(one)) and _is_told(one)]
    if any(each > devices for devices in told):
        report.refuse(job, place, allowed=f"at most {min(told)}, the container's GPUs")
    elif any(each < devices for devices in told):
        report.advise(job, place, allowed=f"{min(told)}, one for each of the container's GPUs, unless a process drives several")


def _gpus(container: Node) -> int:
    return container.at("resources", "limits", GPU).integer() or 0


def _is_told(container: Node) -> bool:
    """Whether torchrun takes the number of its processes from the operator."""
    calls = [call for call in gang.calls(container) if call.launcher in command.TORCHRUN]
    return any(gang.setting(call, container, "--nproc-per-node") is None for call in calls)


def _each(job: Resource) -> Node:
    elastic = job.at("spec", "elasticPolicy", "nProcPerNode")
    return elastic if elastic.present else job.at("spec", "nprocPerNode")


def _single_process(job: Resource, container: Node, report: Report) -> None:
    """The operator starts no ranks: a program without a launcher is one process, whatever devices its pod has."""
    devices, program = _gpus(container), next(iter(command.words(container)), "")
    if devices > 1 and command.base(program).startswith("python") and not _starts_ranks(container):
        allowed = f"torchrun, which starts {devices} processes, unless the program starts them itself"
        report.advise(job, command.place(container), allowed=allowed, found=f"one process for {devices} GPUs")


def _starts_ranks(container: Node) -> bool:
    return bool(gang.calls(container)) or any(command.invocations(command.commands(container), command.MPIRUN))


def _job(words: list[str], *, workers: int = 3, master: bool = True, elastic: Mapping[str, object] | None = None) -> Example:
    container = {"name": _CONTAINER, "image": "registry.example/trainer:1.0", "command": words, "resources": {"limits": {GPU: 8}}}
    pod = {"template": {"spec": {"containers": [container]}}}
    roles = {MASTER: {"replicas": 1, **pod}} if master else {}
    policy = {"elasticPolicy": elastic} if elastic else {}
    return Example(
        PYTORCH_JOB,
        {"metadata": {"name": "pretrain"}, "spec": {**policy, "pytorchReplicaSpecs": {**roles, WORKER: {"replicas": workers, **pod}}}},
    )


_TRAIN = ["torchrun", "train.py"]

RULES = (
    Rule(
        id="PTJ01",
        name="pytorch-job-require-served-shape",
        title="The training operator takes the PyTorchJob",
        types=frozenset({PYTORCH_JOB}),
        check=_shape,
        why="the operator's admission refuses the job when the rest is made, or its pods never come to the number they wait for.",
        fix=f"give a Master of 1 and Workers, each with a container {_CONTAINER} that has an image, under a short lower-case name.",
        source="kubeflow/training-operator 1.9.3: pytorchjob_webhook.go, pytorch_defaults.go, elastic.go",
        valid=(_job(_TRAIN),),
        invalid=(_job(_TRAIN, master=False, workers=2, elastic={"minReplicas": 4, "maxReplicas": 8}),),
    ),
    Rule(
        id="PTJ02",
        name="pytorch-job-require-ranks",
        title="The pods of a PyTorchJob meet, all of them, with a process for each device",
        types=frozenset({PYTORCH_JOB}),
        check=_ranks,
        why="each pod waits at its own address until the time-out, or GPUs that are paid for stay idle.",
        fix="give the job a Master or an elasticPolicy, and let torchrun start a process for each GPU.",
        source="kubeflow/training-operator 1.9.3: envvar.go, master.go; torch 2.15 distributed/run.py",
        valid=(_job(_TRAIN),),
        invalid=(_job(_TRAIN, master=False, workers=4),),
    ),
)
