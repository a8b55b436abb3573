"""Placement groups: what EC2 accepts, and what fits into one."""

from collections.abc import Sequence
from typing import Any

from guardrails.facts import load
from guardrails.launch import launchers_with, most_nodes, own_types, pools_with, types_of, types_place
from guardrails.links import targets
from guardrails.node import Node
from guardrails.pool import INSTANCE_TYPE, ZONE, allowed_values, families, possible_types
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.tokens import (
    CAPACITY_RESERVATION,
    LAUNCH_TEMPLATE,
    NODE_CLASS,
    NODE_GROUP,
    NODE_POOL,
    PLACEMENT_GROUP,
    SCALING_GROUP,
    SUBNET,
)
from guardrails.zones import beyond_one, group_words, group_zones, zones_place

_BLOCK = "capacity-block"
# Keys by which a user names its group, and the properties of the group that they mean: its id is its name.
Names = Sequence[tuple[Sequence[str], Sequence[str]]]
_NAMES: Names = ((("name", "groupName"), ("name", "id")), (("id", "groupId"), ("placementGroupId",)))
_STOPPING = frozenset({"stop", "hibernate"})


def _strategy(resource: Resource, report: Report) -> None:
    facts = load("placement")
    strategy, count, level = resource.at("strategy"), resource.at("partitionCount"), resource.at("spreadLevel")
    with report.part():
        if strategy.text() not in facts["strategies"]:
            report.refuse(resource, strategy, allowed=", ".join(facts["strategies"]))
    with report.part():
        number = count.integer()
        if count.present and strategy.text() != "partition":
            report.refuse(resource, count, allowed=f"unset, because strategy is {strategy.text() or 'unset'}")
        elif count.present and (number is None or not 1 <= number <= facts["partitionsMost"]):
            report.refuse(resource, count, allowed=f"1 to {facts['partitionsMost']}")
    with report.part():
        if level.present and level.text() != "rack":
            report.refuse(resource, level, allowed="rack: host is for groups on Outposts")
        elif level.present and strategy.text() != "spread":
            report.refuse(resource, level, allowed=f"unset, because strategy is {strategy.text() or 'unset'}")


def _members(program: Program, report: Report) -> None:
    for resource in program.of(PLACEMENT_GROUP):
        for node_class in program.of(NODE_CLASS):
            with report.part():
                if _names(program, node_class, "spec", node_class.at("spec", "placementGroupSelector"), resource):
                    for pool in pools_with(program, node_class):
                        with report.part():
                            _pool(program, resource, pool, report)
        for template in program.of(LAUNCH_TEMPLATE):
            with report.part():
                if _names(program, template, "placement", template.at("placement"), resource):
                    _template(program, resource, template, report)
        for nodes in program.of(SCALING_GROUP):
            with report.part():
                if _starts_in(program, nodes, resource):
                    _group_nodes(program, resource, nodes, report)


def _starts_in(program: Program, nodes: Resource, group: Resource) -> bool:
    """Whether an Auto Scaling group names the placement group itself."""
    return _names(program, nodes, "placementGroup", nodes.properties, group, ((("placementGroup",), ("name", "id")),))


def _names(program: Program, user: Resource, key: str, place: Node, group: Resource, names: Names = _NAMES) -> bool:
    """Whether a selector names the group: by where its values come from, or by a literal name."""
    if not place.present:
        return False
    if any(each is group for each in targets(program, user, key, PLACEMENT_GROUP)):
        return True
    return any(_named_by(place, keys, group, own) for keys, own in names)


def _named_by(place: Node, keys: Sequence[str], group: Resource, own: Sequence[str]) -> bool:
    wanted = [place.at(key).value for key in keys if place.at(key).present]
    given = next((group.at(key) for key in own if group.at(key).present), None)
    return bool(wanted) and given is not None and given.value in wanted


def _pool(program: Program, group: Resource, pool: Resource, report: Report) -> None:
    if group.at("strategy").text() != "cluster":
        return
    place = pool.at("spec", "template", "spec", "requirements")
    types = allowed_values(pool, INSTANCE_TYPE)
    with report.part():
        zones = beyond_one(program, pool)
        if zones is not None:
            allowed = f"{ZONE} In one zone: cluster placement group {group.name} can't span zones"
            report.refuse(pool, place, allowed=allowed, found=zones.words())
    for name in types or ():
        _fits(pool, place, group, name, report)
    chosen = families(pool) if types is None else None
    if chosen and all(_stays_out(family) for family in chosen):
        _refuse_type(pool, place, group, ", ".join(chosen), report)
    possible = possible_types(pool)
    if possible is None or len(possible) > 1:
        found = f"types {', '.join(types)}" if types else f"families {', '.join(chosen)}" if chosen else "without an instance type"
        allowed = f"one instance type in cluster placement group {group.name}: capacity is rarer else"
        report.advise(pool, place, allowed=allowed, found=found)


def _fits(resource: Resource, place: Node, group: Resource, name: str, report: Report) -> None:
    if _stays_out(name.partition(".")[0]):
        _refuse_type(resource, place, group, name, report)


def _stays_out(family: str) -> bool:
    return family in load("placement")["notInClusters"]


def _refuse_type(resource: Resource, place: Node, group: Resource, found: str, report: Report) -> None:
    report.refuse(resource, place, allowed=f"a type that cluster placement group {group.name} takes", found=found)


def _template(program: Program, group: Resource, template: Resource, report: Report) -> None:
    behavior = template.at("instanceMarketOptions", "spotOptions", "instanceInterruptionBehavior")
    if behavior.text() in _STOPPING:
        report.refuse(template, behavior, allowed=f"terminate, because the instance is in placement group {group.name}")
    for nodes in launchers_with(program, template):
        with report.part():
            _group_nodes(program, group, nodes, report)


