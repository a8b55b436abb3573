"""Ray resources: what KubeRay's operator refuses once they are made."""

import re
from collections.abc import Iterator, Mapping

from guardrails.document import DocumentError, read_yaml
from guardrails.node import Node
from guardrails.placing import QUEUE_LABEL
from guardrails.ray import cluster_of, groups, makes_a_cluster, ray_container
from guardrails.ray_start import start_params
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import RAY_CLUSTER, RAY_CRON_JOB, RAY_JOB, RAY_SERVICE

_GATE = "with the operator's feature gate RayJobDeletionPolicy, which is off unless its chart's featureGates turn it on"
_REDIS_ADDRESS, _REDIS_PASSWORD, _REDIS_USERNAME = "RAY_REDIS_ADDRESS", "REDIS_PASSWORD", "REDIS_USERNAME"
_AUTOSCALER_V2 = "RAY_enable_autoscaler_v2"
_FAULT_TOLERANT, _STORAGE_NAMESPACE = "ray.io/ft-enabled", "ray.io/external-storage-namespace"
_INITIALIZING = "ray.io/initializing-timeout"
_SELECTOR = "ray.io/cluster"
_LABEL_KEY = re.compile(r"(?:[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_GO_DURATION = re.compile(r"\+?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|ms|s|m|h))+")
_STAYS, _NEVER = "DeleteNone", frozenset({"", "Never"})
_OF_A_CLUSTER = frozenset({"DeleteCluster", "DeleteWorkers"})
_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")
_ELASTIC = "kueue.x-k8s.io/elastic-job"
_HEADS_SET = "head"
"""What Kueue calls the head's pod beside the groups of workers."""
_UPGRADES = frozenset({"", "None", "NewCluster", "NewClusterWithIncrementalUpgrade"})
_INCREMENTAL = "NewClusterWithIncrementalUpgrade"


def _admission(resource: Resource, report: Report) -> None:
    # The operator that takes a RayCronJob is a later one, and has other gates on.
    if resource.written == RAY_CRON_JOB:
        return
    if resource.type == RAY_JOB:
        for check in (_suspension, _numbers, _where, _submission, _runtime, _deletion):
            with report.part():
                check(resource, resource.at("spec"), report)
    elif resource.type == RAY_SERVICE:
        for check in (_service, _upgrade):
            with report.part():
                check(resource, resource.at("spec"), report)
    cluster = cluster_of(resource)
    with report.part():
        if resource.type != RAY_SERVICE and resource.at("metadata", "labels", QUEUE_LABEL).text():
            _queued(resource, cluster, report)
    with report.part():
        if cluster.value is not None:
            for check in (_containers, _group_names, _labels, _fault_tolerance, _redis_user, _suspended_workers, _autoscaler):
                with report.part():
                    check(resource, cluster, report)
            start_params(resource, report)


def _is_on(cluster: Node) -> bool:
    return cluster.at("enableInTreeAutoscaling").value is True


def _selects(spec: Node) -> bool:
    return any(True for _ in spec.at("clusterSelector").entries())


def _suspension(job: Resource, spec: Node, report: Report) -> None:
    suspend = spec.at("suspend")
    if suspend.value is not True:
        return
    with report.part():
        if spec.at("shutdownAfterJobFinishes").value is not True:
            report.refuse(job, suspend, allowed="true only beside shutdownAfterJobFinishes: a suspended job's cluster is deleted")
    if _selects(spec):
        report.refuse(job, suspend, allowed="false for a job on a cluster that clusterSelector names")


def _queued(resource: Resource, cluster: Node, report: Report) -> None:
    """Kueue's own admission takes a cluster whose size and end it knows; it leaves a job on another's cluster alone."""
    if not makes_a_cluster(resource):
        return
    with report.part():
        shutdown = resource.at("spec", "shutdownAfterJobFinishes")
        if resource.type == RAY_JOB and shutdown.value is not True:
            report.refuse(resource, shutdown, allowed=f"true in a queue of Kueue ({QUEUE_LABEL}): the cluster keeps the quota otherwise")
    with report.part():
        scales = cluster.at("enableInTreeAutoscaling")
        if scales.value is True and resource.at("metadata", "annotations", _ELASTIC).text() != "true":
            report.refuse(resource, scales, allowed=f'false in a queue of Kueue ({QUEUE_LABEL}), or {_ELASTIC}: "true" beside it')
    for group in cluster.at("workerGroupSpecs").elements():
        with report.part():
            if group.at("groupName").text() == _HEADS_SET:
                report.refuse(
                    resource, group.at("groupName"), allowed=f"another name in a queue of Kueue, which calls the head so ({QUEUE_LABEL})"
                )


