"""What a pod's parts refer to, and of what form they are."""

from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_security import pod, variable
from tests.unit.policy.cases.ray import cluster as ray

DATA = {"name": "data", "emptyDir": {}}


def mounting(*mounts: tuple[str, str], volumes: tuple[Any, ...] = (DATA,), **container: Any) -> Thing:
    """A pod that mounts volumes, each by its name at a path."""
    given = [{"name": name, "mountPath": path} for name, path in mounts]
    return pod(container={"volumeMounts": given, **container}, volumes=list(volumes))


def tolerating(**toleration: Any) -> Thing:
    return pod(tolerations=[toleration])


def annotated(value: Any) -> Thing:
    return Thing(type=tokens.POD, name="t", properties=b.changed(pod().properties, {"metadata/annotations": {"note": value}}))


def asking(request: Any, limit: Any, unit: str = "memory") -> Thing:
    return pod(container={"resources": {"requests": {unit: request}, "limits": {unit: limit}}})


def made_for_each(kind: str, owner: str) -> Thing:
    """A set that makes a volume for each of its pods, which mount it."""
    template = {"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}]}}
    key = "workerTemplate" if kind == tokens.LEADER_WORKER_SET else "template"
    spec = {"volumeClaimTemplates": [{"metadata": {"name": "own"}}], key: template}
    return Thing(type=kind, name="set", properties=b.changed({"metadata": {"name": "set"}}, {owner: spec}))


def in_set(mounted: str) -> Thing:
    """A JobSet that makes a volume `own` for the pods of its Jobs."""
    policies = [{"templates": [{"metadata": {"name": "own"}}], "retentionPolicy": {"whenDeleted": "Retain"}}]
    pods = {"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": mounted, "mountPath": "/own"}]}]}}
    groups = [{"name": "trainers", "template": {"spec": {"template": pods}}}]
    spec = {"volumeClaimPolicies": policies, "replicatedJobs": groups}
    return Thing(type=tokens.JOB_SET, name="set", properties={"metadata": {"name": "set"}, "spec": spec})


def mounted_by_worker(name: str) -> Thing:
    return b.mpi_job({f"{b.WORKER_CONTAINER}/volumeMounts": [{"name": name, "mountPath": "/mnt"}]})


def mounted_by_ray(name: str) -> Thing:
    place = "spec/workerGroupSpecs/0/template/spec/containers/0/volumeMounts"
    return Thing(type=tokens.RAY_CLUSTER, name="tune", properties=b.changed(ray().properties, {place: [{"name": name, "mountPath": "/l"}]}))


