"""NodePools: what Karpenter accepts, and what a pool of accelerators must say."""

import re
from collections.abc import Iterable
from typing import Any

from guardrails.allocatable import HYPERVISOR_SHARE
from guardrails.auto_mode import is_auto_pool
from guardrails.cron import CronError, open_spans, parse, written
from guardrails.facts import instance_types, load
from guardrails.node import Node
from guardrails.pool import (
    CAPACITY_TYPE,
    CAPACITY_TYPES,
    INSTANCE_TYPE,
    ZONE,
    ZONE_NAME,
    accelerated_types,
    barring_key,
    is_training_pool,
    is_zone_by_other_key,
    normal_key,
    possible_types,
)
from guardrails.quantity import MEBIBYTE, mebibytes, quantity, seconds
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import NODE_POOL

_NODE_POOL = frozenset({NODE_POOL})
_POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
_NEVER = "Never"
_DURATION = re.compile(r"([0-9]+(s|m|h))+")
_BUDGET_DURATION = re.compile(r"(([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?")
_BUDGET_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]+")
_REASONS = ("Underutilized", "Empty", "Drifted")
_MOST_BUDGETS = 50
_BOUNDS = frozenset({"cpu", "nodes"})
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_COMPARISONS = frozenset({"Gt", "Lt", "Gte", "Lte"})
_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_KEY = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_KNOWN_VALUES = {CAPACITY_TYPE: CAPACITY_TYPES, "karpenter.k8s.aws/instance-tenancy": ("default", "dedicated")}
_LOWER_CASE = re.compile(
    r"karpenter\.k8s\.aws/instance-(?:gpu|accelerator)-(?:name|manufacturer)|karpenter\.k8s\.aws/instance-cpu-manufacturer"
)
"""Keys whose values Karpenter writes in lower case, whatever case EC2 has them in."""
_OF_KARPENTER, _OF_AUTO_MODE, _OF_KUBERNETES = "karpenter.k8s.aws/", "eks.amazonaws.com/", "node.kubernetes.io/"
_MOST_REQUIREMENTS = 100
_LONGEST_KEY = 316
_LONGEST_DOMAIN = 253
_LONGEST_VALUE = 63
_MOST_MIN_VALUES = 50


def _consolidation(resource: Resource, report: Report) -> None:
    policy = resource.at("spec", "disruption", "consolidationPolicy")
    with report.part():
        if policy.present and policy.text() not in _POLICIES:
            report.refuse(resource, policy, allowed=", ".join(_POLICIES))
        elif is_training_pool(resource) and policy.text() != "WhenEmpty" and _consolidates(resource):
            found = policy.raw or "unset (Karpenter then uses WhenEmptyOrUnderutilized)"
            report.refuse(resource, policy, allowed="WhenEmpty on a pool of accelerators", found=found)
    with report.part():
        after = resource.at("spec", "disruption", "consolidateAfter")
        if after.present and after.text() != _NEVER and not _DURATION.fullmatch(after.text()):
            report.refuse(resource, after, allowed="Never, or a duration such as 30s, 10m or 1h30m")


def _consolidates(pool: Resource) -> bool:
    """Whether Karpenter consolidates nodes of the pool at all: neither those of a static pool, nor where consolidateAfter is Never."""
    return not pool.at("spec", "replicas").present and pool.at("spec", "disruption", "consolidateAfter").text() != _NEVER


def _budgets(resource: Resource, report: Report) -> None:
    budgets = resource.at("spec", "disruption", "budgets")
    members = list(budgets.elements())
    if len(members) > _MOST_BUDGETS:
        report.refuse(resource, budgets, allowed=f"at most {_MOST_BUDGETS} budgets", found=f"{len(members)} budgets")
    for budget in members:
        for check in (_budget_nodes, _budget_window, _budget_reasons):
            with report.part():
                check(resource, budget, report)


def _budget_nodes(resource: Resource, budget: Node, report: Report) -> None:
    nodes = budget.at("nodes")
    if nodes.present and not _BUDGET_NODES.fullmatch(nodes.text()):
        report.refuse(resource, nodes, allowed="a whole number of nodes, or 0% to 100%")


