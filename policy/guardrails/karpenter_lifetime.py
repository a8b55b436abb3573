"""How long a node lives: expiry, grace periods, Spot."""

from collections.abc import Callable
from typing import Any

from guardrails.auto_mode import is_auto_pool
from guardrails.chart import CHART_TYPES, charts
from guardrails.efa import class_of
from guardrails.facts import load
from guardrails.node import Node
from guardrails.placing import DO_NOT_DISRUPT, new_users_of, users_of
from guardrails.pool import CAPACITY_TYPE, allowed_values, capacity_types, is_training_pool
from guardrails.program import Program
from guardrails.quantity import seconds
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import GPU, POD_TYPES, PodTemplate, only_launches, pod_templates
from guardrails.tokens import MPI_JOB, NODE_CLASS, NODE_POOL, PYTORCH_JOB, VOLCANO_JOB
from guardrails.volcano_admission import mpi_tasks

_NEVER = "Never"
_SPOT, _RESERVED = "spot", "reserved"
_DEFAULT_EXPIRY = "720h"
_DEFAULT_POD_GRACE = 30
# A checkpoint of a sharded model takes minutes, not seconds; less leaves torn ones.
_LEAST_GRACE = 120
# EC2 takes a Spot instance back two minutes after the notice.
_SPOT_NOTICE = 120


def _expiry_place(pool: Resource) -> Node:
    return pool.at("spec", "template", "spec", "expireAfter")


def _expires(pool: Resource) -> bool:
    return _expiry_place(pool).text() != _NEVER


def _zero_budgets(pool: Resource) -> list[Node]:
    budgets = pool.at("spec", "disruption", "budgets")
    return [budget for budget in budgets.elements() if budget.at("nodes").text() in ("0", "0%")]


def _means_protection(pool: Resource) -> bool:
    """Whether a budget of 0 nodes is for every reason at every time."""
    return any(not budget.at("reasons").present and not budget.at("schedule").present for budget in _zero_budgets(pool))


def _zero_budget_as_protection(resource: Resource, report: Report) -> None:
    training = is_training_pool(resource)
    if not training and not _means_protection(resource):
        return
    tell = report.refuse if training else report.advise
    why = "on a pool of accelerators" if training else "beside a budget of 0 nodes, which does not stop expiry"
    with report.part():
        expire = _expiry_place(resource)
        if is_auto_pool(resource):
            _replaced(resource, expire, tell, report)
        elif expire.text() != _NEVER:
            found = expire.raw or f"unset (Karpenter then uses {_DEFAULT_EXPIRY})"
            tell(resource, expire, allowed=f"{_NEVER} {why}", found=found)
    with report.part():
        if _SPOT in capacity_types(resource) and _zero_budgets(resource):
            named = allowed_values(resource, CAPACITY_TYPE)
            place = resource.at("spec", "template", "spec", "requirements")
            found = f"capacity type {', '.join(named)}" if named else "without one that keeps spot out"
            tell(resource, place, allowed="reserved or on-demand beside a budget of 0 nodes", found=found)


def _replaced(pool: Resource, expire: Node, tell: Callable[..., None], report: Report) -> None:
    """EKS Auto Mode ends each node some day, whatever the pool says: it takes a shorter life from it, and no longer one."""
    facts = load("karpenter")["autoModeExpiry"]
    most, given = facts["mostHours"], seconds(expire.text())
    if expire.text() == _NEVER or (given is not None and given > most * 3600):
        tell(pool, expire, allowed=f"{most}h or less: EKS Auto Mode replaces a node by then, whatever is written here")
        return
    found = expire.raw or f"unset (EKS Auto Mode then uses {facts['defaultHours']}h)"
    allowed = "checkpoints that training goes on from, or nodes of its own outside EKS Auto Mode, which replaces these by then"
    report.advise(pool, expire, allowed=allowed, found=found)


def _grace(program: Program, report: Report) -> None:
    for pool in program.of(NODE_POOL):
        with report.part():
            _grace_of(program, pool, report)