CASES = (
    valid("POD10", mounting(("data", "/data"))),
    valid("POD10", mounting(("data", "/data"), ("data", "/cache"))),
    valid("POD10", b.mpi_job()),
    valid("POD10", b.volcano_job()),
    valid("POD10", b.pytorch_job()),
    valid("POD10", ray()),
    # Operators and sets make volumes of their own.
    valid("POD10", mounted_by_worker("mpi-job-config")),
    invalid("POD10", mounted_by_worker("dataset"), says="is dataset"),
    valid("POD10", mounted_by_ray("ray-logs")),
    invalid("POD10", mounted_by_ray("mpi-job-config"), says="is mpi-job-config", edge=True),
    valid("POD10", made_for_each(tokens.STATEFUL_SET, "spec")),
    valid("POD10", made_for_each(tokens.LEADER_WORKER_SET, "spec/leaderWorkerTemplate")),
    invalid("POD10", made_for_each(tokens.DEPLOYMENT, "spec"), says="is own"),
    valid("POD10", in_set("own")),
    invalid("POD10", in_set("others"), says="is others; allowed: one of the pod's volumes, which are own"),
    invalid("POD10", mounting(("dataset", "/data")), says="one of the pod's volumes, which are data"),
    invalid("POD10", mounting(("data", "/data"), volumes=()), says="which are none"),
    invalid("POD10", mounting(("data", "/data"), ("data", "/data")), says="volumeMounts[1].mountPath is /data", edge=True),
    invalid("POD10", pod(container={"volumeMounts": [{"name": "data", "mountpath": "/d"}]}, volumes=[DATA]), says="mountPath is unset"),
    invalid("POD10", mounting(volumes=(DATA, {"name": "data"})), says="volumes[1].name is data"),
    valid("POD10", mounting(volumes=(DATA, {"name": "data2"})), edge=True),
    # A container and one that starts before it share a list of names.
    invalid("POD10", pod(initContainers=[{"name": "main"}]), says="another container has it"),
    valid("POD10", pod(initContainers=[{"name": "main-first"}]), edge=True),
    invalid("POD10", pod(container={"name": "Trainer_1"}), says="containers[0].name is Trainer_1; allowed: at most 63"),
    invalid("POD10", pod(container={"name": "a" * 64}), says="at most 63 lower-case", edge=True),
    valid("POD10", pod(container={"name": "a" * 63}), edge=True),
    invalid("POD10", mounting(volumes=({"name": "data.cache"},)), says="volumes[0].name is data.cache"),
    # Texts.
    invalid("POD10", variable("OMP_NUM_THREADS", value=8), says="env[0].value is 8 (number)"),
    valid("POD10", variable("OMP_NUM_THREADS", value="8"), edge=True),
    invalid("POD10", variable("DEBUG", value=True), says="is true (boolean)"),
    valid("POD10", variable("DEBUG", value="true")),
    valid("POD10", variable("EMPTY", value="")),
    valid("POD10", variable("EMPTY")),
    invalid("POD10", annotated(True), says="annotations.note is true (boolean)"),
    valid("POD10", annotated("true"), edge=True),
    invalid("POD10", annotated(3), says="annotations.note is 3 (number)"),
    invalid("POD10", pod(nodeSelector={"gpu": True}), says="nodeSelector.gpu is true"),
    invalid("POD10", pod(container={"args": ["--epochs", 3]}), says="args[1] is 3"),
    invalid("POD10", pod(container={"command": ["sleep", 1.5]}), says="command[1] is 1.5"),
    valid("POD10", pod(container={"args": ["--epochs", "3"]}), edge=True),
    # Variables.
    invalid("POD10", variable("X", value="1", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}), says="is both, for X"),
    valid("POD10", variable("X", value="", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}), edge=True),
    invalid("POD10", variable("X", valueFrom={"fieldRef": {"fieldPath": "status.podIp"}}), says="is status.podIp"),
    valid("POD10", variable("X", valueFrom={"fieldRef": {"fieldPath": "status.podIP"}}), edge=True),
    valid(
        "POD10", variable("X", valueFrom={"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}})
    ),
    invalid("POD10", variable("X", valueFrom={"fieldRef": {"fieldPath": "metadata.labels.app"}}), says="is metadata.labels.app"),
    # Tolerations.
    invalid("POD10", tolerating(key=GPU, operator="Exists", value="true"), says="value is true"),
    valid("POD10", tolerating(key=GPU, operator="Exists", value=""), edge=True),
    valid("POD10", tolerating(key=GPU, operator="Equal", value="true")),
    valid("POD10", tolerating(key=GPU, value="true", effect="NoSchedule")),
    valid("POD10", tolerating(operator="Exists")),
    invalid("POD10", tolerating(effect="NoSchedule"), says="operator is unset"),
    invalid("POD10", tolerating(key=GPU, operator="Exist"), says="operator is Exist"),
    # Requests and limits.
    invalid("POD10", asking("64Gi", "32Gi"), says="requests.memory is 64Gi"),
    valid("POD10", asking("1024Mi", "1Gi"), edge=True),
    invalid("POD10", asking("1025Mi", "1Gi"), says="at most 1Gi", edge=True),
    invalid("POD10", asking("2", "1500m", "cpu"), says="at most 1500m"),
    valid("POD10", pod(container={"resources": {"requests": {"memory": "64Gi"}}})),
    # Users.
    invalid("POD10", pod(container={"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}), says="runAsUser is 0"),
    valid("POD10", pod(container={"securityContext": {"runAsNonRoot": True, "runAsUser": 1}}), edge=True),
    valid("POD10", pod(container={"securityContext": {"runAsNonRoot": False, "runAsUser": 0}})),
)
