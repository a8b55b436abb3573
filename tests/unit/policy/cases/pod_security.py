"""Pods: what they may do on the host, and secrets written into them."""

from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid


def pod(*, kind: str = tokens.POD, name: str = "trainer", container: dict[str, Any] | None = None, **spec: Any) -> Thing:
    """A pod (or a Deployment or DaemonSet of such pods) with one container."""
    main = {"name": "main", "image": "registry.example/trainer:9f2c4d1", **(container or {})}
    body = {"containers": [main], **spec}
    inner = body if kind == tokens.POD else {"template": {"spec": body}}
    return Thing(type=kind, name=name, properties={"metadata": {"name": name}, "spec": inner})


def variable(name: str, **source: Any) -> Thing:
    return pod(container={"env": [{"name": name, **source}]})


def config_map(**data: str) -> Thing:
    return Thing(type=tokens.CONFIG_MAP, name="settings", properties={"metadata": {"name": "settings"}, "data": data})


def held(kind: str, place: str) -> Thing:
    """A privileged container at a place of a resource's spec."""
    spec = b.changed({}, {f"{place}/securityContext": {"privileged": True}})
    return Thing(type=kind, name="held", properties={"metadata": {"name": "held"}, "spec": spec})


def listed(kind: str, place: str) -> Thing:
    """The same in a pod spec at a place of a resource's spec."""
    container = {"name": "main", "securityContext": {"privileged": True}}
    return Thing(
        type=kind, name="held", properties={"metadata": {"name": "held"}, "spec": b.changed({}, {f"{place}/containers": [container]})}
    )


def in_list(kind: str, key: str, place: str) -> Thing:
    container = {"name": "main", "securityContext": {"privileged": True}}
    member = b.changed({}, {f"{place}/containers": [container]})
    return Thing(type=kind, name="held", properties={"metadata": {"name": "held"}, "spec": {key: [member]}})


SCALED = Thing(
    type=tokens.RAY_CLUSTER,
    name="held",
    properties={"spec": {"enableInTreeAutoscaling": True, "autoscalerOptions": {"securityContext": {"privileged": True}}}},
)
UNSCALED = Thing(
    type=tokens.RAY_CLUSTER,
    name="held",
    properties={"spec": {"enableInTreeAutoscaling": False, "autoscalerOptions": {"securityContext": {"privileged": True}}}},
)


def shell(line: str) -> Thing:
    return pod(container={"command": ["bash", "-c", line]})


def slurmd(container: dict[str, Any]) -> Thing:
    return Thing(type=tokens.NODE_SET, name="gpu", properties={"metadata": {"name": "gpu"}, "spec": {"slurmd": container}})


PRIVILEGED = {"securityContext": {"privileged": True}}
KUBELET = [{"name": "pods", "hostPath": {"path": "/var/lib/kubelet/pods"}}]
PGP = "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----"


KEY = "AKIA" + "ABCDEFGHIJ234567"
HUB = "hf_" + "a1B2c3D4e5" * 4
PEM = "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIE"

