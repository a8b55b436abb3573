"""What a Karpenter NodePool will launch, read from its requirements."""

import operator
import re
from collections.abc import Iterable, Iterator, Sequence

from guardrails.facts import InstanceType, efa_interfaces, instance_types, load
from guardrails.memo import remembered
from guardrails.node import Node
from guardrails.quantity import quantity
from guardrails.rule import Resource
from guardrails.template import EFA, GPU

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
ZONE_ID = "topology.k8s.aws/zone-id"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
CAPACITY_TYPES = ("reserved", "spot", "on-demand")
"""Those that Karpenter knows, in the order in which it takes what a pool leaves open."""
ZONE_NAME = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]+((-[a-z]+-[0-9]+)?[a-z]|-wl[0-9]+-[a-z]+-wlz-[0-9]+)")
"""The name of an availability zone, a local zone or a Wavelength zone, of any partition."""
_ZONE_WORDS = frozenset({"zone", "zones"})
_DRIVER = ".csi.aws.com/"
_FAMILY = "karpenter.k8s.aws/instance-family"
_CATEGORY = "karpenter.k8s.aws/instance-category"
_GENERATION = "karpenter.k8s.aws/instance-generation"
_SIZE = "karpenter.k8s.aws/instance-size"
_ARCHITECTURE = "kubernetes.io/arch"
_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"
_NAMING = (INSTANCE_TYPE, _FAMILY, _CATEGORY)
_ARM = re.compile(r"a1|[a-z]+[0-9]+[a-z]*g[a-z]*|.*-gb[0-9]+")
"""Families of Graviton and Grace processors."""
_TYPE_NAME = re.compile(r"(?P<family>(?P<category>[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+)[^.]*)\.(?P<size>.+)")
_COMPARED = {"Gt": operator.gt, "Lt": operator.lt, "Gte": operator.ge, "Lte": operator.le}
_BARRING = frozenset({"NotIn", "DoesNotExist"})
_ACCELERATOR_REQUIREMENT = ("karpenter.k8s.aws/instance-gpu", "karpenter.k8s.aws/instance-accelerator")


def is_zone_by_other_key(key: str, values: Iterable[Node]) -> bool:
    """Whether a label pins an availability zone and is not the one that Karpenter decides by.

    A driver's own key is a label that a node only gets once the driver runs there; one of yours is the same for every zone of a pool, and
    may speak of other zones, such as those of a firewall. `topology.k8s.aws/zone-id` names no zone but its id: Karpenter and EKS both give
    it to nodes.
    """
    if normal_key(key) == ZONE or key.rpartition("/")[2].lower() not in _ZONE_WORDS:
        return False
    return _DRIVER in key or any(ZONE_NAME.fullmatch(value.text()) for value in values)


def normal_key(key: str) -> str:
    """The key of a label as Karpenter reads it: it takes the names that labels had before Kubernetes 1.17 for those of today."""
    return load("karpenter")["normalizedLabels"].get(key, key)


def requirements(pool: Resource) -> Iterator[tuple[str, str, Node]]:
    """Key, operator and values of each requirement of the pool's template."""
    for requirement in pool.at("spec", "template", "spec", "requirements").elements():
        yield normal_key(requirement.at("key").text()), requirement.at("operator").text(), requirement.at("values")


def allowed_values(pool: Resource, key: str) -> list[str] | None:
    """The values that `In` requirements (or a label of the template) name for `key` and others leave; None where nothing names any."""
    said = _said(pool, key)
    named = [values for comparison, values in said if comparison == "In"]
    return _left(named[0], said) if named else None


def narrowed(pool: Resource, key: str, values: Sequence[str]) -> list[str] | None:
    """Those of `values` that the pool leaves for `key`; None where it says nothing of `key`."""
    said = _said(pool, key)
    return _left(values, said) if said else None


def capacity_types(pool: Resource) -> list[str]:
    """The capacity types that Karpenter may take for the pool: all that nothing keeps out."""
    left = narrowed(pool, CAPACITY_TYPE, CAPACITY_TYPES)
    return list(CAPACITY_TYPES) if left is None else left


@remembered
def accelerated_types(pool: Resource) -> list[InstanceType]:
    """The accelerated instance types that the pool's types, families or categories name."""
    if all(allowed_values(pool, key) is None for key in _NAMING):
        return []
    return [instance_types()[name] for name in _types_left(pool, instance_types())]


def families(pool: Resource) -> list[str] | None:
    """The families that the pool names, or that are of the categories it names; None where it names neither."""
    named = allowed_values(pool, _FAMILY)
    if named is not None or allowed_values(pool, _CATEGORY) is None:
        return named
    return list(dict.fromkeys(name.partition(".")[0] for name in _types_left(pool, efa_interfaces())))


