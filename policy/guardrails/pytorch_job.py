"""PyTorchJobs: the training operator takes the job, and its pods find each other."""

import re
from collections.abc import Iterator, Mapping, Sequence

from guardrails import command, gang
from guardrails.facts import load
from guardrails.names import HOST_NAME
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, WORKER, PodTemplate, pod_templates
from guardrails.tokens import PYTORCH_JOB
from guardrails.training_operator import CONTAINER, MASTER, PORT, PORT_NAME, ROLES, has_master, is_elastic, pods_to_train

_CONTROLLERS = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")
_LONGEST_LABEL = 63
_RESTARTS = ("OnFailure", "ExitCode", "Never")
_BACKENDS = ("c10d", "etcd", "etcd-v2", "static")
_WITH_SERVER = frozenset({"etcd", "etcd-v2"})
_OWN_HOST = re.compile(r"localhost|127\.[0-9.]+|0\.0\.0\.0|::1?|\[::1?\]", re.IGNORECASE)
_COUNT = r"[1-9][0-9]{0,8}"
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
            if name not in ROLES:
                report.refuse(job, spec, allowed="no role but Master and Worker", found=f"the role {name}")
        with report.part():
            policy = spec.at("restartPolicy")
            if policy.present and policy.text() not in _RESTARTS and not _is_ended(job, name, policy.text()):
                report.refuse(job, policy, allowed=f"{', '.join(_RESTARTS)}: a pod that always starts again never ends")
        with report.part():
            _containers(job, spec.at("template", "spec", "containers"), report)


def _is_ended(job: Resource, role: str, policy: str) -> bool:
    """Whether Workers that always start again go with the Master, whose end is that of the job."""
    clean = job.at("spec", "runPolicy", "cleanPodPolicy").text()
    return policy == "Always" and role == WORKER and has_master(job) and clean in ("Running", "All")


def _containers(job: Resource, place: Node, report: Report) -> None:
    containers = list(place.elements())
    names = [container.at("name").text() for container in containers]
    if CONTAINER not in names:
        found = ", ".join(names) or None
        report.refuse(job, place, allowed=f"a container {CONTAINER}: the operator gives its port to that one", found=found)
    for container in containers:
        with report.part():
            image = container.at("image")
            if not image.text():
                report.refuse(job, image, allowed="an image")
        with report.part():
            if container.at("name").text() == CONTAINER:
                _ports(job, container.at("ports"), report)


def _ports(job: Resource, place: Node, report: Report) -> None:
    """The operator makes a Service of them all, with its own beside them: each needs a name and a number of its own."""
    ports = list(place.elements())
    named = {port.at("name").text() for port in ports}
    numbers = [PORT] if PORT_NAME not in named else []
    for port in ports:
        with report.part():
            name, number = port.at("name"), port.at("containerPort")
            if not name.text() and (PORT_NAME not in named or len(ports) > 1):
                report.refuse(job, name, allowed=f"a name: the operator makes a Service of this port and {PORT_NAME}")
            if number.integer() in numbers:
                report.refuse(job, number, allowed=f"a number of its own ({PORT} is that of {PORT_NAME}, which the operator adds)")
            numbers += [found] if (found := number.integer()) is not None else []


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
    for check in (_backend, _host, _settings, _range):
        with report.part():
            check(job, policy, report)


def _backend(job: Resource, policy: Node, report: Report) -> None:
    backend = policy.at("rdzvBackend")
    if backend.present and backend.text() not in _BACKENDS:
        report.refuse(job, backend, allowed=", ".join(_BACKENDS))
    elif backend.text() in _WITH_SERVER and not policy.at("rdzvHost").present:
        report.refuse(job, policy.at("rdzvHost"), allowed=f"the host of the {backend.text()} server: no Worker is one")


def _host(job: Resource, policy: Node, report: Report) -> None:
    host = policy.at("rdzvHost")
    several = _pods(job) > 1 or pods_to_train(job, _workers(job))[1] > 1
    if several and _OWN_HOST.fullmatch(host.text()):
        report.refuse(job, host, allowed="a host that all pods reach, or none: the operator names the first Worker")


def _settings(job: Resource, policy: Node, report: Report) -> None:
    given = policy.at("rdzvConf")
    if isinstance(given.value, list) and not given.value:
        report.refuse(job, given, allowed="at least one setting, or none of rdzvConf: the operator fails on an empty list")


def _range(job: Resource, policy: Node, report: Report) -> None:
    """torchrun waits for the least number of pods, and takes no more than the most."""
    least, most = pods_to_train(job, _workers(job))
    pods, places = _pods(job), [policy.at(key) for key in ("minReplicas", "maxReplicas")]
    if least < 1:
        report.refuse(job, places[0] if places[0].present else places[1], allowed="at least 1")
    elif most < least:
        report.refuse(job, places[1], allowed=f"at least {least}, the minReplicas")
    elif policy.at("metrics").present:
        return  # An autoscaler keeps the Workers within the range.
    elif pods < least:
        report.refuse(job, places[0] if places[0].present else places[1], allowed=f"at most {pods}, the pods that there are")
    elif pods > most:
        found = None if places[1].present else f"unset, so {most}"
        report.advise(job, places[1], allowed=f"at least {pods}, the pods that there are: others only wait", found=found)


def _workers(job: Resource) -> int:
    return sum(template.replicas for template in pod_templates(job) if template.role == WORKER)


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
                _nodes(job, template, container, report)
            with report.part():
                _single_process(job, container, report)