CASES = (
    valid("POD01", pod()),
    valid("POD01", pod(container={"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}})),
    valid("POD01", pod(hostNetwork=False, volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}])),
    valid("POD01", pod(kind=tokens.DAEMON_SET, name="efa-aws-efa-k8s-device-plugin", container={"securityContext": {"privileged": True}})),
    valid("POD01", b.mpi_job()),
    valid("POD01", pod(kind=tokens.DAEMON_SET, name="aws-node", hostNetwork=True), edge=True),
    valid("POD01", pod(kind=tokens.DAEMON_SET, name="csi-secrets-store", container=PRIVILEGED)),
    valid("POD01", pod(kind=tokens.DAEMON_SET, name="csi-secrets-store-provider-aws", volumes=KUBELET)),
    valid("POD01", pod(kind=tokens.DAEMON_SET, name="csi-secrets-store-secrets-store-csi-driver", container=PRIVILEGED)),
    valid("POD01", pod(kind=tokens.DEPLOYMENT, name="efs-csi-controller", container=PRIVILEGED), edge=True),
    invalid("POD01", pod(kind=tokens.DEPLOYMENT, name="my-efs-csi-controller", container=PRIVILEGED), says="privileged is true", edge=True),
    invalid("POD01", pod(kind=tokens.STATEFUL_SET, name="efs-csi-controller", container=PRIVILEGED), says="privileged is true", edge=True),
    invalid("POD01", pod(kind=tokens.DAEMON_SET, name="secrets-store", volumes=KUBELET), says="hostPath is /var/lib/kubelet"),
    invalid(
        "POD01", pod(kind=tokens.DAEMON_SET, name="node-tuner", hostNetwork=True), says="spec.template.spec.hostNetwork is true", edge=True
    ),
    invalid("POD01", pod(kind=tokens.DEPLOYMENT, name="aws-node", hostPID=True), says="hostPID is true"),
    invalid("POD01", pod(hostIPC=True), says="spec.hostIPC is true; allowed: false"),
    invalid("POD01", pod(volumes=[{"name": "shm", "hostPath": {"path": "/dev/shm"}}]), says="volumes[0].hostPath is /dev/shm"),
    invalid("POD01", pod(container={"securityContext": {"privileged": True}}), says="containers[0].securityContext.privileged is true"),
    invalid("POD01", pod(initContainers=[{"name": "i", "securityContext": {"allowPrivilegeEscalation": True}}]), says="initContainers[0]"),
    invalid(
        "POD01", b.volcano_job({f"{b.TASK_CONTAINER}/securityContext": {"privileged": True}}), says="tasks[0].template.spec.containers[0]"
    ),
    valid("POD02", variable("HF_TOKEN", valueFrom={"secretKeyRef": {"name": "hub", "key": "token"}})),
    valid("POD02", variable("PAD_TOKEN", value="<pad>")),
    valid("POD02", variable("TOKENIZERS_PARALLELISM", value="false")),
    valid("POD02", variable("DB_PASSWORD", value="$(FROM_SECRET)")),
    valid("POD02", variable("USE_AUTH_TOKEN", value="true")),
    valid("POD02", variable("WANDB_API_KEY_FILE", value="/secrets/wandb")),
    valid("POD02", config_map(script="export HF_HOME=/cache\npython3 train.py")),
    valid("POD02", variable("MODEL_ID", value="hf_short"), edge=True),
    invalid("POD02", variable("HF_TOKEN", value="not-a-real-token"), says="a literal in HF_TOKEN (not shown)"),
    invalid("POD02", variable("WANDB_API_KEY", value="0123456789"), says="env[0].value is a literal in WANDB_API_KEY"),
    invalid("POD02", variable("db_password", value="hunter"), says="db_password (not shown)"),
    invalid("POD02", variable("ANYTHING", value=f"id={KEY}"), says="an AWS access key id (not shown)"),
    invalid("POD02", pod(container={"args": ["--token", HUB]}), says="args[1] is a Hugging Face token"),
    invalid("POD02", config_map(key=PEM), says="data.key is a private key (not shown)"),
    invalid(
        "POD02", b.mpi_job({f"{b.WORKER_CONTAINER}/env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "abc"}]}), says="AWS_SECRET_ACCESS_KEY"
    ),
    invalid("POD02", variable("MODEL_ID", value="hf_" + "a" * 30), says="a Hugging Face token", edge=True),
    invalid("POD01", listed(tokens.REPLICA_SET, "template/spec"), says="spec.template.spec.containers[0].securityContext"),
    invalid("POD01", listed(tokens.REPLICATION_CONTROLLER, "template/spec"), says="spec.template.spec.containers[0]"),
    invalid("POD01", listed(tokens.RAY_SERVICE, "rayClusterConfig/headGroupSpec/template/spec"), says="rayClusterConfig.headGroupSpec"),
    invalid("POD01", listed(tokens.RAY_JOB, "submitterPodTemplate/spec"), says="spec.submitterPodTemplate.spec.containers[0]"),
    invalid(
        "POD01", listed(tokens.LEADER_WORKER_SET, "leaderWorkerTemplate/leaderTemplate/spec"), says="leaderTemplate.spec.containers[0]"
    ),
    invalid(
        "POD01", listed(tokens.LEADER_WORKER_SET, "leaderWorkerTemplate/workerTemplate/spec"), says="workerTemplate.spec.containers[0]"
    ),
    invalid("POD01", in_list(tokens.JOB_SET, "replicatedJobs", "template/spec/template/spec"), says="replicatedJobs[0].template.spec"),
    invalid("POD01", held(tokens.NODE_SET, "logfile"), says="spec.logfile.securityContext.privileged is true"),
    invalid("POD01", held(tokens.LOGIN_SET, "login"), says="spec.login.securityContext.privileged is true"),
    invalid("POD01", held(tokens.LOGIN_SET, "initconf"), says="spec.initconf.securityContext"),
    invalid("POD01", held(tokens.SLURM_CONTROLLER, "slurmctld"), says="spec.slurmctld.securityContext"),
    invalid("POD01", held(tokens.SLURM_CONTROLLER, "reconfigure"), says="spec.reconfigure.securityContext"),
    invalid("POD01", held(tokens.SLURM_CONTROLLER, "logfile"), says="spec.logfile.securityContext"),
    invalid("POD01", SCALED, says="spec.autoscalerOptions.securityContext.privileged is true", edge=True),
    valid("POD01", UNSCALED, edge=True),
    valid("POD01", held(tokens.NODE_SET, "slurmd")),
    invalid("POD02", variable("PGPASSWORD", value="hunter2"), says="a literal in PGPASSWORD"),
    invalid("POD02", variable("MYSQL_PWD", value="hunter2"), says="a literal in MYSQL_PWD"),
    invalid("POD02", config_map(HF_TOKEN="x12345"), says="data.HF_TOKEN is a literal in HF_TOKEN (not shown)"),
    invalid("POD02", config_map(**{"db-password": "hunter2"}), says="a literal in db-password"),
    invalid("POD02", shell("export DB_PASSWORD=hunter2; python3 train.py"), says="command[2] is a literal in DB_PASSWORD"),
    invalid("POD02", shell("HF_TOKEN='x12345' python3 train.py"), says="command[2] is a literal in HF_TOKEN"),
    invalid("POD02", config_map(start="#!/bin/sh\nexport db_password=hunter2\n"), says="data.start is a literal in db_password"),
    invalid("POD02", config_map(key=PGP), says="data.key is a private key (not shown)"),
    invalid("POD02", slurmd({"env": [{"name": "HF_TOKEN", "value": "x12345"}]}), says="spec.slurmd.env[0].value is a literal"),
    invalid("POD02", slurmd({"args": [HUB]}), says="spec.slurmd.args[0] is a Hugging Face token"),
    valid("POD02", variable("PWD", value="/workspace")),
    valid("POD02", variable("DB_PASSWORD", value="")),
    valid("POD02", variable("DB_PASSWORD", value="${FROM_SECRET}")),
    valid("POD02", variable("AUTH_TOKEN", value="Bearer $(FROM_SECRET)"), edge=True),
    valid("POD02", variable("AUTH_TOKEN", value="/var/run/secrets/token")),
    valid("POD02", variable("DB_SECRET", value="arn:aws:secretsmanager:us-east-1:123456789012:secret:db")),
    valid("POD02", variable("MAX_TOKEN", value="131072")),
    valid("POD02", config_map(HF_TOKEN="/secrets/hub", PAD_TOKEN="<pad>")),
    valid("POD02", config_map(credentials="[default]\nrole_arn = arn:aws:iam::123456789012:role/train\n")),
    valid("POD02", shell('export HF_TOKEN="$(cat /secrets/hub)" DB_PASSWORD=$FROM_SECRET')),
    valid("POD02", shell("python3 train.py --db-password-file=/secrets/db token=abc")),
    valid("POD02", config_map(script="TOKEN=os.environ['HF_TOKEN']\npassword=read()\n"), edge=True),
    valid("POD02", config_map(start="#!/bin/sh\n# usage: HF_TOKEN=hf_abc ./start\npython3 train.py\n")),
    invalid("POD02", config_map(start="# start\nHF_TOKEN=abc ./train\n"), says="data.start is a literal in HF_TOKEN", edge=True),
    valid("POD02", variable("HF_TOKEN", value="xxxx")),
    valid("POD02", variable("OPENAI_API_KEY", value="dummy")),
    valid("POD02", variable("OPENAI_API_KEY", value="EMPTY")),
    valid("POD02", variable("HF_TOKEN", value="PLACEHOLDER_HF_TOKEN")),
    valid("POD02", variable("HF_TOKEN", value="<your token>"), edge=True),
    valid("POD02", variable("OPENAI_API_KEY", value="not-needed")),
    valid("POD02", variable("WANDB_API_KEY", value="changeme"), edge=True),
    valid("POD02", shell("OPENAI_API_KEY=dummy python3 -m vllm.entrypoints.openai.api_server")),
    valid("POD02", config_map(HF_TOKEN="<HF_token>")),
    invalid("POD02", variable("DB_PASSWORD", value="changeme"), says="a literal in DB_PASSWORD", edge=True),
    invalid("POD02", variable("OPENAI_API_KEY", value="dummy1f9c"), says="a literal in OPENAI_API_KEY", edge=True),
    invalid("POD02", variable("HF_TOKEN", value="<a>b2c<d>"), says="a literal in HF_TOKEN", edge=True),
    invalid("POD02", config_map(start="export OPENAI_API_KEY=sk-empty\n"), says="data.start is a literal in OPENAI_API_KEY"),
)
