"""Security groups of EFA: open to themselves in both directions, whichever way a node comes to carry them."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from guardrails import selector
from guardrails.efa import FABRIC_CARDS, has_efa, interfaces, pools_with
from guardrails.firewall import GROUP_TYPES, opens_itself
from guardrails.links import demand, targets
from guardrails.lustre import flag
from guardrails.node import Node
from guardrails.placing import users_of
from guardrails.pool import accelerated_types
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import EFA, POD_TYPES
from guardrails.tokens import CLUSTER, LAUNCH_TEMPLATE, LUSTRE, NODE_CLASS, NODE_POOL, SECURITY_GROUP

Tell = Callable[..., None]
_EFA_WORD = re.compile(r"(?<![a-z0-9])efa(?![a-z0-9])", re.IGNORECASE)
_WAYS = ("ingress", "egress")


def _self_rules(program: Program, report: Report) -> None:
    judged = _groups_in_use(program, report)
    for group in program.of(SECURITY_GROUP):
        with report.part():
            if group.urn in judged or _is_named_for_efa(group):
                _require_both_directions(program, group, report.refuse)
    for node_class in program.of(NODE_CLASS):
        with report.part():
            tell = _teller(program, node_class, report)
            if tell is not None:
                _any_group(program, node_class, tell, judged)


def _teller(program: Program, node_class: Resource, report: Report) -> Tell | None:
    """How a closed group is told: nodes without EFA of their own get it for pods that ask; None where none does."""
    if has_efa(node_class):
        return report.refuse
    pools = list(pools_with(program, node_class))
    if any(template.requested(EFA) for pool in pools for _, template in users_of(program, pool)):
        return report.refuse
    fabric = any(instance.efa >= FABRIC_CARDS for pool in pools for instance in accelerated_types(pool))
    return report.advise if fabric else None


def _require_both_directions(program: Program, group: Resource, tell: Tell) -> None:
    for direction in _WAYS:
        if not opens_itself(program, group, direction):
            allowed = f"an {direction} rule of all protocols (-1) from and to the group itself"
            tell(group, group.at(direction), allowed=allowed, found="without one")


def _any_group(program: Program, node_class: Resource, tell: Tell, judged: set[str]) -> None:
    """Nodes of a class carry all its groups; one of them has to be open to itself."""
    groups = selector.selected(program, node_class, SECURITY_GROUP)
    if not groups or any(_is_named_for_efa(group) or group.urn in judged for group in groups):
        return
    # EKS makes the cluster's own group open to itself; a term that is none of the program's groups may name that.
    if _names_others(node_class, groups) and any(cluster.urn in node_class.sources.get("spec", ()) for cluster in program.of(CLUSTER)):
        return
    if not any(all(opens_itself(program, group, way) for way in _WAYS) for group in groups):
        judged.add(groups[0].urn)
        _require_both_directions(program, groups[0], tell)


def _names_others(node_class: Resource, groups: list[Resource]) -> bool:
    """Whether there are more terms than `groups` account for."""
    terms = list(selector.terms(node_class, SECURITY_GROUP))
    open_terms = [term for term in terms if not any(selector.selects(term, group) for group in groups)]
    by_source = [group for group in groups if not any(selector.selects(term, group) for term in terms)]
    return len(open_terms) > len(by_source)


def _is_named_for_efa(group: Resource) -> bool:
    description, tag = group.at("description"), group.at("tags", "Name")
    texts = [group.name, *(place.text() for place in (description, tag) if place.known)]
    return any(_EFA_WORD.search(text) for text in texts)


def _groups_in_use(program: Program, report: Report) -> set[str]:
    """URNs of the groups that interfaces and file systems of EFA carry; what can't be told of one is noted, and hides no other."""
    urns: set[str] = set()
    for resource in program.of(LAUNCH_TEMPLATE, LUSTRE):
        with report.part():
            uses = flag(resource.at("efaEnabled")) is True if resource.type == LUSTRE else has_efa(resource)
            for key, place in _group_lists(resource) if uses else ():
                with report.part():
                    urns.update(group.urn for group in targets(program, resource, key, SECURITY_GROUP, place=place))
                    if not resource.sources.get(key):
                        demand(place)
    return urns


def _group_lists(resource: Resource) -> Iterator[tuple[str, Node]]:
    """Where a launch template or a file system lists its groups, each with the property that it is part of."""
    if resource.type == LUSTRE:
        yield "securityGroupIds", resource.at("securityGroupIds")
        return
    yield "vpcSecurityGroupIds", resource.at("vpcSecurityGroupIds")
    for interface in interfaces(resource).elements():
        yield "networkInterfaces", interface.at("securityGroups")


_ITSELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
_ANYWHERE = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}


def _group(*egress: dict[str, Any]) -> tuple[Example, ...]:
    return (Example(SECURITY_GROUP, {"description": "EFA traffic", "ingress": [_ITSELF], "egress": list(egress)}, name="efa"),)


RULES = (
    StackRule(
        id="EFA04",
        name="security-group-require-efa-self-rules",
        title="An EFA security group is open to itself in both directions",
        check=_self_rules,
        types=frozenset({*GROUP_TYPES, LAUNCH_TEMPLATE, NODE_CLASS, NODE_POOL, LUSTRE, CLUSTER, *POD_TYPES}),
        why="EFA drops the traffic: initialisation fails, or NCCL falls back to TCP without a word; 0.0.0.0/0 is no self rule.",
        fix="add an ingress and an egress rule of protocol -1 whose peer is the group itself.",
        source="EC2 guide: EFA, prepare a security group; awslabs/awsome-distributed-ai#546",
        valid=_group(_ITSELF, _ANYWHERE),
        invalid=_group(_ANYWHERE),
    ),
)