def _grace_of(program: Program, pool: Resource, report: Report) -> None:
    place = pool.at("spec", "template", "spec", "terminationGracePeriod")
    training = is_training_pool(pool)
    if not place.present:
        if training and _expires(pool):
            allowed = "a duration: without one an expired node waits for its pods for ever, half drained"
            report.refuse(pool, place, allowed=allowed)
            return
        for resource, template in new_users_of(program, pool):
            if template.metadata.at("annotations", DO_NOT_DISRUPT).text() == "true":
                allowed = f"a duration, because pods of {resource.name} carry {DO_NOT_DISRUPT}, and a drain waits for them for ever"
                report.refuse(pool, place, allowed=allowed)
                return
        return
    given = seconds(place.text())
    if given is None:
        report.refuse(pool, place, allowed="a duration such as 30m or 2h")
        return
    if training and given < _LEAST_GRACE:
        report.refuse(pool, place, allowed=f"{_LEAST_GRACE}s or more, so that a checkpoint gets written")
    for resource, template in new_users_of(program, pool):
        with report.part():
            _covers(pool, place, given, resource, template, report)


def _covers(pool: Resource, place: Node, given: int, resource: Resource, template: PodTemplate, report: Report) -> None:
    own = template.spec.at("terminationGracePeriodSeconds").integer()
    wanted = _DEFAULT_POD_GRACE if own is None else own
    if given < wanted:
        report.refuse(pool, place, allowed=f"{wanted}s or more, the terminationGracePeriodSeconds of {resource.name}")


def _spot(program: Program, report: Report) -> None:
    for pool in program.of(NODE_POOL):
        with report.part():
            if _SPOT in capacity_types(pool) and is_training_pool(pool):
                for resource, template in users_of(program, pool):
                    _survives(pool, resource, template, report)
    with report.part():
        _interruptions(program, report)


def _survives(pool: Resource, resource: Resource, template: PodTemplate, report: Report) -> None:
    if not template.devices() or _ranks(resource) < 2:
        return
    grace = template.spec.at("terminationGracePeriodSeconds").integer()
    if grace is None or not _DEFAULT_POD_GRACE < grace <= _SPOT_NOTICE:
        place = pool.at("spec", "template", "spec", "requirements")
        allowed = (
            f"no spot, which Karpenter takes before on-demand, or a job that writes a checkpoint within the notice:"
            f" terminationGracePeriodSeconds of {resource.name} above {_DEFAULT_POD_GRACE} and up to {_SPOT_NOTICE}"
        )
        spot = _SPOT if allowed_values(pool, CAPACITY_TYPE) else "without one that keeps spot out"
        found = f"{spot}, and {resource.name} has a grace of {f'{_DEFAULT_POD_GRACE} (the default)' if grace is None else grace} s"
        report.refuse(pool, place, allowed=allowed, found=found)


def _ranks(resource: Resource) -> int:
    """The pods that go on together or not at all: those of a gang but its launcher, and of another kind those with devices."""
    gang = resource.type in (MPI_JOB, PYTORCH_JOB, VOLCANO_JOB)
    ranks = (each for each in pod_templates(resource) if (gang or each.devices()) and not _launches(resource, each))
    return sum(each.replicas for each in ranks)


def _launches(resource: Resource, template: PodTemplate) -> bool:
    if resource.type != VOLCANO_JOB:
        return only_launches(resource, template)
    plugin = resource.at("spec", "plugins", "mpi")
    return plugin.present and bool(template.role) and template.role == mpi_tasks(plugin)["master"]


def _interruptions(program: Program, report: Report) -> None:
    users: list[str] = []
    for pool in program.of(NODE_POOL):
        with report.part():
            users += [pool.name] if _is_taken_back(program, pool) else []
    if not users:
        return
    for chart in charts(program, "karpenter"):
        with report.part():
            place = chart.value("settings", "interruptionQueue")
            if not place.text():
                allowed = f"the name of a queue: {users[0]} uses spot or reserved capacity, and Karpenter hears of its end there"
                report.refuse(chart.resource, place, allowed=allowed)


