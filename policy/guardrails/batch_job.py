"""Multi-node trainers on plain pods: ranks meet at one address, and each device has one process."""

import re

from guardrails import command
from guardrails.facts import load
from guardrails.node import Node
from guardrails.placing import wanted_labels
from guardrails.pool import INSTANCE_TYPE
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, NEURON, NEURON_CORE, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import CONFIG_MAP, JOB, VOLCANO_JOB

_LAUNCHERS = command.TORCHRUN | {"accelerate", "deepspeed"}
_OWN_ADDRESS = re.compile(
    r"localhost|127(?:\.[0-9]+){3}|0\.0\.0\.0|::1|\$\(?\{?(?:POD_IP|MY_POD_IP|HOSTNAME|POD_NAME)\}?\)?|\$\(hostname.*|`hostname.*", re.I
)
_OWN_FIELDS = frozenset({"status.podIP", "status.podIPs", "metadata.name", "status.hostIP"})
_MEETING = ("--master-addr", "--main-process-ip", "--rdzv-endpoint")
_SBATCH = re.compile(r"^#SBATCH\s+--?([a-z-]+)(?:[= ]([^\s#]+))?", re.M)
_WORKERS = re.compile(r"resources_per_worker\s*=\s*\{[^}]{0,200}['\"]GPU['\"]\s*:\s*([0-9]+(?:\.[0-9]+)?)")
_COMPILE = "neuron_parallel_compile"


def _indexed(job: Resource, report: Report) -> None:
    spec = job.at("spec")
    pods = spec.at("parallelism").integer()
    if pods is None or pods < 2 or not _trains(job):
        return
    for check in (_completion, _address, _restart):
        with report.part():
            check(job, spec, pods, report)


def _trains(job: Resource) -> bool:
    """Whether the pods form one training run: they have devices, or a launcher of ranks."""
    for template in pod_templates(job):
        if template.requested(GPU) or template.requested(NEURON):
            return True
        if any(_calls(container) for container in template.containers()):
            return True
    return False


def _calls(container: Node) -> list[command.Invocation]:
    return list(command.invocations(command.words(container), _LAUNCHERS))


def _completion(job: Resource, spec: Node, pods: int, report: Report) -> None:
    mode, completions = spec.at("completionMode"), spec.at("completions")
    if mode.text() != "Indexed":
        report.refuse(job, mode, allowed="Indexed: the index is the pod's rank")
    if completions.integer() != pods:
        report.refuse(job, completions, allowed=f"{pods}, the parallelism: all ranks run at once")


def _address(job: Resource, spec: Node, pods: int, report: Report) -> None:
    subdomain = spec.at("template", "spec", "subdomain")
    if not subdomain.present:
        report.refuse(job, subdomain, allowed=f"the name of a headless Service, which gives the {pods} pods host names")


def _restart(job: Resource, spec: Node, pods: int, report: Report) -> None:
    policy, limit = spec.at("template", "spec", "restartPolicy"), spec.at("backoffLimit")
    if policy.text() not in ("Never", "OnFailure"):
        report.refuse(job, policy, allowed="Never or OnFailure")
    if not limit.present and not spec.at("backoffLimitPerIndex").present:
        report.advise(job, limit, allowed=f"how many pods may fail in the run of {pods}", found="unset, so 6")


