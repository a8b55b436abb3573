"""The ranks of a job, and how its command line divides them."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from guardrails import command, environment, gang
from guardrails.mpi import slots, workers
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.template import GPU, PodTemplate, pod_templates
from guardrails.tokens import CONFIG_MAP, CRON_JOB, JOB, JOB_SET, LEADER_WORKER_SET, MPI_JOB, PYTORCH_JOB, STATEFUL_SET, VOLCANO_JOB

_JOBS = frozenset({MPI_JOB, PYTORCH_JOB, VOLCANO_JOB, JOB, CRON_JOB, JOB_SET})
TRAINERS = _JOBS | {STATEFUL_SET, LEADER_WORKER_SET}
"""Kinds whose pods are the ranks of one run, or may be (see `trains`)."""
MODEL_AXES = ("tensor", "pipeline", "context", "sequence")
"""Axes along which ranks hold one copy of the model between them."""

_MEGATRON_EXPERTS = "expert-model-parallel-size"
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "tensor": ("tensor-model-parallel-size", "tensor-parallel-size", "tensor-parallel-degree", "parallelism.tensor-parallel-degree", "tp"),
    "pipeline": (
        "pipeline-model-parallel-size",
        "pipeline-parallel-size",
        "pipeline-parallel-degree",
        "parallelism.pipeline-parallel-degree",
        "pp",
    ),
    "context": ("context-parallel-size", "context-parallel-degree", "parallelism.context-parallel-degree", "cp"),
    "sequence": ("ds-sequence-parallel-size", "sequence-parallel-size", "ulysses-degree"),
    "expert": (_MEGATRON_EXPERTS, "expert-parallel-size", "expert-parallel-degree", "parallelism.expert-parallel-degree"),
    "expert tensor": ("expert-tensor-parallel-size", "expert-tensor-parallel-degree", "parallelism.expert-tensor-parallel-degree"),
    "data": ("data-parallel-size", "data-parallel-degree", "dp"),
    "micro": ("micro-batch-size", "per-device-train-batch-size", "train-micro-batch-size-per-gpu"),
    "total": ("global-batch-size", "train-batch-size"),
    "heads": ("num-attention-heads", "n-heads"),
    "groups": ("num-query-groups", "num-key-value-heads", "n-kv-heads"),
    "hidden": ("hidden-size",),
}
# Alone they may count something else, such as epochs.
_BESIDE_AXES: Mapping[str, tuple[str, ...]] = {"sequence": ("sp",), "expert": ("ep",)}
# Numbers that Megatron-LM holds against the axes, the options that name these, and those by which it does not.
_OF_MEGATRON: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "global": ("global-batch-size", "tensor-model-parallel-size", ("rampup-batch-size", "decrease-batch-size-if-needed")),
    "layers": (
        "num-layers",
        "pipeline-model-parallel-size",
        (
            *("decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers", "pipeline-model-parallel-layout"),
            *("account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split", "standalone-embedding-stage"),
            *("hybrid-override-pattern", "hybrid-layer-pattern", "pipeline-model-parallel-split-rank", "encoder-num-layers"),
        ),
    ),
    "all experts": ("num-experts", _MEGATRON_EXPERTS, ()),
}
# With DeepSpeed's pipeline Megatron-LM leaves the stages to that, which takes any number of layers.
_PIPELINE_OF_DEEPSPEED = ("deepspeed", "pp-partition-method")
_NO_PIPELINE = "no-pipeline-parallel"
# The project's own trainer divides experts among the data-parallel ranks only (training/layout.py).
_OVERRIDES = {**{f"parallel.{name}": name for name in ("tensor", "pipeline", "context")}, "parallel.expert": "data expert"}


@dataclass(frozen=True)
class World:
    """Ranks of a job and the sizes that its command line names; 1 where it names none."""

    nodes: int
    per_node: int
    sizes: Mapping[str, int]
    place: Node
    """Where the command line is."""

    @property
    def ranks(self) -> int:
        """Processes in all."""
        return self.nodes * self.per_node

    def size(self, name: str) -> int:
        """Ranks along an axis."""
        return self.sizes.get(name, 1)

    @property
    def model(self) -> int:
        """Ranks that hold one copy of the model between them."""
        return math.prod(self.size(axis) for axis in MODEL_AXES)

    @property
    def experts(self) -> int:
        """Ranks that hold one copy of all experts between them; they may be those of several copies of the rest."""
        return math.prod(self.size(axis) for axis in ("expert tensor", "expert", "pipeline"))

    @property
    def replicas(self) -> int | None:
        """Copies of the model; None where the ranks can't be divided so."""
        return self.ranks // self.model if self.ranks % self.model == 0 else None