def _budget_window(resource: Resource, budget: Node, report: Report) -> None:
    schedule, duration = budget.at("schedule"), budget.at("duration")
    if schedule.present != duration.present:
        missing = duration if schedule.present else schedule
        report.refuse(resource, missing, allowed="schedule and duration together, or neither")
    if duration.present and not _BUDGET_DURATION.fullmatch(duration.text()):
        report.refuse(resource, duration, allowed="hours and minutes only, such as 8h or 1h30m")
    if schedule.present:
        try:
            parse(schedule.text())
        except CronError as error:
            report.refuse(resource, schedule, allowed=str(error))


def _budget_reasons(resource: Resource, budget: Node, report: Report) -> None:
    reasons = budget.at("reasons")
    if reasons.value == []:
        report.advise(resource, reasons, allowed="at least one reason, or unset for all: an empty list limits nothing", found="empty")
    for reason in reasons.elements():
        if reason.text() not in _REASONS:
            report.refuse(resource, reason, allowed=", ".join(_REASONS))


def _limits(resource: Resource, report: Report) -> None:
    limits, replicas = resource.at("spec", "limits"), resource.at("spec", "replicas")
    with report.part():
        if replicas.present:
            _static(resource, limits, report)
            return
    with report.part():
        missing = _unbounded(resource, {key for key, limit in limits.entries() if limit.present}) if is_training_pool(resource) else []
        if missing:
            found = "unset" if not limits.present else limits.raw
            report.refuse(resource, limits, allowed=f"{', '.join(missing)}, cpu or nodes, each with a number", found=found)
    for key, limit in limits.entries():
        with report.part():
            _holds_a_node(resource, key, limit, report)


def _holds_a_node(pool: Resource, key: str, limit: Node, report: Report) -> None:
    """Karpenter starts no node by which the pool would pass a limit; one of 0 switches the pool off."""
    most, each = quantity(limit.text()), [_counted(name, key) for name in possible_types(pool) or ()]
    least = min((number for number in each if number is not None), default=0.0)
    if most and None not in each and 0 < most < least:
        needed = mebibytes(least) if key == "memory" else f"{least:g}"
        # How much of a node's memory counts is a setting of Karpenter's (vmMemoryOverheadPercent).
        tell = report.advise if key == "memory" else report.refuse
        tell(pool, limit, allowed=f"at least {needed}, what the smallest node of the pool has, or 0 for no node at all")


def _counted(name: str, key: str) -> float | None:
    """What Karpenter counts of a node against a limit; None where that is not known."""
    size, instance = load("sizes")["types"].get(name), instance_types().get(name)
    if key == "cpu":
        return size and size[0]
    if key == "memory":
        return size and size[1] * (1 - HYPERVISOR_SHARE) * MEBIBYTE
    return instance.count if instance and key == instance.counted_as[0] else None


def _unbounded(pool: Resource, limited: set[str]) -> list[str]:
    """The resources of which a limit is missing; one of accelerators that the pool's types do not have never binds."""
    if limited & _BOUNDS:
        return []
    types = accelerated_types(pool)
    if types:
        return sorted({each.counted_as[0] for each in types if not limited.intersection(each.counted_as)})
    return [] if limited.intersection(load("karpenter")["acceleratorResources"]) else ["nvidia.com/gpu", "aws.amazon.com/neuron"]


def _static(resource: Resource, limits: Node, report: Report) -> None:
    weight = resource.at("spec", "weight")
    if weight.present:
        report.refuse(resource, weight, allowed="unset, because replicas makes the pool static")
    for key, limit in limits.entries():
        if key != "nodes":
            report.refuse(resource, limit, allowed="only nodes, because replicas makes the pool static")


