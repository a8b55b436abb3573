"""Pods: what a training pod must ask for so that the fabric is really attached to it."""

from guardrails import gang
from guardrails.environment import Variable, variables
from guardrails.facts import efa_interfaces, instance_types
from guardrails.node import Node
from guardrails.placing import wanted_labels
from guardrails.pool import INSTANCE_TYPE
from guardrails.quantity import whole
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import EFA, GPU, POD_TYPES, WORKER, PodTemplate, count, only_launches, pod_templates
from guardrails.tokens import POD

_NO_PLUGIN = "none"
"""With it NCCL uses its own transports."""
_EFA_ENVIRONMENT = {"FI_PROVIDER": "efa", "NCCL_NET_PLUGIN": None}


def _efa_requests(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for check in (_requests_match, _count_fits_type, _environment_without_request, _devices_of_the_host):
            with report.part():
                check(resource, template, report)


def _requests_match(resource: Resource, template: PodTemplate, report: Report) -> None:
    for container in template.containers():
        request, limit = container.at("resources", "requests", EFA), container.at("resources", "limits", EFA)
        if request.present and count(request) != count(limit):
            report.refuse(resource, request, allowed=f"the same as the limit, which is {limit.text() or 'unset'}")


def _count_fits_type(resource: Resource, template: PodTemplate, report: Report) -> None:
    types = wanted_labels(template).get(INSTANCE_TYPE) or []
    known = [efa_interfaces().get(name) for name in types]
    if not types or None in known:
        return
    counts = [number for number in known if number is not None]
    place, names = template.spec.at("containers"), " or ".join(types)
    asked = template.requested(EFA)
    if asked == 0 and any(map(_asks, template.containers())):
        return
    if asked > max(counts):
        report.refuse(resource, place, allowed=f"at most {max(counts)} {EFA} on {names}", found=f"asking {asked} {EFA}")
    elif asked == 0 and min(counts) > 0 and (pods := gang.size(resource, template)) > 1 and template.requested(GPU) > 0:
        allowed = f"{min(counts)} {EFA} on {names}, because {pods} pods with GPUs train together"
        report.refuse(resource, place, allowed=allowed, found=f"asking no {EFA}")
    elif 0 < asked < min(counts) and all(_takes_all(template, name) for name in types):
        allowed = f"{min(counts)} {EFA} on {names}: the pod has all of its devices, and a part of its bandwidth"
        report.advise(resource, place, allowed=allowed, found=f"asking {asked} {EFA}")


def _takes_all(template: PodTemplate, name: str) -> bool:
    """Whether the pod asks for each accelerator of an instance type, so that no other has a use for its interfaces."""
    instance = instance_types().get(name)
    return instance is not None and template.requested(instance.counted_as[0]) >= instance.count


def _environment_without_request(resource: Resource, template: PodTemplate, report: Report) -> None:
    for container in template.containers():
        selecting = [variable for variable in variables(container) if _selects_efa(variable)]
        if not selecting or _asks_for_efa(resource, template, container):
            continue
        for variable in selecting:
            where = "for workers that ask" if only_launches(resource, template) else "in a container that asks"
            report.refuse(resource, variable.value, allowed=f"only {where} for {EFA}", found=f"{variable.name}={variable.text}")


def _asks_for_efa(resource: Resource, template: PodTemplate, container: Node) -> bool:
    if only_launches(resource, template):
        workers = [each for each in pod_templates(resource) if each.role == WORKER]
        return any(_asks(one) for each in workers for one in each.containers())
    return _asks(container)


def _asks(container: Node) -> bool:
    """Whether a container asks for interfaces; what is no number, such as a placeholder, is meant to be one (POD04 judges that)."""
    limit = container.at("resources", "limits", EFA)
    number = whole(limit.text())
    return limit.present and (number is None or number > 0)


def _devices_of_the_host(resource: Resource, template: PodTemplate, report: Report) -> None:
    """The plug-in mounts the pod's own devices; the whole folder over them makes EFA find none."""
    if not any(map(_asks, template.containers())):
        return
    for volume in template.spec.at("volumes").elements():
        place = volume.at("hostPath", "path")
        if place.text().rstrip("/").startswith("/dev/infiniband"):
            report.refuse(resource, place, allowed=f"no such volume: it hides the devices that the plug-in alone brings with {EFA}")


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
        fix="set requests and limits of vpc.amazonaws.com/efa to the count of the instance type, or remove the EFA environment.",
        source="EKS guide: EFA; Karpenter 1.14.1 instance-type reference",
        valid=(_pod_with({GPU: 8, EFA: 4}),),
        invalid=(_pod_with({GPU: 8}),),
    ),
)
