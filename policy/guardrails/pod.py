"""Pods: what a training pod must ask for so that the fabric is really attached to it."""

import re
from collections.abc import Callable, Mapping

from guardrails import gang
from guardrails.environment import Variable, settings, variables
from guardrails.facts import efa_interfaces, instance_types
from guardrails.node import Node
from guardrails.placing import named_types
from guardrails.quantity import whole
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import EFA, GPU, POD_TYPES, PodTemplate, count, only_launches, pod_templates
from guardrails.tokens import MPI_JOB, POD, PYTORCH_JOB

_NO_PLUGIN = "none"
"""With it NCCL uses its own transports."""
_PROVIDER, _DIRECT = "efa", "efa-direct"
_EFA_ENVIRONMENT = {"FI_PROVIDER": _PROVIDER, "NCCL_NET_PLUGIN": None}


def _leaves_out_efa(text: str) -> bool:
    """Whether FI_PROVIDER keeps libfabric off EFA; behind ^ stand those to leave out, and what $ stands for is not known."""
    excluded = text.startswith("^")
    # efa-direct is one fabric of the provider efa: left out, it leaves the other.
    names = {_PROVIDER} if excluded else {_PROVIDER, _DIRECT}
    named = names & set(re.split("[,;]", text.removeprefix("^")))
    return bool(text) and "$" not in text and excluded == bool(named)


_OTHER_WAYS: Mapping[str, Callable[[str], bool]] = {
    "NCCL_NET": lambda text: text.lower() == "socket",
    "NCCL_NET_PLUGIN": lambda text: text == _NO_PLUGIN,
    "FI_PROVIDER": _leaves_out_efa,
}
"""Variable -> whether a value of it keeps off EFA."""