def _requirements(resource: Resource, report: Report) -> None:
    place = resource.at("spec", "template", "spec", "requirements")
    members = list(place.elements())
    if len(members) > _MOST_REQUIREMENTS:
        report.refuse(resource, place, allowed=f"at most {_MOST_REQUIREMENTS}", found=f"{len(members)} requirements")
    for requirement in members:
        for check in (_operator, _restricted, _of_another_kind, _least_values, _value):
            with report.part():
                check(resource, requirement, report)
    with report.part():
        # A requirement that is refused above leaves nothing either.
        barred = None if report.findings else barring_key(resource)
        if barred:
            key, named = barred
            found = f"{key} at odds with {', '.join(named)}" if key != INSTANCE_TYPE else f"several of {key} that have none in common"
            report.refuse(resource, place, allowed="requirements that leave a type: no node of this pool ever starts", found=found)
    with report.part():
        for key, label in resource.at("spec", "template", "metadata", "labels").entries():
            _label_key(resource, label, key, [label], report, found=f"a label {key}")
    _taints(resource, report)


def _taints(resource: Resource, report: Report) -> None:
    """Karpenter, and not the API server, wants a pair of key and effect once among both kinds of taints."""
    seen: set[tuple[str, str]] = set()
    for kind in ("taints", "startupTaints"):
        for taint in resource.at("spec", "template", "spec", kind).elements():
            with report.part():
                pair = taint.at("key").text(), taint.at("effect").text()
                if pair in seen:
                    allowed = "each pair of key and effect once among taints and startupTaints"
                    report.refuse(resource, taint, allowed=allowed, found=f"{':'.join(pair)} again")
                seen.add(pair)


def _operator(resource: Resource, requirement: Node, report: Report) -> None:
    operator, values = requirement.at("operator"), requirement.at("values")
    name = operator.text()
    given = list(values.elements())
    if name not in _OPERATORS:
        report.refuse(resource, operator, allowed=", ".join(_OPERATORS))
    elif name == "In" and not given:
        report.refuse(resource, values, allowed="at least one value with In", found="empty")
    elif name in _COMPARISONS:
        number = given[0].integer() if len(given) == 1 else None
        if number is None or number < 0:
            report.refuse(resource, values, allowed=f"one whole number from 0 with {name}")


def _restricted(resource: Resource, requirement: Node, report: Report) -> None:
    key = requirement.at("key")
    _label_key(resource, key, key.text(), requirement.at("values").elements(), report, found=key.text())


def _of_another_kind(resource: Resource, requirement: Node, report: Report) -> None:
    """Keys that tell types apart elsewhere: Karpenter takes them for labels of your own, which any type gets."""
    key = requirement.at("key")
    domain, slash, name = key.text().rpartition("/")
    meant = f"{_OF_KARPENTER}{name}"
    foreign = (_OF_KUBERNETES,) if is_auto_pool(resource) else (_OF_KUBERNETES, _OF_AUTO_MODE)
    if f"{domain}{slash}" in foreign and meant in load("karpenter")["labels"]:
        wanted = f"{_OF_AUTO_MODE}{name}" if is_auto_pool(resource) else meant
        report.refuse(resource, key, allowed=f"{wanted}: Karpenter takes this one for a label of your own, which keeps no type out")


def _label_key(resource: Resource, place: Node, key: str, values: Iterable[Node], report: Report, *, found: str) -> None:
    domain, _, name = key.rpartition("/")
    if len(key) > _LONGEST_KEY or len(domain) > _LONGEST_DOMAIN or len(name) > _LONGEST_VALUE or not _KEY.fullmatch(key):
        report.refuse(resource, place, allowed="a label name", found=found)
    else:
        _restricted_key(resource, place, key, values, report, found=found)


def _restricted_key(resource: Resource, place: Node, key: str, values: Iterable[Node], report: Report, *, found: str) -> None:
    domain = key.partition("/")[0]
    facts = load("karpenter")
    if key in ("kubernetes.io/hostname", "karpenter.sh/nodepool"):
        report.refuse(resource, place, allowed="a label of your own: Karpenter sets this one", found=found)
    elif is_zone_by_other_key(key, values):
        report.refuse(resource, place, allowed=f"{ZONE}: no other key pins a zone", found=found)
    elif domain.endswith(("karpenter.sh", "karpenter.k8s.aws")) and key not in facts["labels"]:
        report.refuse(resource, place, allowed=f"a key that Karpenter knows, such as {facts['labels'][0]}, or one of your own", found=found)


