"""What a pod asks of its node, as the scheduler counts it."""

import re

from guardrails.node import Node
from guardrails.quantity import quantity
from guardrails.template import PodTemplate

KINDS = ("requests", "limits")
_OF_PODS = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"


def asked(template: PodTemplate, unit: str) -> float:
    """The sum over containers and sidecars, or what an init container has beside the sidecars before it, if that is more.

    Resources of the pod itself take their place, and its overhead comes on top.
    """
    together = sum(_reserved(container, unit) for container in template.containers())
    sidecars = most = 0.0
    for container in template.init_containers():
        own = _reserved(container, unit)
        most = max(most, sidecars + own)
        if template.is_sidecar(container):
            sidecars += own
    total = max(together + sidecars, most)
    return _of_the_pod(template, unit, total) + (quantity(template.spec.at("overhead", unit).text()) or 0.0)


def names(container: Node, pattern: re.Pattern[str]) -> list[str]:
    """Resources of that form that the container names among its requests or limits."""
    found = [name for kind in KINDS for name, _ in container.at("resources", kind).entries() if pattern.fullmatch(name)]
    return list(dict.fromkeys(found))


def of_the_pod(template: PodTemplate, kind: str, unit: str) -> Node:
    """What the pod itself, not a container, requests or is limited to; missing for what only containers ask for."""
    place = template.spec.at("resources", kind, unit)
    return place if unit in _OF_PODS or unit.startswith(_HUGE_PAGES) else Node(None, place.path, place.owner)


def _of_the_pod(template: PodTemplate, unit: str, total: float) -> float:
    """The pod's request; a limit alone counts where no container asks."""
    request, limit = (of_the_pod(template, kind, unit) for kind in KINDS)
    if request.present:
        return quantity(request.text()) or 0.0
    return total or quantity(limit.text()) or 0.0


def _reserved(container: Node, unit: str) -> float:
    request, limit = (container.at("resources", kind, unit) for kind in KINDS)
    return quantity((request if request.present else limit).text()) or 0.0
