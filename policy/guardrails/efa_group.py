"""Security groups of EFA: open to themselves in both directions, whichever way a node comes to carry them."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from guardrails import selector
from guardrails.efa import FABRIC_CARDS, has_efa, interfaces, is_efa
from guardrails.firewall import GROUP_TYPES, opens_itself
from guardrails.launch import pools_with
from guardrails.links import decided, demand, is_known, targets
from guardrails.lustre import flag
from guardrails.node import Node, Undecided
from guardrails.placing import users_of
from guardrails.pool import accelerated_types
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import EFA, POD_TYPES
from guardrails.tokens import LAUNCH_TEMPLATE, LUSTRE, NODE_CLASS, NODE_POOL, SECURITY_GROUP, SUBNET

Tell = Callable[..., None]
_EFA_WORD = re.compile(r"(?<![a-z0-9])efa(?![a-z0-9])", re.IGNORECASE)
_WAYS = ("ingress", "egress")
_INTERFACES = "networkInterfaces"


def _self_rules(program: Program, report: Report) -> None:
    judged: set[str] = set()
    for group in program.of(SECURITY_GROUP):
        with report.part():
            if _is_named_for_efa(group):
                _require_both_directions(program, group, report.refuse)
    for resource in program.of(LAUNCH_TEMPLATE, LUSTRE):
        with report.part():
            uses = flag(resource.at("efaEnabled")) is True if resource.type == LUSTRE else has_efa(resource)
            for key, place in _group_lists(resource) if uses else ():
                with report.part():
                    if place.present:
                        _any_listed(program, resource, key, place, report.refuse, judged)
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
    """A class is judged by what its terms select, as far as the program makes it."""
    groups = selector.selected(program, node_class, SECURITY_GROUP)
    # A term that is none of the program's groups names one made elsewhere, such as the cluster's own, which EKS opens to itself.
    if not selector.unaccounted(node_class, SECURITY_GROUP, groups)[0]:
        _require_one(program, groups, tell, judged)


def _any_listed(program: Program, resource: Resource, key: str, place: Node, tell: Tell, judged: set[str]) -> None:
    groups = targets(program, resource, key, SECURITY_GROUP, place=place)
    members = list(place.elements()) if place.known else []
    by_id = [group for group in groups if any(member.known and member.value == group.at("id").raw for member in members)]
    by_source = [group for group in groups if all(group is not each for each in by_id)]
    strangers = [member for member in members if not member.known or all(member.value != group.at("id").raw for group in by_id)]
    if place.known and not strangers:
        _require_one(program, by_id, tell, judged)
    elif _groups_needed(program, resource, key, strangers) <= len(by_source):
        _demand_members(program, resource, key, place, by_id, by_source)
        _require_one(program, groups, tell, judged)
    elif any(member.known for member in members):
        # An id that is none of the known ones may be that of a group whose id is unknown.
        for group in program.of(SECURITY_GROUP):
            demand(group.at("id"))
    if not resource.sources.get(key):
        demand(place)


def _groups_needed(program: Program, resource: Resource, key: str, strangers: list[Node]) -> int:
    """How many groups the sources of a property have to be for `strangers` to be surely among them.

    Interfaces have their sources in common: the ids of one may be those of groups made elsewhere, and another's those of the sources.
    """
    if key != _INTERFACES or any(not member.known for member in strangers):
        return len(strangers)
    own = [group.at("id").raw for group in program.of(SECURITY_GROUP)]
    given = [member.raw for each in _all_lists(resource) if each.known for member in each.elements()]
    return len({each for each in given if isinstance(each, str) and each not in own})


def _all_lists(resource: Resource) -> list[Node]:
    return [interface.at("securityGroups") for interface in interfaces(resource).elements()]


def _demand_members(program: Program, resource: Resource, key: str, place: Node, by_id: list[Resource], by_source: list[Resource]) -> None:
    """Raise `Undecided` where it matters which of the property's sources a list has members of, and some of them are not known."""
    shared = key == _INTERFACES
    lists = _all_lists(resource) if shared else []
    # What another list is still to get may be all that the sources give.
    waits = is_known(place) and not all(is_known(each) for each in lists)
    # A subnet is a source of interfaces, and gives no group.
    others = set(resource.sources.get(key, ())) - {each.urn for each in program.of(SECURITY_GROUP, SUBNET)}
    if not waits and not (shared and len(by_source) > 1) and (not others or (place.known and not shared)):
        return
    is_open = [_opens_both_ways(program, group) is True for group in (*by_id, *by_source)]
    if any(is_open[: len(by_id)] if shared else is_open) or all(is_open):
        return
    for unseen in (place, *lists, *(group.at("id") for group in by_source)):
        demand(unseen)


def _require_one(program: Program, groups: list[Resource], tell: Tell, judged: set[str]) -> None:
    """What carries several groups is let through by any of them; one has to be open to itself."""
    if not groups or any(_is_named_for_efa(group) or group.urn in judged for group in groups):
        return
    if not decided([_opens_both_ways(program, group) for group in groups]):
        judged.add(groups[0].urn)
        _require_both_directions(program, groups[0], tell)


def _opens_both_ways(program: Program, group: Resource) -> bool | Undecided:
    try:
        return all(opens_itself(program, group, way) for way in _WAYS)
    except Undecided as error:
        return error


def _is_named_for_efa(group: Resource) -> bool:
    description, tag = group.at("description"), group.at("tags", "Name")
    texts = [group.name, *(place.text() for place in (description, tag) if place.known)]
    return any(_EFA_WORD.search(text) for text in texts)


def _group_lists(resource: Resource) -> Iterator[tuple[str, Node]]:
    """Where a launch template or a file system lists its groups, each with the property that it is part of."""
    if resource.type == LUSTRE:
        yield "securityGroupIds", resource.at("securityGroupIds")
        return
    yield "vpcSecurityGroupIds", resource.at("vpcSecurityGroupIds")
    members = list(interfaces(resource).elements())
    # The others carry no EFA traffic; their groups stand in where those for EFA name none.
    for interface in [each for each in members if is_efa(each) and each.at("securityGroups").present] or members:
        yield _INTERFACES, interface.at("securityGroups")


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
        types=frozenset({*GROUP_TYPES, LAUNCH_TEMPLATE, NODE_CLASS, NODE_POOL, LUSTRE, SUBNET, *POD_TYPES}),
        why="EFA drops the traffic: initialisation fails, or NCCL falls back to TCP without a word; 0.0.0.0/0 is no self rule.",
        fix="add an ingress and an egress rule of protocol -1 whose peer is the group itself.",
        source="EC2 guide: EFA, prepare a security group; awslabs/awsome-distributed-ai#546",
        valid=_group(_ITSELF, _ANYWHERE),
        invalid=_group(_ANYWHERE),
    ),
)