def _least_values(resource: Resource, requirement: Node, report: Report) -> None:
    least = requirement.at("minValues")
    if not least.present:
        return
    number, count = least.integer(), len(list(requirement.at("values").elements()))
    if number is None or not 1 <= number <= _MOST_MIN_VALUES:
        report.refuse(resource, least, allowed=f"1 to {_MOST_MIN_VALUES}")
    elif requirement.at("operator").text() == "In" and number > count:
        report.refuse(resource, least, allowed=f"at most {count}, the number of values")


def _value(resource: Resource, requirement: Node, report: Report) -> None:
    key = normal_key(requirement.at("key").text())
    if requirement.at("operator").text() in _COMPARISONS:
        return
    for value in requirement.at("values").elements():
        if value.text() not in _KNOWN_VALUES.get(key, (value.text(),)):
            report.refuse(resource, value, allowed=", ".join(_KNOWN_VALUES[key]))
        elif key == ZONE and not _matches(ZONE_NAME, value.text()):
            report.refuse(resource, value, allowed="the name of a zone, such as us-east-1a")
        elif key == INSTANCE_TYPE and not _matches(_TYPE, value.text()):
            report.refuse(resource, value, allowed="the name of an instance type, such as p5.48xlarge")
        elif _LOWER_CASE.fullmatch(key) and value.text() != value.text().lower():
            report.refuse(resource, value, allowed=f"{value.text().lower()}: Karpenter has these names in lower case")
        elif not _matches(_VALUE, value.text()):
            report.refuse(resource, value, allowed="the value of a label: letters, digits, -, _ and . between letters or digits")


def _matches(form: re.Pattern[str], text: str) -> bool:
    return len(text) <= _LONGEST_VALUE and form.fullmatch(text) is not None


def _unlimited_hours(resource: Resource, report: Report) -> None:
    budgets = resource.at("spec", "disruption", "budgets")
    # Without any, Karpenter limits every reason to 10 % of the nodes, always.
    if not is_training_pool(resource) or budgets.value is None:
        return
    members = list(budgets.elements())
    # A window that can't be read stops all that budgets limit; rule KRP03 refuses it.
    if not all(_readable(member) for member in members):
        return
    members = [member for member in members if not _lets_all_go(member)]
    for reason in _judged_reasons(resource, members):
        windows = [_window(member) for member in members if _limits_reason(member, reason)]
        if any(window is None for window in windows):
            continue
        spans = open_spans([window for window in windows if window is not None])
        if spans:
            found = f"without a limit for {reason}: {written(spans)}"
            report.refuse(resource, budgets, allowed="a budget for each reason at every hour of the week, 0 to keep nodes", found=found)


def _readable(budget: Node) -> bool:
    """Whether Karpenter can tell when the budget is active."""
    if not budget.at("schedule").present and not budget.at("duration").present:
        return True
    try:
        parse(budget.at("schedule").text())
    except CronError:
        return False
    return seconds(budget.at("duration").text()) is not None


def _lets_all_go(budget: Node) -> bool:
    """Whether it never limits anything; one with a schedule is a window in which somebody lets all nodes go on purpose."""
    return budget.at("nodes").text() == "100%" and not budget.at("schedule").present


def _judged_reasons(resource: Resource, budgets: list[Node]) -> list[str]:
    """Drift always; underutilization unless only empty nodes go; emptiness where somebody meant to limit it."""
    reasons = ["Drifted"]
    if not _consolidates(resource):
        return reasons
    if resource.at("spec", "disruption", "consolidationPolicy").text() != "WhenEmpty":
        reasons.append("Underutilized")
    if any("Empty" in _named_reasons(budget) for budget in budgets):
        reasons.append("Empty")
    return reasons


def _named_reasons(budget: Node) -> list[str]:
    return [reason.text() for reason in budget.at("reasons").elements()]


def _limits_reason(budget: Node, reason: str) -> bool:
    return not budget.at("reasons").present or reason in _named_reasons(budget)


def _window(budget: Node) -> tuple | None:
    """Schedule and minutes of a budget; None where it is always active."""
    if not budget.at("schedule").present:
        return None
    return parse(budget.at("schedule").text()), (seconds(budget.at("duration").text()) or 0) // 60


