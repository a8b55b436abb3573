"""Karpenter's validation rules that go beyond the shape of its objects."""

from collections.abc import Callable, Iterator

from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import NODE_CLASS, NODE_POOL

_SIGNALS = ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available")
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_TERMS = ("amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms", "capacityReservationSelectorTerms")
_TIMEOUTS = ("tcpEstablishedTimeout", "udpStreamTimeout", "udpTimeout")

Check = Callable[[Resource, Report], None]


def _admission(resource: Resource, report: Report) -> None:
    for check in (_class_reference,) if resource.type == NODE_POOL else _NODE_CLASS_CHECKS:
        with report.part():
            check(resource, report)


def _class_reference(pool: Resource, report: Report) -> None:
    for key in ("group", "kind", "name"):
        with report.part():
            _not_empty(pool, pool.at("spec", "template", "spec", "nodeClassRef", key), report)


def _identity(node_class: Resource, report: Report) -> None:
    for key in ("role", "instanceProfile"):
        with report.part():
            _not_empty(node_class, node_class.at("spec", key), report)


def _not_empty(resource: Resource, node: Node, report: Report) -> None:
    if node.value == "":
        report.refuse(resource, node, allowed="a text that is not empty", found="empty")


def _term_tags(node_class: Resource, report: Report) -> None:
    for name in _TERMS:
        with report.part():
            for term in node_class.at("spec", name).elements():
                for key, tag in term.at("tags").entries():
                    if key == "" or tag.value == "":
                        report.refuse(node_class, tag, allowed="tags with key and value", found="empty")


def _reservations(node_class: Resource, report: Report) -> None:
    for term in node_class.at("spec", "capacityReservationSelectorTerms").elements():
        others = [key for key in ("tags", "ownerID", "instanceMatchCriteria") if term.at(key).present]
        if term.at("id").present and others:
            report.refuse(node_class, term, allowed="id alone", found=f"id with {', '.join(others)}")
        if not term.at("id").present and not {"tags", "instanceMatchCriteria"} & set(others):
            report.refuse(node_class, term, allowed="id, tags or instanceMatchCriteria", found="without any of them")


def _interfaces(node_class: Resource, report: Report) -> None:
    interfaces = node_class.at("spec", "networkInterfaces")
    members = list(interfaces.elements())
    if members and not any(_is_primary(member) for member in members):
        report.refuse(node_class, interfaces, allowed="one of type interface at card 0, device 0", found="without a primary interface")


def _places(node_class: Resource, report: Report) -> None:
    """Every interface has a place of its own, and a card has one EFA device."""
    taken: set[tuple[str, str]] = set()
    for interface in node_class.at("spec", "networkInterfaces").elements():
        card, device = interface.at("networkCardIndex").text(), interface.at("deviceIndex").text()
        kept = [(card, device)] + ([(card, "efa")] if interface.at("interfaceType").text() == "efa-only" else [])
        if taken.intersection(kept):
            allowed = "each card and device once, and one efa-only interface on a card"
            report.refuse(node_class, interface, allowed=allowed, found=f"card {card}, device {device} again")
        taken.update(kept)


def _is_primary(interface: Node) -> bool:
    first = interface.at("networkCardIndex").integer() == 0 and interface.at("deviceIndex").integer() == 0
    return first and interface.at("interfaceType").text() == "interface"


def _volumes(node_class: Resource, report: Report) -> None:
    for mapping in node_class.at("spec", "blockDeviceMappings").elements():
        rate = mapping.at("ebs", "volumeInitializationRate")
        if rate.present and not mapping.at("ebs", "snapshotID").text():
            report.refuse(node_class, rate, allowed="with snapshotID alone")


def _tracking(node_class: Resource, report: Report) -> None:
    tracking = node_class.at("spec", "connectionTracking")
    if isinstance(tracking.value, dict) and not any(tracking.at(key).present for key in _TIMEOUTS):
        report.refuse(node_class, tracking, allowed=f"one of {', '.join(_TIMEOUTS)}", found="without a timeout")


def _kubelet(node_class: Resource, report: Report) -> None:
    kubelet = node_class.at("spec", "kubelet")
    keys = dict.fromkeys(("evictionHard", "evictionSoft", "evictionSoftGracePeriod"), _SIGNALS)
    for name, allowed in {**keys, **dict.fromkeys(("kubeReserved", "systemReserved"), _RESERVABLE)}.items():
        with report.part():
            for key, value in kubelet.at(name).entries():
                if key not in allowed:
                    report.refuse(node_class, value, allowed=f"one of {', '.join(allowed)}", found=key)
                elif allowed is _RESERVABLE and value.text().startswith("-"):
                    report.refuse(node_class, value, allowed="a quantity that is not negative")
    with report.part():
        _soft_evictions(node_class, kubelet, report)
    with report.part():
        _image_collection(node_class, kubelet, report)


def _soft_evictions(node_class: Resource, kubelet: Node, report: Report) -> None:
    soft, grace = kubelet.at("evictionSoft"), kubelet.at("evictionSoftGracePeriod")
    for place, lone in ((soft, _lone(soft, grace)), (grace, _lone(grace, soft))):
        for key in lone:
            report.refuse(node_class, place, allowed="the same signals in evictionSoft and evictionSoftGracePeriod", found=key)


def _lone(one: Node, other: Node) -> Iterator[str]:
    there = {key for key, _ in other.entries()}
    yield from (key for key, _ in one.entries() if key not in there)


def _image_collection(node_class: Resource, kubelet: Node, report: Report) -> None:
    high, low = (kubelet.at(f"imageGC{side}ThresholdPercent").integer() for side in ("High", "Low"))
    if high is not None and low is not None and high <= low:
        report.refuse(
            node_class, kubelet.at("imageGCHighThresholdPercent"), allowed=f"more than imageGCLowThresholdPercent, which is {low}"
        )


_NODE_CLASS_CHECKS: tuple[Check, ...] = (_identity, _term_tags, _reservations, _interfaces, _places, _volumes, _tracking, _kubelet)

RULES = (
    Rule(
        id="KUB02",
        name="karpenter-require-admissible-fields",
        title="A Karpenter object passes Karpenter's own validation rules",
        types=frozenset({NODE_POOL, NODE_CLASS}),
        check=_admission,
        why="the API server refuses the object when the rest is made, so there is no pool.",
        fix="change the field to what is allowed, or leave it out.",
        source="CEL rules in the CustomResourceDefinitions of Karpenter 1.14.0",
        valid=(Example(NODE_CLASS, {"spec": {"kubelet": {"evictionHard": {"memory.available": "5%"}}}}),),
        invalid=(Example(NODE_CLASS, {"spec": {"kubelet": {"evictionHard": {"memory": "5%"}}}}),),
    ),
)