def _efa_requests(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for check in (_requests_match, _count_fits_type, _environment_without_request, _switched_off, _devices_of_the_host):
            with report.part():
                check(resource, template, report)


def _requests_match(resource: Resource, template: PodTemplate, report: Report) -> None:
    for container in template.containers():
        request, limit = container.at("resources", "requests", EFA), container.at("resources", "limits", EFA)
        if request.present and count(request) != count(limit):
            report.refuse(resource, request, allowed=f"the same as the limit, which is {limit.text() or 'unset'}")


def _count_fits_type(resource: Resource, template: PodTemplate, report: Report) -> None:
    types = named_types(template)
    known = [efa_interfaces().get(name) for name in types]
    if not types or None in known:
        return
    counts = [number for number in known if number is not None]
    place, names = template.place, " or ".join(types)
    asked = template.requested(EFA)
    if asked == 0 and any(map(_asks, template.containers())):
        return
    if asked > max(counts):
        report.refuse(resource, place, allowed=f"at most {max(counts)} {EFA} on {names}", found=f"asking {asked} {EFA}")
    elif asked == 0 and (part := min(_part(template, name) for name in types)) and (pods := gang.size(resource, template)) > 1:
        of = f"on {names}" if part == min(counts) else f"for {template.requested(GPU)} of the GPUs of {names}"
        report.refuse(resource, place, allowed=f"{part} {EFA} {of}, because {pods} pods with GPUs train together", found=f"asking no {EFA}")
    elif 0 < asked < min(counts) and all(_takes_all(template, name) for name in types):
        allowed = f"{min(counts)} {EFA} on {names}: the pod has all of its devices, and a part of its bandwidth"
        report.advise(resource, place, allowed=allowed, found=f"asking {asked} {EFA}")


def _part(template: PodTemplate, instance_type: str) -> int:
    """Interfaces that go with the GPUs a pod takes of the type; 0 where pods that share the node have less than one each."""
    instance = instance_types().get(instance_type)
    if instance is None or GPU not in instance.counted_as:
        return 0
    return instance.efa * min(template.requested(GPU), instance.count) // instance.count


def _takes_all(template: PodTemplate, instance_type: str) -> bool:
    """Whether the pod asks for each accelerator of an instance type, so that no other has a use for its interfaces."""
    instance = instance_types().get(instance_type)
    return instance is not None and template.requested(instance.counted_as[0]) >= instance.count


def _environment_without_request(resource: Resource, template: PodTemplate, report: Report) -> None:
    for container in template.containers():
        selecting = [variable for variable in variables(container) if _selects_efa(variable)]
        workers = _workers_of(resource, template)
        if not selecting or any(map(_asks, (container, *workers))):
            continue
        for variable in selecting:
            where = "for workers that ask" if workers else "in a container that asks"
            report.refuse(resource, variable.value, allowed=f"only {where} for {EFA}", found=f"{variable.name}={variable.text}")


def _switched_off(resource: Resource, template: PodTemplate, report: Report) -> None:
    """Variables that keep NCCL or libfabric off the interfaces that the container asks for."""
    for container in template.containers():
        for name, keeps_off in _OTHER_WAYS.items() if _asks(container) else ():
            with report.part():
                given = settings(container, name)
                if not given or not all(keeps_off(variable.text) for variable in given):
                    continue
                found = f"{name}={given[-1].text} beside {EFA}"
                # Alone on its node a pod has no use for them, and in a test the other way may be what is meant.
                tell = report.refuse if gang.size(resource, template) > 1 else report.advise
                tell(resource, given[-1].value, allowed="unset: with it ranks meet over TCP, whatever interfaces the pod has", found=found)


def _workers_of(resource: Resource, template: PodTemplate) -> list[Node]:
    """The containers of the other pods, where they run the ranks and this one none: it launches them, or is the head of a Ray cluster."""
    if not _runs_no_rank(resource, template):
        return []
    return [one for each in pod_templates(resource) if each.spec.path != template.spec.path for one in each.containers()]


def _runs_no_rank(resource: Resource, template: PodTemplate) -> bool:
    if resource.type == MPI_JOB:
        return only_launches(resource, template)
    # Each pod of a PyTorchJob is told a rank.
    return resource.type != PYTORCH_JOB and not gang.computes(template)


def _asks(container: Node) -> bool:
    """Whether a container asks for interfaces; what is no number, such as a placeholder, is meant to be one (POD04 judges that)."""
    limit = container.at("resources", "limits", EFA)
    number = whole(limit.text())
    return limit.present and (number is None or number > 0)


def _devices_of_the_host(resource: Resource, template: PodTemplate, report: Report) -> None:
    """The plug-in adds the pod's own devices; beside them the folder shows those that only the pods of others may open."""
    if not any(_asks(container) and not _opens_all(template, container) for container in template.containers()):
        return
    for volume in template.spec.at("volumes").elements():
        place = volume.at("hostPath", "path")
        if place.text().rstrip("/").startswith("/dev/infiniband"):
            allowed = f"no such volume: the plug-in alone brings what is asked as {EFA}, and libfabric gives up at one it may not open"
            report.refuse(resource, place, allowed=allowed)


def _opens_all(template: PodTemplate, container: Node) -> bool:
    """Whether a container may open each interface of its node: a privileged one, or one that has asked for them all."""
    if container.at("securityContext", "privileged").value is True:
        return True
    most = [efa_interfaces().get(name) for name in named_types(template)]
    asked = count(container.at("resources", "limits", EFA))
    return bool(most) and all(each is not None and asked >= each for each in most)


def _selects_efa(variable: Variable) -> bool:
    if variable.name not in _EFA_ENVIRONMENT:
        return False
    wanted = _EFA_ENVIRONMENT[variable.name]
    return variable.text != _NO_PLUGIN if wanted is None else wanted in variable.text.split(",")


def _pod_with(limits: dict[str, int]) -> Example:
    variable = {"name": "FI_PROVIDER", "value": "efa"}
    container = {"name": "trainer", "resources": {"limits": limits}, "env": [variable]}
    selector = {"node.kubernetes.io/instance-type": "p4d.24xlarge"}
    return Example(POD, {"spec": {"nodeSelector": selector, "containers": [container]}})


RULES = (
    Rule(
        id="EFA06",
        name="pod-require-efa-request",
        title="A pod uses EFA only if it asks for the interfaces its node has",
        types=POD_TYPES,
        check=_efa_requests,
        why="no interface is attached, or none is found: a multi-node job trains over TCP at a fraction of the speed without any error.",
        fix="set requests and limits of vpc.amazonaws.com/efa to the count of the instance type, or to the part of it that goes with the "
        "pod's GPUs, or remove the EFA environment.",
        source="EKS guide: EFA; Karpenter 1.14.1 instance-type reference; rdma-core and libfabric, how they list devices",
        valid=(_pod_with({GPU: 8, EFA: 4}),),
        invalid=(_pod_with({GPU: 8}),),
    ),
)
