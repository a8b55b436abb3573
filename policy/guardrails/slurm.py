"""Slurm on Kubernetes (Slinky): kinds that exist, and settings that its operator acts on."""

import difflib

from guardrails import slurm_release
from guardrails.chart import CHART_TYPES, Chart
from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.schema import Schemas
from guardrails.slurm_chart import slurm_charts
from guardrails.tokens import NODE_SET, SLURM_CONTROLLER, UNSERVED

_GROUP = "slinky.slurm.net"
_FACTS = load("slurm")
_SERVED = f"{_GROUP}/{_FACTS['version']}"
_KINDS = frozenset(f"kubernetes:{_SERVED}:{kind}" for kind in _FACTS["kinds"])
_NO_SCHEMAS = Schemas({})
"""Of types alone."""
_LONGEST_CLUSTER_NAME = 40
_OF_OTHER_GROUPS = frozenset(
    f"kubernetes:{group}:{kind}" for group in _FACTS["otherGroups"] for kind in (*_FACTS["kinds"], *_FACTS["notKinds"])
)


def _kind(resource: Resource, report: Report) -> None:
    if resource.type == UNSERVED and _GROUP not in resource.written:
        return
    version, _, kind = (resource.written or resource.type).removeprefix("kubernetes:").rpartition(":")
    if kind not in _FACTS["kinds"]:
        allowed = f"{', '.join(_FACTS['kinds'])} of {_SERVED}"
        report.refuse(resource, resource.at("kind"), allowed=allowed, found=f"{kind} of {version}")
    else:
        report.refuse(resource, resource.at("apiVersion"), allowed=_SERVED, found=version)


def _settings(resource: Resource, report: Report) -> None:
    if resource.type in CHART_TYPES:
        slurm_release.of_charts(resource, report)
        return
    with report.part():
        _fields(resource, report)
    with report.part():
        slurm_release.of_object(resource, report)
    if resource.type == NODE_SET:
        _node_set(resource, report)


def _fields(resource: Resource, report: Report) -> None:
    kind = resource.type.rpartition(":")[2]
    for name, value in resource.at("spec").entries():
        with report.part():
            _field(resource, kind, name, value, report)


def _field(resource: Resource, kind: str, name: str, value: Node, report: Report) -> None:
    known = _FACTS["fields"][kind]
    # A null is as good as absent.
    if value.value is not None and name not in known:
        report.refuse(resource, value, allowed=_instead(kind, name), found=f"set, but a {kind} has no such field")
    elif known.get(name):
        for wrong in _NO_SCHEMAS.mismatches(value, {"type": known[name]}):
            report.refuse(resource, value, allowed=wrong.allowed, remark=wrong.remark)


def _instead(kind: str, name: str) -> str:
    """The field that is likely to be meant, or all that there are."""
    known = _FACTS["fields"][kind]
    if name in ("image", "resources", "env", "volumeMounts") and kind in _FACTS["containers"]:
        return f"{_FACTS['containers'][kind][0]}.{name}"
    meant = _FACTS["insteadOf"].get(name)
    near = [meant] if meant in known else difflib.get_close_matches(name, known, 1)
    return near[0] if near else f"one of {', '.join(known)}"


def _node_set(resource: Resource, report: Report) -> None:
    for check in (_controller, _scaling, _update, _login, _oversubscription):
        with report.part():
            check(resource, resource.at("spec"), report)


def _controller(resource: Resource, spec: Node, report: Report) -> None:
    name = spec.at("controllerRef", "name")
    if not name.text():
        report.refuse(resource, name, allowed="the name of the Controller that the nodes register with")


def _scaling(resource: Resource, spec: Node, report: Report) -> None:
    mode, replicas = spec.at("scalingMode"), spec.at("replicas")
    if mode.present and mode.text() not in ("StatefulSet", "DaemonSet"):
        report.refuse(resource, mode, allowed="StatefulSet or DaemonSet")
    elif mode.text() == "DaemonSet" and replicas.present:
        report.refuse(resource, replicas, allowed="unset with scalingMode DaemonSet, which has one pod for each node")


def _update(resource: Resource, spec: Node, report: Report) -> None:
    most = spec.at("updateStrategy", "rollingUpdate", "maxUnavailable")
    if most.text() in ("0", "0%"):
        report.refuse(resource, most, allowed="at least 1, or an update never begins")


def _login(resource: Resource, spec: Node, report: Report) -> None:
    enabled, reference = spec.at("ssh", "enabled"), spec.at("ssh", "sssdConfRef", "name")
    if enabled.value is True and not reference.text():
        report.refuse(resource, reference, allowed="a Secret with sssd.conf: without it nobody can log in by ssh")


