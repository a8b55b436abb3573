"""Whether a gang fits in its queue: Volcano lets none in that asks for more than the queue may use."""

from collections.abc import Iterable, Sequence

from guardrails.node import Node
from guardrails.pod_requests import asked
from guardrails.quantity import mebibytes, quantity
from guardrails.rule import Report, Resource
from guardrails.template import PodTemplate, pod_templates

_ROUNDING = 1 + 1e-9


def fits(job: Resource, place: Node, queues: Iterable[Resource], report: Report) -> None:
    """VOL02: judge a job at `place` against its queue and those above."""
    parts = gang(job)
    for queue in queues if parts else ():
        for unit, limit in queue.at("spec", "capability").entries():
            with report.part():
                wanted, most = sum(pods * asked(template, unit) for pods, template in parts), quantity(limit.text())
                if most is not None and wanted > most * _ROUNDING:
                    found = f"{place.text()}, with a gang that asks for {_written(wanted, unit)} {unit}"
                    name = queue.at("metadata", "name").text() or queue.name
                    report.refuse(job, place, allowed=f"a queue that may use as much; {name} may use {limit.text()}", found=found)


def replicas(task: Node) -> int:
    """The pods of a task; none where the number is left out."""
    return task.at("replicas").integer() or 0


def least(task: Node) -> int:
    """How many of a task's pods its gang waits for, with what Volcano's admission writes where the task does not say."""
    own, policy = task.at("minAvailable"), task.at("partitionPolicy")
    if own.present:
        return own.integer() or 0
    if policy.present:
        return (policy.at("minPartitions").integer() or 0) * (policy.at("partitionSize").integer() or 0)
    return replicas(task)


def gang(job: Resource) -> Sequence[tuple[int, PodTemplate]]:
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
