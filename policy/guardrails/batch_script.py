"""Slurm scripts in a ConfigMap: processes against the GPUs of a node, and how torchrun's nodes find each other."""

import re

from guardrails import command, gang
from guardrails.meeting import is_own
from guardrails.node import Node
from guardrails.rule import Report, Resource
from guardrails.slurm_step import Step, is_slurm, steps

_MOST_GPUS = 16
"""No instance type has more."""
_EVERY = frozenset({"gpu", "auto", "cuda"})
_ALONE = Node({})
"""A script has no container, and so no variables of one."""
_LOOP = re.compile(r"^\s*(?:for|while|until)\b", re.M)


def batch_script(resource: Resource, text: Node, report: Report) -> None:
    """JOB03: judge the steps of a script."""
    script = text.text()
    if not is_slurm(script):
        return
    found = list(steps(script))
    for step in found:
        _tasks_of_gpus(resource, text, step, report)
        for call in step.calls:
            more = call.expand(call.program)
            if not (more.startswith("-") and "nproc" in more):
                _processes(resource, text, step, call, report)
            # What a variable holds, and torchrun's own variables, may tell the rest.
            if "PET_" not in script and not more.startswith(("$", "-")):
                _meeting(resource, text, step, call, report)
                if len(found) == 1 and not _LOOP.search(script):
                    _nodes(resource, text, step, call, report)


def _tasks_of_gpus(resource: Resource, text: Node, step: Step, report: Report) -> None:
    """Tasks that ask for more GPUs of their own than a node has."""
    asked = (step.per_task or 0) * (step.per_node or 0)
    if step.certain and asked > _MOST_GPUS:
        found = f"{step.per_node} tasks x {step.per_task} GPUs of their own (--gpus-per-task) = {asked} per node"
        report.refuse(
            resource, text, allowed=f"at most {_MOST_GPUS} GPUs, what the largest nodes have: one task that has them all", found=found
        )


def _processes(resource: Resource, text: Node, step: Step, call: command.Invocation, report: Report) -> None:
    each, gpus = _each(step, call), step.gpus
    if not each or not gpus or not step.per_node or step.per_node * each <= gpus:
        return
    tell = report.refuse if step.certain else report.advise
    found = f"{step.per_node} tasks x {each} processes = {step.per_node * each} per node"
    tell(resource, text, allowed=f"at most {gpus}, the node's GPUs: one task that starts {gpus} processes", found=found)


def _each(step: Step, call: command.Invocation) -> int | None:
    """Processes that one call starts: a word stands for the GPUs that its task sees, all of the node's unless told."""
    if call.option("--nproc-per-node") not in _EVERY:
        return call.number("--nproc-per-node")
    return None if step.bound else step.per_task or step.gpus


def _meeting(resource: Resource, text: Node, step: Step, call: command.Invocation, report: Report) -> None:
    least, most = gang.nodes(call, _ALONE) or (0, 0)
    if least < 2:
        return
    if not gang.meets(call, _ALONE):
        allowed = "--rdzv-backend=c10d and --rdzv-endpoint (or --node-rank and --master-addr)"
        report.refuse(resource, text, allowed=allowed, found=f"--nnodes {most} alone")
        return
    address = next((value for name in (gang.ENDPOINT, "--master-addr") if (value := call.option(name))), "")
    # The shell of the script puts in the name of the first node, one that srun starts that of its own.
    on_each = call in step.own_calls or not address.startswith(("$", "`"))
    if on_each and is_own(_ALONE, address):
        report.refuse(resource, text, allowed="the address of the first node, found out before srun", found=f"{address} on each node")
    rank = gang.rank(call, _ALONE) or ""
    if rank.isdecimal() and not gang.is_dynamic(call, _ALONE) and (step.tasks or 0) > 1:
        allowed = "--node-rank of each task's own, such as $SLURM_NODEID in a shell that srun starts"
        report.refuse(resource, text, allowed=allowed, found=f"--node-rank {rank} in {step.tasks} tasks")


def _nodes(resource: Resource, text: Node, step: Step, call: command.Invocation, report: Report) -> None:
    """More nodes than there are tasks that start torchrun, where the step has all nodes of the job: it waits for the others for ever."""
    least, _ = gang.nodes(call, _ALONE) or (0, 0)
    launchers, nodes = step.tasks, step.nodes
    if step.certain and launchers and nodes and least > launchers >= nodes:
        allowed = f"at most --nnodes {launchers}, the tasks that start torchrun"
        report.refuse(resource, text, allowed=allowed, found=f"--nnodes {least}")
