"""Ray clusters: what groups advertise is what their pods have, sizes are whole, nobody outside can run code, and a job's cluster ends."""

import re
from collections.abc import Iterator

from guardrails import environment
from guardrails.names import HOST_NAME
from guardrails.node import Node
from guardrails.placing import QUEUE_LABEL
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, count
from guardrails.tokens import RAY_CLUSTER, RAY_JOB, RAY_SERVICE, SERVED_BESIDE

_KINDS = frozenset({RAY_CLUSTER, RAY_JOB, RAY_SERVICE})
_START_RESOURCES = ("num-cpus", "num-gpus", "memory", "resources")
_LONGEST_NAME = {RAY_CLUSTER: 53, RAY_JOB: 47, RAY_SERVICE: 47}
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")
# Only Ray's own images have Ray's version as their tag.
_OWN_IMAGES = frozenset({"ray", "ray-ml", "ray-llm"})
_TOKEN_SINCE = (2, 52)
_SINCE = "2.52.0 or later, which token authentication needs"
_MODE = "RAY_AUTH_MODE"
_PUBLIC_SERVICES = frozenset({"NodePort", "LoadBalancer"})


def cluster_of(resource: Resource) -> Node:
    """The cluster's spec, wherever the kind keeps it."""
    if resource.type == RAY_CLUSTER:
        return resource.at("spec")
    return resource.at("spec", "rayClusterSpec" if resource.type == RAY_JOB else "rayClusterConfig")


def groups(resource: Resource) -> Iterator[Node]:
    """The head's group, then those of the workers."""
    cluster = cluster_of(resource)
    if cluster.at("headGroupSpec").present:
        yield cluster.at("headGroupSpec")
    yield from cluster.at("workerGroupSpecs").elements()


def ray_container(group: Node) -> Node:
    """The first container of a group's pods is Ray's."""
    return next(group.at("template", "spec", "containers").elements(), Node(None))


def _resources(resource: Resource, report: Report) -> None:
    for group in groups(resource):
        with report.part():
            _advertised(resource, group, report)
        with report.part():
            _declared_once(resource, group, report)
    with report.part():
        _idle_head(resource, report)


def _advertised(resource: Resource, group: Node, report: Report) -> None:
    limit = ray_container(group).at("resources", "limits", GPU)
    for said in (group.at("rayStartParams", "num-gpus"), *_named(group, "gpu")):
        head_off = group.path.endswith("headGroupSpec") and said.text() == "0"
        if said.present and not head_off and count(said) != count(limit):
            report.refuse(resource, said, allowed=f'"{count(limit)}", the GPU limit of the group\'s Ray container')


def _named(group: Node, ending: str) -> list[Node]:
    """The group's resources whose names end so: KubeRay hands GPU and nvidia.com/gpu alike to Ray, in capitals or not."""
    return [node for name, node in group.at("resources").entries() if name.lower().endswith(ending)]


def _declared_once(resource: Resource, group: Node, report: Report) -> None:
    params = group.at("rayStartParams")
    if any(True for _ in group.at("resources").entries()) and any(params.at(name).text() for name in _START_RESOURCES):
        report.refuse(resource, group.at("resources"), allowed="resources either here or in rayStartParams", found="given in both")


def _idle_head(resource: Resource, report: Report) -> None:
    cluster = cluster_of(resource)
    head = cluster.at("headGroupSpec")
    if not head.present or not any(True for _ in cluster.at("workerGroupSpecs").elements()):
        return
    cpus = head.at("rayStartParams", "num-cpus")
    if cpus.text() != "0" and not _named(head, "cpu"):
        report.advise(resource, cpus, allowed='"0": the head schedules, and runs no work that could take it down')
    gpus = ray_container(head).at("resources", "limits", GPU)
    if count(gpus):
        report.advise(resource, gpus, allowed="none on the head: its node is held for scheduling")


def _shape(resource: Resource, report: Report) -> None:
    with report.part():
        _name(resource, report)
    for group in cluster_of(resource).at("workerGroupSpecs").elements():
        with report.part():
            _sizes(resource, group, report)
    for group in groups(resource):
        with report.part():
            _version(resource, group, report)


def _name(resource: Resource, report: Report) -> None:
    name, most = resource.at("metadata", "name"), _LONGEST_NAME[resource.type]
    if not name.present:
        return
    if not HOST_NAME.fullmatch(name.text()):
        report.refuse(resource, name, allowed="a lower-case letter, then lower-case letters, digits and dashes")
    elif len(name.text()) > most:
        report.refuse(resource, name, allowed=f"at most {most} characters: pods and services are named after it")