def _numbers(job: Resource, spec: Node, report: Report) -> None:
    for name, least in (("ttlSecondsAfterFinished", 0), ("backoffLimit", 0), ("activeDeadlineSeconds", 1)):
        with report.part():
            number = spec.at(name).integer()
            if number is not None and number < least:
                report.refuse(job, spec.at(name), allowed=f"at least {least}")


def _where(job: Resource, spec: Node, report: Report) -> None:
    selector = spec.at("clusterSelector")
    if not _selects(spec) and not spec.at("rayClusterSpec").present:
        report.refuse(job, spec.at("rayClusterSpec"), allowed=f"a cluster to make, or clusterSelector with {_SELECTOR}")
    elif _selects(spec) and not selector.at(_SELECTOR).text():
        report.refuse(job, selector.at(_SELECTOR), allowed="the name of the cluster on which the job is to run")


def _submission(job: Resource, spec: Node, report: Report) -> None:
    mode = spec.at("submissionMode").text()
    if mode == "InteractiveMode" and (spec.at("backoffLimit").integer() or 0) > 0:
        report.refuse(job, spec.at("backoffLimit"), allowed="0 in InteractiveMode, where nothing is submitted again")
    if mode != "SidecarMode":
        return
    for name in ("submitterPodTemplate", "submitterConfig"):
        if spec.at(name).present:
            report.refuse(job, spec.at(name), allowed="unset in SidecarMode, which submits from the head's pod", found="set")
    if _selects(spec):
        report.refuse(job, spec.at("clusterSelector"), allowed="unset in SidecarMode, which needs a cluster of its own", found="set")
    policy = spec.at("rayClusterSpec", "headGroupSpec", "template", "spec", "restartPolicy")
    if policy.text() not in _NEVER:
        report.refuse(job, policy, allowed="Never in SidecarMode")


def _runtime(job: Resource, spec: Node, report: Report) -> None:
    place = spec.at("runtimeEnvYAML")
    if not isinstance(place.value, str):
        return
    try:
        parsed = read_yaml(place.value)
    except DocumentError as error:
        report.refuse(job, place, allowed="YAML", found=str(error))
        return
    if parsed and not isinstance(parsed[0], Mapping):
        report.refuse(job, place, allowed="a mapping, such as pip: [...]")


def _deletion(job: Resource, spec: Node, report: Report) -> None:
    strategy = spec.at("deletionStrategy")
    if strategy.value is None:
        return
    report.advise(job, strategy, allowed=f"set only {_GATE}: the operator refuses it otherwise", found="set")
    rules, ends = list(strategy.at("deletionRules").elements()), [strategy.at(name) for name in ("onSuccess", "onFailure")]
    given = [end for end in ends if end.present]
    if rules and given:
        report.refuse(job, given[0], allowed="unset beside deletionRules", found="set")
    elif rules:
        _rules(job, spec, rules, report)
    elif given:
        _ends(job, spec, ends, report)
    else:
        report.refuse(job, strategy, allowed="deletionRules, or onSuccess and onFailure", found="empty")


def _rules(job: Resource, spec: Node, rules: list[Node], report: Report) -> None:
    shutdown = spec.at("shutdownAfterJobFinishes")
    if shutdown.value is True:
        report.refuse(job, shutdown, allowed="unset beside deletionStrategy.deletionRules")
    waits: dict[str, dict[str, int]] = {}
    for rule in rules:
        with report.part():
            policy, status = rule.at("policy"), rule.at("condition", "jobStatus").text()
            wait, before = rule.at("condition", "ttlSeconds").integer() or 0, waits.setdefault(status, {})
            _policy(job, spec, policy, report)
            if wait < 0:
                report.refuse(job, rule.at("condition", "ttlSeconds"), allowed="at least 0")
            elif policy.text() in before:
                report.refuse(job, policy, allowed=f"each policy once for {status}")
            else:
                before[policy.text()] = wait
    for status, own in waits.items():
        ordered = [own[policy] for policy in _ORDER if policy in own]
        if ordered != sorted(ordered):
            place = spec.at("deletionStrategy", "deletionRules")
            report.refuse(job, place, allowed=f"workers first, then the cluster, then the job, for {status}", found=f"waits of {ordered} s")


