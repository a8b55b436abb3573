"""Multi-node trainers on plain pods: ranks meet at one address, and each device has one process."""

import re
from collections.abc import Sequence

from guardrails import command, environment, gang
from guardrails.facts import load
from guardrails.indexed_job import indexed
from guardrails.meeting import meeting_point
from guardrails.node import Node
from guardrails.placing import named_types
from guardrails.pod_names import NAMED, names
from guardrails.pool import INSTANCE_TYPE
from guardrails.process_count import process_counts
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import GPU, NEURON, NEURON_CORE, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import CONFIG_MAP, CRON_JOB, HYPERPOD_JOB, JOB, JOB_SET, SERVICE

_TOLD = POD_TYPES - {HYPERPOD_JOB}
"""The kinds whose ranks meet as their pods say; of a HyperPodPyTorchJob SageMaker's operator tells each what to do."""
_WORKERS = re.compile(
    r"resources_per_worker\s*=\s*(?:\{[^}]{0,200}['\"]GPU['\"]\s*:|dict\((?:[^)]{0,200}[\s,])?GPU\s*=)\s*([0-9]+(?:\.[0-9]+)?)"
)
_USES_RAY = re.compile(r"^[ \t]*(?:import|from)\s+ray\b", re.MULTILINE)
_ENTERED = re.compile(r"^[ \t]*with\s+(?:ray\.)?train\.get_checkpoint\(\)\s*(?:as\b|:)", re.MULTILINE)
_REPORT = re.compile(r"^[^#\n]*\btrain\.report\(", re.MULTILINE)
_RANK_0 = re.compile(r"([ \t]*)if\s+(?:[\w.()]*\.)?(?:get_)?(?:world_|local_|node_)?rank(?:\(\))?\s*==\s*0\s*:(.*)")
_ONE_WORKER = re.compile(r"num_workers\s*=\s*1\b")
_CORES_OF_PROCESS = ("NEURON_RT_NUM_CORES", "NEURON_RT_VISIBLE_CORES")
_CORE_RANGES = re.compile(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*")
_COMPILE = "neuron_parallel_compile"


def _neuron(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        for _, text in resource.at("data").entries():
            with report.part():
                _ray_workers(resource, text, report)
            with report.part():
                _ray_checkpoints(resource, text, report)
        return
    for template in pod_templates(resource):
        for container in template.containers():
            with report.part():
                _compile_alone(resource, template, container, report)
            with report.part():
                _cores(resource, template, container, report)


def _compile_alone(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    programs = [command.base(word) for word in command.words(container)]
    if not programs.count(_COMPILE) or template.replicas < 2:
        return
    found = f"{_COMPILE} in {template.replicas} pods"
    calls = gang.calls(container)
    if calls and all(gang.setting(call, container, gang.nodes_option(call)) in (None, "1", "1:1") for call in calls):
        allowed = "the training command; compile beforehand, in a job of one pod"
        report.refuse(resource, command.place(container), allowed=allowed, found=found)
    else:
        # The graphs of a run over several nodes are those of all its ranks: its nodes compile them together.
        allowed = "the training command, unless this job is there to compile; train in another one, that finds its cache"
        report.advise(resource, command.place(container), allowed=allowed, found=found)


def _cores(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    families = {name.split(".")[0] for name in named_types(template)}
    family = families.pop() if len(families) == 1 else ""
    per_device = load("neuron")["coresPerDevice"].get(family)
    devices, cores = (container.at("resources", "limits", name) for name in (NEURON, NEURON_CORE))
    count = devices.integer()
    if per_device is None or not count:
        return
    most = count * per_device
    if cores.integer() and cores.integer() != most:
        report.refuse(resource, cores, allowed=f"{most}: {devices.text()} devices x {per_device} cores on {family}")
    for name in _CORES_OF_PROCESS:
        with report.part():
            variable = environment.last(container, name)
            asked = _cores_asked(name, variable.text) if variable else 0
            if variable and asked > most:
                allowed = f"at most {most} cores: {devices.text()} devices x {per_device} on {family}"
                report.refuse(resource, variable.value, allowed=allowed, found=f"{name}={variable.text}")
    for call in gang.calls(container):
        each = gang.number(call, container, "--nproc-per-node")
        if each and each > most:
            allowed = f"at most {most} processes, one for each core of {devices.text()} devices"
            report.refuse(resource, command.place(container), allowed=allowed, found=f"{each} processes per node")


def _cores_asked(name: str, text: str) -> int:
    """How many cores a variable of the Neuron runtime takes; 0 where it says no number, or ranges that are none."""
    if not _CORE_RANGES.fullmatch(text):
        return 0
    if name == _CORES_OF_PROCESS[0]:
        return int(text) if text.isdigit() else 0
    bounds = [part.partition("-") for part in text.split(",")]
    return sum(max(int(last or first) - int(first) + 1, 0) for first, _, last in bounds)


def _ray_checkpoints(resource: Resource, text: Node, report: Report) -> None:
    """Code of Ray Train that ends, or waits for ever, at its checkpoints."""
    code = text.text()
    if not _USES_RAY.search(code):
        return
    if _ENTERED.search(code):
        allowed = "checkpoint = train.get_checkpoint(), and where it is not None: with checkpoint.as_directory()"
        report.refuse(resource, text, allowed=allowed, found="with train.get_checkpoint()")
    reports = len(_REPORT.findall(code))
    if reports and not _ONE_WORKER.search(code) and _reports_of_rank_0(code.splitlines()) == reports:
        allowed = "train.report() on every worker, with checkpoint=None on all but rank 0: each waits for the others"
        report.refuse(resource, text, allowed=allowed, found="train.report() on rank 0 alone")


def _reports_of_rank_0(lines: Sequence[str]) -> int:
    """How many calls of train.report() stand in a block for rank 0 alone."""
    found, depth = 0, -1
    for line in lines:
        if not line.strip():
            continue
        if depth >= 0 and len(line) - len(line.lstrip()) <= depth:
            depth = -1
        if depth < 0 and (opened := _RANK_0.match(line)):
            depth = len(opened[1])
        found += int(depth >= 0 and _REPORT.match(line) is not None)
    return found


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
    meeting = ("--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}")
    return ["torchrun", f"--nnodes={nodes}", f"--nproc-per-node={processes}", *meeting, "train.py"]


def _neuron_job(cores: int) -> Example:
    container = {"name": "main", "resources": {"limits": {NEURON: 16, NEURON_CORE: cores}}}
    spec = {"nodeSelector": {INSTANCE_TYPE: "trn1.32xlarge"}, "containers": [container]}
    return Example(JOB, {"spec": {"template": {"spec": spec}}})


def _under(selector: dict[str, str]) -> tuple[Example, ...]:
    """Ranks and the Service that gives them names."""
    job = _job(_torchrun(4, 8)).properties
    template = {**job["spec"]["template"], "metadata": {"labels": {"app": "pretrain"}}}
    service = {"metadata": {"name": "ranks"}, "spec": {"clusterIP": "None", "selector": selector}}
    ranks = Example(JOB, {**job, "spec": {**job["spec"], "template": template}}, name="pretrain")
    return (Example(SERVICE, service, name="ranks"), ranks)


RULES = (
    Rule(
        id="JOB01",
        name="job-require-indexed-ranks",
        title="A trainer over several pods of a Job is Indexed, whole and has host names",
        types=frozenset({JOB, CRON_JOB, JOB_SET}),
        check=indexed,
        why="pods have no rank and no name for each other, or are fewer than they wait for; policies at odds are refused.",
        fix="set completionMode: Indexed, completions equal to parallelism, a headless Service as subdomain, and restartPolicy: Never.",
        source="Kubernetes: Indexed Jobs with pod-to-pod communication; batch/v1 JobSpec 1.36; JobSet: Jobs are Indexed by default; Kueue: "
        "partial admission; kubernetes-sigs/kueue#3140",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 8), completionMode="NonIndexed"),),
    ),
    Rule(
        id="JOB02",
        name="job-disallow-own-address",
        title="Ranks of several nodes meet at rank 0's address, not at their own, on a port that is one",
        types=_TOLD,
        check=meeting_point,
        why="every pod waits at its own address, or one of nobody, for the others until the time-out, with all nodes paid for.",
        fix="use the stable name of rank 0's pod, such as <job>-0.<service> (<job>-master-0 in a PyTorchJob).",
        source="field guide section on Indexed Jobs; torch 2.15 distributed/run.py, argparse_util.py, static_tcp_rendezvous.py",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 8, "localhost:29500")),),
    ),
    Rule(
        id="JOB03",
        name="job-require-process-per-device",
        title="Processes are as many as devices, nodes as many as pods, and launchers take their options",
        types=_TOLD | {CONFIG_MAP},
        check=process_counts,
        why="several ranks share a GPU and run out of memory, or have the same rank and never meet.",
        fix="start one process for each GPU, once per pod, and give torchrun its rendezvous.",
        source="torch 2.15 distributed/run.py (--nnodes: 1:1); accelerate 1.15, DeepSpeed 0.19.8 launchers; field guide section on Slurm",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 64)),),
    ),
    Rule(
        id="JOB04",
        name="job-require-accelerator-arithmetic",
        title="Neuron cores follow from devices, compiling is not training, a Ray worker is one GPU",
        types=POD_TYPES | {CONFIG_MAP},
        check=_neuron,
        why="nothing is trained, or one device of eight is used, without any error; code of Ray stops, or waits for ever, at a checkpoint.",
        fix="count cores by the family (2 per device on trn1, 8 on trn2), train after compiling, give each Ray worker one GPU.",
        source="field guide sections on Neuron and Ray; Ray 2.58: train.report, get_checkpoint; Karpenter 1.14.1 instance-type reference",
        valid=(_neuron_job(32),),
        invalid=(_neuron_job(16),),
    ),
    StackRule(
        id="JOB05",
        name="job-require-selecting-service",
        title="The Service under which ranks have their names selects them",
        types=frozenset({SERVICE, *NAMED}),
        check=names,
        why="no pod has the name at which the others look for it, and every rank waits until the time-out, with all nodes paid for.",
        fix="give the headless Service labels of the pods as its selector, their namespace, and the name that they have as subdomain "
        "(serviceName in a StatefulSet).",
        source="Kubernetes: DNS for Services and Pods, hostname and subdomain; endpointslice/utils.go; JobSet: jobset_controller.go",
        valid=_under({"app": "pretrain"}),
        invalid=_under({"app": "trainer"}),
    ),
)
