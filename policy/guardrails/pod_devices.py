"""Pods: devices, huge pages and the size of the node they are meant for."""

import re
from dataclasses import dataclass

from guardrails.allocatable import Allocatable, allocatable
from guardrails.chart import CHART_TYPES, charts
from guardrails.node import Node, shown
from guardrails.placing import always_beside, names_pools, pools_of, wanted_labels
from guardrails.pod_requests import KINDS, asked
from guardrails.pool import INSTANCE_TYPE, allowed_values
from guardrails.program import Program
from guardrails.quantity import quantity, whole
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import DEVICES, EFA, GPU, POD_TYPES, PodTemplate, count, pod_templates
from guardrails.tokens import CONFIG_MAP, DAEMON_SET, NODE_POOL, POD

_DEVICE = re.compile(r"nvidia\.com/.+|amd\.com/gpu|vpc\.amazonaws\.com/efa|aws\.amazon\.com/neuron.*")
_COUNTED = re.compile(r"nvidia\.com/(gpu|mig-.+)|amd\.com/gpu|aws\.amazon\.com/neuron.*")
_HUGE = re.compile(r"hugepages-([0-9]+[KMG]i)")
_MEBIBYTE = 1024**2
# The EFA driver's set-up on EKS keeps 5128 pages of 2 MiB on each node.
_MOST_HUGE_WITH_EFA = 5128 * 2 * _MEBIBYTE
_HUGE_MEDIUM = "HugePages"
_SHARING = re.compile(r"\btimeSlicing\b|\bmps:")


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
    found = [name for kind in KINDS for name, _ in container.at("resources", kind).entries() if pattern.fullmatch(name)]
    return list(dict.fromkeys(found))


def _device(resource: Resource, container: Node, name: str, report: Report) -> None:
    request, limit = (container.at("resources", kind, name) for kind in KINDS)
    for node in (request, limit):
        if node.value is not None and not _is_whole(node):
            report.refuse(resource, node, allowed="a whole number of devices")
            return
    if not limit.present:
        requested = f"{request.text()}, as requested: a device is never only requested"
        report.refuse(resource, limit, allowed=requested if request.present else "a whole number of devices")
    elif request.present and count(request) != count(limit):
        report.refuse(resource, request, allowed=f"{limit.text()}, the limit: devices can't be overcommitted")


def _is_whole(node: Node) -> bool:
    number = whole(node.text())
    return number is not None and number >= 0


def _helpers(resource: Resource, template: PodTemplate, report: Report) -> None:
    """A sidecar holds its devices beside the trainer; an init container may use at most those that the trainer has."""
    for container in template.init_containers():
        for name in _names(container, _COUNTED):
            place = container.at("resources", "limits", name)
            wanted = count(place)
            if wanted and template.is_sidecar(container):
                report.refuse(resource, place, allowed="no device for a sidecar: its share is lost to the ranks")
            elif wanted > template.requested(name):
                report.refuse(resource, place, allowed=f"at most {template.requested(name)}, what the pod's containers use afterwards")


