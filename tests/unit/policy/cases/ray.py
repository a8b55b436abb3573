"""Ray clusters."""

from dataclasses import replace
from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

IMAGE = "rayproject/ray:2.55.0-py311-gpu"
_CLUSTER: dict[str, Any] = {
    "rayVersion": "2.55.0",
    "authOptions": {"mode": "token"},
    "headGroupSpec": {
        "rayStartParams": {"num-cpus": "0"},
        "template": {"spec": {"containers": [{"name": "ray", "image": IMAGE, "resources": {"limits": {"cpu": "4"}}}]}},
    },
    "workerGroupSpecs": [
        {
            "groupName": "gpu",
            "replicas": 2,
            "minReplicas": 2,
            "maxReplicas": 2,
            "rayStartParams": {},
            "template": {"spec": {"containers": [{"name": "ray", "image": IMAGE, "resources": {"limits": {GPU: 4}}}]}},
        }
    ],
}
HEAD, GROUP = "headGroupSpec", "workerGroupSpecs/0"
PARAMS = f"{GROUP}/rayStartParams"
IMAGE_OF_GROUP = f"{GROUP}/template/spec/containers/0/image"
IMAGE_OF_HEAD = f"{HEAD}/template/spec/containers/0/image"
HEAD_SERVICE = f"{HEAD}/headService"
HEAD_LIMITS = f"{HEAD}/template/spec/containers/0/resources/limits"


def cluster(changes: dict[str, Any] | None = None, *, name: str = "tune") -> Thing:
    return Thing(type=tokens.RAY_CLUSTER, name="tune", properties={"metadata": {"name": name}, "spec": b.changed(_CLUSTER, changes or {})})


def job(changes: dict[str, Any] | None = None, *, name: str = "tune") -> Thing:
    spec = {"rayClusterSpec": b.changed(_CLUSTER, changes or {})}
    return Thing(type=tokens.RAY_JOB, name="tune", properties={"metadata": {"name": name}, "spec": spec})


def service(changes: dict[str, Any] | None = None) -> Thing:
    spec = {"rayClusterConfig": b.changed(_CLUSTER, changes or {})}
    return Thing(type=tokens.RAY_SERVICE, name="serve", properties={"metadata": {"name": "serve"}, "spec": spec})


def ending(spec: dict[str, Any] | None = None, *, own: bool = True) -> Thing:
    """A RayJob that makes its own cluster, or runs on one that is there, and ends as `spec` says."""
    where: dict[str, Any] = {"rayClusterSpec": _CLUSTER} if own else {"clusterSelector": {"ray.io/cluster": "shared"}}
    return Thing(type=tokens.RAY_JOB, name="tune", properties={"metadata": {"name": "tune"}, "spec": {**where, **(spec or {})}})


def older(thing: Thing) -> Thing:
    """The same under the version that KubeRay serves beside v1."""
    return replace(thing, type=thing.type.replace("/v1:", "/v1alpha1:"))