def _is_taken_back(program: Program, pool: Resource) -> bool:
    """Whether EC2 may end the pool's nodes: those of Spot, and of a reservation that the pool or its class names."""
    kinds = capacity_types(pool)
    if _SPOT in kinds or _RESERVED in (allowed_values(pool, CAPACITY_TYPE) or ()):
        return True
    node_class = class_of(program, pool) if _RESERVED in kinds else None
    return node_class is not None and any(True for _ in node_class.at("spec", "capacityReservationSelectorTerms").elements())


def _pool(*, budgets: list | None = None, kinds: tuple[str, ...] = ("on-demand",), **template: Any) -> Example:
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]},
        {"key": CAPACITY_TYPE, "operator": "In", "values": list(kinds)},
    ]
    spec = {
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m", "budgets": budgets or [{"nodes": "0"}]},
        "limits": {"nvidia.com/gpu": 64},
        "template": {"metadata": {"labels": {"pool": "p5"}}, "spec": {"requirements": requirements, **template}},
    }
    return Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": spec}, name="p5")


def _job(grace: int) -> Example:
    container = {"name": "trainer", "resources": {"limits": {GPU: 8}, "requests": {GPU: 8}}}
    pod = {"nodeSelector": {"pool": "p5"}, "terminationGracePeriodSeconds": grace, "containers": [container]}
    spec = {"tasks": [{"name": "worker", "replicas": 4, "template": {"spec": pod}}]}
    return Example(VOLCANO_JOB, {"metadata": {"name": "pretrain"}, "spec": spec}, name="pretrain")


RULES = (
    Rule(
        id="KRP04",
        name="node-pool-disallow-expiry",
        title="A budget of 0 nodes does not protect from expiry or from Spot",
        types=frozenset({NODE_POOL}),
        check=_zero_budget_as_protection,
        why="on day 30 the node is drained by force, or Spot takes it with two minutes' notice, whatever the budgets say.",
        fix="set template.spec.expireAfter to Never (EKS Auto Mode has no such nodes) and the capacity type to reserved or on-demand.",
        source="karpenter 1.14.1 concepts/disruption; kubernetes-sigs/karpenter#1590; provider-aws 1.14.1 instance.go; EKS: Auto Mode",
        valid=(_pool(expireAfter=_NEVER),),
        invalid=(_pool(),),
    ),
    StackRule(
        id="KRP05",
        name="node-pool-require-covering-grace",
        title="A pool's termination grace period covers a checkpoint and the grace of its pods",
        types=POD_TYPES | {NODE_POOL},
        check=_grace,
        early=True,
        why="it overrides disruption budgets and do-not-disrupt: too short, and a checkpoint is torn; without it a drain never ends.",
        fix="set template.spec.terminationGracePeriod above the pods' terminationGracePeriodSeconds.",
        source="karpenter 1.14.1 concepts/disruption; kubernetes-sigs/karpenter#1789",
        valid=(_pool(expireAfter=_NEVER, terminationGracePeriod="1h"), _job(600)),
        invalid=(_pool(expireAfter=_NEVER, terminationGracePeriod="5m"), _job(3600)),
    ),
    StackRule(
        id="KRP10",
        name="node-pool-require-spot-readiness",
        title="A training pool takes Spot only for jobs that save themselves within the notice, and Karpenter hears of it",
        types=POD_TYPES | CHART_TYPES | {NODE_POOL, NODE_CLASS},
        check=_spot,
        why="Karpenter takes spot before on-demand; two minutes after the notice the gang loses a rank and all since the checkpoint.",
        fix="leave spot out, or give the job a grace of at most 120 s and a checkpoint on SIGTERM; set settings.interruptionQueue.",
        source="karpenter 1.14.1 concepts/nodepools and tasks/odcrs; karpenter-provider-aws 1.14.1 instance.go (getCapacityType)",
        valid=(_pool(kinds=("spot",), budgets=[{"nodes": "1"}], expireAfter=_NEVER), _job(100)),
        invalid=(_pool(kinds=("spot", "on-demand"), budgets=[{"nodes": "1"}], expireAfter=_NEVER), _job(600)),
    ),
)
