"""EFA: traffic that must be open to its own group, in one zone.

Both rules need several resources, so they run once the whole program has been seen, which at preview is still before anything
is made. An id that preview can't know is followed through the resource it comes from.
"""

import re
from collections.abc import Iterator

from guardrails.node import Node
from guardrails.pool import INSTANCE_TYPE, ZONE, accelerated_types, allowed_values
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import (
    EGRESS_RULE,
    INGRESS_RULE,
    LAUNCH_TEMPLATE,
    NODE_CLASS,
    NODE_GROUP,
    NODE_POOL,
    SECURITY_GROUP,
    SECURITY_GROUP_RULE,
)

_EFA_INTERFACES = frozenset({"efa", "efa-only"})
_EFA_WORD = re.compile(r"(?<![a-z0-9])efa(?![a-z0-9])", re.IGNORECASE)
_ALL_PROTOCOLS = frozenset({"-1", "all"})
# A type with several EFA cards is bought for its fabric; one card comes with many types that never use it.
_FABRIC_CARDS = 2


def _self_rules(program: Program, report: Report) -> None:
    used = _groups_of_efa_templates(program)
    for group in program:
        if group.type != SECURITY_GROUP:
            continue
        with report.part():
            if group.urn in used or _is_named_for_efa(group):
                _require_both_directions(group, program, report)


def _require_both_directions(group: Resource, program: Program, report: Report) -> None:
    for direction in ("ingress", "egress"):
        # Rules of their own first: once they exist, the provider computes the group's inline lists, which preview then can't know.
        if any(_is_self_rule(rule, group, direction) for rule in program):
            continue
        place = group.at(direction)
        if not any(_opens_itself(rule) for rule in place.elements()):
            report.refuse(
                group, place, allowed=f"an {direction} rule of all protocols (-1) from and to the group itself", found="without one"
            )


def _opens_itself(rule: Node) -> bool:
    return rule.at("protocol").text() in _ALL_PROTOCOLS and rule.at("self").value is True


def _is_self_rule(rule: Resource, group: Resource, direction: str) -> bool:
    if rule.type == SECURITY_GROUP_RULE:
        if rule.at("type").text() != direction or rule.at("protocol").text() not in _ALL_PROTOCOLS:
            return False
        if not _refers_to(rule, "securityGroupId", group):
            return False
        return (rule.at("self").present and rule.at("self").value is True) or _refers_to(rule, "sourceSecurityGroupId", group)
    wanted = INGRESS_RULE if direction == "ingress" else EGRESS_RULE
    if rule.type != wanted or rule.at("ipProtocol").text() not in _ALL_PROTOCOLS:
        return False
    return _refers_to(rule, "securityGroupId", group) and _refers_to(rule, "referencedSecurityGroupId", group)


def _refers_to(rule: Resource, key: str, group: Resource) -> bool:
    """Whether the property is the group's id: by where it comes from, or by the literal id where both are known."""
    if group.urn in rule.sources.get(key, ()):
        return True
    value = rule.at(key)
    own = group.at("id")
    return value.present and value.known and own.present and own.known and value.value == own.value


def _is_named_for_efa(group: Resource) -> bool:
    words = [group.name]
    for key in ("name", "description"):
        node = group.at(key)
        words += [node.text()] if node.known else []
    for key, value in group.at("tags").entries():
        words += [key, value.text() if value.known else ""]
    return any(_EFA_WORD.search(word) for word in words)


def _groups_of_efa_templates(program: Program) -> set[str]:
    urns: set[str] = set()
    for template in program:
        if template.type == LAUNCH_TEMPLATE and _has_efa_interface(template):
            for key in ("networkInterfaces", "vpcSecurityGroupIds"):
                urns.update(template.sources.get(key, ()))
    return urns


def _has_efa_interface(resource: Resource) -> bool:
    places = resource.at("spec", "networkInterfaces") if resource.type == NODE_CLASS else resource.at("networkInterfaces")
    return any(interface.at("interfaceType").text() in _EFA_INTERFACES for interface in places.elements())


