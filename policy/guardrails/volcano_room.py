"""Whether a gang fits in its queue: Volcano lets none in that asks for more than the queue may use."""

from collections.abc import Callable, Iterable, Sequence

from guardrails.node import Node
from guardrails.pod_requests import asked
from guardrails.quantity import mebibytes, quantity
from guardrails.rule import Report, Resource
from guardrails.template import PodTemplate, pod_templates

_ROUNDING = 1 + 1e-9


def fits(job: Resource, place: Node, queues: Iterable[Resource], least: Callable[[Node], int], report: Report) -> None:
    """VOL02: judge a job at `place` against its queue and those above; `least` is how many of a task's pods the gang waits for."""
    gang = _gang(job, least)
    for queue in queues if gang else ():
        for unit, limit in queue.at("spec", "capability").entries():
            with report.part():
                wanted, most = sum(pods * asked(template, unit) for pods, template in gang), quantity(limit.text())
                if most is not None and wanted > most * _ROUNDING:
                    found = f"{place.text()}, with a gang that asks for {_written(wanted, unit)} {unit}"
                    name = queue.at("metadata", "name").text() or queue.name
                    report.refuse(job, place, allowed=f"a queue that may use as much; {name} may use {limit.text()}", found=found)


def _gang(job: Resource, least: Callable[[Node], int]) -> Sequence[tuple[int, PodTemplate]]:
    """Pods of each task that start together; none where the job wants fewer than its tasks do, and which is Volcano's choice."""
    tasks, named = list(job.at("spec", "tasks").elements()), job.at("spec", "minAvailable").integer() or 0
    counts = [least(task) for task in tasks]
    if 0 < named < sum(counts):
        if len(tasks) > 1:
            return []
        counts = [named]
    return list(zip(counts, pod_templates(job), strict=True))


def _written(number: float, unit: str) -> str:
    return mebibytes(number) if unit == "memory" else f"{number:g}"