def possible_types(pool: Resource) -> list[str] | None:
    """The types that the pool names, or all of the families it names; None where it names neither, or a family is not known."""
    named, chosen = allowed_values(pool, INSTANCE_TYPE), families(pool)
    if named is not None or chosen is None:
        return named
    known = {name.partition(".")[0] for name in efa_interfaces()}
    return _types_left(pool, efa_interfaces()) if chosen and known.issuperset(chosen) else None


def barring_key(pool: Resource) -> tuple[str, list[str]] | None:
    """A key by which the pool leaves none of the types, or else families, that it names, and these."""
    for naming in (INSTANCE_TYPE, _FAMILY):
        named = next((values for comparison, values in _said(pool, naming) if comparison == "In" and values), None)
        if named is None:
            continue
        left = {name: _type_labels(name) if naming == INSTANCE_TYPE else _family_labels(name) for name in named}
        for key in (*_NAMING, _GENERATION, _SIZE, _ARCHITECTURE, _GPU_COUNT):
            kept = narrowed(pool, key, list({labels[key]: None for labels in left.values() if labels.get(key)}))
            left = {name: labels for name, labels in left.items() if kept is None or not labels.get(key) or labels[key] in kept}
            if not left:
                return key, named
        return None
    return None


@remembered
def is_training_pool(pool: Resource) -> bool:
    """Whether the pool launches accelerators: by its types, its requirements, its taints or its limits."""
    if _names_accelerators(pool):
        return True
    if any(key.startswith(_ACCELERATOR_REQUIREMENT) and comparison not in _BARRING for key, comparison, _ in requirements(pool)):
        return True
    devices = {*load("karpenter")["acceleratorResources"], EFA}
    taints = pool.at("spec", "template", "spec", "taints").elements()
    if any(taint.at("key").text() in devices for taint in taints):
        return True
    # A limit of none keeps accelerators out.
    return any(key in devices and limit.value not in (None, 0, "0") for key, limit in pool.at("spec", "limits").entries())


@remembered
def _said(pool: Resource, key: str) -> list[tuple[str, list[str]]]:
    """Operator and values of what the pool says of `key`; a label of the template says all."""
    for name, label in pool.at("spec", "template", "metadata", "labels").entries():
        if normal_key(name) == key and label.present:
            return [("In", [label.text()])]
    said = [(comparison, values) for name, comparison, values in requirements(pool) if name == key]
    return [(comparison, [value.text() for value in values.elements()]) for comparison, values in said]


def _left(values: Sequence[str], said: Sequence[tuple[str, list[str]]]) -> list[str]:
    return [value for value in values if all(_admits(comparison, given, value) for comparison, given in said)]


def _admits(comparison: str, given: list[str], value: str) -> bool:
    if comparison in _COMPARED:
        own, bound = quantity(value), quantity(given[0]) if given else None
        return own is not None and bound is not None and _COMPARED[comparison](own, bound)
    return comparison != "DoesNotExist" and (comparison != "In" or value in given) and (comparison != "NotIn" or value not in given)


def _types_left(pool: Resource, names: Iterable[str]) -> list[str]:
    """Those of the instance types that the pool leaves."""
    types = {name: _type_labels(name) for name in names}
    for key in (*_NAMING, _GENERATION, _SIZE):
        left = narrowed(pool, key, list({labels[key]: None for labels in types.values()}))
        types = {name: labels for name, labels in types.items() if left is None or labels[key] in left}
    return list(types)


def _type_labels(name: str) -> dict[str, str]:
    """What Karpenter reads from the name of an instance type."""
    parts = _TYPE_NAME.fullmatch(name)
    named = parts.groupdict() if parts else {}
    keys = {_FAMILY: "family", _CATEGORY: "category", _GENERATION: "generation", _SIZE: "size"}
    labels = {INSTANCE_TYPE: name, **{key: named.get(part, "") for key, part in keys.items()}}
    instance = instance_types().get(name)
    gpus = {_GPU_COUNT: str(instance.count)} if instance and instance.counted_as == (GPU,) else {}
    return {**labels, **gpus, **({_ARCHITECTURE: _architecture(named["family"])} if named else {})}


def _family_labels(family: str) -> dict[str, str]:
    """As `_type_labels`, of all types of a family alike."""
    return {key: label for key, label in _type_labels(f"{family}.any").items() if key in (_FAMILY, _CATEGORY, _GENERATION, _ARCHITECTURE)}


def _architecture(family: str) -> str:
    return "arm64" if _ARM.fullmatch(family) else "amd64"


def _names_accelerators(pool: Resource) -> bool:
    """Whether any type, family or category that the pool names is of accelerators: the first letters of each are the category."""
    names = next((named for key in _NAMING if (named := allowed_values(pool, key)) is not None), [])
    categories = load("karpenter")["acceleratorCategories"]
    return any((letters := re.match("[a-z]+", name)) and letters[0] in categories for name in names)
