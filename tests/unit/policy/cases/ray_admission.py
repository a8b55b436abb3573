"""What KubeRay's operator refuses."""

from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.ray import GROUP, HEAD, cluster, ending, job, service

SHUTDOWN: dict[str, Any] = {"shutdownAfterJobFinishes": True}
SELECTOR = {"clusterSelector": {"team": "a"}}
SHARED = {"clusterSelector": {"ray.io/cluster": "shared"}}
HEAD_PODS, GROUP_PODS = f"{HEAD}/template/spec", f"{GROUP}/template/spec"
OPTIONS = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}
SCALED = {"enableInTreeAutoscaling": True}
AUTOSCALED = cluster(SCALED).properties["spec"]
V2 = {**SCALED, "autoscalerOptions": {"version": "v2"}}


def running(**variables: str) -> dict[str, Any]:
    """Changes that give the head's container these variables."""
    return {f"{HEAD_PODS}/containers/0/env": [{"name": name, "value": value} for name, value in variables.items()]}


def restarting(policy: str) -> dict[str, Any]:
    """A cluster of a job's own whose head's pod restarts so."""
    return {"rayClusterSpec": cluster({f"{HEAD_PODS}/restartPolicy": policy}).properties["spec"]}


def noted(changes: dict[str, Any] | None = None, **annotations: str) -> Thing:
    return Thing(
        type=tokens.RAY_CLUSTER,
        name="tune",
        properties={**cluster(changes).properties, "metadata": {"name": "tune", "annotations": dict(annotations)}},
    )


def deleting(*rules: tuple[str, int | None], ends: dict[str, Any] | None = None, **spec: Any) -> Thing:
    waits = [{} if wait is None else {"ttlSeconds": wait} for _, wait in rules]
    written = [{"policy": rule[0], "condition": {"jobStatus": "SUCCEEDED", **wait}} for rule, wait in zip(rules, waits, strict=True)]
    return ending({"deletionStrategy": {"deletionRules": written, **(ends or {})}, **spec})


def after(success: str | None, failure: str | None, *, own: bool = True, **spec: Any) -> Thing:
    ends = {"onSuccess": success, "onFailure": failure}
    strategy = {name: {"policy": policy} for name, policy in ends.items() if policy}
    return ending({"deletionStrategy": strategy, **spec}, own=own)


def upgrading(options: dict[str, Any] | None, *, scaled: bool = True, kind: str = "NewClusterWithIncrementalUpgrade") -> Thing:
    base = service(SCALED if scaled else {})
    strategy = {"type": kind, **({"clusterUpgradeOptions": options} if options is not None else {})}
    return Thing(type=base.type, name=base.name, properties=b.changed(base.properties, {"spec/upgradeStrategy": strategy}))


def draining(seconds: int) -> Thing:
    """A service whose old cluster stays for so long after an upgrade."""
    base = service()
    return Thing(type=base.type, name=base.name, properties=b.changed(base.properties, {"spec/rayClusterDeletionDelaySeconds": seconds}))


def timed(text: str) -> Thing:
    base = service()
    return Thing(type=base.type, name=base.name, properties=b.changed(base.properties, {"metadata/annotations": {TIMEOUT: text}}))


TIMEOUT = "ray.io/initializing-timeout"
OVERWRITTEN = {"annotations": {"ray.io/overwrite-container-cmd": "true"}}
GRADUAL = {"stepSizePercent": 10, "intervalSeconds": 30, "gatewayClassName": "istio"}
NO_POLICY = {"deletionStrategy": {"onSuccess": {}, "onFailure": {"policy": "DeleteSelf"}}}


def grouped(*names: str | None) -> dict[str, Any]:
    """Worker groups of these names."""
    groups = [b.changed(cluster().properties["spec"]["workerGroupSpecs"][0], {"groupName": name}) for name in names]
    return {"workerGroupSpecs": groups}


def told(name: str, text: Any, changes: dict[str, Any] | None = None) -> Thing:
    """A cluster whose workers' Ray starts with a parameter."""
    return cluster({f"{GROUP}/rayStartParams": {name: text}, **(changes or {})})


WORKER = f"{GROUP_PODS}/containers/0"
CORES = {f"{WORKER}/resources/limits": {"aws.amazon.com/neuroncore": 2}}

