"""Pods: the parts refer to each other by names that are there, and each is of the form that the API server takes."""

import re
from collections.abc import Iterable, Iterator

from guardrails.node import Node
from guardrails.quantity import exact
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import (
    HYPERPOD_JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    LOGIN_SET,
    MPI_JOB,
    NODE_SET,
    POD,
    RAY_CLUSTER,
    RAY_JOB,
    RAY_SERVICE,
    SLURM_CONTROLLER,
    STATEFUL_SET,
)

_UNITS = ("cpu", "memory", "ephemeral-storage")
"""Of devices and huge pages rules POD04 and POD05 say more than that a request is within its limit."""
_OPERATORS = ("Exists", "Equal")
_COMPARISONS = frozenset({"Gt", "Lt"})
_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName")
_ADDRESSES = ("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_FIELD = re.compile(r"metadata\.(?:labels|annotations)\['[^']+'\]")
_TEXT = "a text: quotes keep YAML from reading it as"
_MADE_BY_OPERATORS = {
    MPI_JOB: frozenset({"ssh-auth", "mpi-job-config"}),
    **dict.fromkeys((RAY_CLUSTER, RAY_JOB, RAY_SERVICE), frozenset({"ray-logs", "shared-mem"})),
}
"""Volumes that an operator adds to the pods of its jobs."""
_MANY_OF_ITS_OWN = frozenset({NODE_SET, LOGIN_SET, SLURM_CONTROLLER, HYPERPOD_JOB})
"""Kinds whose operator adds more than these pods say, or may."""
_CLAIM_TEMPLATES = {STATEFUL_SET: [("spec",)], LEADER_WORKER_SET: [("spec", "leaderWorkerTemplate")]}


def _parts(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        for check in (_volumes, _names, _tolerations):
            with report.part():
                check(resource, template, report)
        for mapping in (template.metadata.at("labels"), template.metadata.at("annotations"), template.spec.at("nodeSelector")):
            with report.part():
                _texts(resource, (value for _, value in mapping.entries()), report)
        for container in template.all_containers():
            for judge in (_words, _variables, _bounds, _user):
                with report.part():
                    judge(resource, container, report)


def _volumes(resource: Resource, template: PodTemplate, report: Report) -> None:
    own = [volume.at("name") for volume in template.spec.at("volumes").elements()]
    _once(resource, own, "a name of its own: another volume has it", report)
    _labels(resource, own, report)
    names = {name.text() for name in (*own, *_claims(resource))} | _MADE_BY_OPERATORS.get(resource.type, frozenset())
    for container in template.all_containers():
        mounts = list(container.at("volumeMounts").elements())
        _once(resource, [mount.at("mountPath") for mount in mounts], "a path of its own: another volume is mounted there", report)
        for mount in mounts if resource.type not in _MANY_OF_ITS_OWN else ():
            with report.part():
                name, path = mount.at("name"), mount.at("mountPath")
                if not path.text():
                    report.refuse(resource, path, allowed="a path")
                if name.text() not in names:
                    report.refuse(resource, name, allowed=f"one of the pod's volumes, which are {', '.join(sorted(names)) or 'none'}")


def _claims(resource: Resource) -> Iterator[Node]:
    """The names of volumes that a set makes for its pods."""
    makers = [resource.at(*way, "volumeClaimTemplates") for way in _CLAIM_TEMPLATES.get(resource.type, ())]
    if resource.type == JOB_SET:
        makers = [policy.at("templates") for policy in resource.at("spec", "volumeClaimPolicies").elements()]
    for maker in makers:
        for claim in maker.elements():
            yield claim.at("metadata", "name")


def _names(resource: Resource, template: PodTemplate, report: Report) -> None:
    # What an operator holds outside of the pod spec has a name that the operator gives.
    held = (*template.first, *template.sidecars, *template.beside)
    names = [container.at("name") for container in template.all_containers() if container not in held]
    _once(resource, names, "a name of its own: another container has it", report)
    _labels(resource, names, report)


def _labels(resource: Resource, places: list[Node], report: Report) -> None:
    for place in places:
        with report.part():
            if place.present and not _LABEL.fullmatch(place.text()):
                report.refuse(
                    resource, place, allowed="at most 63 lower-case letters, digits and dashes, with a letter or digit at both ends"
                )


def _once(resource: Resource, places: list[Node], allowed: str, report: Report) -> None:
    seen: set[str] = set()
    for place in places:
        with report.part():
            if place.text() in seen:
                report.refuse(resource, place, allowed=allowed)
            seen |= {place.text()} - {""}


def _tolerations(resource: Resource, template: PodTemplate, report: Report) -> None:
    for toleration in template.spec.at("tolerations").elements():
        with report.part():
            operator, value = toleration.at("operator"), toleration.at("value")
            if operator.text() not in ("", *_OPERATORS, *_COMPARISONS):
                report.refuse(resource, operator, allowed=" or ".join(_OPERATORS))
            elif operator.text() == "Exists" and value.text():
                report.refuse(resource, value, allowed="unset beside operator Exists, which takes a taint of any value")
            elif not toleration.at("key").text() and operator.text() != "Exists":
                report.refuse(resource, operator, allowed="Exists, where no key says which taint is meant")


def _words(resource: Resource, container: Node, report: Report) -> None:
    for key in ("command", "args"):
        _texts(resource, container.at(key).elements(), report)


def _variables(resource: Resource, container: Node, report: Report) -> None:
    for variable in container.at("env").elements():
        with report.part():
            value, source = variable.at("value"), variable.at("valueFrom")
            _texts(resource, [value], report)
            if source.present and value.text():
                report.refuse(resource, value, allowed="value or valueFrom, one of both", found=f"both, for {variable.at('name').text()}")
            field = source.at("fieldRef", "fieldPath")
            if field.present and field.text() not in (*_FIELDS, *_ADDRESSES) and not _FIELD.fullmatch(field.text()):
                known = ", ".join((*_FIELDS, *_ADDRESSES))
                report.refuse(resource, field, allowed=f"{known}, or one label or annotation, such as metadata.labels['job-name']")


def _texts(resource: Resource, places: Iterable[Node], report: Report) -> None:
    """Values that are texts to Kubernetes; it decodes no number and no truth value as one."""
    for place in places:
        with report.part():
            value = place.value
            if isinstance(value, bool):
                report.refuse(resource, place, allowed=f"{_TEXT} true or false", remark=" (boolean)")
            elif isinstance(value, int | float):
                report.refuse(resource, place, allowed=f"{_TEXT} a number", remark=" (number)")


def _bounds(resource: Resource, container: Node, report: Report) -> None:
    for unit in _UNITS:
        with report.part():
            request, limit = (container.at("resources", kind, unit) for kind in ("requests", "limits"))
            wanted, most = exact(request.text()), exact(limit.text())
            if wanted is not None and most is not None and wanted > most:
                report.refuse(resource, request, allowed=f"at most {limit.text()}, the limit")


def _user(resource: Resource, container: Node, report: Report) -> None:
    context = container.at("securityContext")
    if context.at("runAsNonRoot").value is True and context.at("runAsUser").integer() == 0:
        report.refuse(resource, context.at("runAsUser"), allowed="another user than 0 beside runAsNonRoot: the kubelet starts no root then")


def _pod(mounted: str, **container: object) -> Example:
    mount = {"name": mounted, "mountPath": "/data"}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "tokens"}}
    return Example(POD, {"spec": {"containers": [{"name": "main", "volumeMounts": [mount], **container}], "volumes": [volume]}})


RULES = (
    Rule(
        id="POD10",
        name="pod-require-admissible-parts",
        title="A pod's mounts have volumes, its names are given once, and its texts are texts",
        types=POD_TYPES,
        check=_parts,
        why="the API server refuses the pod; that of a job's operator hears nobody, and the job waits for pods that are never made.",
        fix="name the volume as the mount does, once each, and write numbers and true in env, args and annotations in quotes.",
        source="Kubernetes 1.36: core/validation, core/v1 EnvVar; kubernetes/kubernetes#12889; kubeflow/mpi-operator#224",
        valid=(_pod("data"),),
        invalid=(_pod("dataset"),),
    ),
)
