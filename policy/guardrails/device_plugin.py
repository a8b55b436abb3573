"""Device plug-ins: what pods ask for is offered, by a pinned release that runs on the pool."""

import re
from collections.abc import Iterator

from guardrails.chart import CHART_TYPES, Chart, charts
from guardrails.efa import pool_example
from guardrails.facts import efa_interfaces
from guardrails.launch import class_of
from guardrails.placing import all_templates, pools_of, taints, tolerates
from guardrails.pool import INSTANCE_TYPE, accelerated_types, allowed_values
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import EFA, GPU, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import CLUSTER, DAEMON_SET, NODE_GROUP, NODE_POOL

_NEURON = "aws.amazon.com/neuron"


_PLUGINS = {
    GPU: re.compile(r"nvidia-device-plugin|(?<!efa-)k8s-device-plugin|gpu-operator"),
    EFA: re.compile(r"efa-k8s-device-plugin"),
    _NEURON: re.compile(r"neuron-device-plugin|neuron-helm-chart"),
}


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
                _reaches(program, plugin, template, device, report)
        for chart in _plugin_charts(program, device):
            with report.part():
                _pinned(chart, report)


def _served(program: Program, resource: Resource, template: PodTemplate, device: str, report: Report) -> None:
    pools = pools_of(program, template)
    if device == EFA and pools and not any(_offers_efa(pool) for pool in pools):
        names = ", ".join(pool.name for pool in pools)
        found = f"{template.requested(EFA)} {EFA} in pods that go to {names}"
        report.refuse(resource, template.spec.at("containers"), allowed=f"no {EFA}: no type of {names} has EFA", found=found)
        return
    if any(True for _ in _daemons(program, device)) or any(True for _ in _plugin_charts(program, device)):
        return
    if device == GPU and pools and all(_brings_plugin(program, pool) for pool in pools):
        return
    allowed = f"a device plug-in of {device} in the program (a DaemonSet or a pinned chart)"
    # Pools and jobs without their cluster: the plug-in may be where the cluster is.
    tell = report.refuse if program.has({CLUSTER}) else report.advise
    tell(resource, template.spec.at("containers"), allowed=allowed, found=f"asking for {device}, which nothing offers")


def _brings_plugin(program: Program, pool: Resource) -> bool:
    """Whether the pool's image has the NVIDIA plug-in built in."""
    node_class = class_of(program, pool)
    terms = node_class.at("spec", "amiSelectorTerms").elements() if node_class is not None else ()
    return any(term.at("alias").text().startswith("bottlerocket@") for term in terms)


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


def _reaches(program: Program, plugin: Resource, template: PodTemplate, device: str, report: Report) -> None:
    for container in template.containers():
        image = container.at("image")
        if _PLUGINS[device].search(image.text()) and (_MOVING.search(image.text()) or ":" not in image.text().rpartition("/")[2]):
            report.refuse(plugin, image, allowed="a pinned release of the plug-in")
    if device == EFA:
        mounted = [mount.at("mountPath").text() for each in template.containers() for mount in each.at("volumeMounts").elements()]
        if not any(path.startswith("/dev/infiniband") for path in mounted):
            place = template.spec.at("containers")
            report.refuse(plugin, place, allowed="/dev/infiniband of the node, or it finds no device", found="without it")
    for pool in program.of(NODE_POOL):
        if device in _offered(pool):
            missing = [taint for taint in taints(pool) if not tolerates(template, taint)]
            for taint in missing[:1]:
                allowed = f"a toleration of {taint.at('key').text()}, the taint of {pool.name}, whose devices nobody offers else"
                report.refuse(plugin, template.spec.at("tolerations"), allowed=allowed, found="without one")


def _offered(pool: Resource) -> set[str]:
    """The devices that nodes of the pool have, as far as its types say."""
    found: set[str] = set()
    for instance in accelerated_types(pool):
        found.add(instance.counted_as[0])
        found |= {EFA} if instance.efa else set()
    return found


def _pinned(chart: Chart, report: Report) -> None:
    release = chart.version
    if not re.search(r"[0-9]", release.text()):
        report.refuse(chart.resource, release, allowed="a pinned version of the chart")


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
        types=POD_TYPES | CHART_TYPES | {NODE_POOL, NODE_GROUP, CLUSTER},
        why="pods stay Pending for ever, and no error names the cause; without /dev/infiniband the plug-in offers nothing.",
        fix="install the plug-in at a pinned release, with tolerations of the pool's taints, and ask only for devices the pool has.",
        source="eks-charts aws-efa-k8s-device-plugin 0.5.30; EKS guide: device plug-ins",
        valid=(pool_example("us-east-1a"), _plugin("/dev/infiniband")),
        invalid=(pool_example("us-east-1a"), _plugin("/var/lib/kubelet/device-plugins")),
    ),
)