def _sizes(resource: Resource, group: Node, report: Report) -> None:
    """Where a bound is unset the definition has 0 and the largest number there is."""
    least, most, now = (group.at(name) for name in ("minReplicas", "maxReplicas", "replicas"))
    if not most.present and cluster_of(resource).at("enableInTreeAutoscaling").value is True:
        report.advise(resource, most, allowed="the most replicas that the autoscaler may make: nothing else stops it")
    low, high, wanted = least.integer(), most.integer(), now.integer()
    if low is not None and high is not None and low > high:
        report.refuse(resource, least, allowed=f"at most maxReplicas = {high}")
    elif wanted is not None and ((low is not None and wanted < low) or (high is not None and wanted > high)):
        allowed = f"minReplicas to maxReplicas, {low or 0} to {'any' if high is None else high}"
        report.refuse(resource, now, allowed=allowed)


def _version(resource: Resource, group: Node, report: Report) -> None:
    said, installed = cluster_of(resource).at("rayVersion"), _installed(group)
    named = _VERSION.fullmatch(said.text())
    if not named or not installed or named.groups() == installed.groups():
        return
    image = ray_container(group).at("image")
    others = [other for each in groups(resource) if (other := _installed(each))]
    if any(other.groups() == named.groups() for other in others):
        report.refuse(resource, image, allowed=f"one of Ray {named[0]}, as rayVersion and the image of another group say")
    else:
        report.refuse(resource, said, allowed=f"{installed[0]}, the Ray of image {image.text()}")


def _installed(group: Node) -> re.Match[str] | None:
    """The version of Ray that the tag of the group's image says."""
    image = ray_container(group).at("image").text()
    # A registry may have a port, so the tag is looked for after the last slash.
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return _VERSION.match(tag) if name in _OWN_IMAGES else None


def _exposure(resource: Resource, report: Report) -> None:
    cluster = cluster_of(resource)
    head = cluster.at("headGroupSpec")
    for service in (head.at("serviceType"), head.at("headService", "spec", "type")):
        with report.part():
            if service.text() in _PUBLIC_SERVICES:
                report.refuse(resource, service, allowed="ClusterIP: dashboard and client port run anybody's code")
    with report.part():
        if head.at("enableIngress").value is True:
            report.refuse(resource, head.at("enableIngress"), allowed="false: the dashboard runs anybody's code")
    with report.part():
        _password(resource, head.at("rayStartParams", "redis-password"), report)
    with report.part():
        if head.present:
            _authentication(resource, cluster, report)


def _password(resource: Resource, password: Node, report: Report) -> None:
    if password.text() and not password.text().startswith("$"):
        allowed = "gcsFaultToleranceOptions.redisPassword from a Secret"
        report.refuse(resource, password, allowed=allowed, found="a literal (not shown)")


def _authentication(resource: Resource, cluster: Node, report: Report) -> None:
    mode, version = cluster.at("authOptions", "mode"), cluster.at("rayVersion")
    is_older = resource.written in SERVED_BESIDE
    if mode.text() == "token" and not is_older:
        if not _knows_tokens(_VERSION.match(version.text())):
            report.refuse(resource, version, allowed=_SINCE)
        return
    by_hand = [(group, _asks_for_a_token(group)) for group in groups(resource)]
    if not any(asks for _, asks in by_hand):
        kept = " in ray.io/v1 (v1alpha1 drops the field)" if is_older else ""
        report.refuse(resource, mode, allowed=f"token{kept}: without it every pod that reaches the head runs code on all nodes")
        return
    for group, asks in by_hand:
        container = ray_container(group)
        if not asks:
            report.refuse(resource, container.at("env"), allowed=f"{_MODE}=token, as in other groups", found=f"without {_MODE}=token")
        elif (ray := _installed(group) or _VERSION.match(version.text())) and not _knows_tokens(ray):
            report.refuse(resource, container.at("image"), allowed=_SINCE, found=f"Ray {ray[0]}")


def _asks_for_a_token(group: Node) -> bool:
    """Whether the group's Ray container has the variable by which the operator itself turns authentication on."""
    variable = environment.last(ray_container(group), _MODE)
    return variable is not None and variable.text == "token"


def _knows_tokens(version: re.Match[str] | None) -> bool:
    return version is not None and (int(version[1]), int(version[2])) >= _TOKEN_SINCE