SHUTDOWN, TTL = "shutdownAfterJobFinishes", "ttlSecondsAfterFinished"
DELETION = {"deletionStrategy": {"deletionRules": [{"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 60}}]}}


CASES = (
    valid("RAY01", cluster()),
    valid("RAY01", cluster({f"{PARAMS}/num-gpus": "4"})),
    valid("RAY01", cluster({f"{HEAD}/rayStartParams/num-gpus": "0"})),
    valid("RAY01", job({f"{GROUP}/resources": {"GPU": "4"}})),
    valid("RAY01", service()),
    valid("RAY01", cluster({f"{PARAMS}/num-gpus": 4}), edge=True),
    invalid("RAY01", cluster({f"{PARAMS}/num-gpus": "5"}), says='num-gpus is 5; allowed: "4"', edge=True),
    invalid("RAY01", cluster({f"{PARAMS}/num-gpus": "8"}), says="spec.workerGroupSpecs[0].rayStartParams.num-gpus is 8"),
    invalid("RAY01", job({f"{PARAMS}/num-gpus": "8"}), says="spec.rayClusterSpec.workerGroupSpecs[0]"),
    invalid("RAY01", cluster({f"{PARAMS}/num-cpus": "8", f"{GROUP}/resources": {"CPU": "8"}}), says="given in both"),
    invalid("RAY01", cluster({f"{HEAD}/rayStartParams": {}}), says='num-cpus is unset; allowed: "0"'),
    invalid("RAY01", service({f"{HEAD}/rayStartParams/num-cpus": "4"}), says='num-cpus is 4; allowed: "0"'),
    invalid("RAY01", cluster({HEAD_LIMITS: {GPU: 1}}), says="none on the head"),
    valid("RAY01", cluster({f"{HEAD}/rayStartParams": {}, f"{HEAD}/resources": {"CPU": "0"}})),
    valid("RAY01", cluster({f"{HEAD}/rayStartParams": {}, "workerGroupSpecs": []})),
    invalid("RAY01", cluster({f"{HEAD}/rayStartParams/num-gpus": "0", HEAD_LIMITS: {GPU: 1}}), says="none on the head"),
    invalid("RAY01", cluster({f"{PARAMS}/num-gpus": "0"}), says='num-gpus is 0; allowed: "4"'),
    invalid("RAY01", cluster({f"{PARAMS}/num-gpus": "1", f"{GROUP}/template/spec/containers": []}), says='num-gpus is 1; allowed: "0"'),
    valid("RAY02", cluster()),
    valid("RAY02", cluster({"enableInTreeAutoscaling": True, f"{GROUP}/minReplicas": b.DELETE})),
    valid("RAY02", cluster({IMAGE_OF_GROUP: "registry.example/rays/trainer:2.54.0"})),
    valid("RAY02", cluster({f"{GROUP}/replicas": b.DELETE, f"{GROUP}/minReplicas": b.DELETE})),
    invalid("RAY02", cluster({"rayVersion": "2.54.1", IMAGE_OF_GROUP: "registry.example:5000/mirror/ray:2.54.2"}), says="allowed: 2.54.2"),
    invalid("RAY02", cluster({"rayVersion": "2.54.1", IMAGE_OF_GROUP: f"ray-ml:2.54.2@sha256:{'0' * 64}"}), says="allowed: 2.54.2"),
    invalid("RAY02", cluster({"rayVersion": "2.54.1", IMAGE_OF_GROUP: "ray:2.54.2"}), says="allowed: 2.54.2"),
    valid("RAY02", cluster({"enableInTreeAutoscaling": True, f"{GROUP}/minReplicas": 0, f"{GROUP}/maxReplicas": 8})),
    valid("RAY02", job()),
    valid("RAY02", cluster({f"{GROUP}/template/spec/containers/0/image": "registry.example/trainer:7"})),
    valid("RAY02", service()),
    valid("RAY02", cluster(name="a" * 53), edge=True),
    valid("RAY02", job(name="a" * 47), edge=True),
    invalid("RAY02", cluster(name="a" * 54), says="at most 53 characters", edge=True),
    invalid("RAY02", job(name="a" * 48), says="at most 47 characters", edge=True),
    valid("RAY02", cluster({f"{GROUP}/minReplicas": b.DELETE})),
    valid("RAY02", cluster({f"{GROUP}/maxReplicas": b.DELETE})),
    invalid("RAY02", cluster({f"{GROUP}/minReplicas": 3}), says="minReplicas is 3; allowed: at most maxReplicas = 2"),
    invalid("RAY02", cluster({f"{GROUP}/replicas": 9}), says="replicas is 9; allowed: minReplicas to maxReplicas, 2 to 2"),
    invalid("RAY02", cluster({"rayVersion": "2.54.1"}), says="rayVersion is 2.54.1; allowed: 2.55.0"),
    invalid("RAY02", cluster(name="Tune"), says="a lower-case letter"),
    valid("RAY03", cluster()),
    valid("RAY03", cluster({f"{HEAD}/serviceType": "ClusterIP"})),
    valid("RAY03", cluster({f"{HEAD}/rayStartParams/redis-password": "$REDIS_PASSWORD"})),
    valid("RAY03", job()),
    valid("RAY03", service({"rayVersion": "2.60.1"})),
    valid("RAY03", cluster({"rayVersion": "2.52.0"}), edge=True),
    invalid("RAY03", cluster({"rayVersion": "2.51.9"}), says="2.52.0 or later", edge=True),
    invalid("RAY03", cluster({"authOptions": b.DELETE}), says="authOptions.mode is unset; allowed: token"),
    invalid("RAY03", cluster({"authOptions/mode": "disabled"}), says="authOptions.mode is disabled"),
    invalid("RAY03", cluster({f"{HEAD}/serviceType": "NodePort"}), says="serviceType is NodePort; allowed: ClusterIP"),
    invalid("RAY03", service({f"{HEAD}/serviceType": "LoadBalancer"}), says="spec.rayClusterConfig.headGroupSpec.serviceType"),
    invalid("RAY03", cluster({f"{HEAD}/enableIngress": True}), says="enableIngress is true"),
    invalid("RAY03", cluster({f"{HEAD}/rayStartParams/redis-password": "guess"}), says="a literal (not shown)"),
    valid("RAY04", ending({SHUTDOWN: True, TTL: 600})),
    valid("RAY04", ending({SHUTDOWN: True})),
    valid("RAY04", ending(own=False)),
    valid("RAY04", ending({SHUTDOWN: False}, own=False)),
    # The operator looks for the cluster that is there, and makes none of its own.
    valid("RAY04", ending({"clusterSelector": {"ray.io/cluster": "shared"}}), edge=True),
    valid("RAY04", ending({"rayClusterSpec": None}), edge=True),
    valid("RAY04", ending(DELETION)),
    valid("RAY04", cluster()),
    valid("RAY04", ending({TTL: 0}, own=False), edge=True),
    invalid("RAY04", ending({TTL: 1}, own=False), says="shutdownAfterJobFinishes is unset; allowed: true beside", edge=True),
    invalid("RAY04", ending({TTL: 600}), says="shutdownAfterJobFinishes is unset; allowed: true beside ttlSecondsAfterFinished (600)"),
    invalid("RAY04", ending({SHUTDOWN: False, TTL: 600}), says="shutdownAfterJobFinishes is false; allowed: true beside"),
    invalid("RAY04", ending({**DELETION, TTL: 600}), says="true beside ttlSecondsAfterFinished (600)"),
    invalid("RAY04", ending(), says="shutdownAfterJobFinishes is unset; allowed: true: the cluster and its nodes stay"),
    invalid("RAY04", ending({SHUTDOWN: False, TTL: 0}), says="shutdownAfterJobFinishes is false; allowed: true: the cluster"),
    invalid("RAY04", ending({"clusterSelector": {}}), says="shutdownAfterJobFinishes is unset; allowed: true: the cluster", edge=True),
    valid("RAY01", cluster({f"{GROUP}/resources": {"gpu": "4"}}), edge=True),
    invalid("RAY01", cluster({f"{GROUP}/resources": {"GPU": "8"}}), says='workerGroupSpecs[0].resources.GPU is 8; allowed: "4"', edge=True),
    invalid("RAY01", cluster({f"{GROUP}/resources": {"nvidia.com/GPU": "2"}}), says='allowed: "4", the GPU limit'),
    valid("RAY01", cluster({f"{HEAD}/rayStartParams": {}, f"{HEAD}/resources": {"cpu": "0"}})),
    valid("RAY02", cluster({IMAGE_OF_GROUP: "registry.example/ray-finetune:1.4.2"})),
    # Of three that say a version, the one that says another is wrong.
    invalid(
        "RAY02",
        cluster({IMAGE_OF_GROUP: "rayproject/ray:2.9.3"}),
        says="image is rayproject/ray:2.9.3; allowed: one of Ray 2.55.0, as rayVersion and the image of another group say",
    ),
    invalid("RAY02", cluster({IMAGE_OF_HEAD: "ray:2.9.3"}), says="spec.headGroupSpec.template.spec.containers[0].image is ray:2.9.3"),
    invalid(
        "RAY02",
        cluster({"rayVersion": "2.55.1", IMAGE_OF_HEAD: "ray:2.9.3", IMAGE_OF_GROUP: "ray:2.9.3"}),
        says="rayVersion is 2.55.1; allowed: 2.9.3",
    ),
    invalid(
        "RAY02",
        cluster({"enableInTreeAutoscaling": True, f"{GROUP}/maxReplicas": b.DELETE}),
        says="maxReplicas is unset; allowed: the most",
    ),
    invalid("RAY03", cluster({HEAD_SERVICE: {"spec": {"type": "LoadBalancer"}}}), says="headService.spec.type is LoadBalancer"),
    valid("RAY03", cluster({HEAD_SERVICE: {"spec": {"type": "ClusterIP"}}})),
    valid("RAY03", cluster({HEAD_SERVICE: {"metadata": {"annotations": {"team": "a"}}}})),
)

HEAD_ENV = f"{HEAD}/template/spec/containers/0/env"
GROUP_ENV = f"{GROUP}/template/spec/containers/0/env"
IMAGE_OF_HEAD = f"{HEAD}/template/spec/containers/0/image"
TOKEN = [{"name": "RAY_AUTH_MODE", "value": "token"}]
NO_TOKEN = [{"name": "RAY_AUTH_MODE", "value": "disabled"}]
BY_HAND = {"authOptions": b.DELETE, HEAD_ENV: TOKEN, GROUP_ENV: TOKEN}
IMAGES = (IMAGE_OF_HEAD, IMAGE_OF_GROUP)

CASES += (
    # The variable that the operator sets for authOptions, set by hand.
    valid("RAY03", cluster(BY_HAND)),
    valid("RAY03", cluster({**BY_HAND, "rayVersion": b.DELETE}), edge=True),
    valid("RAY03", job({**BY_HAND, **dict.fromkeys(IMAGES, "registry.example/train:7"), "rayVersion": b.DELETE})),
    valid("RAY03", cluster({**BY_HAND, **dict.fromkeys(IMAGES, "rayproject/ray:2.52.0"), "rayVersion": "2.52.0"}), edge=True),
    invalid("RAY03", cluster({**BY_HAND, IMAGE_OF_HEAD: "rayproject/ray:2.51.1"}), says="image is Ray 2.51.1; allowed: 2.52.0", edge=True),
    invalid(
        "RAY03",
        cluster({**BY_HAND, **dict.fromkeys(IMAGES, "registry.example/train:7"), "rayVersion": "2.51.1"}),
        says="is Ray 2.51.1; allowed: 2.52.0",
    ),
    invalid("RAY03", cluster({**BY_HAND, GROUP_ENV: []}), says="without RAY_AUTH_MODE=token", edge=True),
    invalid("RAY03", cluster({**BY_HAND, HEAD_ENV: NO_TOKEN}), says="headGroupSpec.template.spec.containers[0].env is without"),
    invalid("RAY03", cluster({**BY_HAND, HEAD_ENV: NO_TOKEN, GROUP_ENV: NO_TOKEN}), says="authOptions.mode is unset"),
    invalid("RAY03", cluster({**BY_HAND, HEAD_ENV: [*TOKEN, *NO_TOKEN]}), says="without RAY_AUTH_MODE=token"),
)


def nightly(changes: dict[str, Any] | None = None, template: dict[str, Any] | None = None) -> Thing:
    """A RayCronJob; its RayJobs end as `template` says."""
    job = {"rayClusterSpec": b.changed(_CLUSTER, changes or {}), **({"shutdownAfterJobFinishes": True} if template is None else template)}
    properties = {"metadata": {"name": "nightly", "namespace": "ml"}, "spec": {"schedule": "0 3 * * *", "jobTemplate": job}}
    return Thing(type=tokens.RAY_CRON_JOB, name="nightly", properties=properties)


RAY_CONTAINER = f"{GROUP}/template/spec/containers/0"

CASES += (
    # The API server takes v1alpha1 too, and the operator makes the same pods of it.
    invalid("RAY01", older(cluster({f"{PARAMS}/num-gpus": "5"})), says='num-gpus is 5; allowed: "4"', edge=True),
    invalid("RAY01", older(service({f"{PARAMS}/num-gpus": "8"})), says="spec.rayClusterConfig.workerGroupSpecs[0]"),
    valid("RAY02", older(job(name="a" * 47)), edge=True),
    invalid("RAY02", older(job(name="a" * 48)), says="at most 47 characters", edge=True),
    valid("RAY03", older(cluster(BY_HAND))),
    invalid("RAY03", older(cluster()), says="mode is token; allowed: token in ray.io/v1 (v1alpha1 drops the field): without it", edge=True),
    invalid("RAY03", older(cluster({**BY_HAND, f"{HEAD}/serviceType": "NodePort"})), says="serviceType is NodePort"),
    invalid("RAY04", older(ending({TTL: 600})), says="allowed: true beside ttlSecondsAfterFinished (600)"),
    invalid("KUB01", older(cluster()), says="spec.authOptions is"),
    valid("KUB03", older(cluster())),
    valid("KUB03", older(job())),
    valid("KUB03", older(service())),
    invalid("POD01", older(cluster({f"{RAY_CONTAINER}/securityContext": {"privileged": True}})), says="securityContext.privileged is true"),
    invalid("POD04", older(job({f"{RAY_CONTAINER}/resources/requests": {GPU: 2}})), says="is 2; allowed: 4"),
)

IN_CLUSTER = "spec.jobTemplate.rayClusterSpec"
CASES += (
    # A RayCronJob is judged by the RayJobs that it makes.
    valid("RAY01", nightly()),
    invalid("RAY01", nightly({f"{PARAMS}/num-gpus": "8"}), says=f"nightly: {IN_CLUSTER}.workerGroupSpecs[0].rayStartParams.num-gpus is 8"),
    valid("RAY02", nightly()),
    invalid("RAY02", nightly({f"{GROUP}/minReplicas": 3}), says=f"{IN_CLUSTER}.workerGroupSpecs[0].minReplicas is 3"),
    valid("RAY03", nightly()),
    invalid("RAY03", nightly({f"{HEAD}/serviceType": "NodePort"}), says=f"{IN_CLUSTER}.headGroupSpec.serviceType is NodePort"),
    invalid("RAY03", nightly({"authOptions": b.DELETE}), says="authOptions.mode is unset; allowed: token: without it"),
    valid("RAY04", nightly(), edge=True),
    invalid("RAY04", nightly(template={TTL: 600}), says="spec.jobTemplate.shutdownAfterJobFinishes is unset; allowed: true beside"),
    invalid("POD04", nightly({f"{RAY_CONTAINER}/resources/requests": {GPU: 2}}), says=f"{IN_CLUSTER}.workerGroupSpecs[0].template.spec"),
    valid("KUB03", nightly()),
    # The definition that the facts have is of an earlier release, as is the operator's admission.
    valid("KUB01", nightly({"later": True}), edge=True),
    valid("RAY05", nightly(template={"suspend": True}), edge=True),
)
