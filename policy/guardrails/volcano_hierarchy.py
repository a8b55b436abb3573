"""The hierarchy of queues by annotations, beside the one by their parents: what Volcano's admission takes of it."""

import re
from collections.abc import Sequence

from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Report, Resource
from guardrails.tokens import QUEUE

_PATH = "volcano.sh/hierarchy"
_WEIGHTS = "volcano.sh/hierarchy-weights"
_ROOT = "root"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,4})?", re.I)
# Go reads more than this, such as 0x1p-2, and less, such as a lone point: what is left is no number to it for sure.
_MAY_BE_NUMBER = re.compile(r"[+-]?(?:[0-9_.]+(?:e[+-]?[0-9_]+)?|0x[0-9a-f_.]+p[+-]?[0-9_]+|inf|infinity|nan)", re.I)


def hierarchy(program: Program, queue: Resource, report: Report) -> None:
    """VOL02: judge the path of a queue and its weights, and hold the path against those of other queues."""
    annotations = queue.at("metadata", "annotations")
    path, weights = annotations.at(_PATH), annotations.at(_WEIGHTS)
    if not (path.text() or weights.text()):
        return
    parts, given = len(path.text().split("/")), weights.text().split("/")
    if parts != len(given):
        report.refuse(queue, weights, allowed=f"a number for each part of {_PATH}, {parts} in all, with / between them")
    else:
        _weights(queue, weights, given, report)
    with report.part():
        _below(program, queue, path, report)


def _weights(queue: Resource, place: Node, given: Sequence[str], report: Report) -> None:
    if any(map(_is_none, given)):
        report.refuse(queue, place, allowed="numbers above 0")
    elif any(_DECIMAL.fullmatch(each) and float(each) < 1 for each in given):
        report.advise(queue, place, allowed="numbers from 1: the scheduler counts less as 1")


def _is_none(weight: str) -> bool:
    """Whether a weight is no number to Go, or not above 0."""
    return float(weight) <= 0 if _DECIMAL.fullmatch(weight) else not _MAY_BE_NUMBER.fullmatch(weight)


def _whole(path: str) -> str:
    """A path as admission leaves it, which puts the root before one that does not begin with its name."""
    return path if not path or path.startswith(_ROOT) else f"{_ROOT}/{path}"


def _below(program: Program, queue: Resource, path: Node, report: Report) -> None:
    """A queue is a leaf of the tree, which admission asks of what is made or changed later; no order among queues is known."""
    own = _whole(path.text())
    for other in program.of(QUEUE) if own else ():
        with report.part():
            theirs = other.at("metadata", "annotations", _PATH).text()
            if _whole(theirs).startswith(f"{own}/"):
                allowed = f"a path that no other queue is below: admission refuses this queue once {other.name} is there, with {theirs}"
                report.advise(queue, path, allowed=allowed)