def _pool(*, spec: dict | None = None, disruption: dict | None = None, **template: Any) -> tuple[Example, ...]:
    requirements = [{"key": INSTANCE_TYPE, "operator": "In", "values": ["p5.48xlarge"]}]
    body = {
        "limits": {"nvidia.com/gpu": 64},
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10m", **(disruption or {})},
        "template": {"spec": {"requirements": requirements, "expireAfter": "Never", **template}},
        **(spec or {}),
    }
    return (Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": body}, name="p5"),)


def _capacity(*kinds: str) -> dict[str, Any]:
    return {"requirements": [{"key": CAPACITY_TYPE, "operator": "In", "values": list(kinds)}]}


RULES = (
    Rule(
        id="KRP02",
        name="node-pool-require-when-empty",
        title="A training pool consolidates only empty nodes",
        types=_NODE_POOL,
        check=_consolidation,
        why="Karpenter evicts running ranks to save money, and the whole gang starts over.",
        fix="set disruption.consolidationPolicy to WhenEmpty and consolidateAfter to a duration such as 10m.",
        source="karpenter 1.14.1 nodepool.go and consolidation.go",
        valid=_pool(),
        invalid=_pool(disruption={"consolidationPolicy": "WhenUnderutilized"}),
    ),
    Rule(
        id="KRP03",
        name="node-pool-require-valid-budget",
        title="A disruption budget must be one that Karpenter accepts",
        types=_NODE_POOL,
        check=_budgets,
        why="the API server refuses the NodePool, so there is no pool; a schedule that Karpenter can't read stops consolidation and drift.",
        fix="give schedule and duration together, nodes as a number or percentage, and known reasons.",
        source="karpenter 1.14.1 nodepool.go (CEL rules and patterns)",
        valid=_pool(disruption={"budgets": [{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}]}),
        invalid=_pool(disruption={"budgets": [{"nodes": "0", "schedule": "@daily"}]}),
    ),
    Rule(
        id="KRP08",
        name="node-pool-require-limits",
        title="A pool of accelerators has a limit, which holds a node; a static pool has no other than nodes",
        types=_NODE_POOL,
        check=_limits,
        why="a job with a wrong replica count buys accelerators without end, or no node starts; a static pool takes no other limits.",
        fix="set spec.limits, such as nvidia.com/gpu: 64; with replicas, only nodes and no weight.",
        source="karpenter 1.14.1 nodepool.go and scheduling/scheduler.go (filterByRemainingResources); aws/karpenter-provider-aws#8068",
        valid=_pool(),
        invalid=_pool(spec={"limits": {}}),
    ),
    Rule(
        id="KRP09",
        name="node-pool-require-valid-requirements",
        title="A pool's requirements, labels and taints are ones that Karpenter takes",
        types=_NODE_POOL,
        check=_requirements,
        why="the API server refuses the NodePool, or Karpenter launches nothing for it, and its pods stay Pending without a reason.",
        fix="use the operators, keys and values that Karpenter knows; pin zones by topology.kubernetes.io/zone.",
        source="karpenter 1.14.1 nodepool.go, nodepool_ and nodeclaim_validation.go and labels.go; kubernetes-sigs/karpenter#2458, "
        "aws/karpenter-provider-aws#8064",
        valid=_pool(**_capacity("reserved", "on-demand")),
        invalid=_pool(**_capacity("ondemand")),
    ),
    Rule(
        id="KRP15",
        name="node-pool-require-budget-all-week",
        title="A training pool's budgets limit each reason at every hour of the week",
        types=_NODE_POOL,
        check=_unlimited_hours,
        why="budgets only restrict: a reason without an active budget is unlimited, and nodes under running ranks are replaced.",
        fix='add budgets of nodes: "0" for the hours named, or one without a schedule for the reason.',
        source="karpenter 1.14.1 concepts/disruption and nodepool.go; aws/karpenter-provider-aws#7026",
        valid=_pool(disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}),
        invalid=_pool(disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"], "schedule": "0 9 * * *", "duration": "8h"}]}),
    ),
)