def _gang(job: Resource, report: Report) -> None:
    """A gang that is let in without all of its pods waits for the others, with its devices held."""
    least, pods = job.at("spec", "runPolicy", "schedulingPolicy", "minAvailable"), _pods(job)
    number = least.integer()
    if number is None:
        return
    needed = pods_to_train(job, _workers(job))[0] if is_elastic(job) else pods
    scales = is_elastic(job) and job.at("spec", "elasticPolicy", "metrics").present
    if number < needed:
        report.refuse(job, least, allowed=f"at least {needed}, the pods that have to be there to train")
    elif number > pods and not scales:
        report.refuse(job, least, allowed=f"at most {pods}, the pods of the job")


def _meeting_point(job: Resource, report: Report) -> None:
    """Without a Master or an elasticPolicy the operator tells the number of pods, and no address."""
    pods = _pods(job)
    if pods < 2 or has_master(job):
        return
    containers = [container for template in pod_templates(job) for container in template.containers()]
    calls = [(container, call) for container in containers for call in gang.calls(container)]
    torchrun = [(container, call) for container, call in calls if call.launcher in command.TORCHRUN]
    place = _role(job, MASTER)
    if is_elastic(job):
        if not calls and any(_is_python(container) for container in containers):
            found = "unset, and no torchrun is called, which alone reads what an elasticPolicy tells"
            report.advise(job, place, allowed="one Master, or torchrun", found=found)
        return
    found = f"unset, with {pods} pods and no elasticPolicy"
    if any(gang.spreads(call, container) and not gang.meets(call, container) for container, call in torchrun):
        report.refuse(job, place, allowed=_BY_MASTER, found=found)
    elif not torchrun and not any(_is_told(container, calls) for container in containers):
        report.advise(job, place, allowed=f"{_BY_MASTER}, unless the program finds its peers itself", found=found)


def _is_told(container: Node, calls: Sequence[tuple[Node, command.Invocation]]) -> bool:
    """Whether the container itself says where ranks meet."""
    return bool(gang.addresses(container, *(call for where, call in calls if where is container)))


def _nodes(job: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    """torchrun that is told one node trains alone, or has a rank that its world lacks."""
    pods, calls = _pods(job), [call for call in gang.calls(container) if call.launcher in command.TORCHRUN]
    # Beside a call that trains on all, one of a single node is preparation.
    if pods < 2 or any(gang.spreads(call, container) for call in calls):
        return
    for call in calls:
        if gang.nodes(call, container) == (1, 1):
            told = call.option("--node-rank") is not None or gang.is_dynamic(call, container) or call.flag("--standalone")
            lacks = has_master(job) and template.role == WORKER and not told
            tell, also = (report.refuse, "") if lacks else (report.advise, ", unless each trains alone")
            tell(job, command.place(container), allowed=f"--nnodes {pods}, the pods of the job{also}", found="--nnodes 1")


def _processes(job: Resource, report: Report) -> None:
    """What the operator tells torchrun, where its own command line does not say."""
    place = _each(job)
    text = place.text()
    # The operator hands on whatever there is, and torchrun takes the word for it or ends.
    if place.present and text not in load("launchers")["processWords"] and not re.fullmatch(_COUNT, text):
        report.refuse(job, place, allowed="auto, gpu, cpu or a number of processes, at least 1")
    if not re.fullmatch(_COUNT, text):
        return
    each = int(text)
    containers = [container for template in pod_templates(job) for container in template.containers()]
    told = [devices for one in containers if (devices := _gpus(one)) and _leaves_number(one)]
    if any(each > devices for devices in told):
        report.refuse(job, place, allowed=f"at most {min(told)}, the container's GPUs")
    elif any(each < devices for devices in told):
        report.advise(job, place, allowed=f"{min(told)}, one for each of the container's GPUs, unless a process drives several")
    elif each > 1 and has_master(job) and any(_is_python(one) and not _starts_ranks(one) for one in containers):
        allowed = "unset where no torchrun is called: WORLD_SIZE is a multiple of it, and ranks that nobody starts are waited for"
        report.advise(job, place, allowed=allowed)


def _gpus(container: Node) -> int:
    return container.at("resources", "limits", GPU).integer() or 0


def _leaves_number(container: Node) -> bool:
    """Whether torchrun takes the number of its processes from the operator."""
    return any(call.launcher in command.TORCHRUN and call.option("--nproc-per-node") is None for call in gang.calls(container))


def _each(job: Resource) -> Node:
    policy = job.at("spec", "elasticPolicy")
    elastic = policy.at("nProcPerNode") if policy.present else policy
    return elastic if elastic.present else job.at("spec", "nprocPerNode")


def _single_process(job: Resource, container: Node, report: Report) -> None:
    """The operator starts no ranks: a program without a launcher is one process, whatever devices its pod has."""
    devices = _gpus(container)
    if devices > 1 and _is_python(container) and not _starts_ranks(container):
        allowed = f"torchrun, which starts {devices} processes, unless the program starts them itself"
        report.advise(job, command.place(container), allowed=allowed, found=f"one process for {devices} GPUs")


def _is_python(container: Node) -> bool:
    return command.base(next(iter(command.words(container)), "")).startswith("python")


def _starts_ranks(container: Node) -> bool:
    return bool(gang.calls(container)) or any(command.invocations(command.commands(container), command.MPIRUN))


def _job(words: list[str], *, workers: int = 3, master: bool = True, elastic: Mapping[str, object] | None = None) -> Example:
    container = {"name": CONTAINER, "image": "registry.example/trainer:1.0", "command": words, "resources": {"limits": {GPU: 8}}}
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
        why="the operator refuses the job or fails on it, or its pods never come to the number they wait for, or to an end.",
        fix=f"give a Master of 1 and Workers, each with a container {CONTAINER} that has an image, under a short lower-case name.",
        source="kubeflow/training-operator 1.9.3: pytorchjob_webhook.go, pytorch_defaults.go, elastic.go, service.go",
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
