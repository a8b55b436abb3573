"""What a Karpenter NodePool will launch, read from its requirements."""

from collections.abc import Iterator

from guardrails.facts import InstanceType, instance_types
from guardrails.node import Node
from guardrails.rule import Resource

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
_ZONE_NAMES = frozenset({"zone", "zones"})
_FAMILY = "karpenter.k8s.aws/instance-family"
_ACCELERATOR_KEYS = frozenset({"nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa"})
_ACCELERATOR_REQUIREMENT = ("karpenter.k8s.aws/instance-gpu", "karpenter.k8s.aws/instance-accelerator")


def is_other_zone_key(key: str) -> bool:
    """Whether a label speaks of zones and is not the one that Karpenter decides by.

    A driver's own key is a label that a node only gets once the driver runs there; one of yours is the same for every zone of a pool.
    `topology.k8s.aws/zone-id` names no zone but its id: Karpenter and EKS both give it to nodes.
    """
    return key != ZONE and key.rpartition("/")[2].lower() in _ZONE_NAMES


def requirements(pool: Resource) -> Iterator[tuple[str, str, Node]]:
    """Key, operator and values of each requirement of the pool's template."""
    for requirement in pool.at("spec", "template", "spec", "requirements").elements():
        yield requirement.at("key").text(), requirement.at("operator").text(), requirement.at("values")


def allowed_values(pool: Resource, key: str) -> list[str] | None:
    """The values an `In` requirement (or a label of the template) leaves for `key`; None where nothing limits it."""
    label = pool.at("spec", "template", "metadata", "labels", key)
    if label.present:
        return [label.text()]
    left: list[str] | None = None
    for name, operator, values in requirements(pool):
        if name == key and operator == "In":
            named = [value.text() for value in values.elements()]
            left = named if left is None else [value for value in left if value in named]
    return left


def accelerated_types(pool: Resource) -> list[InstanceType]:
    """The accelerated instance types that the pool's types or families name."""
    catalogue = instance_types()
    named = allowed_values(pool, INSTANCE_TYPE)
    if named is not None:
        return [catalogue[name] for name in named if name in catalogue]
    families = allowed_values(pool, _FAMILY) or []
    return [instance for name, instance in catalogue.items() if name.split(".")[0] in families]


def is_training_pool(pool: Resource) -> bool:
    """Whether the pool launches accelerators: by its types, its requirements, its taints or its limits."""
    if accelerated_types(pool):
        return True
    if any(key.startswith(_ACCELERATOR_REQUIREMENT) and operator != "DoesNotExist" for key, operator, _ in requirements(pool)):
        return True
    taints = pool.at("spec", "template", "spec", "taints").elements()
    if any(taint.at("key").text() in _ACCELERATOR_KEYS for taint in taints):
        return True
    return any(key in _ACCELERATOR_KEYS for key, _ in pool.at("spec", "limits").entries())