def trains(job: Resource) -> bool:
    """Whether the pods of a resource of `TRAINERS` are ranks of one run: those of a set are servers, unless a launcher spreads over them.

    Raises:
        Undecided: a number of nodes is unknown.
    """
    if job.type in _JOBS:
        return True
    return any(map(gang.is_spread, pod_templates(job)))


def trains_alone(template: PodTemplate) -> bool:
    """Whether a pod of no job trains, as far as it says: it meets others, starts ranks, or runs what is named after training."""
    return gang.meets_others(template) or any(
        gang.calls(each) or gang.names_training(each) or _has_trainer(each) for each in template.containers()
    )


def _has_trainer(container: Node) -> bool:
    """Whether the container runs its image's program, without words of its own or with options alone, and the image is a trainer's."""
    first = next((word.text() for key in ("command", "args") for word in container.at(key).elements()), "-")
    return first.startswith("-") and command.is_of_training(_image_name(container.at("image").text()))


def _image_name(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def world(job: Resource, config: Resource | None = None) -> World | None:
    """The ranks of a job of `TRAINERS`; None where they can't be told. A DeepSpeed configuration may divide them further.

    Raises:
        Undecided: a number that is needed is unknown.
    """
    found = _command_line(job) if trains(job) else None
    shape = _shape(job, *found) if found is not None else None
    if found is None or shape is None:
        return None
    (nodes, per_node), (container, call) = shape, found
    sizes = _sizes(call) if call is not None else {}
    return World(nodes, per_node, {**sizes, **_of_deepspeed(config)}, command.place(container))


def _shape(job: Resource, container: Node, line: command.Invocation | None) -> tuple[int, int] | None:
    """Nodes and ranks of each: what the launcher of the container is told, or else pods and their GPUs."""
    if job.type == MPI_JOB:
        nodes = workers(job) + int(job.at("spec", "runLauncherAsWorker").value is True)
        return (nodes, slots(job)) if nodes > 0 else None
    templates = [template for template in pod_templates(job) if template.requested(GPU) > 0]
    if not templates:
        return None
    own = command.invocations([line.arguments], command.RANKS, line.expand) if line is not None else ()
    calls = list(own) or gang.calls(container)
    call = next((each for each in calls if gang.spreads(each, container)), next(iter(calls), None))
    told = told_nodes(call, container) if call is not None else None
    nodes = _pods(job, templates) if told is None else told
    if nodes is None:
        return None
    each = told_ranks(call, container, nodes) if call is not None else None
    counts = {template.requested(GPU) for template in templates}
    if each is None and len(counts) == 1:
        each = counts.pop()
    return None if each is None else (nodes, each)


def _pods(job: Resource, templates: Sequence[PodTemplate]) -> int | None:
    """The pods that train together; None where the groups of a set may do so or not."""
    if job.type == LEADER_WORKER_SET or (job.type == JOB_SET and not _is_one_job(job)):
        return None
    if job.type in (JOB, CRON_JOB):
        return sum(gang.size(job, template) for template in templates)
    return sum(template.replicas for template in templates)


def _is_one_job(jobs: Resource) -> bool:
    """Whether a JobSet makes one Job, all pods of which run at once."""
    groups = list(jobs.at("spec", "replicatedJobs").elements())
    if len(groups) != 1 or groups[0].at("replicas").integer() not in (None, 1):
        return False
    spec = groups[0].at("template", "spec")
    return spec.at("completions").integer() in (None, spec.at("parallelism").integer())


def told_nodes(call: command.Invocation, container: Node) -> int | None:
    """The number of nodes that the launcher waits for; None where it is not told one, or a range."""
    if call.flag("--standalone"):
        return 1
    least, most = gang.nodes(call, container) or (0, 0)
    if most:
        return most if least == most else None
    # Without a file of its settings accelerate takes itself for the only node.
    alone = call.launcher in command.ACCELERATE and not call.flag(gang.nodes_option(call)) and not has_more_settings(call, container)
    return 1 if alone and call.number("--num-processes") else None


def has_more_settings(call: command.Invocation, container: Node) -> bool:
    """Whether accelerate may be told more than its options say: by a file of its own, or by a variable behind them."""
    more = call.expand(call.program).replace("_", "-")
    return has_settings_file(call, container) or more.startswith("$") or gang.nodes_option(call) in more


def has_settings_file(call: command.Invocation, container: Node) -> bool:
    """Whether accelerate reads settings from a file: one that is named, or that may be where it looks by itself."""
    mounts = (mount.at("mountPath").text() for mount in container.at("volumeMounts").elements())
    return call.flag("--config-file") or any("accelerate" in mount for mount in mounts)


def told_ranks(call: command.Invocation, container: Node, nodes: int | None) -> int | None:
    """The ranks that the launcher is told to start on each node."""
    if call.launcher in command.ACCELERATE:
        everyone = call.number("--num-processes")
        return everyone // nodes if everyone and nodes else None
    return gang.number(call, container, "--nproc-per-node") or call.number("--num-gpus", "--num-accelerators")


def _command_line(job: Resource) -> tuple[Node, command.Invocation | None] | None:
    """The first container with a command that names sizes, and the command; else the first container of all."""
    first: Node | None = None
    for template in pod_templates(job):
        for container in template.containers():
            named = [call for call in programs(container) if _sizes(call)]
            if named:
                return container, command.likely(named)[0]
            first = first or container
    return (first, None) if first is not None else None


def programs(container: Node) -> list[command.Invocation]:
    """The commands that may train, with the values of the variables that the container sets."""
    return command.programs(container, environment.expander(container))


def _sizes(call: command.Invocation) -> dict[str, int]:
    found = _numbers(call, _OPTIONS)
    if not {*MODEL_AXES, "data"}.isdisjoint(found):
        found = {**_numbers(call, _BESIDE_AXES), **found}
    if call.flag(_MEGATRON_EXPERTS) and "tensor" in found:
        # Megatron-LM divides an expert as it divides the rest, torchtitan and others don't unless told.
        found.setdefault("expert tensor", found["tensor"])
    found |= _of_megatron(call)
    for word in call.arguments:
        name, equals, value = word.partition("=")
        if equals and name in _OVERRIDES and re.fullmatch(r"[0-9]{1,9}", number := call.expand(value)):
            found[_OVERRIDES[name]] = int(number)
    return {name: number for name, number in found.items() if number > 0}


def _of_megatron(call: command.Invocation) -> dict[str, int]:
    counted = {
        kind: call.number(name) for kind, (name, axis, others) in _OF_MEGATRON.items() if call.number(axis) and not call.flag(*others)
    }
    uneven = call.flag(*_PIPELINE_OF_DEEPSPEED) and not call.flag(_NO_PIPELINE)
    return {kind: number for kind, number in counted.items() if number is not None and not (uneven and kind == "layers")}


def _numbers(whole: command.Invocation, options: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    return {name: number for name, names in options.items() if (number := whole.number(*names)) is not None}


def _of_deepspeed(config: Resource | None) -> dict[str, int]:
    if config is None:
        return {}
    named = {
        "tensor": config.at("tensor_parallel", "autotp_size"),
        "pipeline": config.at("pipeline", "stages"),
        "sequence": config.at("sequence_parallel_size"),
    }
    return {name: number for name, node in named.items() if (number := node.integer() or 0) > 0}


def mounted_config_maps(job: Resource) -> set[str]:
    """Names of the ConfigMaps that a job's pods mount or read."""
    return {name for template in pod_templates(job) for name in _named(template)}


def _named(template: PodTemplate) -> Iterator[str]:
    for volume in template.spec.at("volumes").elements():
        yield volume.at("configMap", "name").text()
        for source in volume.at("projected", "sources").elements():
            yield source.at("configMap", "name").text()
    for container in template.all_containers():
        for source in container.at("envFrom").elements():
            yield source.at("configMapRef", "name").text()
        for variable in container.at("env").elements():
            yield variable.at("valueFrom", "configMapKeyRef", "name").text()


def reads(job: Resource, carried: Resource, program: Program) -> bool:
    """Whether a job's pods mount or read the ConfigMap that carries this configuration."""
    maps = [one for one in program.of(CONFIG_MAP) if one.urn == carried.urn and one.name == carried.name]
    names = {carried.name, *(one.at("metadata", "name").text() for one in maps)} - {""}
    if not names & mounted_config_maps(job):
        return False
    return not maps or any(namespace(one) == namespace(job) for one in maps)


def namespace(resource: Resource) -> str:
    """The namespace of a Kubernetes object."""
    return resource.at("metadata", "namespace").text() or "default"
