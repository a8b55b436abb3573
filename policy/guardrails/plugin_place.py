"""What keeps a device plug-in's pods off the nodes of a pool or group: taints that they don't tolerate, labels that these lack."""

from collections.abc import Iterator
from dataclasses import dataclass

from guardrails.chart import Chart, charts, version
from guardrails.launch import types_of
from guardrails.node import Node
from guardrails.placing import POOL_LABEL, all_templates, alternatives, is_offered, taints, tolerates, wanted_keys
from guardrails.pool import INSTANCE_TYPE, allowed_values, normal_key
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.template import PodTemplate
from guardrails.tokens import NODE_POOL

_NVIDIA_CHART = "nvidia-device-plugin"
_TERMS = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_PRESENT = "nvidia.com/gpu.present"
_DEFAULT_LABELS = {
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "feature.node.kubernetes.io/cpu-model.vendor_id": "NVIDIA",
    _PRESENT: "true",
}
"""Labels of which the pods of NVIDIA's chart want one, unless they are told otherwise."""
_WITH_LABELS = (0, 15, 0)
"""The first release of the chart that wants them."""
_DISCOVERED = ("feature.node.kubernetes.io/", "nvidia.com/")
"""How the keys of labels begin that what discovers features gives nodes."""
_DISCOVERERS = ("gpu-operator", "node-feature-discovery", "gpu-feature-discovery")
_GIVERS = ("kubernetes.io", "k8s.io", "k8s.aws", "amazonaws.com")
"""How the domains of labels end that Kubernetes and AWS give nodes by themselves."""


@dataclass(frozen=True)
class Obstacle:
    """Something that keeps a plug-in's pods off all nodes of a pool or group."""

    place: Node
    found: str
    allowed: str
    certain: bool = True
    """Nobody whom the program does not show takes it away."""


def obstacles(program: Program, template: PodTemplate, host: Resource) -> list[Obstacle]:
    """What keeps the pod off the nodes of a NodePool or managed node group, of whose taints nothing is said."""
    return [*_taints(template, host), *_labels(program, template, host)]


def chart_obstacles(program: Program, chart: Chart, host: Resource) -> list[Obstacle]:
    """As `obstacles`, of a chart's pods: by the tolerations that it is given, and of NVIDIA's chart by the labels that it wants."""
    given, found = chart.value("tolerations"), list[Obstacle]()
    if given.present:
        spec = Node({"tolerations": given.value}, given.path.rpartition(".")[0], given.owner)
        found += _taints(PodTemplate(spec, 1, spec), host)
    if chart.name == _NVIDIA_CHART:
        found += _chart_labels(program, chart, host)
    return found


def _taints(template: PodTemplate, host: Resource) -> Iterator[Obstacle]:
    for taint in taints(host) if host.type == NODE_POOL else ():
        if not tolerates(template, taint):
            key = taint.at("key").text()
            allowed = f"a toleration of {key}, the taint of {host.name}, whose devices nobody offers else"
            yield Obstacle(template.spec.at("tolerations"), f"without a toleration of {key}", allowed)


def _labels(program: Program, template: PodTemplate, host: Resource) -> Iterator[Obstacle]:
    """A label that is missing, where it is missing in each of the ways in which a node may suit the pod."""
    missing: list[Obstacle] = []
    for wanted in alternatives(template):
        lacking = [each for key, values in wanted.items() if (each := _label(program, template, host, key, values))]
        if not lacking:
            return
        missing.append(next((each for each in lacking if each.certain), lacking[0]))
    # Where somebody may open one of the ways, the pod is not sure to stay away.
    yield next((each for each in missing if not each.certain), missing[0])


def _label(program: Program, template: PodTemplate, host: Resource, key: str, values: list[str] | None) -> Obstacle | None:
    had = _had(program, host, key)
    if _suits(host, key, values, had) or (had is None and _is_given(program, key)):
        return None
    place = next((node for name, node, _ in wanted_keys(template) if normal_key(name) == key), template.spec)
    if had is None or key.startswith(_DISCOVERED):
        allowed = f"labels that {host.name} gives its nodes, whose devices nobody offers else"
        return Obstacle(place, f"a wish for {key}, which {host.name} does not give its nodes", allowed, certain=False)
    found = f"a wish for {key} {' or '.join(values or ())}, where nodes of {host.name} have {' or '.join(had)}"
    return Obstacle(place, found, f"labels that nodes of {host.name} have, whose devices nobody offers else")


def _had(program: Program, host: Resource, key: str) -> list[str] | None:
    """The values of a label of which the nodes have one, as the program says; None where it says nothing."""
    if host.type == NODE_POOL:
        return [host.at("metadata", "name").text()] if key == POOL_LABEL else allowed_values(host, key)
    label = host.at("labels", key)
    types = types_of(program, host) if key == INSTANCE_TYPE and not label.present else []
    return [label.text()] if label.present else types or None


def _suits(host: Resource, key: str, values: list[str] | None, had: list[str] | None) -> bool:
    if host.type == NODE_POOL:
        return is_offered(host, key, values)
    return had is not None and (values is None or not set(had).isdisjoint(values))


def _is_given(program: Program, key: str) -> bool:
    """Whether nodes may have the label from somebody else than their pool or group."""
    if key.startswith(_DISCOVERED):
        return _discovers(program)
    return key.partition("/")[0].endswith(_GIVERS)


def _discovers(program: Program) -> bool:
    """Whether something in the program finds out what nodes have, and labels them so."""
    for chart in charts(program):
        if chart.is_folder or any(name in chart.name for name in _DISCOVERERS) or chart.value("gfd", "enabled").value is True:
            return True
    images = [container.at("image") for _, template in all_templates(program) for container in template.containers()]
    return any(name in image.text() for image in images if image.known for name in _DISCOVERERS)


def _chart_labels(program: Program, chart: Chart, host: Resource) -> Iterator[Obstacle]:
    wished, terms = chart.value("nodeSelector"), chart.value(*_TERMS)
    path, own = wished.path.rpartition(".")[0], {"nodeSelector": wished.value}
    if terms.present:
        own["affinity"] = {_TERMS[1]: {_TERMS[2]: {_TERMS[3]: terms.value}}}
    spec = Node(own, path, wished.owner)
    yield from _labels(program, PodTemplate(spec, 1, spec), host)
    if not terms.present and _wants_default_labels(chart):
        lacking = [_label(program, PodTemplate(spec, 1, spec), host, key, [value]) for key, value in _DEFAULT_LABELS.items()]
        if all(lacking):
            found = f"unset, so a wish for {_PRESENT} or a label of Node Feature Discovery, which {host.name} does not give its nodes"
            allowed = f'{_PRESENT}: "true" among the labels of {host.name}, or gfd.enabled, which finds the GPUs'
            yield Obstacle(Node(None, f"{path}.affinity" if path else "affinity", spec.owner), found, allowed, certain=False)


def _wants_default_labels(chart: Chart) -> bool:
    released = version(chart.version.text())
    removed = any(chart.removes(*_TERMS[:length]) for length in range(1, len(_TERMS) + 1))
    return not removed and (released is None or released >= _WITH_LABELS)