def _group_nodes(program: Program, group: Resource, nodes: Resource, report: Report) -> None:
    strategy = group.at("strategy").text()
    if strategy == "cluster":
        _in_cluster(program, group, nodes, report)
    elif strategy == "spread":
        _spread(program, group, nodes, report)


def _in_cluster(program: Program, group: Resource, nodes: Resource, report: Report) -> None:
    with report.part():
        zones = beyond_one(program, nodes)
        if zones is not None:
            allowed = f"one subnet, or several of one zone: cluster placement group {group.name} can't span zones"
            report.refuse(nodes, zones_place(nodes), allowed=allowed, found=group_words(nodes, zones))
    place, types = types_place(nodes), types_of(program, nodes)
    for name in types:
        _fits(nodes, place, group, name, report)
    if len(own_types(nodes)) > 1:
        allowed = f"one instance type in cluster placement group {group.name}: capacity is rarer else"
        report.advise(nodes, place, allowed=allowed, found=types)


def _spread(program: Program, group: Resource, nodes: Resource, report: Report) -> None:
    place, zones = most_nodes(nodes), group_zones(program, nodes).most
    if zones is None:
        return
    most = load("placement")["spreadMost"] * zones
    if (place.integer() or 0) > most:
        allowed = f"at most {most}: spread placement group {group.name} takes {load('placement')['spreadMost']} instances in each zone"
        report.refuse(nodes, place, allowed=allowed)


def _with_reservation(program: Program, report: Report) -> None:
    for template in program.of(LAUNCH_TEMPLATE):
        with report.part():
            _template_reservation(program, template, report)
    for node_class in program.of(NODE_CLASS):
        with report.part():
            selector, terms = node_class.at("spec", "placementGroupSelector"), node_class.at("spec", "capacityReservationSelectorTerms")
            if selector.present and list(terms.elements()):
                _same_group(program, node_class, "spec", selector, report)


def _template_reservation(program: Program, template: Resource, report: Report) -> None:
    place = template.at("placement")
    if not (place.at("groupName").present or place.at("groupId").present):
        return
    if template.at("instanceMarketOptions", "marketType").text() == _BLOCK:
        report.refuse(template, place, allowed="unset: a capacity block has a place of its own", found="a placement group")
    else:
        _same_group(program, template, "capacityReservationSpecification", place, report)


def _same_group(program: Program, user: Resource, key: str, place: Node, report: Report) -> None:
    for reservation in targets(program, user, key, CAPACITY_RESERVATION):
        if not reservation.at("placementGroupArn").present:
            found = f"a placement group that reservation {reservation.name} was not made in"
            report.refuse(user, place, allowed="a group that the reservation is made in (its placementGroupArn), or none", found=found)


def _group(**properties: Any) -> Example:
    return Example(PLACEMENT_GROUP, properties, name="group")


def _user(*zones: str) -> tuple[Example, ...]:
    requirements = [
        {"key": INSTANCE_TYPE, "operator": "In", "values": ["p5.48xlarge"]},
        {"key": ZONE, "operator": "In", "values": list(zones)},
    ]
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "p5"}
    spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": requirements}}}
    return (
        Example(NODE_CLASS, {"metadata": {"name": "p5"}, "spec": {"placementGroupSelector": {"name": "ranks"}}}, name="p5-class"),
        Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": spec}, name="p5"),
    )


def _block(**placement: Any) -> Example:
    return Example(LAUNCH_TEMPLATE, {"instanceMarketOptions": {"marketType": _BLOCK}, **placement}, name="template")


RULES = (
    Rule(
        id="PG01",
        name="placement-group-require-valid-strategy",
        title="A placement group has a strategy, and only what goes with it",
        types=frozenset({PLACEMENT_GROUP}),
        check=_strategy,
        why="EC2 refuses the group after the rest is made.",
        fix="use strategy cluster for training, without partitionCount and spreadLevel.",
        source="botocore 1.44.8 ec2 model, CreatePlacementGroup; EC2 guide: placement group limitations",
        valid=(_group(strategy="cluster"),),
        invalid=(_group(strategy="cluster", partitionCount=3),),
    ),
    StackRule(
        id="PG02",
        name="placement-group-require-fitting-nodes",
        title="What starts in a placement group fits: one zone, one type that it takes, no more than it holds",
        check=_members,
        types=frozenset({PLACEMENT_GROUP, NODE_CLASS, NODE_POOL, LAUNCH_TEMPLATE, NODE_GROUP, SCALING_GROUP, SUBNET}),
        early=True,
        why="the first nodes pin the group to their zone, and every later launch elsewhere fails for lack of capacity.",
        fix="pin the pool to one zone and one type (the node group to subnets of one).",
        source="EC2 guide: placement group limitations; pulumi/pulumi-eks#1593",
        valid=(_group(strategy="cluster", name="ranks"), *_user("us-east-1a")),
        invalid=(_group(strategy="cluster", name="ranks"), *_user("us-east-1a", "us-east-1b")),
    ),
    StackRule(
        id="PG03",
        name="placement-group-disallow-foreign-reservation",
        title="Reserved capacity is used where it was reserved",
        check=_with_reservation,
        types=frozenset({LAUNCH_TEMPLATE, NODE_CLASS, CAPACITY_RESERVATION}),
        mandatory=False,
        why="launches fail for lack of capacity though reserved capacity is free: it is not in the group.",
        fix="make the reservation in the group (placementGroupArn), or leave the group out.",
        source="aws-parallelcluster PlacementGroupCapacityReservationValidator",
        valid=(_block(),),
        invalid=(_block(placement={"groupName": "ranks"}),),
    ),
)
