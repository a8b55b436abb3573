"""What launchers refuse of their own command line, or make less of."""

import difflib
import re

from guardrails import command, gang
from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Report, Resource
from guardrails.template import PodTemplate

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*|-[0-9]+|0")
_SELECTIONS = ("--include", "--exclude")


def options(resource: Resource, _: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    """JOB03: judge the options of one call that are wrong wherever it runs."""
    for check in (_processes, _rank, _division, _selection):
        with report.part():
            check(resource, container, call, report)


def _processes(resource: Resource, container: Node, call: command.Invocation, report: Report) -> None:
    if call.launcher not in command.TORCHRUN:
        return
    told, known = gang.setting(call, container, "--nproc-per-node") or "", load("launchers")["processWords"]
    if _WORD.fullmatch(told) and told not in known:
        allowed = f"--nproc-per-node with a number, or one of {', '.join(known)}"
        # A back end of another maker brings a word of its own.
        tell = report.refuse if not told[:1].isalpha() or difflib.get_close_matches(told, known) else report.advise
        tell(resource, command.place(container), allowed=allowed, found=f"--nproc-per-node {told}")


def _rank(resource: Resource, container: Node, call: command.Invocation, report: Report) -> None:
    rank, (_, most) = gang.rank(call, container) or "", gang.nodes(call, container) or (0, 0)
    if most and rank.isdecimal() and int(rank[:9]) >= most and not gang.is_dynamic(call, container):
        allowed = f"a rank below {most}, the number of nodes: the first is 0"
        report.refuse(resource, command.place(container), allowed=allowed, found=f"rank {rank}")


def _division(resource: Resource, container: Node, call: command.Invocation, report: Report) -> None:
    """accelerate starts on each node what a whole division gives, and leaves the rest out."""
    everyone, (_, nodes) = call.number("--num-processes"), gang.nodes(call, container) or (0, 0)
    if call.launcher in command.ACCELERATE and everyone and nodes and everyone % nodes:
        allowed = f"a multiple of --num-machines {nodes}: it is the number of all processes, of which each node starts {everyone // nodes}"
        report.refuse(resource, command.place(container), allowed=allowed, found=f"--num-processes {everyone}")


def _selection(resource: Resource, container: Node, call: command.Invocation, report: Report) -> None:
    if call.launcher not in command.DEEPSPEED:
        return
    chosen = [name for name in _SELECTIONS if call.option(name)]
    counted = [name for name in ("--num-nodes", "--num-gpus") if (call.number(name) or 0) > 0]
    if len(chosen) > 1 or (chosen and counted):
        found = " and ".join([*chosen, *counted])
        report.refuse(resource, command.place(container), allowed=f"{chosen[0]} alone: DeepSpeed takes no other beside it", found=found)