def _ends(job: Resource, spec: Node, ends: list[Node], report: Report) -> None:
    """Of the older form: what becomes of the cluster after a success and after a failure."""
    for end in ends:
        policy = end.at("policy")
        with report.part():
            if not policy.present:
                report.refuse(job, policy, allowed="set for success and failure alike")
            elif policy.text() == _STAYS and spec.at("shutdownAfterJobFinishes").value is True:
                report.refuse(job, policy, allowed="a policy that deletes, beside shutdownAfterJobFinishes")
            else:
                _policy(job, spec, policy, report)


def _policy(job: Resource, spec: Node, policy: Node, report: Report) -> None:
    if policy.text() in _OF_A_CLUSTER and _selects(spec):
        report.refuse(job, policy, allowed="DeleteSelf or DeleteNone on a cluster that clusterSelector names")
    elif policy.text() == "DeleteWorkers" and _is_on(spec.at("rayClusterSpec")):
        report.refuse(job, policy, allowed="no DeleteWorkers with autoscaling")


def _service(service: Resource, spec: Node, report: Report) -> None:
    name = spec.at("rayClusterConfig", "headGroupSpec", "headService", "metadata", "name")
    if name.text():
        report.refuse(service, name, allowed="unset: the operator names the head's Service")
    delay = spec.at("rayClusterDeletionDelaySeconds")
    if (delay.integer() or 0) < 0:
        report.refuse(service, delay, allowed="at least 0")
    timeout = service.at("metadata", "annotations", _INITIALIZING)
    if timeout.text() and not _lasts(timeout.text()):
        report.refuse(service, timeout, allowed="a duration such as 30m, or seconds, above 0")


def _lasts(text: str) -> bool:
    """Whether a text is a duration of Go or a number of seconds, and more than nothing."""
    shaped = _GO_DURATION.fullmatch(text) or re.fullmatch(r"\+?[0-9]{1,18}", text)
    return bool(shaped) and any(digit in "123456789" for digit in text)


def _upgrade(service: Resource, spec: Node, report: Report) -> None:
    kind, options = spec.at("upgradeStrategy", "type"), spec.at("upgradeStrategy", "clusterUpgradeOptions")
    if kind.text() not in _UPGRADES:
        report.refuse(service, kind, allowed=", ".join(sorted(_UPGRADES - {""})))
    if kind.text() != _INCREMENTAL:
        return
    if not _is_on(cluster_of(service)):
        report.refuse(service, kind, allowed="an incremental upgrade only with enableInTreeAutoscaling")
    if not options.present:
        report.refuse(service, options, allowed=f"set with {_INCREMENTAL}")
        return
    for name in ("maxSurgePercent", "stepSizePercent"):
        percent = options.at(name)
        # The definition gives the surge a default.
        missing = not percent.present and name == "stepSizePercent"
        if missing or not 0 <= (percent.integer() or 0) <= 100:
            report.refuse(service, percent, allowed="0 to 100")
    if (options.at("intervalSeconds").integer() or 0) <= 0:
        report.refuse(service, options.at("intervalSeconds"), allowed="above 0")
    if not options.at("gatewayClassName").text():
        report.refuse(service, options.at("gatewayClassName"), allowed="the GatewayClass that shifts the traffic")


def _containers(resource: Resource, cluster: Node, report: Report) -> None:
    for group in groups(resource):
        place = group.at("template", "spec", "containers")
        if not list(place.elements()):
            report.refuse(resource, place, allowed="at least one container", found="none")


def _group_names(resource: Resource, cluster: Node, report: Report) -> None:
    seen: set[str] = set()
    for group in cluster.at("workerGroupSpecs").elements():
        with report.part():
            name = group.at("groupName")
            if name.present and name.text() in seen:
                report.refuse(resource, name, allowed="a name of its own: the operator counts the pods of both groups for each of them")
            seen.add(name.text())


def _labels(resource: Resource, cluster: Node, report: Report) -> None:
    for group in groups(resource):
        with report.part():
            old = group.at("rayStartParams", "labels")
            if old.present:
                report.refuse(resource, old, allowed="unset: labels of a group stand in its own field labels")
        for key, value in group.at("labels").entries():
            with report.part():
                if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value.text()):
                    report.refuse(
                        resource, value, allowed="a key and a value of the form of Kubernetes labels", found=f"{key}: {value.text()}"
                    )