def _meeting_point(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for container in template.all_containers():
            with report.part():
                for call in _calls(container):
                    if _nodes(call, template) > 1:
                        _own_option(resource, container, call, report)
            for variable in container.at("env").elements():
                with report.part():
                    if variable.at("name").text() == "MASTER_ADDR" and _many(template, container):
                        _own_variable(resource, variable, report)


def _nodes(call: command.Invocation, template: PodTemplate) -> int:
    return call.number("--nnodes") or call.number("--num-machines") or template.replicas


def _many(template: PodTemplate, container: Node) -> bool:
    return template.replicas > 1 or any(_nodes(call, template) > 1 for call in _calls(container))


def _own_option(resource: Resource, container: Node, call: command.Invocation, report: Report) -> None:
    place, allowed = command.place(container), "the address of rank 0's pod, such as job-0.service"
    for name in _MEETING:
        value = call.option(name)
        if value and _OWN_ADDRESS.fullmatch(re.sub(r":[0-9]+$", "", value)):
            report.refuse(resource, place, allowed=f"{name} with {allowed}", found=f"{name} {value}")
    if call.flag("--standalone"):
        report.refuse(resource, place, allowed=f"--rdzv-endpoint with {allowed}", found="--standalone")


def _own_variable(resource: Resource, variable: Node, report: Report) -> None:
    field, value = variable.at("valueFrom", "fieldRef", "fieldPath"), variable.at("value")
    if field.text() in _OWN_FIELDS:
        report.refuse(resource, field, allowed="no field of the pod itself; the name of rank 0's pod under the headless Service")
    elif value.text() and _OWN_ADDRESS.fullmatch(value.text()):
        report.refuse(resource, value, allowed="the name of rank 0's pod under the headless Service")


def _process_counts(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        for _, text in resource.at("data").entries():
            with report.part():
                _batch_script(resource, text, report)
        return
    for template in pod_templates(resource):
        for container in template.containers():
            with report.part():
                for call in _calls(container):
                    _processes(resource, container, call, report)


def _processes(resource: Resource, container: Node, call: command.Invocation, report: Report) -> None:
    place = command.place(container)
    devices = container.at("resources", "limits", GPU).integer() or 0
    each = call.number("--nproc-per-node", "--num-gpus")
    if devices and each and each > devices:
        report.refuse(resource, place, allowed=f"at most {devices} processes, the container's GPUs", found=f"{each} processes per node")
    nodes = call.number("--nnodes")
    pods = _pods(resource)
    if nodes and nodes > 1 and pods and nodes != pods:
        report.refuse(resource, place, allowed=f"--nnodes {pods}, the pods of the job", found=f"--nnodes {nodes}")
    if nodes and nodes > 1 and call.launcher in command.TORCHRUN and not _meets(call, container):
        report.refuse(resource, place, allowed="--rdzv-endpoint (or --node-rank and --master-addr)", found=f"--nnodes {nodes} alone")


def _pods(resource: Resource) -> int:
    """Pods that run ranks; 0 where that can't be told."""
    if resource.type not in (JOB, VOLCANO_JOB):
        return 0
    return sum(template.replicas for template in pod_templates(resource) if any(_calls(one) for one in template.containers()))


def _meets(call: command.Invocation, container: Node) -> bool:
    names = {variable.at("name").text() for variable in container.at("env").elements()}
    if call.flag("--rdzv-endpoint") or "PET_RDZV_ENDPOINT" in names:
        return True
    ranked = call.flag("--node-rank") or "PET_NODE_RANK" in names
    return ranked and (call.flag("--master-addr") or bool({"MASTER_ADDR", "PET_MASTER_ADDR"} & names))


def _batch_script(resource: Resource, text: Node, report: Report) -> None:
    """A Slurm script in a ConfigMap: tasks of a node times processes of a task against the GPUs it asks for."""
    script = text.text()
    options = dict(_SBATCH.findall(script))
    tasks = _last_number(options.get("ntasks-per-node", ""))
    gpus = _last_number(options.get("gpus-per-node", "")) or _last_number(options.get("gres", ""))
    if not tasks or not gpus:
        return
    for call in command.invocations(command.split(script), command.TORCHRUN):
        each = call.number("--nproc-per-node")
        if each and tasks * each > gpus:
            found = f"{tasks} tasks x {each} processes = {tasks * each} per node"
            report.refuse(resource, text, allowed=f"at most {gpus}, the node's GPUs: one task that starts {gpus} processes", found=found)


def _last_number(text: str) -> int:
    matched = re.search(r"([0-9]{1,6})$", text.partition("(")[0])
    return int(matched[1]) if matched else 0


def _neuron(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        for _, text in resource.at("data").entries():
            with report.part():
                _ray_workers(resource, text, report)
        return
    for template in pod_templates(resource):
        for container in template.containers():
            with report.part():
                _compile_alone(resource, template, container, report)
            with report.part():
                _cores(resource, template, container, report)


def _compile_alone(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    programs = [command.base(word) for word in command.words(container)]
    if programs.count(_COMPILE) and template.replicas > 1:
        allowed = "the training command; compile beforehand, in a job of one pod"
        report.refuse(resource, command.place(container), allowed=allowed, found=f"{_COMPILE} in {template.replicas} pods")


def _cores(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    families = {name.split(".")[0] for name in wanted_labels(template).get(INSTANCE_TYPE, ())}
    family = families.pop() if len(families) == 1 else ""
    per_device = load("neuron")["coresPerDevice"].get(family)
    devices, cores = (container.at("resources", "limits", name) for name in (NEURON, NEURON_CORE))
    count = devices.integer()
    if per_device is None or not count:
        return
    most = count * per_device
    if cores.integer() and cores.integer() != most:
        report.refuse(resource, cores, allowed=f"{most}: {devices.text()} devices x {per_device} cores on {family}")
    for call in _calls(container):
        each = call.number("--nproc-per-node")
        if each and each > most:
            allowed = f"at most {most} processes, one for each core of {devices.text()} devices"
            report.refuse(resource, command.place(container), allowed=allowed, found=f"{each} processes per node")


def _ray_workers(resource: Resource, text: Node, report: Report) -> None:
    matched = _WORKERS.search(text.text())
    if matched and float(matched[1]) > 1:
        found = f'resources_per_worker with "GPU": {matched[1]}'
        report.advise(resource, text, allowed='"GPU": 1 for each worker, and as many workers as GPUs', found=found)


def _job(words: list[str], *, pods: int = 4, gpus: int = 8, env: list[object] | None = None, **spec: object) -> Example:
    container = {"name": "main", "command": words, "env": env or [], "resources": {"limits": {GPU: gpus}}}
    pod = {"subdomain": "ranks", "restartPolicy": "Never", "containers": [container]}
    settings = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 8}
    return Example(JOB, {"metadata": {"name": "pretrain"}, "spec": {**settings, **spec, "template": {"spec": pod}}})


def _torchrun(nodes: int, processes: int, endpoint: str = "pretrain-0.ranks:29500") -> list[str]:
    return ["torchrun", f"--nnodes={nodes}", f"--nproc-per-node={processes}", f"--rdzv-endpoint={endpoint}", "train.py"]


def _neuron_job(cores: int) -> Example:
    container = {"name": "main", "resources": {"limits": {NEURON: 16, NEURON_CORE: cores}}}
    spec = {"nodeSelector": {INSTANCE_TYPE: "trn1.32xlarge"}, "containers": [container]}
    return Example(JOB, {"spec": {"template": {"spec": spec}}})


RULES = (
    Rule(
        id="JOB01",
        name="job-require-indexed-ranks",
        title="A trainer over several pods of a Job is Indexed, whole and has host names",
        types=frozenset({JOB}),
        check=_indexed,
        why="pods have no rank and no name for each other: each waits for peers that it can't find.",
        fix="set completionMode: Indexed, completions equal to parallelism, a headless Service as subdomain, and restartPolicy.",
        source="Kubernetes: Indexed Jobs with pod-to-pod communication",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 8), completionMode="NonIndexed"),),
    ),
    Rule(
        id="JOB02",
        name="job-disallow-own-address",
        title="Ranks of several nodes meet at rank 0's address, not at their own",
        types=POD_TYPES,
        check=_meeting_point,
        why="every pod waits at its own address for the others until the time-out, with all nodes paid for.",
        fix="use the stable name of rank 0's pod, such as <job>-0.<service>.",
        source="field guide section on Indexed Jobs; PyTorch: torchrun",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 8, "localhost:29500")),),
    ),
    Rule(
        id="JOB03",
        name="job-require-process-per-device",
        title="Processes are as many as devices, nodes as many as pods",
        types=POD_TYPES | {CONFIG_MAP},
        check=_process_counts,
        why="several ranks share a GPU and run out of memory, or have the same rank and never meet.",
        fix="start one process for each GPU, once per pod, and give torchrun its rendezvous.",
        source="field guide sections on Slurm and on torchrun",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 64)),),
    ),
    Rule(
        id="JOB04",
        name="job-require-accelerator-arithmetic",
        title="Neuron cores follow from devices, compiling is not training, a Ray worker is one GPU",
        types=POD_TYPES | {CONFIG_MAP},
        check=_neuron,
        why="nothing is trained, or one device of eight is used, without any error.",
        fix="count cores by the family (2 per device on trn1, 8 on trn2), train after compiling, give each Ray worker one GPU.",
        source="field guide sections on Neuron and Ray; Karpenter 1.14.1 instance-type reference",
        valid=(_neuron_job(32),),
        invalid=(_neuron_job(16),),
    ),
)
