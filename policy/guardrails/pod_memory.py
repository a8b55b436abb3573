"""Pods: shared memory, quality of service and the time to save before they go."""

import re
from collections.abc import Iterator, Sequence

from guardrails import command, gang
from guardrails.node import Node
from guardrails.placing import DO_NOT_DISRUPT, wanted_labels
from guardrails.pod_requests import KINDS, asked, of_the_pod
from guardrails.quantity import MEBIBYTE, quantity
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import DEVICES, GPU, POD_TYPES, SUBMITTER, PodTemplate, count, pod_templates
from guardrails.tokens import CRON_JOB, JOB, JOB_SET, MPI_JOB, NODE_SET, POD, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB, RAY_SERVICE, VOLCANO_JOB
from guardrails.world import trains_alone

_TRAINERS = frozenset({POD, JOB, CRON_JOB, JOB_SET, MPI_JOB, PYTORCH_JOB, VOLCANO_JOB, RAY_CLUSTER, RAY_JOB, NODE_SET})
_DEFAULT_GRACE_SECONDS = 30
_LEAST_GRACE_SECONDS = 120
"""A Spot interruption's notice; a shorter grace gives part of it away."""
_GIBIBYTE = 1024**3
_USUAL = 64 * _GIBIBYTE
_UNITS = ("cpu", "memory")
"""What the class of a pod goes by."""
_SHARED_MEMORY = "/dev/shm"
_LAUNCHERS = command.TORCHRUN | command.DEEPSPEED | {"accelerate"}
_LOADERS = re.compile(r"-{0,2}(?:[\w.-]*[._-])?(?:num[_-])?workers(?:=(.+))?", re.IGNORECASE)
_RAY = frozenset({RAY_CLUSTER, RAY_JOB, RAY_SERVICE})
_NODE_GROUPS = frozenset({"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name"})