def _environment(cluster: Node) -> Iterator[tuple[str, Node]]:
    """The variables of the head's Ray container."""
    for variable in ray_container(cluster.at("headGroupSpec")).at("env").elements():
        yield variable.at("name").text(), variable


def _fault_tolerance(resource: Resource, cluster: Node, report: Report) -> None:
    options, annotations = cluster.at("gcsFaultToleranceOptions"), resource.at("metadata", "annotations")
    noted = annotations.at(_FAULT_TOLERANT)
    if not options.present:
        for name, variable in _environment(cluster):
            if name == _REDIS_ADDRESS and noted.text().lower() != "true":
                report.refuse(
                    resource, variable, allowed="gcsFaultToleranceOptions.redisAddress", found=f"{name} in the head's environment"
                )
        return
    for note in (noted, annotations.at(_STORAGE_NAMESPACE)):
        with report.part():
            if note.text():
                report.refuse(resource, note, allowed="unset beside gcsFaultToleranceOptions")
    password = cluster.at("headGroupSpec", "rayStartParams", "redis-password")
    with report.part():
        if password.text():
            report.refuse(resource, password, allowed="gcsFaultToleranceOptions.redisPassword alone", found="set (not shown)")
    for name, variable in _environment(cluster):
        if name in (_REDIS_ADDRESS, _REDIS_PASSWORD):
            allowed = "the fields of gcsFaultToleranceOptions alone"
            report.refuse(resource, variable, allowed=allowed, found=f"{name} in the head's environment")


def _redis_user(resource: Resource, cluster: Node, report: Report) -> None:
    allowed = "gcsFaultToleranceOptions.redisUsername"
    user = cluster.at("headGroupSpec", "rayStartParams", "redis-username")
    with report.part():
        if user.text():
            report.refuse(resource, user, allowed=allowed)
    for name, variable in _environment(cluster):
        if name == _REDIS_USERNAME:
            report.refuse(resource, variable, allowed=allowed, found=f"{name} in the head's environment")


def _suspended_workers(resource: Resource, cluster: Node, report: Report) -> None:
    for group in cluster.at("workerGroupSpecs").elements():
        with report.part():
            suspend = group.at("suspend")
            if suspend.value is True and _is_on(cluster):
                report.refuse(resource, suspend, allowed="false with autoscaling")
            elif suspend.value is True:
                report.advise(resource, suspend, allowed=f"true only {_GATE}: the operator refuses the cluster otherwise")


def _autoscaler(resource: Resource, cluster: Node, report: Report) -> None:
    version = cluster.at("autoscalerOptions", "version")
    for name, variable in _environment(cluster):
        if name != _AUTOSCALER_V2:
            continue
        if not _is_on(cluster) and variable.at("value").text() in ("1", "true"):
            report.refuse(
                resource, variable, allowed="unset without enableInTreeAutoscaling", found=f"{name}={variable.at('value').text()}"
            )
        elif _is_on(cluster) and version.present:
            report.refuse(resource, variable, allowed="autoscalerOptions.version alone", found=f"{name} beside it")
    if not _is_on(cluster) or version.text() != "v2":
        return
    for group in groups(resource):
        with report.part():
            policy = group.at("template", "spec", "restartPolicy")
            if policy.text() not in _NEVER:
                report.refuse(resource, policy, allowed="Never with autoscaler v2, which makes another pod")


def _example(**spec: object) -> Example:
    container = {"name": "ray", "image": "rayproject/ray:2.55.0"}
    cluster = {"rayVersion": "2.55.0", "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}}}
    return Example(RAY_JOB, {"metadata": {"name": "tune"}, "spec": {"rayClusterSpec": cluster, **spec}})


RULES = (
    Rule(
        id="RAY05",
        name="ray-require-valid-spec",
        title="A Ray resource is one that KubeRay's operator takes",
        types=frozenset({RAY_CLUSTER, RAY_JOB, RAY_SERVICE}),
        check=_admission,
        why="the API server takes it, and the operator makes no pod, or makes and deletes them in turn, or Ray ends as it starts.",
        fix="give a job one cluster and one way to end it, and a setting in the one place where KubeRay reads it, quoted for bash.",
        source="KubeRay 1.5.1: utils/validation.go, features.go, raycluster_controller.go, common/pod.go (convertParamMap); "
        "Kueue: rayjob_webhook.go, raycluster_webhook.go",
        valid=(_example(suspend=True, shutdownAfterJobFinishes=True),),
        invalid=(_example(suspend=True),),
    ),
)
