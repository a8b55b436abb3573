"""Whether a gang fits in its pools: Karpenter starts no node by which a pool would pass one of its limits."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from guardrails import volcano_room
from guardrails.facts import instance_types
from guardrails.gang import runs_training
from guardrails.links import named
from guardrails.node import Node
from guardrails.placing import POOL_LABEL, is_queued, may_take, names_pools, pools_of, wanted_labels
from guardrails.pod_requests import asked
from guardrails.pool import possible_types
from guardrails.program import Program
from guardrails.quantity import quantity
from guardrails.rule import Report, Resource
from guardrails.template import DEVICES, EFA, GPU, WORKER, PodTemplate, pod_templates
from guardrails.tokens import MPI_JOB, NODE_GROUP, NODE_POOL, PYTORCH_JOB, SCALING_GROUP, VOLCANO_JOB
from guardrails.training_operator import MASTER, is_elastic, pods_to_train

_UNITS = ("cpu", *DEVICES, EFA)
"""What Karpenter counts of a node as the node itself does; how much memory it counts is a setting of its own."""
_VOLCANO = "volcano"
_ELSEWHERE = "kueue.x-k8s.io/multikueue"
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class _Gang:
    """The pods of a job that are to run at the same time."""

    place: Node
    """Where the job says how many there are."""
    parts: Sequence[tuple[int, PodTemplate]]
    """How many there are of each template."""
    waits: bool
    """Whether none of them gets anywhere before all of them run."""


@dataclass(frozen=True)
class _Share:
    """Those of them that go to the same pools."""

    pools: Sequence[Resource]
    alone: bool
    """Whether nodes of these pools are sure to be the only ones that take them."""
    parts: list[tuple[int, PodTemplate]] = field(default_factory=list)


def fits(program: Program, job: Resource, shares_gpus: Callable[[], bool], report: Report) -> None:
    """POD06: judge a job whose pods run together against all that its pools may ever have."""
    gang = _GANGS[job.type](job)
    # Another cluster, or Kueue, decides where these go.
    if job.at("spec", "runPolicy", "managedBy").text() == _ELSEWHERE or any(is_queued(job, template) for _, template in gang.parts):
        return
    for share in _shares(program, gang):
        for unit in _UNITS:
            with report.part():
                wanted, most = sum(pods * asked(template, unit) for pods, template in share.parts), _most(share.pools, unit)
                if most is not None and wanted > most * _ROUNDING and not (unit == GPU and shares_gpus()):
                    _tell(job, gang, share, (unit, wanted, most), report)


def _tell(job: Resource, gang: _Gang, share: _Share, amounts: tuple[str, float, float], report: Report) -> None:
    unit, wanted, most = amounts
    # A limit of 0 is how a pool is switched off for a while.
    certain = gang.waits and share.alone and most > 0
    pools = " and ".join(pool.name for pool in share.pools)
    remark = "" if certain else ", unless some of the pods run elsewhere or later"
    found = f"{gang.place.text() or 'unset'}, with pods that together ask for {wanted:g} {unit}"
    tell = report.refuse if certain else report.advise
    tell(job, gang.place, allowed=f"at most {most:g} {unit}, all that {pools} may have by its limits{remark}", found=found)


def _shares(program: Program, gang: _Gang) -> Iterable[_Share]:
    shares: dict[tuple[int, ...], _Share] = {}
    for pods, template in gang.parts:
        pools, alone = _pools(program, template) if pods else ([], False)
        if pools:
            shares.setdefault(tuple(map(id, pools)), _Share(pools, alone)).parts.append((pods, template))
    return shares.values()


def _pools(program: Program, template: PodTemplate) -> tuple[list[Resource], bool]:
    """The pools that the pod may go to, and whether it is sure that it goes to no other nodes; none where other nodes may well take it."""
    names = wanted_labels(template).get(POOL_LABEL)
    if names:
        found = [named(program, name, NODE_POOL) for name in names]
        return [pool for pool in found if pool is not None] if None not in found else [], True
    if not names_pools(template) or any(may_take(program, group, template) for group in program.of(NODE_GROUP, SCALING_GROUP)):
        return [], False
    return pools_of(program, template), False


def _most(pools: Sequence[Resource], unit: str) -> float | None:
    """What all nodes of the pools may have together; None where nothing limits those of one."""
    each = [_most_of(pool, unit) for pool in pools]
    limited = [most for most in each if most is not None]
    return sum(limited) if len(limited) == len(each) else None


def _most_of(pool: Resource, unit: str) -> float | None:
    limits, each = pool.at("spec", "limits"), _of_a_node(pool, unit)
    own, nodes = quantity(limits.at(unit).text()), quantity(limits.at("nodes").text())
    bounds = [] if own is None else [own]
    if each and own is not None and min(each) == max(each):
        # The last node is a whole one too.
        bounds.append(own // each[0] * each[0])
    if each and nodes is not None:
        bounds.append(nodes * max(each))
    return min(bounds, default=None)


def _of_a_node(pool: Resource, unit: str) -> list[int]:
    """The accelerators of each type that the pool may launch; none where that is not known of all."""
    types = [instance_types().get(name) for name in possible_types(pool) or ()]
    return [each.count for each in types if each] if all(each and unit == each.counted_as[0] for each in types) else []


def _volcano(job: Resource) -> _Gang:
    schedulers = [job.at("spec", "schedulerName"), *(template.spec.at("schedulerName") for template in pod_templates(job))]
    waits = all(each.text() == _VOLCANO for each in schedulers if each.present)
    # The pods of a task that depends on others may come when those of the others are gone.
    first = [not task.at("dependsOn").present for task in job.at("spec", "tasks").elements()]
    gang = volcano_room.gang(job)
    return _Gang(job.at("spec", "minAvailable"), [part for part, now in zip(gang, first, strict=False) if now], waits)


def _mpi(job: Resource) -> _Gang:
    workers = [(template.replicas, template) for template in pod_templates(job) if template.role == WORKER]
    waits = job.at("spec", "launcherCreationPolicy").text() == "WaitForWorkersReady"
    return _Gang(job.at("spec", "mpiReplicaSpecs", WORKER, "replicas"), workers, waits)


def _pytorch(job: Resource) -> _Gang:
    pods = [(template.replicas, template) for template in pod_templates(job)]
    roles = job.at("spec", "pytorchReplicaSpecs")
    place = roles.at(WORKER if roles.at(WORKER).present else MASTER, "replicas")
    if is_elastic(job):
        place = job.at("spec", "elasticPolicy", "minReplicas")
        pods = [(min(count, pods_to_train(job, count)[0]), template) for count, template in pods if template.role == WORKER]
    return _Gang(place, pods, all(runs_training(template) for _, template in pods))


_GANGS: Mapping[str, Callable[[Resource], _Gang]] = {VOLCANO_JOB: _volcano, MPI_JOB: _mpi, PYTORCH_JOB: _pytorch}
GANGS = frozenset(_GANGS)
"""Kinds of jobs that it judges."""