def _huge_pages(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for holder in _holders(template):
            for name in _names(holder, _HUGE):
                with report.part():
                    _huge(resource, holder, name, report)
        with report.part():
            _huge_total(resource, template, report)
        with report.part():
            _huge_volumes(resource, template, report)


def _holders(template: PodTemplate) -> list[Node]:
    """What has resources: the containers, and the pod itself."""
    return [*template.all_containers(), template.spec]


def _huge(resource: Resource, holder: Node, name: str, report: Report) -> None:
    request, limit = (holder.at("resources", kind, name) for kind in KINDS)
    page, wanted = quantity(name.removeprefix("hugepages-")) or 1, quantity(limit.text())
    if limit.present and wanted is None:
        report.refuse(resource, limit, allowed="a quantity such as 5120Mi")
    elif not limit.present or (request.present and quantity(request.text()) != wanted):
        report.refuse(resource, request, allowed=f"the same as the limit, which is {limit.text() or 'unset'}")
    elif wanted and wanted % page:
        report.refuse(resource, limit, allowed=f"a multiple of {name.removeprefix('hugepages-')}")
    if not any(holder.at("resources", kind, other).present for kind in KINDS for other in ("cpu", "memory")):
        report.refuse(resource, holder.at("resources"), allowed=f"cpu or memory beside {name}", found=f"only {name}")


def _huge_total(resource: Resource, template: PodTemplate, report: Report) -> None:
    total = asked(template, "hugepages-2Mi")
    if total > _MOST_HUGE_WITH_EFA and template.requested(EFA):
        found, allowed = (
            f"asking {_mib(total)} of hugepages-2Mi",
            f"at most {_mib(_MOST_HUGE_WITH_EFA)}, the pages that an EFA node sets aside",
        )
        report.refuse(resource, template.spec.at("containers"), allowed=allowed, found=found)


def _huge_volumes(resource: Resource, template: PodTemplate, report: Report) -> None:
    """The kubelet takes a volume's page size from its medium, or from the one size that the pod asks for."""
    for volume in template.spec.at("volumes").elements():
        medium = volume.at("emptyDir", "medium")
        if not medium.text().startswith(_HUGE_MEDIUM):
            continue
        sizes = {name.removeprefix("hugepages-") for holder in _holders(template) for name in _names(holder, _HUGE)}
        size = medium.text().removeprefix(_HUGE_MEDIUM).removeprefix("-")
        if size and quantity(size) not in {quantity(each) for each in sizes}:
            report.refuse(resource, medium, allowed=f"hugepages-{size} among a container's limits, or medium Memory")
        elif not sizes:
            report.refuse(resource, medium, allowed="hugepages-2Mi among a container's limits, or medium Memory")
        elif not size and len(sizes) > 1:
            report.refuse(
                resource, medium, allowed=f"{' or '.join(f'{_HUGE_MEDIUM}-{each}' for each in sorted(sizes))}: the pod asks for both"
            )


def _fits(program: Program, report: Report) -> None:
    for kind in sorted(POD_TYPES - {DAEMON_SET}):
        for resource in program.of(kind):
            with report.part():
                for template in pod_templates(resource):
                    with report.part():
                        _fits_one(resource, template, program, report)


@dataclass(frozen=True)
class _Place:
    """Nodes on which a pod may run, and what they leave to it."""

    type: str
    pool: Resource | None
    room: Allocatable


def _fits_one(resource: Resource, template: PodTemplate, program: Program, report: Report) -> None:
    places = _places(template, program)
    if not places:
        return
    largest = max(places, key=lambda place: (place.room.cpus, place.room.memory)).type
    for unit, scale in (("cpu", 1.0), ("memory", _MEBIBYTE)):
        with report.part():
            wanted, room = asked(template, unit), max(_free(place, unit, template, program, report) for place in places)
            if wanted > room:
                found = f"asking {_plain(wanted / scale, unit)} {unit}"
                allowed = f"at most {_plain(room / scale, unit)} {unit}, what {largest} leaves to pods"
                report.refuse(resource, template.spec.at("containers"), allowed=allowed, found=found)
    # On types that the pod itself names, interfaces are EFA06's.
    for device in DEVICES if places[0].pool is None else (*DEVICES, EFA):
        with report.part():
            _devices_fit(resource, template, places, device, program, report)


def _devices_fit(resource: Resource, template: PodTemplate, places: list[_Place], device: str, program: Program, report: Report) -> None:
    wanted, counts = asked(template, device), [place.room.devices.get(device) for place in places]
    if None in counts:
        return
    most = max(number for number in counts if number is not None)
    if wanted > most and not (most and device == GPU and _shares_devices(program)):
        holder = next(place.type for place, number in zip(places, counts, strict=True) if number == most)
        found, allowed = f"asking {wanted:g} {device}", f"at most {most} {device}, what {holder} has"
        report.refuse(resource, template.spec.at("containers"), allowed=allowed, found=found)


def _shares_devices(program: Program) -> bool:
    """Whether a plug-in's configuration has several pods share a GPU: a node then offers more of them than it has."""
    given = [settings.at("data") for settings in program.of(CONFIG_MAP)]
    given += [chart.value(*place) for chart in charts(program) for place in (("config", "map"), ("devicePlugin", "config", "data"))]
    return any(_SHARING.search(text.text()) for texts in given for _, text in texts.entries())


def _places(template: PodTemplate, program: Program) -> list[_Place]:
    """Where the pod may run: on the types it names, or in the pools it may go to; none where that can't be told."""
    named = wanted_labels(template).get(INSTANCE_TYPE)
    pairs: list[tuple[str, Resource | None]] = [(name, None) for name in named or ()]
    if not named and names_pools(template):
        offered = [(pool, allowed_values(pool, INSTANCE_TYPE)) for pool in pools_of(program, template)]
        if all(types for _, types in offered):
            pairs = [(name, pool) for pool, types in offered for name in types or ()]
    places = [_Place(name, pool, room) for name, pool in pairs if (room := allocatable(name))]
    # A type of which nothing is known may be large enough.
    return places if len(places) == len(pairs) else []


def _free(place: _Place, unit: str, guest: PodTemplate, program: Program, report: Report) -> float:
    """What the program's DaemonSets, as far as they are sure to run there, leave of a node."""
    free = place.room.cpus if unit == "cpu" else place.room.memory
    for resource in program.of(DAEMON_SET):
        with report.part():
            for template in pod_templates(resource):
                if always_beside(template, guest, place.type, place.pool):
                    free -= asked(template, unit)
    return free


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
        source="Kubernetes: manage huge pages, emptyDir of Kubernetes 1.36; EKS guide: EFA, huge pages of the driver's set-up",
        valid=(_pod({"hugepages-2Mi": "5120Mi", "memory": "64Gi", EFA: 4}),),
        invalid=(_pod({"hugepages-2Mi": "11Gi", "memory": "64Gi", EFA: 4}),),
    ),
    StackRule(
        id="POD06",
        name="pod-limit-requests-to-node",
        title="A pod fits on the node it is meant for",
        types=POD_TYPES | CHART_TYPES | {CONFIG_MAP, NODE_POOL},
        check=_fits,
        why="no node will ever have that much free, so the pod stays Pending while its gang holds the other nodes.",
        fix="lower requests below what the instance type leaves to pods, or choose a larger type.",
        source="Karpenter 1.14.1 instance-type reference; EKS kubelet reservations; Kubernetes 1.36: component-helpers PodRequests",
        valid=(_pod({"cpu": "90", "memory": "1000Gi"}, nodeSelector=_P4D),),
        invalid=(_pod({"cpu": "96", "memory": "1100Gi"}, nodeSelector=_P4D),),
    ),
)
