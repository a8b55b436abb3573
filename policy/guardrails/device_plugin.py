"""Device plug-ins: what pods ask for is offered, by a pinned release that runs on the pool."""

import re
from collections.abc import Iterator

from guardrails.auto_mode import has_other_nodes, is_auto, is_auto_pool, wants_auto
from guardrails.chart import ARCHIVE, CHART_TYPES, Chart, charts, version
from guardrails.efa import FABRIC_CARDS, pool_example
from guardrails.facts import InstanceType, efa_interfaces, instance_types
from guardrails.launch import class_of, types_of
from guardrails.links import decided
from guardrails.node import Undecided
from guardrails.placing import all_templates, chooses_nodes, may_take, pools_of, users_of
from guardrails.plugin_place import Obstacle, chart_obstacles, obstacles
from guardrails.pool import INSTANCE_TYPE, accelerated_types, allowed_values
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import EFA, GPU, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import APPLICATION, CLUSTER, DAEMON_SET, LAUNCH_TEMPLATE, NODE_CLASS, NODE_GROUP, NODE_POOL, SCALING_GROUP

_NEURON = "aws.amazon.com/neuron"


_PLUGINS = {
    GPU: re.compile(r"nvidia-device-plugin|(?<!efa-)k8s-device-plugin|gpu-operator"),
    EFA: re.compile(r"efa-k8s-device-plugin"),
    _NEURON: re.compile(r"neuron-device-plugin|neuron-helm-chart"),
}


_TOLERATING = frozenset({"nvidia-device-plugin", "aws-efa-k8s-device-plugin"})
"""Charts whose value `tolerations` is that of the plug-in's pods, in place of those that the chart has."""
_DOTS = 2
"""Helm takes a version of fewer numbers for a range."""
_MOVING = re.compile(r"(^|:)(latest|main|master|stable)$")


def _plugins(program: Program, report: Report) -> None:
    # A program of jobs alone says nothing of what runs in the cluster.
    if not program.has({NODE_POOL, NODE_GROUP, CLUSTER}):
        return
    for resource, template in all_templates(program):
        for device in _PLUGINS:
            with report.part():
                if template.requested(device) and resource.type != DAEMON_SET:
                    _served(program, resource, template, device, report)
    for device in _PLUGINS:
        for plugin, template in _daemons(program, device):
            with report.part():
                _reaches(plugin, template, device, report)
        _reached(program, device, report)
        for chart in _plugin_charts(program, device):
            with report.part():
                _pinned(chart, report)


def _served(program: Program, resource: Resource, template: PodTemplate, device: str, report: Report) -> None:
    pools = pools_of(program, template)
    if device == EFA and pools and not any(_offers_efa(pool) for pool in pools):
        names = ", ".join(pool.name for pool in pools)
        found = f"{template.requested(EFA)} {EFA} in pods that go to {names}"
        report.refuse(resource, template.place, allowed=f"no {EFA}: no type of {names} has EFA", found=found)
        return
    if any(True for _ in _daemons(program, device)) or decided([_brings(chart) for chart in _plugin_charts(program, device)]):
        return
    hosts = pools or _hosts(program, template, device)
    if _is_on_auto_mode(program, template) or (hosts and all(_brings_plugin(program, host, device) for host in hosts)):
        return
    allowed = f"a device plug-in of {device} in the program (a DaemonSet or a pinned chart)"
    # Pools and jobs without their cluster: the plug-in may be where the cluster is. A driver of claims may serve such requests too.
    tell = report.refuse if program.has({CLUSTER}) and not _has_claims(program) else report.advise
    tell(resource, template.place, allowed=allowed, found=f"asking for {device}, which nothing offers")


def _has_claims(program: Program) -> bool:
    """Whether a chart installs a driver of ResourceClaims, which a DeviceClass may put in the place of a device plug-in."""
    if any("dra-driver" in chart.name for chart in charts(program)):
        return True
    return any(chart.value("draDriver", "enabled").value is True for chart in charts(program, "neuron-helm-chart"))


