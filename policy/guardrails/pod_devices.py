"""Pods: devices, huge pages and the size of the node they are meant for."""

import re

from guardrails.allocatable import Allocatable, allocatable
from guardrails.node import Node, shown
from guardrails.placing import names_pools, pools_of, wanted_labels
from guardrails.pool import INSTANCE_TYPE, allowed_values
from guardrails.program import Program
from guardrails.quantity import quantity
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import EFA, GPU, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import DAEMON_SET, NODE_POOL, POD

_DEVICE = re.compile(r"nvidia\.com/.+|amd\.com/gpu|vpc\.amazonaws\.com/efa|aws\.amazon\.com/neuron.*")
_COUNTED = re.compile(r"nvidia\.com/(gpu|mig-.+)|amd\.com/gpu|aws\.amazon\.com/neuron.*")
_HUGE = re.compile(r"hugepages-([0-9]+[KMG]i)")
_MEBIBYTE = 1024**2
# The EFA driver's set-up on EKS keeps 5128 pages of 2 MiB on each node.
_MOST_HUGE_WITH_EFA = 5128 * 2 * _MEBIBYTE
_KINDS = ("requests", "limits")


def _devices(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for container in template.all_containers():
            for name in _names(container, _DEVICE):
                with report.part():
                    _device(resource, container, name, report)
        with report.part():
            _helpers(resource, template, report)


def _names(container: Node, pattern: re.Pattern[str]) -> list[str]:
    """Resources of that form that the container names among its requests or limits."""
    found = [name for kind in _KINDS for name, _ in container.at("resources", kind).entries() if pattern.fullmatch(name)]
    return list(dict.fromkeys(found))


def _device(resource: Resource, container: Node, name: str, report: Report) -> None:
    request, limit = (container.at("resources", kind, name) for kind in _KINDS)
    for node in (request, limit):
        if node.value is not None and (node.integer() is None or (node.integer() or 0) < 0):
            report.refuse(resource, node, allowed="a whole number of devices")
            return
    if not limit.present:
        report.refuse(resource, limit, allowed=f"{request.text()}, as requested: a device is never only requested")
    elif request.present and request.integer() != limit.integer():
        report.refuse(resource, request, allowed=f"{limit.text()}, the limit: devices can't be overcommitted")


def _helpers(resource: Resource, template: PodTemplate, report: Report) -> None:
    """A sidecar holds its devices beside the trainer; an init container may use at most those that the trainer has."""
    for container in template.spec.at("initContainers").elements():
        for name in _names(container, _COUNTED):
            place = container.at("resources", "limits", name)
            asked = place.integer() or 0
            if asked and container.at("restartPolicy").text() == "Always":
                report.refuse(resource, place, allowed="no device for a sidecar: its share is lost to the ranks")
            elif asked > template.requested(name):
                report.refuse(resource, place, allowed=f"at most {template.requested(name)}, what the pod's containers use afterwards")


def _huge_pages(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        total = 0.0
        for container in template.containers():
            for name in _names(container, _HUGE):
                with report.part():
                    total += _huge(resource, container, name, report)
        with report.part():
            _huge_total(resource, template, total, report)
        with report.part():
            _huge_volumes(resource, template, report)


def _huge(resource: Resource, container: Node, name: str, report: Report) -> float:
    """Judge one container's huge pages; gives the bytes of 2 MiB pages that it asks for."""
    request, limit = (container.at("resources", kind, name) for kind in _KINDS)
    page, asked = quantity(name.removeprefix("hugepages-")) or 1, quantity(limit.text())
    if limit.present and asked is None:
        report.refuse(resource, limit, allowed="a quantity such as 5120Mi")
    elif not limit.present or (request.present and quantity(request.text()) != asked):
        report.refuse(resource, request, allowed=f"the same as the limit, which is {limit.text() or 'unset'}")
    elif asked and asked % page:
        report.refuse(resource, limit, allowed=f"a multiple of {name.removeprefix('hugepages-')}")
    if not any(container.at("resources", kind, other).present for kind in _KINDS for other in ("cpu", "memory")):
        report.refuse(resource, container.at("resources"), allowed=f"cpu or memory beside {name}", found=f"only {name}")
    return asked or 0.0 if page == 2 * _MEBIBYTE else 0.0


def _huge_total(resource: Resource, template: PodTemplate, total: float, report: Report) -> None:
    if total > _MOST_HUGE_WITH_EFA and template.requested(EFA):
        found, allowed = (
            f"asking {_mib(total)} of hugepages-2Mi",
            f"at most {_mib(_MOST_HUGE_WITH_EFA)}, the pages that an EFA node sets aside",
        )
        report.refuse(resource, template.spec.at("containers"), allowed=allowed, found=found)


def _huge_volumes(resource: Resource, template: PodTemplate, report: Report) -> None:
    for volume in template.spec.at("volumes").elements():
        medium = volume.at("emptyDir", "medium")
        if medium.text().startswith("HugePages") and not any(_names(container, _HUGE) for container in template.containers()):
            report.refuse(resource, medium, allowed="hugepages-2Mi among a container's limits, or medium Memory")


def _fits(program: Program, report: Report) -> None:
    for kind in sorted(POD_TYPES - {DAEMON_SET}):
        for resource in program.of(kind):
            with report.part():
                for template in pod_templates(resource):
                    with report.part():
                        _fits_one(resource, template, program, report)


def _fits_one(resource: Resource, template: PodTemplate, program: Program, report: Report) -> None:
    types = {name: room for name in _node_types(template, program) if (room := allocatable(name))}
    if not types:
        return
    largest = max(types, key=lambda name: (types[name].cpus, types[name].memory))
    taken = _agents(program)
    for unit, scale in (("cpu", 1.0), ("memory", _MEBIBYTE)):
        asked = _asked(template, unit)
        room = max(_room(types[name], unit) for name in types) - taken[unit]
        if asked > room:
            found = f"asking {_plain(asked / scale, unit)} {unit}"
            allowed = f"at most {_plain(room / scale, unit)} {unit}, what {largest} leaves to pods"
            report.refuse(resource, template.spec.at("containers"), allowed=allowed, found=found)


def _node_types(template: PodTemplate, program: Program) -> list[str]:
    """Instance types on which the pod may run: those it names, or those of the pools it may go to; none where that can't be told."""
    named = wanted_labels(template).get(INSTANCE_TYPE)
    if named or not names_pools(template):
        return named or []
    offered = [allowed_values(pool, INSTANCE_TYPE) for pool in pools_of(program, template)]
    return [name for types in offered if types for name in types] if all(offered) else []


def _agents(program: Program) -> dict[str, float]:
    """What the program's DaemonSets take of every node."""
    taken = {"cpu": 0.0, "memory": 0.0}
    for resource in program.of(DAEMON_SET):
        for template in pod_templates(resource):
            for unit in taken:
                taken[unit] += _asked(template, unit)
    return taken


def _asked(template: PodTemplate, unit: str) -> float:
    """What the scheduler looks for: the sum over containers, or one init container if that is more."""
    ordinary = sum(_reserved(container, unit) for container in template.containers())
    return max([ordinary, *(_reserved(container, unit) for container in template.spec.at("initContainers").elements())])


def _reserved(container: Node, unit: str) -> float:
    request, limit = (container.at("resources", kind, unit) for kind in _KINDS)
    return quantity((request if request.present else limit).text()) or 0.0


def _room(room: Allocatable, unit: str) -> float:
    return room.cpus if unit == "cpu" else room.memory


def _plain(number: float, unit: str) -> str:
    """96, 95.69, 1100Gi, 1082712Mi."""
    if unit == "cpu":
        return f"{number:.2f}".rstrip("0").rstrip(".")
    return f"{number / 1024:.0f}Gi" if number % 1024 == 0 else f"{int(number)}Mi"


def _mib(number: float) -> str:
    return f"{shown(int(number / _MEBIBYTE))}Mi"


def _pod(limits: dict[str, object], requests: dict[str, object] | None = None, **spec: object) -> Example:
    container = {"name": "main", "resources": {"limits": limits, **({"requests": requests} if requests else {})}}
    return Example(POD, {"spec": {"containers": [container], **spec}})


_P4D = {INSTANCE_TYPE: "p4d.24xlarge"}

RULES = (
    Rule(
        id="POD04",
        name="pod-require-whole-devices",
        title="Devices are whole, limited, and with the containers that train",
        types=POD_TYPES,
        check=_devices,
        why="the API server refuses the pod, or a helper container holds devices that no rank can use.",
        fix="set the same whole number under requests and limits (limits alone is enough), in the training container only.",
        source="Kubernetes: extended resources; sidecar containers",
        valid=(_pod({GPU: 8, EFA: 4}),),
        invalid=(_pod({GPU: 4}, {GPU: 8}),),
    ),
    Rule(
        id="POD05",
        name="pod-require-huge-page-limits",
        title="Huge pages are limited, whole, and there on the node",
        types=POD_TYPES,
        check=_huge_pages,
        why="the API server refuses the pod, or no node has that many pages and the pod stays Pending.",
        fix="ask the same multiple of 2Mi under requests and limits, at most 10256Mi on EFA nodes, beside cpu and memory.",
        source="Kubernetes: manage huge pages; EKS guide: EFA, huge pages of the driver's set-up",
        valid=(_pod({"hugepages-2Mi": "5120Mi", "memory": "64Gi", EFA: 4}),),
        invalid=(_pod({"hugepages-2Mi": "11Gi", "memory": "64Gi", EFA: 4}),),
    ),
    StackRule(
        id="POD06",
        name="pod-limit-requests-to-node",
        title="A pod fits on the node it is meant for",
        types=POD_TYPES | {NODE_POOL},
        check=_fits,
        why="no node will ever have that much free, so the pod stays Pending while its gang holds the other nodes.",
        fix="lower requests below what the instance type leaves to pods, or choose a larger type.",
        source="Karpenter 1.14.1 instance-type reference; EKS kubelet reservations",
        valid=(_pod({"cpu": "90", "memory": "1000Gi"}, nodeSelector=_P4D),),
        invalid=(_pod({"cpu": "96", "memory": "1100Gi"}, nodeSelector=_P4D),),
    ),
)
