"""Karpenter: pools that must not move a running gang, and images that must not drift under it."""

import re

from guardrails.node import Node
from guardrails.pool import CAPACITY_TYPE, allowed_values, is_training_pool
from guardrails.rule import Report, Resource, Rule
from guardrails.tokens import NODE_CLASS, NODE_POOL

_POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
_DURATION = re.compile(r"([0-9]+(s|m|h))+")
_BUDGET_DURATION = re.compile(r"([0-9]+(m|h)|[0-9]+m0s|[0-9]+h[0-9]+m0s)+")
_BUDGET_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]+")
_REASONS = ("Underutilized", "Empty", "Drifted")
_MOST_BUDGETS = 50
_ALIAS = re.compile(r"(al2|al2023|bottlerocket|windows2019|windows2022|windows2025)@(\S+)")
_NODE_POOL = frozenset({NODE_POOL})


def _consolidation(resource: Resource, report: Report) -> None:
    policy = resource.at("spec", "disruption", "consolidationPolicy")
    with report.part():
        if policy.present and policy.text() not in _POLICIES:
            report.refuse(resource, policy, allowed=", ".join(_POLICIES))
        elif is_training_pool(resource) and policy.text() != "WhenEmpty":
            found = policy.raw or "unset (Karpenter then uses WhenEmptyOrUnderutilized)"
            report.refuse(resource, policy, allowed="WhenEmpty on a pool of accelerators", found=found)
    with report.part():
        after = resource.at("spec", "disruption", "consolidateAfter")
        if after.present and after.text() != "Never" and not _DURATION.fullmatch(after.text()):
            report.refuse(resource, after, allowed="Never, or a duration such as 30s, 10m or 1h30m")


def _budgets(resource: Resource, report: Report) -> None:
    budgets = resource.at("spec", "disruption", "budgets")
    members = list(budgets.elements())
    if len(members) > _MOST_BUDGETS:
        report.refuse(resource, budgets, allowed=f"at most {_MOST_BUDGETS} budgets", found=f"{len(members)} budgets")
    for budget in members:
        with report.part():
            _budget(resource, budget, report)


def _budget(resource: Resource, budget: Node, report: Report) -> None:
    nodes, schedule, duration = budget.at("nodes"), budget.at("schedule"), budget.at("duration")
    if nodes.present and not _BUDGET_NODES.fullmatch(nodes.text()):
        report.refuse(resource, nodes, allowed="a whole number of nodes, or 0% to 100%")
    if schedule.present != duration.present:
        missing = duration if schedule.present else schedule
        report.refuse(resource, missing, allowed="schedule and duration together, or neither", found="unset")
    if duration.present and not _BUDGET_DURATION.fullmatch(duration.text()):
        report.refuse(resource, duration, allowed="hours and minutes only, such as 8h or 1h30m")
    for reason in budget.at("reasons").elements():
        if reason.text() not in _REASONS:
            report.refuse(resource, reason, allowed=", ".join(_REASONS))


def _zero_budget_as_protection(resource: Resource, report: Report) -> None:
    if not is_training_pool(resource):
        return
    expire = resource.at("spec", "template", "spec", "expireAfter")
    with report.part():
        if expire.text() != "Never":
            found = expire.raw or "unset (Karpenter then uses 720h)"
            report.refuse(resource, expire, allowed="Never on a pool of accelerators", found=found)
    with report.part():
        budgets = resource.at("spec", "disruption", "budgets")
        stopped = any(budget.at("nodes").text() in ("0", "0%") for budget in budgets.elements())
        capacity = allowed_values(resource, CAPACITY_TYPE) or []
        if stopped and "spot" in capacity:
            place = resource.at("spec", "template", "spec", "requirements")
            report.refuse(resource, place, allowed="reserved or on-demand beside a budget of 0 nodes", found=f"capacity type {capacity}")


def _images(resource: Resource, report: Report) -> None:
    terms = resource.at("spec", "amiSelectorTerms")
    members = list(terms.elements())
    if not members:
        report.refuse(resource, terms, allowed="at least one term, such as alias al2023@v20261120", found="empty")
    aliased = [term.at("alias") for term in members if term.at("alias").present]
    if aliased and len(members) > 1:
        report.refuse(resource, terms, allowed="an alias alone", found=f"{len(members)} terms, one of them an alias")
    if members and not aliased and not resource.at("spec", "amiFamily").present:
        report.refuse(resource, resource.at("spec", "amiFamily"), allowed="set, because no term is an alias")
    for alias in aliased:
        with report.part():
            _alias(resource, alias, report)


def _alias(resource: Resource, alias: Node, report: Report) -> None:
    matched = _ALIAS.fullmatch(alias.text())
    if not matched or matched[2] == "latest":
        report.refuse(resource, alias, allowed="family@version with a release, such as al2023@v20261120")
    elif matched[1] == "al2":
        report.refuse(resource, alias, allowed="al2023 or bottlerocket (Amazon Linux 2 ends with Kubernetes 1.32)")


RULES = (
    Rule(
        id="KRP02",
        name="node-pool-require-when-empty",
        title="A training pool consolidates only empty nodes",
        types=_NODE_POOL,
        check=_consolidation,
        why="Karpenter evicts running ranks to save money, and the whole gang starts over.",
        fix="set disruption.consolidationPolicy to WhenEmpty and consolidateAfter to a duration such as 10m.",
        source="karpenter 1.14.1 nodepool.go",
    ),
    Rule(
        id="KRP03",
        name="node-pool-require-valid-budget",
        title="A disruption budget must be one that Karpenter accepts",
        types=_NODE_POOL,
        check=_budgets,
        why="the API server refuses the NodePool, so the pool does not exist.",
        fix="give schedule and duration together, nodes as a number or percentage, and known reasons.",
        source="karpenter 1.14.1 nodepool.go (CEL rules)",
    ),
    Rule(
        id="KRP04",
        name="node-pool-disallow-expiry",
        title="A budget of 0 nodes does not protect from expiry or from Spot",
        types=_NODE_POOL,
        check=_zero_budget_as_protection,
        why="on day 30 the node is drained by force, or Spot takes it with two minutes' notice, whatever the budgets say.",
        fix="set template.spec.expireAfter to Never and the capacity type to reserved or on-demand.",
        source="karpenter 1.14.1 concepts/disruption",
    ),
    Rule(
        id="KRP06",
        name="node-class-require-pinned-image",
        title="An EC2NodeClass names one pinned machine image",
        types=frozenset({NODE_CLASS}),
        check=_images,
        why="each new image release makes every node drift, and the fleet is replaced under running jobs.",
        fix="set amiSelectorTerms to one alias with a release, such as al2023@v20261120, or to image ids with amiFamily.",
        source="karpenter-provider-aws 1.14.1 ec2nodeclass.go",
    ),
)