CASES = (
    valid("RAY05", cluster(grouped("small", "large"))),
    valid("RAY05", cluster(grouped("small", "Small")), edge=True),
    invalid("RAY05", cluster(grouped("a", "b", "a")), says="workerGroupSpecs[2].groupName is a; allowed: a name of its own"),
    invalid("RAY05", job(grouped("a", "a")), says="rayClusterSpec.workerGroupSpecs[1].groupName is a"),
    invalid("RAY05", service(grouped("a", "a")), says="rayClusterConfig.workerGroupSpecs[1].groupName is a"),
    # KubeRay writes the text behind --name= into a line of bash.
    valid("RAY05", told("resources", """'{"disk": 1}'""")),
    valid("RAY05", told("resources", r'"{\"disk\": 1, \"fast\": 0.5}"')),
    valid("RAY05", told("resources", r"{\"disk\":1}"), edge=True),
    valid("RAY05", told("node-ip-address", "$MY_POD_IP")),
    valid("RAY05", told("temp-dir", "'/tmp/ray data'")),
    valid("RAY05", told("object-store-memory", "1000000000")),
    valid("RAY05", told("no-monitor", "true")),
    valid("RAY05", told("resources", '{"disk": 1}', CORES), edge=True),
    valid("RAY05", told("resources", '{"disk": 1}', {f"{WORKER}/command": ["bash", "-c", "ray start --block"]}), edge=True),
    valid("RAY05", told("resources", '{"disk": 1}', {f"{GROUP}/template/metadata": OVERWRITTEN}), edge=True),
    invalid("RAY05", told("resources", '{"disk": 1}'), says="""one word of bash, such as '{"disk": 1}' with quotes of its own"""),
    invalid("RAY05", told("resources", '{"disk":1}'), says="""in quotes that bash takes off, such as '{"disk":1}'""", edge=True),
    invalid("RAY05", told("resources", """'{"disk": "1"}'"""), says="JSON, a number for each name"),
    invalid("RAY05", told("resources", """'{"disk": true}'"""), says="JSON, a number for each name", edge=True),
    invalid("RAY05", told("resources", "disk=1"), says="JSON, a number for each name"),
    invalid("RAY05", told("resources", """'{"disk": 1}"""), says="one word of bash"),
    invalid("RAY05", told("resources", '{"neuron_cores": 2}', CORES), says="one word of bash", edge=True),
    invalid("RAY05", told("system-config", '{"a":1}'), says="""JSON in quotes that bash takes off, such as '{"a":1}'"""),
    invalid("RAY05", told("temp-dir", "/tmp/ray data"), says="such as '/tmp/ray data' with quotes of its own"),
    invalid("RAY05", told("temp-dir", " /tmp/ray"), says="one word of bash", edge=True),
    invalid("RAY05", told("temp-dir", "/tmp/ray;ls"), says="one word of bash", edge=True),
    invalid("RAY05", cluster({f"{HEAD}/rayStartParams/redis-password": "a b"}), says="redis-password is several (not shown)"),
    invalid("RAY05", job({f"{HEAD}/rayStartParams/temp-dir": "a b"}), says="rayClusterSpec.headGroupSpec.rayStartParams.temp-dir is a b"),
    valid("RAY05", cluster()),
    valid("RAY05", job()),
    valid("RAY05", service()),
    valid("RAY05", ending({"suspend": True, **SHUTDOWN})),
    valid("RAY05", ending(own=False)),
    valid("RAY05", ending({"backoffLimit": 0, "ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 1}), edge=True),
    invalid("RAY05", ending({"suspend": True}), says="suspend is true; allowed: true only beside shutdownAfterJobFinishes"),
    invalid("RAY05", ending({"suspend": True, **SHUTDOWN}, own=False), says="suspend is true; allowed: false for a job on a cluster"),
    invalid("RAY05", ending({"ttlSecondsAfterFinished": -1}), says="ttlSecondsAfterFinished is -1; allowed: at least 0", edge=True),
    invalid("RAY05", ending({"backoffLimit": -1}), says="backoffLimit is -1; allowed: at least 0", edge=True),
    invalid("RAY05", ending({"activeDeadlineSeconds": 0}), says="activeDeadlineSeconds is 0; allowed: at least 1", edge=True),
    invalid("RAY05", ending({"rayClusterSpec": None}), says="rayClusterSpec is unset; allowed: a cluster to make"),
    invalid("RAY05", ending(SELECTOR), says='clusterSelector["ray.io/cluster"] is unset'),
    invalid("RAY05", ending({"submissionMode": "InteractiveMode", "backoffLimit": 1}), says="backoffLimit is 1; allowed: 0", edge=True),
    valid("RAY05", ending({"submissionMode": "InteractiveMode", "backoffLimit": 0}), edge=True),
    valid("RAY05", ending({"submissionMode": "K8sJobMode", "submitterPodTemplate": {"spec": {}}})),
    invalid("RAY05", ending({"submissionMode": "SidecarMode", "submitterPodTemplate": {"spec": {}}}), says="submitterPodTemplate is set"),
    invalid("RAY05", ending({"submissionMode": "SidecarMode", "submitterConfig": {}}), says="submitterConfig is set"),
    invalid("RAY05", ending({"submissionMode": "SidecarMode"}, own=False), says="clusterSelector is set; allowed: unset in SidecarMode"),
    valid("RAY05", ending({"submissionMode": "SidecarMode", **restarting("Never")})),
    invalid(
        "RAY05",
        ending({"submissionMode": "SidecarMode", **restarting("OnFailure")}),
        says="spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy is OnFailure; allowed: Never in SidecarMode",
    ),
    valid("RAY05", ending(restarting("OnFailure"))),
    valid("RAY05", ending({"runtimeEnvYAML": "pip: [torch]\n"})),
    valid("RAY05", ending({"runtimeEnvYAML": ""})),
    invalid("RAY05", ending({"runtimeEnvYAML": "pip: [torch"}), says="runtimeEnvYAML is no valid YAML"),
    invalid("RAY05", ending({"runtimeEnvYAML": "torch"}), says="runtimeEnvYAML is torch; allowed: a mapping"),
    invalid("RAY05", deleting(("DeleteCluster", 60)), says="deletionStrategy is set; allowed: set only with the operator's feature gate"),
    invalid("RAY05", deleting(("DeleteCluster", 60), **SHUTDOWN), says="shutdownAfterJobFinishes is true; allowed: unset beside"),
    invalid("RAY05", deleting(("DeleteCluster", 60), ("DeleteWorkers", 90)), says="waits of [90, 60] s; allowed: workers first"),
    invalid(
        "RAY05", deleting(("DeleteSelf", 60), ("DeleteSelf", 60)), says="policy is DeleteSelf; allowed: each policy once for SUCCEEDED"
    ),
    invalid("RAY05", deleting(("DeleteSelf", -1)), says="ttlSeconds is -1; allowed: at least 0"),
    invalid("RAY05", deleting(("DeleteSelf", 0)), says="deletionStrategy is set; allowed: set only with the operator's", edge=True),
    invalid("RAY05", deleting(("DeleteWorkers", None), ("DeleteCluster", 0)), says="deletionStrategy is set; allowed: set only", edge=True),
    invalid("RAY05", deleting(("DeleteWorkers", 1), ("DeleteCluster", None)), says="waits of [1, 0] s; allowed: workers first", edge=True),
    invalid("RAY05", deleting(("DeleteCluster", 60), **SHARED), says="deletionRules[0].policy is DeleteCluster; allowed: DeleteSelf or"),
    invalid(
        "RAY05",
        deleting(("DeleteWorkers", 60), ("DeleteCluster", 90), rayClusterSpec=AUTOSCALED),
        says="deletionRules[0].policy is DeleteWorkers; allowed: no DeleteWorkers with autoscaling",
    ),
    invalid("RAY05", deleting(("DeleteCluster", 60), rayClusterSpec=AUTOSCALED), says="deletionStrategy is set; allowed: set only"),
    invalid("RAY05", after("DeleteWorkers", "DeleteSelf"), says="deletionStrategy is set; allowed: set only with the operator's"),
    invalid(
        "RAY05",
        deleting(("DeleteSelf", 60), ends={"onSuccess": {"policy": "DeleteSelf"}}),
        says="onSuccess is set; allowed: unset beside deletionRules",
    ),
    invalid("RAY05", after("DeleteSelf", "DeleteNone", **SHUTDOWN), says="onFailure.policy is DeleteNone; allowed: a policy that deletes"),
    invalid("RAY05", after("DeleteSelf", None), says="onFailure.policy is unset; allowed: set for success and failure"),
    invalid("RAY05", after("DeleteCluster", "DeleteSelf", own=False), says="onSuccess.policy is DeleteCluster; allowed: DeleteSelf or"),
    invalid("RAY05", ending(NO_POLICY), says="onSuccess.policy is unset"),
    invalid("RAY05", ending({"deletionStrategy": {}}), says="deletionStrategy is empty; allowed: deletionRules, or"),
    invalid(
        "RAY05", cluster({f"{HEAD_PODS}/containers": []}), says="headGroupSpec.template.spec.containers is none; allowed: at least one"
    ),
    invalid("RAY05", job({f"{GROUP_PODS}/containers": []}), says="rayClusterSpec.workerGroupSpecs[0].template.spec.containers is none"),
    invalid("RAY05", cluster({f"{GROUP}/rayStartParams/labels": "a=b"}), says="rayStartParams.labels is a=b; allowed: unset"),
    invalid("RAY05", cluster({f"{GROUP}/labels": {"a": "b c"}}), says="labels.a is a: b c; allowed: a key and a value"),
    valid("RAY05", cluster({f"{GROUP}/labels": {"ray.io/zone": "us-east-1a", "a": ""}})),
    valid("RAY05", cluster(OPTIONS)),
    invalid("RAY05", cluster(running(RAY_REDIS_ADDRESS="r:6379")), says="env[0] is RAY_REDIS_ADDRESS in the head's environment"),
    valid("RAY05", noted(running(RAY_REDIS_ADDRESS="r:6379"), **{"ray.io/ft-enabled": "True"})),
    invalid(
        "RAY05", noted(OPTIONS, **{"ray.io/ft-enabled": "true"}), says='annotations["ray.io/ft-enabled"] is true; allowed: unset beside'
    ),
    invalid("RAY05", noted(OPTIONS, **{"ray.io/external-storage-namespace": "a"}), says="is a; allowed: unset beside gcsFaultTolerance"),
    invalid("RAY05", cluster({**OPTIONS, **running(REDIS_PASSWORD="x")}), says="REDIS_PASSWORD in the head's environment"),
    invalid("RAY05", cluster({**OPTIONS, f"{HEAD}/rayStartParams/redis-password": "$X"}), says="redis-password is set (not shown)"),
    invalid("RAY05", cluster({f"{HEAD}/rayStartParams/redis-username": "ray"}), says="redis-username is ray; allowed: gcsFaultTolerance"),
    invalid("RAY05", cluster(running(REDIS_USERNAME="ray")), says="REDIS_USERNAME in the head's environment"),
    invalid("RAY05", cluster({f"{GROUP}/suspend": True}), says="suspend is true; allowed: true only with the operator's feature gate"),
    invalid("RAY05", cluster({f"{GROUP}/suspend": True, **SCALED}), says="suspend is true; allowed: false with autoscaling"),
    valid("RAY05", cluster({f"{GROUP}/suspend": False})),
    invalid("RAY05", cluster(running(RAY_enable_autoscaler_v2="1")), says="RAY_enable_autoscaler_v2=1; allowed: unset without"),
    invalid("RAY05", cluster(running(RAY_LOG_TO_STDERR="1", RAY_enable_autoscaler_v2="true")), says="env[1] is RAY_enable_autoscaler_v2"),
    valid("RAY05", cluster(running(RAY_enable_autoscaler_v2="0")), edge=True),
    valid("RAY05", cluster({**SCALED, **running(RAY_enable_autoscaler_v2="1")})),
    invalid("RAY05", cluster({**V2, **running(RAY_enable_autoscaler_v2="1")}), says="RAY_enable_autoscaler_v2 beside it"),
    valid("RAY05", cluster({**V2, f"{HEAD_PODS}/restartPolicy": "Never"})),
    invalid("RAY05", cluster({**V2, f"{HEAD_PODS}/restartPolicy": "Always"}), says="headGroupSpec.template.spec.restartPolicy is Always"),
    invalid("RAY05", cluster({**V2, f"{GROUP_PODS}/restartPolicy": "OnFailure"}), says="restartPolicy is OnFailure; allowed: Never"),
    valid("RAY05", cluster({**SCALED, f"{GROUP_PODS}/restartPolicy": "Always"}), edge=True),
    invalid("RAY05", service({f"{HEAD}/headService": {"metadata": {"name": "mine"}}}), says="headService.metadata.name is mine"),
    valid("RAY05", draining(0), edge=True),
    invalid("RAY05", draining(-1), says="spec.rayClusterDeletionDelaySeconds is -1; allowed: at least 0", edge=True),
    valid("RAY05", upgrading(GRADUAL)),
    valid("RAY05", upgrading(None, kind="NewCluster")),
    invalid("RAY05", upgrading(None, kind="Rolling"), says="upgradeStrategy.type is Rolling; allowed: NewCluster, NewClusterWith"),
    invalid("RAY05", upgrading(GRADUAL, scaled=False), says="only with enableInTreeAutoscaling"),
    invalid("RAY05", upgrading(None), says="clusterUpgradeOptions is unset; allowed: set with"),
    invalid("RAY05", upgrading({**GRADUAL, "stepSizePercent": 101}), says="stepSizePercent is 101; allowed: 0 to 100", edge=True),
    valid("RAY05", upgrading({**GRADUAL, "stepSizePercent": 100}), edge=True),
    invalid("RAY05", upgrading({**GRADUAL, "stepSizePercent": None}), says="stepSizePercent is unset; allowed: 0 to 100"),
    valid("RAY05", upgrading({**GRADUAL, "maxSurgePercent": 0}), edge=True),
    invalid("RAY05", upgrading({**GRADUAL, "maxSurgePercent": -1}), says="maxSurgePercent is -1; allowed: 0 to 100", edge=True),
    invalid("RAY05", upgrading({**GRADUAL, "maxSurgePercent": 101}), says="maxSurgePercent is 101; allowed: 0 to 100", edge=True),
    valid("RAY05", upgrading({**GRADUAL, "intervalSeconds": 1}), edge=True),
    invalid("RAY05", upgrading({**GRADUAL, "intervalSeconds": 0}), says="intervalSeconds is 0; allowed: above 0", edge=True),
    invalid("RAY05", upgrading({**GRADUAL, "gatewayClassName": ""}), says="the GatewayClass that shifts the traffic"),
    valid("RAY05", timed("1h30m")),
    valid("RAY05", timed("600")),
    invalid("RAY05", timed("0s"), says="is 0s; allowed: a duration such as 30m", edge=True),
    invalid("RAY05", timed("soon"), says="is soon; allowed: a duration such as 30m"),
)

QUEUED = {"kueue.x-k8s.io/queue-name": "team-a"}


def queued(thing: Thing, **annotations: str) -> Thing:
    """The same in a queue of Kueue."""
    metadata = {"metadata/labels": QUEUED, "metadata/annotations": annotations}
    return Thing(type=thing.type, name=thing.name, properties=b.changed(thing.properties, metadata))


CASES += (
    valid("RAY05", queued(cluster())),
    valid("RAY05", queued(ending(SHUTDOWN))),
    invalid("RAY05", queued(ending()), says="shutdownAfterJobFinishes is unset; allowed: true in a queue of Kueue"),
    valid("RAY05", ending(), edge=True),
    # Kueue leaves a job on a cluster that is there alone.
    valid("RAY05", queued(Thing(type=tokens.RAY_JOB, name="t", properties={"spec": SHARED})), edge=True),
    invalid("RAY05", queued(cluster(SCALED)), says="enableInTreeAutoscaling is true; allowed: false in a queue of Kueue"),
    valid("RAY04", queued(ending())),
    valid("RAY04", queued(ending({"ttlSecondsAfterFinished": 600})), edge=True),
    invalid("RAY04", queued(ending({"ttlSecondsAfterFinished": 600}, own=False)), says="true beside ttlSecondsAfterFinished", edge=True),
    valid("RAY05", queued(cluster(SCALED), **{"kueue.x-k8s.io/elastic-job": "true"}), edge=True),
    invalid("RAY05", queued(cluster({f"{GROUP}/groupName": "head"})), says="groupName is head"),
    valid("RAY05", cluster({f"{GROUP}/groupName": "head"}), edge=True),
)