def _shared_memory(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for volume in _memory_volumes(template):
            with report.part():
                _size_limit(resource, template, volume, report)
        with report.part():
            if (template.devices() or _loads_beside(template)) and not _has_shared_memory(resource, template):
                allowed = f"an emptyDir of medium Memory with a sizeLimit, mounted at {_SHARED_MEMORY}"
                report.advise(
                    resource, template.spec.at("volumes"), allowed=allowed, found=f"without one mounted at {_SHARED_MEMORY} (64 MiB)"
                )


def _memory_volumes(template: PodTemplate) -> Iterator[Node]:
    for volume in template.spec.at("volumes").elements():
        if volume.at("emptyDir", "medium").text() == "Memory":
            yield volume


def _has_shared_memory(resource: Resource, template: PodTemplate) -> bool:
    mounted = _at_shared_memory(template)
    # KubeRay mounts memory there itself where nothing is.
    return bool(mounted & {volume.at("name").text() for volume in _memory_volumes(template)}) or (resource.type in _RAY and not mounted)


def _at_shared_memory(template: PodTemplate) -> set[str]:
    """The volumes at /dev/shm of the containers that compute, or of any where none has devices: each container has its own mounts."""
    containers = list(template.containers())
    computing = [each for each in containers if any(count(each.at("resources", "limits", device)) for device in DEVICES)]
    mounts = (mount for container in computing or containers for mount in container.at("volumeMounts").elements())
    return {mount.at("name").text() for mount in mounts if mount.at("mountPath").text().rstrip("/") == _SHARED_MEMORY}


def _loads_beside(template: PodTemplate) -> bool:
    """Whether a launcher's trainer reads its data in processes of their own, which hand it over in shared memory."""
    return any(_has_loaders(list(command.words(container))) for container in template.containers())


def _has_loaders(words: Sequence[str]) -> bool:
    if not any(command.base(word) in _LAUNCHERS for word in words):
        return False
    for index, word in enumerate(words):
        named = _LOADERS.fullmatch(word)
        if named and (named[1] or next(iter(words[index + 1 :]), "")).strip("0"):
            return True
    return False


def _size_limit(resource: Resource, template: PodTemplate, volume: Node, report: Report) -> None:
    """Without a size the pod's memory limit bounds the volume, as it does beside a larger one; without that the node's memory."""
    limit = volume.at("emptyDir", "sizeLimit")
    size, memory, shared = quantity(limit.text()), _memory_limit(template), _is_shared(template, volume)
    if not limit.present:
        if memory is None:
            tell = report.refuse if shared else report.advise
            tell(resource, limit, allowed=f"a size such as {_fitting(template, memory)}, and a memory limit of the pod above it")
        elif shared:
            report.advise(resource, limit, allowed=f"a size below the pod's memory limit, such as {_fitting(template, memory)}")
    elif size is None:
        report.refuse(resource, limit, allowed=f"a quantity such as {_fitting(template, memory)}")
    elif memory and size >= memory:
        tell = report.refuse if shared else report.advise
        tell(resource, limit, allowed=f"less than {_shown(memory)}, the pod's memory limit, which it counts against")


def _is_shared(template: PodTemplate, volume: Node) -> bool:
    """Whether processes hand each other data in the volume, as ranks and their loaders do: they die where it is full."""
    named = volume.at("name").text() in _at_shared_memory(template)
    return named or template.devices() > 0 or gang.runs_training(template)


def _fitting(template: PodTemplate, memory: float | None) -> str:
    """A size for the volume that leaves most of the pod's memory to its processes."""
    room = memory or asked(template, "memory")
    size = min(_USUAL, room / 4) if room else _USUAL if template.devices() else _GIBIBYTE
    return _shown(size // _GIBIBYTE * _GIBIBYTE or size)


def _memory_limit(template: PodTemplate) -> float | None:
    """The pod's own, or the sum over what runs together; None where one has no limit."""
    own = quantity(of_the_pod(template, "limits", "memory").text())
    if own is not None:
        return own
    together = [*template.containers(), *(each for each in template.init_containers() if template.is_sidecar(each))]
    limits = [quantity(container.at("resources", "limits", "memory").text()) for container in together]
    return None if not limits or None in limits else sum(limit for limit in limits if limit)


def _shown(memory: float) -> str:
    if memory < _GIBIBYTE:
        return f"{max(memory // MEBIBYTE, 1):g}Mi"
    return f"{memory / _GIBIBYTE:g}Gi"


def _guaranteed(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        with report.part():
            if template.devices():
                for holder in _judged(template):
                    with report.part():
                        _requests_are_limits(resource, holder, report)


def _judged(template: PodTemplate) -> list[Node]:
    """What the class of a pod goes by: resources of the pod itself, or else those of each of its containers."""
    if any(of_the_pod(template, kind, unit).present for kind in KINDS for unit in _UNITS):
        return [template.spec]
    # Ray's operator gives the autoscaler equal requests and limits where nothing is said.
    return [container for container in template.all_containers() if container not in template.beside or _says(container)]


def _says(container: Node) -> bool:
    return container.at("resources").present or not container.path.endswith("autoscalerOptions")


def _requests_are_limits(resource: Resource, holder: Node, report: Report) -> None:
    for unit in _UNITS:
        request, limit = (holder.at("resources", kind, unit) for kind in KINDS)
        if not limit.present:
            report.refuse(resource, limit, allowed=f"the same as the request, {request.text() or 'with both set'} (Guaranteed QoS)")
        elif request.present and quantity(request.text()) != quantity(limit.text()):
            report.refuse(resource, request, allowed=f"{limit.text()}, the limit (Guaranteed QoS)")


def _lifetime(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        if resource.type == POD and not trains_alone(template):
            continue
        with report.part():
            if _is_disrupted(resource) and template.role != SUBMITTER:
                _protected(resource, template, report)
        with report.part():
            if template.devices():
                _grace(resource, template.spec.at("terminationGracePeriodSeconds"), report)


def _is_disrupted(resource: Resource) -> bool:
    """Whether disruption of one pod takes work with it; Slinky guards busy nodes of its own by a budget."""
    if resource.type == NODE_SET and resource.at("spec", "workloadDisruptionProtection").value is not False:
        return False
    templates = list(pod_templates(resource))
    several = sum(each.replicas for each in templates) > 1
    return any(each.devices() for each in templates) or (several and gang.starts_over(resource))


def _protected(resource: Resource, template: PodTemplate, report: Report) -> None:
    annotation = template.metadata.at("annotations", DO_NOT_DISRUPT)
    if resource.type == NODE_SET and not annotation.present:
        annotation = resource.at("metadata", "annotations", DO_NOT_DISRUPT)
    if annotation.text() != "true":
        # Karpenter has no say over nodes of a managed group, for which the pod asks by name.
        tell = report.advise if not _NODE_GROUPS.isdisjoint(wanted_labels(template)) else report.refuse
        tell(resource, annotation, allowed='"true" on each pod of a job that has devices or starts over as a whole')


def _grace(resource: Resource, grace: Node, report: Report) -> None:
    seconds = grace.integer() if grace.present else _DEFAULT_GRACE_SECONDS
    if seconds is None or seconds < _LEAST_GRACE_SECONDS:
        found = grace.raw if grace.present else f"{_DEFAULT_GRACE_SECONDS} (the default)"
        report.advise(resource, grace, allowed=f"at least {_LEAST_GRACE_SECONDS}, and longer than a checkpoint takes", found=found)


def _pod(
    limits: dict[str, object], *, metadata: dict[str, object] | None = None, requests: dict[str, object] | None = None, **spec: object
) -> Example:
    resources = {"limits": limits, **({"requests": requests} if requests else {})}
    container = {"name": "main", "command": ["torchrun", "train.py"], "resources": resources}
    return Example(POD, {"metadata": metadata or {}, "spec": {"containers": [container], **spec}})


def _shm(**options: object) -> Example:
    container = {
        "name": "main",
        "resources": {"limits": {GPU: 8, "memory": "500Gi"}},
        "volumeMounts": [{"name": "shm", "mountPath": _SHARED_MEMORY}],
    }
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", **options}}
    return Example(POD, {"metadata": {}, "spec": {"containers": [container], "volumes": [volume]}})


RULES = (
    Rule(
        id="POD07",
        name="pod-limit-shared-memory",
        title="Shared memory is mounted, with a size that the pod's memory limit covers",
        types=POD_TYPES,
        check=_shared_memory,
        why="data loaders and NCCL die of a bus error in 64 MiB; without a limit a leak takes the node's memory and the pod is OOM-killed.",
        fix="mount an emptyDir of medium Memory at /dev/shm, with a sizeLimit well below the memory limit.",
        source="Kubernetes: emptyDir; NCCL environment documentation on shared memory; pytorch/pytorch#16979",
        valid=(_shm(sizeLimit="64Gi"),),
        invalid=(_shm(sizeLimit="1Ti"),),
    ),
    Rule(
        id="POD08",
        name="pod-require-guaranteed-qos",
        title="Ranks have their CPU and memory for themselves",
        mandatory=False,
        types=_TRAINERS,
        check=_guaranteed,
        why="one throttled or evicted rank holds all others of the job up.",
        fix="set cpu and memory limits of each container, or of the pod itself, and requests equal to them.",
        source="Kubernetes: quality of service classes; AWS Ray Train guide",
        valid=(_pod({GPU: 8, "cpu": "180", "memory": "1800Gi"}),),
        invalid=(_pod({GPU: 8}, requests={"cpu": "8", "memory": "64Gi"}),),
    ),
    Rule(
        id="POD09",
        name="pod-require-time-to-save",
        title="No pod of a training job is disrupted at will, and ranks have the time to save",
        types=_TRAINERS,
        check=_lifetime,
        why="consolidation takes a rank, launcher or head in the middle of a step or a save: all start over from the last checkpoint.",
        fix='annotate the templates of a job that has devices or starts over as a whole karpenter.sh/do-not-disrupt: "true" and set '
        "terminationGracePeriodSeconds above a save's time.",
        source="Karpenter 1.14.1: disruption; EC2 Spot interruption notices",
        valid=(_pod({GPU: 8}, metadata={"annotations": {DO_NOT_DISRUPT: "true"}}, terminationGracePeriodSeconds=300),),
        invalid=(_pod({GPU: 8}),),
    ),
)
