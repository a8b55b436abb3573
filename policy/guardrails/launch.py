"""Who launches nodes with what: NodePools with an EC2NodeClass, node groups and Auto Scaling groups with a launch template."""

import base64
import binascii
import re
from collections.abc import Iterator

from guardrails.links import demand, indexed, named
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.tokens import LAUNCH_TEMPLATE, NODE_CLASS, NODE_GROUP, NODE_POOL, SCALING_GROUP

BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]++={0,2}[\r\n]*+")
_REFERENCE = ("spec", "template", "spec", "nodeClassRef")
_OF_EC2 = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}
"""What a pool's reference to an EC2NodeClass says; a class of another kind may have the same name."""
_MIXED = "mixedInstancesPolicy"
_NAMES = {"id": ("id", "launchTemplateId"), "name": ("name", "launchTemplateName")}
"""What a launch template is named by, and the keys under which its users do."""


def pools_with(program: Program, node_class: Resource) -> Iterator[Resource]:
    """The NodePools that use an EC2NodeClass; those of which only `up` knows that come last, and raise `Undecided`."""
    pools, unknown = indexed(program, NODE_POOL, *_REFERENCE, "name")
    named_so = pools.get(node_class.at("metadata", "name").text(), ())
    yield from (pool for pool in sorted(named_so, key=_is_open) if _is_of_ec2(pool))
    if unknown is not None:
        demand(unknown)


def class_of(program: Program, pool: Resource) -> Resource | None:
    """The EC2NodeClass that a NodePool uses; None where it uses another kind of class, such as that of EKS Auto Mode."""
    name = pool.at(*_REFERENCE, "name").text()
    return named(program, name, NODE_CLASS) if name and _is_of_ec2(pool) else None


def _is_of_ec2(pool: Resource) -> bool:
    """Whether a pool refers to an EC2NodeClass; one that leaves group or kind out says nothing else."""
    return all(pool.at(*_REFERENCE, key).text() in ("", own) for key, own in _OF_EC2.items())


def _is_open(pool: Resource) -> bool:
    return not all(pool.at(*_REFERENCE, key).known for key in _OF_EC2)


def groups_with(program: Program, template: Resource) -> Iterator[Resource]:
    """The managed node groups that use a launch template."""
    yield from (group for group in program.of(NODE_GROUP) if _uses(group, template))


def scaling_groups_with(program: Program, template: Resource) -> Iterator[Resource]:
    """The Auto Scaling groups that use a launch template, alone or in a policy of mixed instances."""
    yield from (group for group in program.of(SCALING_GROUP) if _uses(group, template))


def launchers_with(program: Program, template: Resource) -> Iterator[Resource]:
    """The groups of either kind that use a launch template."""
    yield from groups_with(program, template)
    yield from scaling_groups_with(program, template)


def subnets_key(group: Resource) -> str:
    """The property under which a group of either kind lists its subnets."""
    return "subnetIds" if group.type == NODE_GROUP else "vpcZoneIdentifiers"


def most_nodes(group: Resource) -> Node:
    """The most nodes of a group of either kind."""
    return group.at("scalingConfig", "maxSize") if group.type == NODE_GROUP else group.at("maxSize")


def types_place(group: Resource) -> Node:
    """Where a group of either kind names instance types."""
    return group.at("instanceTypes") if group.type == NODE_GROUP else group.at(_MIXED)


def own_types(group: Resource) -> list[str]:
    """The instance types that a group of either kind names itself, in place of the launch template's."""
    if group.type == NODE_GROUP:
        return [each.text() for each in types_place(group).elements()]
    overrides = _overrides(group)
    # Types that come with a template of their own say nothing of what is launched with another.
    if any(override.at("launchTemplateSpecification").present for override in overrides):
        return []
    return [each.text() for override in overrides if (each := override.at("instanceType")).present]


def types_of(program: Program, group: Resource) -> list[str]:
    """The instance types that a group of either kind launches, as far as they are named."""
    own = own_types(group)
    if own:
        return own
    templates = [template for template in program.of(LAUNCH_TEMPLATE) if _uses(group, template)]
    return [name for template in templates if (name := template.at("instanceType").text())]


def user_data_of(resource: Resource) -> Node:
    """Where a launch template or an EC2NodeClass has its user data."""
    return resource.at("userData") if resource.type == LAUNCH_TEMPLATE else resource.at("spec", "userData")


def user_data(resource: Resource) -> str:
    """The user data as text: a launch template's is base64, a class's is plain."""
    text = user_data_of(resource).text()
    if resource.type != LAUNCH_TEMPLATE or not BASE64.fullmatch(text):
        return text
    try:
        return base64.b64decode(text).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return text


def _overrides(group: Resource) -> list[Node]:
    return list(group.at(_MIXED, "launchTemplate", "overrides").elements())


def _uses(group: Resource, template: Resource) -> bool:
    keys = ("launchTemplate",) if group.type == NODE_GROUP else ("launchTemplate", _MIXED)
    if template.urn and any(template.urn in group.sources.get(key, ()) for key in keys):
        return True
    if _is_named(group, "launchTemplate", group.at("launchTemplate"), template):
        return True
    if group.type == NODE_GROUP:
        return False
    places = [group.at(_MIXED, "launchTemplate", "launchTemplateSpecification")]
    places += [override.at("launchTemplateSpecification") for override in _overrides(group)]
    return any(_is_named(group, _MIXED, place, template) for place in places)


def _is_named(group: Resource, property_name: str, place: Node, template: Resource) -> bool:
    """Whether this part of the property names the template by a literal. Raises `Undecided` where only `up` knows."""
    for own, keys in _NAMES.items():
        mine = template.at(own)
        for theirs in (place.at(key) for key in keys):
            # An unknown value comes from a source, and that is another resource.
            elsewhere = not theirs.known and group.sources.get(property_name)
            if mine.present and theirs.present and not elsewhere and mine.value == theirs.value:
                return True
    return False