def _oversubscription(resource: Resource, spec: Node, report: Report) -> None:
    shared = spec.at("oversubscribeNode")
    if shared.value is True:
        report.refuse(resource, shared, allowed="false: two node pods on one host both claim all of its GPUs")


def _keep_state(resource: Resource, report: Report) -> None:
    for chart in slurm_charts(resource) if resource.type in CHART_TYPES else ():
        _kept_by_chart(chart, report)
    if resource.type != SLURM_CONTROLLER:
        return
    spec = resource.at("spec")
    if spec.at("external").value is True:
        return
    for check in (_cluster_name, _keys, _persistence):
        with report.part():
            check(resource, spec, report)


def _cluster_name(resource: Resource, spec: Node, report: Report) -> None:
    name = spec.at("clusterName")
    said = name.text() or "_".join(resource.at("metadata", key).text() for key in ("namespace", "name"))
    if len(said) > _LONGEST_CLUSTER_NAME:
        report.refuse(resource, name, allowed=f"at most {_LONGEST_CLUSTER_NAME} characters", found=f"{said} ({len(said)} characters)")


def _keys(resource: Resource, spec: Node, report: Report) -> None:
    deprecated = spec.at("jwtHs256KeyRef")
    tokens = deprecated if deprecated.present else spec.at("jwtKeyRef")
    for reference in (spec.at("slurmKeyRef", "name"), tokens.at("name")):
        if not reference.text():
            report.refuse(resource, reference, allowed="the name of a Secret: the controller's pod mounts it and can't start without")


def _kept_by_chart(chart: Chart, report: Report) -> None:
    if chart.value("controller", "external").value is not True:
        _kept(chart.resource, chart.value("controller", "persistence", "enabled"), report)


def _persistence(resource: Resource, spec: Node, report: Report) -> None:
    _kept(resource, spec.at("persistence", "enabled"), report)


def _kept(resource: Resource, enabled: Node, report: Report) -> None:
    if enabled.value is False:
        allowed = "true: jobs and their queue live in StateSaveLocation (the accounting database has only history)"
        report.refuse(resource, enabled, allowed=allowed)


def _nodes(**spec: object) -> Example:
    return Example(NODE_SET, {"metadata": {"name": "gpu"}, "spec": {"controllerRef": {"name": "slurm"}, **spec}})


def _control(**spec: object) -> Example:
    keys = {"slurmKeyRef": {"name": "slurm-key", "key": "slurm.key"}, "jwtKeyRef": {"name": "jwt", "key": "jwt.key"}}
    return Example(SLURM_CONTROLLER, {"metadata": {"name": "slurm"}, "spec": {"clusterName": "training", **keys, **spec}})


RULES = (
    Rule(
        id="SLK01",
        name="slurm-require-served-kind",
        title="Slurm objects are of kinds that Slinky serves",
        types=_OF_OTHER_GROUPS | {UNSERVED},
        check=_kind,
        why="the API server knows no such kind, and nothing is made.",
        fix="use Controller, NodeSet, LoginSet, Accounting, RestApi or Token of slinky.slurm.net/v1beta1.",
        source="slurm-operator 1.2.1: api/v1beta1",
        valid=(_nodes(),),
        invalid=(Example(f"kubernetes:{_SERVED}:SlurmNodeSet", {"metadata": {"name": "gpu"}, "spec": {"replicas": 4}}),),
    ),
    Rule(
        id="SLK02",
        name="slurm-node-set-require-effective-settings",
        title="A NodeSet has a controller, and Slurm objects only settings that take effect, and a Slurm that their operator knows",
        types=_KINDS | CHART_TYPES,
        check=_settings,
        why="admission refuses it, or the setting is dropped without a word: nodes never register, never update or share one host's GPUs.",
        fix="name the controller, use the kind's own fields and images of Slurm 25.11 or later, leave replicas out with scalingMode "
        "DaemonSet, and allow at least one pod to be unavailable.",
        source="slurm-operator 1.2.1: definitions, NodeSet types and webhooks, README (least Slurm)",
        valid=(_nodes(scalingMode="StatefulSet", replicas=4),),
        invalid=(_nodes(scalingMode="DaemonSet", replicas=4),),
    ),
    Rule(
        id="SLK03",
        name="slurm-controller-require-lasting-state",
        title="A Slurm controller keeps its keys and its state",
        types=CHART_TYPES | {SLURM_CONTROLLER},
        check=_keep_state,
        why="a restart of the controller loses every queued and running job, or nodes no longer trust it.",
        fix="keep persistence on and refer to Secrets for both keys.",
        source="slurm-operator 1.2.1: Controller types and webhooks, values of chart slurm",
        valid=(_control(persistence={"enabled": True}),),
        invalid=(_control(persistence={"enabled": False}),),
    ),
)