def _one_zone(program: Program, report: Report) -> None:
    classes = {node_class.at("metadata", "name").text(): node_class for node_class in program if node_class.type == NODE_CLASS}
    for pool in program:
        with report.part():
            if pool.type == NODE_POOL:
                _pool_in_one_zone(pool, classes, program.whole, report)
            elif pool.type == NODE_GROUP and any(True for _ in _efa_templates_of(pool, program)):
                _group_in_one_subnet(pool, report)


def _pool_in_one_zone(pool: Resource, classes: dict[str, Resource], whole: bool, report: Report) -> None:
    node_class = classes.get(pool.at("spec", "template", "spec", "nodeClassRef", "name").text())
    fabric = any(instance.efa >= _FABRIC_CARDS for instance in accelerated_types(pool))
    uses = node_class is not None and _has_efa_interface(node_class)
    if not (uses or (fabric and (whole or node_class))):
        return
    zones = allowed_values(pool, ZONE)
    if zones is None or len(zones) != 1:
        place = pool.at("spec", "template", "spec", "requirements")
        found = "without a zone" if zones is None else f"zones {', '.join(zones) or 'none'}"
        # A class that asks for no interface still gets them for pods that do; whether any does, this program does not say.
        tell = report.refuse if uses or node_class is None else report.advise
        why = "because the pool uses EFA" if uses else "because its types are bought for EFA"
        tell(pool, place, allowed=f"{ZONE} In exactly one zone, {why}", found=found)


def _efa_templates_of(group: Resource, program: Program) -> Iterator[Resource]:
    for template in program:
        if template.type == LAUNCH_TEMPLATE and template.urn in group.sources.get("launchTemplate", ()) and _has_efa_interface(template):
            yield template


def _group_in_one_subnet(group: Resource, report: Report) -> None:
    subnets = list(group.at("subnetIds").elements())
    if len(subnets) != 1:
        report.refuse(
            group, group.at("subnetIds"), allowed="one subnet, because the launch template uses EFA", found=f"{len(subnets)} subnets"
        )


_TO_ITSELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
_TO_ALL = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}


def _pool_in(*zones: str) -> Example:
    wanted = {INSTANCE_TYPE: ["p5.48xlarge"], ZONE: list(zones)}
    requirements = [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()]
    return Example(NODE_POOL, {"spec": {"template": {"spec": {"requirements": requirements}}}})


RULES = (
    StackRule(
        id="EFA04",
        name="security-group-require-efa-self-rules",
        title="An EFA security group is open to itself in both directions",
        types=frozenset({SECURITY_GROUP, SECURITY_GROUP_RULE, INGRESS_RULE, EGRESS_RULE, LAUNCH_TEMPLATE}),
        check=_self_rules,
        why="EFA drops the traffic: initialisation fails, or NCCL falls back to TCP without a word; 0.0.0.0/0 is no self rule.",
        fix="add an ingress and an egress rule of protocol -1 whose peer is the group itself.",
        source="EC2 guide: EFA, prepare a security group; awslabs/awsome-distributed-ai#546",
        valid=(Example(SECURITY_GROUP, {"description": "EFA traffic", "ingress": [_TO_ITSELF], "egress": [_TO_ITSELF]}),),
        invalid=(Example(SECURITY_GROUP, {"description": "EFA traffic", "ingress": [_TO_ITSELF], "egress": [_TO_ALL]}),),
    ),
    StackRule(
        id="EFA05",
        name="node-pool-require-one-efa-zone",
        title="A pool that uses EFA stays in one zone",
        types=frozenset({NODE_POOL, NODE_CLASS, NODE_GROUP, LAUNCH_TEMPLATE}),
        check=_one_zone,
        early=True,
        why="EFA traffic does not leave its zone, so ranks in two zones can't reach each other, or train over TCP.",
        fix="pin the pool to one zone (or the node group to one subnet), the one of its placement group and Lustre.",
        source="EC2 guide: EFA limitations; aws-parallelcluster EfaMultiAzValidator",
        valid=(_pool_in("us-east-1a"),),
        invalid=(_pool_in("us-east-1a", "us-east-1b"),),
    ),
)
