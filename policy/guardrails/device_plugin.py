"""Device plug-ins: what pods ask for is offered, by a pinned release that runs on the pool."""

import re
from collections.abc import Iterator

from guardrails.auto_mode import has_other_nodes, is_auto, is_auto_pool, wants_auto
from guardrails.chart import ARCHIVE, CHART_TYPES, Chart, charts, version
from guardrails.efa import FABRIC_CARDS, pool_example
from guardrails.facts import InstanceType, efa_interfaces, instance_types
from guardrails.launch import class_of, types_of
from guardrails.links import decided
from guardrails.node import Node, Undecided
from guardrails.placing import all_templates, chooses_nodes, may_take, pools_of, taints, tolerates, users_of
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
        _tolerated(program, device, report)
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
            place = template.spec.at("containers")
            report.refuse(plugin, place, allowed="/dev/infiniband of the node, or it finds no device", found="without it")


def _tolerated(program: Program, device: str, report: Report) -> None:
    """One plug-in for each pool is enough, whichever has it."""
    for pool in program.of(NODE_POOL):
        with report.part():
            plugins = [(plugin, template.spec, _kept_out(template, pool)) for plugin, template in _daemons(program, device)]
            charts_of_device = list(_plugin_charts(program, device))
            plugins += [(each.resource, spec, missing) for each in charts_of_device for spec, missing in _kept_out_chart(each, pool)]
            if not _needs(program, pool, device) or not plugins or not all(missing for _, _, missing in plugins):
                continue
            if decided([_may_run(chart, pool) for chart in charts_of_device]) or _brings_plugin(program, pool, device):
                continue
            plugin, spec, missing = plugins[0]
            allowed = f"a toleration of {missing[0].at('key').text()}, the taint of {pool.name}, whose devices nobody offers else"
            report.refuse(plugin, spec.at("tolerations"), allowed=allowed, found="without one")


def _needs(program: Program, pool: Resource, device: str) -> bool:
    """Whether somebody has to offer the device on the pool: EFA where the types are bought for it, or where pods ask for it."""
    if device not in _offered(pool):
        return False
    if device != EFA or any(instance.efa >= FABRIC_CARDS for instance in accelerated_types(pool)):
        return True
    return any(template.requested(EFA) for _, template in users_of(program, pool))


def _kept_out(template: PodTemplate, pool: Resource) -> list[Node]:
    """The taints of the pool that keep the pod away."""
    return [taint for taint in taints(pool) if not tolerates(template, taint)]


def _may_run(chart: Chart, pool: Resource) -> bool | Undecided:
    """Whether a chart's plug-in may run on the pool: by the tolerations it is given, else by those it comes with, which are not seen."""
    try:
        return _brings(chart) is True and not any(missing for _, missing in _kept_out_chart(chart, pool))
    except Undecided as error:
        return error


def _kept_out_chart(chart: Chart, pool: Resource) -> Iterator[tuple[Node, list[Node]]]:
    """The pod of a chart that is given tolerations, with the taints of the pool that keep it away; nothing where they are not seen."""
    given = chart.value("tolerations")
    if chart.is_folder or chart.name not in _TOLERATING or not given.present or _brings(chart) is not True:
        return
    spec = Node({"tolerations": given.raw}, given.path.rpartition(".")[0], given.owner)
    yield spec, _kept_out(PodTemplate(spec, 1, spec), pool)


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
        fix="install the plug-in at a pinned release, with tolerations of the pool's taints, and ask only for devices the pool has.",
        source="eks-charts aws-efa-k8s-device-plugin 0.5.30; EKS guide: device plug-ins, Auto Mode",
        valid=(pool_example("us-east-1a"), _plugin("/dev/infiniband")),
        invalid=(pool_example("us-east-1a"), _plugin("/var/lib/kubelet/device-plugins")),
    ),
)
