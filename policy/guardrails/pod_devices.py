"""Pods: devices, huge pages and the size of the node they are meant for."""

import re
from dataclasses import dataclass

from guardrails import huge_pages, pool_room
from guardrails.allocatable import Allocatable, allocatable
from guardrails.chart import CHART_TYPES, charts
from guardrails.launch import types_of
from guardrails.node import Node
from guardrails.placing import always_beside, may_take, named_types, names_pools, pools_of, wanted_labels
from guardrails.pod_requests import KINDS, asked, names
from guardrails.pool import INSTANCE_TYPE, allowed_values
from guardrails.program import Program
from guardrails.quantity import MEBIBYTE, whole
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import DEVICES, EFA, GPU, POD_TYPES, PodTemplate, count, pod_templates
from guardrails.tokens import CONFIG_MAP, DAEMON_SET, LAUNCH_TEMPLATE, NODE_CLASS, NODE_GROUP, NODE_POOL, POD, SCALING_GROUP

_DEVICE = re.compile(r"nvidia\.com/.+|amd\.com/gpu|vpc\.amazonaws\.com/efa|aws\.amazon\.com/neuron.*")
_COUNTED = re.compile(r"nvidia\.com/(gpu|mig-.+)|amd\.com/gpu|aws\.amazon\.com/neuron.*")
_FOUND = ("nvidia.com/", "vpc.amazonaws.com/", "aws.amazon.com/", "feature.node.kubernetes.io/")
"""How labels begin that agents give to nodes by what they find there, whatever a group says."""
_SHARING = re.compile(r"\btimeSlicing\b|\bmps:")


def _devices(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for container in template.all_containers():
            for name in names(container, _DEVICE):
                with report.part():
                    _device(resource, container, name, report)
        with report.part():
            _helpers(resource, template, report)


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
        for name in names(container, _COUNTED):
            place = container.at("resources", "limits", name)
            wanted = count(place)
            if wanted and template.is_sidecar(container):
                report.refuse(resource, place, allowed="no device for a sidecar: its share is lost to the ranks")
            elif wanted > template.requested(name):
                report.refuse(resource, place, allowed=f"at most {template.requested(name)}, what the pod's containers use afterwards")


def _fits(program: Program, report: Report) -> None:
    for kind in sorted(POD_TYPES - {DAEMON_SET}):
        for resource in program.of(kind):
            with report.part():
                for template in pod_templates(resource):
                    with report.part():
                        _fits_one(resource, template, program, report)
    for job in program.of(*sorted(pool_room.GANGS)):
        with report.part():
            pool_room.fits(program, job, lambda: _shares_devices(program), report)


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
    for unit, scale in (("cpu", 1.0), ("memory", MEBIBYTE)):
        with report.part():
            wanted, room = asked(template, unit), max(_free(place, unit, template, program, report) for place in places)
            if wanted > room:
                found = f"asking {_plain(wanted / scale, unit)} {unit}"
                allowed = f"at most {_plain(room / scale, unit)} {unit}, what {largest} leaves to pods"
                report.refuse(resource, template.place, allowed=allowed, found=found)
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
        report.refuse(resource, template.place, allowed=allowed, found=found)


def _shares_devices(program: Program) -> bool:
    """Whether a plug-in's configuration has several pods share a GPU: a node then offers more of them than it has."""
    given = [settings.at("data") for settings in program.of(CONFIG_MAP)]
    given += [chart.value(*place) for chart in charts(program) for place in (("config", "map"), ("devicePlugin", "config", "data"))]
    return any(_SHARING.search(text.text()) for texts in given for _, text in texts.entries())


def _places(template: PodTemplate, program: Program) -> list[_Place]:
    """Where the pod may run: on the types it names, or in the pools and groups it may go to; none where that can't be told."""
    named = named_types(template)
    pairs: list[tuple[str, Resource | None]] = [(name, None) for name in named]
    if not named and names_pools(template):
        offered = _offered_by(program, template)
        if all(types for _, types in offered):
            pairs = [(name, pool) for pool, types in offered for name in types or ()]
    places = [_Place(name, pool, room) for name, pool in pairs if (room := allocatable(name))]
    # A type of which nothing is known may be large enough.
    return places if len(places) == len(pairs) else []


def _offered_by(program: Program, template: PodTemplate) -> list[tuple[Resource | None, list[str] | None]]:
    """The pools and groups that may take the pod, each with the types that it names; a group stands without its resource."""
    offered: list[tuple[Resource | None, list[str] | None]] = []
    offered += [(pool, allowed_values(pool, INSTANCE_TYPE)) for pool in pools_of(program, template)]
    if not all(key.startswith(_FOUND) for key in wanted_labels(template)):
        offered += [(None, types_of(program, group)) for group in program.of(NODE_GROUP) if may_take(program, group, template)]
    if offered:
        # What labels these nodes have nothing says, so the pod is not meant for them, though it may go there.
        offered += [(None, types_of(program, group)) for group in program.of(SCALING_GROUP) if may_take(program, group, template)]
    return offered


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
    StackRule(
        id="POD05",
        name="pod-require-huge-page-limits",
        title="Huge pages are limited, whole, and there on the node",
        types=POD_TYPES | {NODE_POOL, NODE_CLASS, NODE_GROUP, SCALING_GROUP, LAUNCH_TEMPLATE},
        check=huge_pages.check,
        early=True,
        why="the API server refuses the pod, or no node has that many pages and the pod stays Pending.",
        fix="ask the same multiple of 2Mi under requests and limits, beside cpu and memory; above 10256Mi on EFA nodes, set "
        "vm.nr_hugepages in their user data.",
        source="Kubernetes: manage huge pages, emptyDir of Kubernetes 1.36; EKS guide: EFA, huge pages of the driver's set-up",
        valid=(_pod({"hugepages-2Mi": "5120Mi", "memory": "64Gi", EFA: 4}),),
        invalid=(_pod({"hugepages-2Mi": "11Gi", "memory": "64Gi", EFA: 4}),),
    ),
    StackRule(
        id="POD06",
        name="pod-limit-requests-to-node",
        title="A pod fits on the node it is meant for, and a gang into its pool",
        types=POD_TYPES | CHART_TYPES | {CONFIG_MAP, NODE_POOL, NODE_GROUP, SCALING_GROUP, LAUNCH_TEMPLATE},
        check=_fits,
        why="no node will ever have that much free, or no more nodes start, so the pod stays Pending while its gang holds the other nodes.",
        fix="lower requests below what the instance type leaves to pods, or choose a larger type; for a gang, raise the "
        "limits of its pool.",
        source="Karpenter 1.14.1 instance-type reference; EKS kubelet reservations; Kubernetes 1.36: component-helpers PodRequests; "
        "karpenter 1.14.1 scheduling/scheduler.go (filterByRemainingResources)",
        valid=(_pod({"cpu": "90", "memory": "1000Gi"}, nodeSelector=_P4D),),
        invalid=(_pod({"cpu": "96", "memory": "1100Gi"}, nodeSelector=_P4D),),
    ),
)
