"""Parallelism by command line: the axes use every rank once, and what talks most is closest."""

from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU
from guardrails.tokens import VOLCANO_JOB
from guardrails.world import MODEL_AXES, TRAINERS, World, world

_DIVISIBLE = {"heads": "attention heads", "groups": "key and value heads", "hidden": "the hidden size"}

_SHARED = (("layers", "pipeline", "pipeline stages"), ("all experts", "expert", "ranks that share them"))
"""Counts of the model, and the axes that divide them."""


def _product(job: Resource, report: Report) -> None:
    found = world(job)
    # A job of no ranks is another rule's matter.
    if found is None or found.ranks < 1:
        return
    shape = f"{found.nodes} nodes x {found.per_node}"
    if found.ranks % found.model:
        said = f"{_axes(found)} = {found.model}"
        report.refuse(job, found.place, allowed=f"a product that divides {found.ranks} ranks ({shape})", found=said)
        return
    replicas = found.ranks // found.model
    named = found.sizes.get("data")
    if named is not None and named != replicas:
        said = f"{_axes(found)} x data {named} = {found.model * named}"
        report.refuse(job, found.place, allowed=f"{found.ranks} ranks ({shape}), so data {replicas}", found=said)
    _experts(job, found, replicas, report)
    _micro_batches(job, found, replicas, report)
    _divided(job, found, report)


def _divided(job: Resource, found: World, report: Report) -> None:
    """What Megatron-LM divides evenly, or stops."""
    for name, axis, meaning in _SHARED:
        total, parts = found.sizes.get(name, 0), found.size(axis)
        if total % parts:
            report.refuse(job, found.place, allowed=f"a multiple of {parts}, the {meaning}", found=f"{total} {name.removeprefix('all ')}")


def _experts(job: Resource, found: World, replicas: int, report: Report) -> None:
    if found.size("expert") > 1 and found.ranks % found.experts:
        said = f"{_axes(found, 'expert tensor', 'expert', 'pipeline')} = {found.experts}"
        report.refuse(
            job, found.place, allowed=f"a product that divides {found.ranks} ranks ({found.nodes} nodes x {found.per_node})", found=said
        )
    within = found.size("data expert")
    if replicas % within:
        report.refuse(job, found.place, allowed=f"a divisor of {replicas} data-parallel ranks", found=f"expert {within}")


def _micro_batches(job: Resource, found: World, replicas: int, report: Report) -> None:
    stages, micro, total = found.size("pipeline"), found.sizes.get("micro"), found.sizes.get("total")
    if stages > 1 and micro and total and total // (micro * replicas) < stages:
        said = f"{total} / ({micro} x {replicas} replicas) = {total // (micro * replicas)} micro-batches"
        report.refuse(job, found.place, allowed=f"at least {stages} micro-batches, one for each pipeline stage", found=said)
    elif micro and (everyone := found.sizes.get("global", 0)) % (micro * replicas):
        allowed = f"a multiple of {micro * replicas} = micro-batch {micro} x {replicas} data-parallel replicas"
        report.refuse(job, found.place, allowed=allowed, found=f"global batch {everyone}")


def _axes(found: World, *names: str) -> str:
    return " x ".join(f"{name} {found.size(name)}" for name in names or MODEL_AXES if name in found.sizes) or "1"


def _tensor(job: Resource, report: Report) -> None:
    found = world(job)
    if found is None or found.per_node < 1 or found.size("tensor") == 1:
        return
    tensor = found.size("tensor")
    if found.per_node % tensor:
        allowed = f"a divisor of {found.per_node}, the ranks of a node: the group's traffic is in every layer"
        report.advise(job, found.place, allowed=allowed, found=f"tensor {tensor}")
    for name, meaning in _DIVISIBLE.items():
        size = found.sizes.get(name)
        if size is not None and size % tensor:
            report.refuse(job, found.place, allowed=f"a divisor of {size}, {meaning}", found=f"tensor {tensor}")


def _job(arguments: str, *, pods: int = 8) -> Example:
    container = {"name": "main", "command": ["python3", "train.py", *arguments.split()], "resources": {"limits": {GPU: 8}}}
    task = {"name": "worker", "replicas": pods, "template": {"spec": {"containers": [container]}}}
    return Example(VOLCANO_JOB, {"metadata": {"name": "pretrain"}, "spec": {"tasks": [task]}})


RULES = (
    Rule(
        id="PAR01",
        name="job-require-whole-mesh",
        title="Tensor x pipeline x context x sequence x data is the number of ranks",
        types=TRAINERS,
        check=_product,
        why="every rank stops when the groups are made, after all nodes were started and paid for.",
        fix="choose sizes whose product is nodes x GPUs, ranks that experts divide too, and whole micro-batches, one a stage or more.",
        source="field guide section on parallelism; process groups of DeepSpeed, Megatron-LM and torchtitan (parallel_dims.py)",
        valid=(_job("--tp 8 --pp 4 --dp 2"),),
        invalid=(_job("--tp 8 --pp 4 --dp 4"),),
    ),
    Rule(
        id="PAR02",
        name="job-require-tensor-in-node",
        title="A tensor group is within a node and divides the model",
        types=TRAINERS,
        check=_tensor,
        why="a group over two nodes waits for the network in every layer; a size that does not divide the model stops all ranks.",
        fix="use a tensor size that divides the GPUs of a node, the heads, the key and value heads and the hidden size.",
        source="field guide section on tensor parallelism",
        valid=(_job("--tp 8 --num-attention-heads 64"),),
        invalid=(_job("--tp 8 --num-attention-heads 60"),),
    ),
)