def _ends(resource: Resource, report: Report) -> None:
    shutdown, keep = resource.at("spec", "shutdownAfterJobFinishes"), resource.at("spec", "ttlSecondsAfterFinished")
    if shutdown.value is True or (makes_a_cluster(resource) and resource.at("metadata", "labels", QUEUE_LABEL).text()):
        return  # In a queue of Kueue RAY05 says it.
    if (keep.integer() or 0) > 0:
        allowed = f"true beside ttlSecondsAfterFinished ({keep.text()}), which is how long after the job the shutdown waits"
        report.refuse(resource, shutdown, allowed=allowed)
    elif makes_a_cluster(resource) and not resource.at("spec", "deletionStrategy").present:
        report.advise(resource, shutdown, allowed="true: the cluster and its nodes stay after the job otherwise")


def makes_a_cluster(resource: Resource) -> bool:
    """Whether a resource is or makes a cluster, in place of one that clusterSelector names."""
    return cluster_of(resource).value is not None and not any(True for _ in resource.at("spec", "clusterSelector").entries())


def _ray(*, head: dict[str, object] | None = None, group: dict[str, object] | None = None, **spec: object) -> Example:
    container = {"name": "ray", "image": "rayproject/ray:2.55.0", "resources": {"limits": {GPU: 4}}}
    pods = {"template": {"spec": {"containers": [container]}}}
    sizes = {"groupName": "gpu", "replicas": 2, "minReplicas": 2, "maxReplicas": 2, **pods, **(group or {})}
    front = {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [{"name": "ray", "image": "rayproject/ray:2.55.0"}]}}}
    cluster = {"rayVersion": "2.55.0", "headGroupSpec": {**front, **(head or {})}, "workerGroupSpecs": [sizes], **spec}
    return Example(RAY_CLUSTER, {"metadata": {"name": "tune"}, "spec": cluster})


def _ray_job(**spec: object) -> Example:
    return Example(RAY_JOB, {"metadata": {"name": "tune"}, "spec": {**spec, "rayClusterSpec": _ray().properties["spec"]}})


RULES = (
    Rule(
        id="RAY01",
        name="ray-require-real-resources",
        title="A Ray group advertises the GPUs its pods have",
        types=_KINDS,
        check=_resources,
        why="Ray places work on GPUs that are not there, or leaves some idle; the operator refuses resources given twice.",
        fix='leave num-gpus out (Ray reads the limit) or make it equal; give the head num-cpus: "0".',
        source="KubeRay 1.5.1: validation.go, common/pod.go; AWS Ray Train guide",
        valid=(_ray(group={"rayStartParams": {"num-gpus": "4"}}),),
        invalid=(_ray(group={"rayStartParams": {"num-gpus": "8"}}),),
    ),
    Rule(
        id="RAY02",
        name="ray-require-whole-shape",
        title="A Ray cluster has bounds, a short name and one version",
        types=_KINDS,
        check=_shape,
        why="the operator refuses the name and makes no pod or another number of them, or head and workers refuse each other's version.",
        fix="keep replicas within minReplicas and maxReplicas, the name short, and rayVersion as the image's.",
        source="KubeRay 1.5.1: validation.go, constant.go, util.go (GetWorkerGroupDesiredReplicas)",
        valid=(_ray(),),
        invalid=(_ray(group={"minReplicas": 3}),),
    ),
    Rule(
        id="RAY03",
        name="ray-disallow-open-access",
        title="Ray's ports stay inside, behind a token",
        types=_KINDS,
        check=_exposure,
        why="whoever reaches the dashboard, the client port or the GCS runs code on every node of the cluster.",
        fix="keep the service ClusterIP, set authOptions.mode: token (Ray 2.52 or later), and the Redis password from a Secret.",
        source="KubeRay 1.5.1: authOptions, common/pod.go (RAY_AUTH_MODE); Ray: security",
        valid=(_ray(authOptions={"mode": "token"}),),
        invalid=(_ray(head={"serviceType": "LoadBalancer"}, authOptions={"mode": "token"}),),
    ),
    Rule(
        id="RAY04",
        name="ray-job-require-shutdown",
        title="A RayJob's own cluster ends with the job",
        types=frozenset({RAY_JOB}),
        check=_ends,
        why="the operator refuses a time-to-live without the shutdown; with neither, the cluster and its GPU nodes stay.",
        fix="set shutdownAfterJobFinishes to true, and ttlSecondsAfterFinished to the seconds that the cluster is to stay for a look.",
        source="KubeRay 1.5.1: validation.go; ray-project/kuberay#1023",
        valid=(_ray_job(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=600),),
        invalid=(_ray_job(ttlSecondsAfterFinished=600),),
    ),
)