def _is_on_auto_mode(program: Program, template: PodTemplate) -> bool:
    """Whether the pod goes to nodes of EKS Auto Mode, which have the plug-ins built in."""
    if wants_auto(template):
        return is_auto(program) or not program.has({CLUSTER})
    return is_auto(program) and not has_other_nodes(program)


def _hosts(program: Program, template: PodTemplate, device: str) -> list[Resource]:
    """Where a pod may go that names no pool's nodes: node groups, and pools where it names no nodes at all."""
    groups = [group for group in program.of(NODE_GROUP) if _may_take(program, group, template, device)]
    if chooses_nodes(template):
        return groups
    return [*groups, *(pool for pool in program.of(NODE_POOL) if device in _offered(pool))]


def _may_take(program: Program, group: Resource, template: PodTemplate, device: str) -> bool:
    """Whether nodes of a managed node group have the device and the labels that the pod wants, as far as the group says."""
    types = types_of(program, group)
    if types and not any(device in _devices(instance_types()[name]) for name in types if name in instance_types()):
        return False
    return may_take(program, group, template)


def _brings_plugin(program: Program, host: Resource, device: str) -> bool:
    """Whether nodes of a pool or node group have the plug-in built in: Bottlerocket has NVIDIA's, EKS Auto Mode has all."""
    if host.type == NODE_GROUP:
        image = host.at("amiType").text()
        return device == GPU and image.startswith("BOTTLEROCKET_") and "_NVIDIA" in image
    if is_auto_pool(host):
        return True
    node_class = class_of(program, host) if device == GPU else None
    if node_class is None:
        return False
    terms = node_class.at("spec", "amiSelectorTerms").elements()
    return node_class.at("spec", "amiFamily").text() == "Bottlerocket" or any(
        term.at("alias").text().startswith("bottlerocket@") for term in terms
    )


def _offers_efa(pool: Resource) -> bool:
    """Whether any type of the pool may have EFA; True where the types are not named."""
    named = allowed_values(pool, INSTANCE_TYPE)
    return named is None or any(efa_interfaces().get(name, 1) for name in named)


def _daemons(program: Program, device: str) -> Iterator[tuple[Resource, PodTemplate]]:
    for resource in program.of(DAEMON_SET):
        for template in pod_templates(resource):
            if any(_PLUGINS[device].search(container.at("image").text()) for container in template.containers()):
                yield resource, template


def _plugin_charts(program: Program, device: str) -> Iterator[Chart]:
    for chart in charts(program):
        if _PLUGINS[device].search(chart.name):
            yield chart


def _reaches(plugin: Resource, template: PodTemplate, device: str, report: Report) -> None:
    for container in template.containers():
        image = container.at("image")
        if _PLUGINS[device].search(image.text()) and (_MOVING.search(image.text()) or ":" not in image.text().rpartition("/")[2]):
            report.refuse(plugin, image, allowed="a pinned release of the plug-in")
    if device == EFA:
        mounted = [mount.at("mountPath").text() for each in template.containers() for mount in each.at("volumeMounts").elements()]
        if not any(path.startswith("/dev/infiniband") for path in mounted):
            place, allowed = template.spec.at("containers"), "one with /dev/infiniband of the node mounted, or it finds no device"
            report.refuse(plugin, place, allowed=allowed, found="without a mount of /dev/infiniband")


def _reached(program: Program, device: str, report: Report) -> None:
    """One plug-in for each pool or group is enough, whichever has it."""
    for host in program.of(NODE_POOL, NODE_GROUP):
        with report.part():
            if _needs(program, host, device) and not _brings_plugin(program, host, device):
                _reached_host(program, host, device, report)


def _reached_host(program: Program, host: Resource, device: str, report: Report) -> None:
    tries = list(_tries(program, host, device))
    if not tries or decided([each if isinstance(each, Undecided) else not each[1] for each in tries]):
        return
    kept = [each for each in tries if not isinstance(each, Undecided)]
    # What nobody is sure to be kept off by may be no obstacle there.
    open_to_others = [each for each in kept if not any(obstacle.certain for obstacle in each[1])]
    if open_to_others and device == EFA and not _is_asked_for_efa(program, host):
        # A pool may go without the interfaces, and without the label that says so.
        return
    plugin, found = (open_to_others or kept)[0]
    obstacle = next((each for each in found if each.certain), found[0])
    tell = report.advise if open_to_others else report.refuse
    tell(plugin, obstacle.place, allowed=obstacle.allowed, found=obstacle.found)


def _tries(program: Program, host: Resource, device: str) -> Iterator[tuple[Resource, list[Obstacle]] | Undecided]:
    """Each plug-in with what keeps it off the nodes; where that can't be told, why."""
    for plugin, template in _daemons(program, device):
        try:
            yield plugin, obstacles(program, template, host)
        except Undecided as error:
            yield error
    for chart in _plugin_charts(program, device):
        try:
            brings = _brings(chart)
            if isinstance(brings, Undecided):
                yield brings
            elif brings:
                seen = not chart.is_folder and chart.name in _TOLERATING
                yield chart.resource, chart_obstacles(program, chart, host) if seen else []
        except Undecided as error:
            yield error


def _needs(program: Program, host: Resource, device: str) -> bool:
    """Whether somebody has to offer the device on the nodes: EFA where the types are bought for it, or where pods ask for it."""
    if host.type == NODE_GROUP:
        # Whether a group's nodes have EFA is for its launch template to say.
        return device != EFA and any(
            device in _devices(instance_types()[name]) for name in types_of(program, host) if name in instance_types()
        )
    if device not in _offered(host):
        return False
    if device != EFA or any(instance.efa >= FABRIC_CARDS for instance in accelerated_types(host)):
        return True
    return _is_asked_for_efa(program, host)


def _is_asked_for_efa(program: Program, host: Resource) -> bool:
    return any(template.requested(EFA) for _, template in users_of(program, host))


def _brings(chart: Chart) -> bool | Undecided:
    """Whether a chart's plug-in is not switched off, as some have it, beside other things."""
    try:
        return chart.is_folder or chart.value("devicePlugin", "enabled").value is not False
    except Undecided as error:
        return error


def _offered(pool: Resource) -> set[str]:
    """The devices that nodes of the pool have, as far as its types say."""
    return {device for instance in accelerated_types(pool) for device in _devices(instance)}


def _devices(instance: InstanceType) -> set[str]:
    own = {instance.counted_as[0]}
    return own | {EFA} if instance.efa else own


def _pinned(chart: Chart, report: Report) -> None:
    address, release = chart.address.text(), chart.version
    if chart.resource.type == APPLICATION:
        return  # ARG01 judges what an Application is held at.
    if address.startswith((".", "/")) or ARCHIVE.search(address):
        return  # A folder beside the program, or an archive with its version in its name.
    if version(release.text()) is None or release.text().count(".") < _DOTS:
        report.refuse(chart.resource, release, allowed="a pinned version of the chart, such as 0.20.0")


def _plugin(*paths: str) -> Example:
    container = {
        "name": "efa",
        "image": "registry.example/eks/aws-efa-k8s-device-plugin:v0.5.20",
        "volumeMounts": [{"name": "devices", "mountPath": path} for path in paths],
    }
    return Example(DAEMON_SET, {"metadata": {"name": "efa"}, "spec": {"template": {"spec": {"containers": [container]}}}}, name="efa")


RULES = (
    StackRule(
        id="EFA07",
        name="device-plugin-require-pinned-match",
        title="A device that pods ask for is offered by a pinned plug-in that runs on the pool",
        check=_plugins,
        types=POD_TYPES | CHART_TYPES | {NODE_POOL, NODE_CLASS, NODE_GROUP, SCALING_GROUP, LAUNCH_TEMPLATE, CLUSTER},
        why="pods stay Pending for ever, and no error names the cause; without /dev/infiniband the plug-in offers nothing.",
        fix="install the plug-in at a pinned release, for the pool's taints and labels, and ask only for devices that the pool has.",
        source="charts aws-efa-k8s-device-plugin 0.5.30 and nvidia-device-plugin 0.17.1; EKS guide: device plug-ins, Auto Mode",
        valid=(pool_example("us-east-1a"), _plugin("/dev/infiniband")),
        invalid=(pool_example("us-east-1a"), _plugin("/var/lib/kubelet/device-plugins")),
    ),
)
