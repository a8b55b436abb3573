"""Checkpoints of jobs that are not ours."""

from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_security import config_map

POD = "spec/tasks/0/template/spec"
CLAIM = {"persistentVolumeClaim": {"claimName": "checkpoints"}}


def gang(arguments: str, volume: dict[str, Any] | None = None, **changes: Any) -> Thing:
    """Four pods of eight GPUs with one volume at /state."""
    place = {
        f"{b.TASK_CONTAINER}/command": ["python3", "train.py", *arguments.split()],
        f"{b.TASK_CONTAINER}/volumeMounts": [{"name": "state", "mountPath": "/state"}],
        f"{POD}/volumes": [{"name": "state", **(volume or CLAIM)}],
    }
    return b.volcano_job({**place, **changes})


def named(value: str, volume: dict[str, Any] | None = None) -> Thing:
    return gang("", volume, **variable("CHECKPOINT_DIR", value))


def variable(name: str, value: str) -> dict[str, Any]:
    return {f"{b.TASK_CONTAINER}/env": [{"name": name, "value": value}]}


def nested(inner: dict[str, Any], outer: dict[str, Any]) -> Thing:
    """A job that saves to /state/run/last, with a volume at /state/run inside that at /state."""
    mounts = [{"name": "outer", "mountPath": "/state"}, {"name": "inner", "mountPath": "/state/run/"}]
    volumes = [{"name": "outer", **outer}, {"name": "inner", **inner}]
    return gang("--save /state/run/last", None, **{f"{b.TASK_CONTAINER}/volumeMounts": mounts, f"{POD}/volumes": volumes})


def ranks(pods: int, gpus: int) -> Thing:
    """A job of so many pods that saves to one file."""
    limits = {"spec/tasks/0/replicas": pods, f"{b.TASK_CONTAINER}/resources": {"limits": {GPU: gpus}, "requests": {GPU: gpus}}}
    return gang("--save /state/ckpt.pt", None, **limits)


def lustre(kind: str) -> tuple[Thing, Thing]:
    """A claim of the name that the job mounts, and its class."""
    claim = {"metadata": {"name": "checkpoints"}, "spec": {"storageClassName": "lustre"}}
    storage = {"metadata": {"name": "lustre"}, "provisioner": "fsx.csi.aws.com", "parameters": {"deploymentType": kind}}
    claims = Thing(type=tokens.VOLUME_CLAIM, name="claim", properties=claim)
    return claims, Thing(type=tokens.STORAGE_CLASS, name="class", properties=storage)


CASES = (
    valid("CKP01", gang("--save /state/run")),
    valid("CKP01", gang("--save /state/run"), *lustre("PERSISTENT_2")),
    valid("CKP01", gang("--output_dir=/scratch --upload s3://bucket/run", {"emptyDir": {}})),
    valid("CKP01", named("/state/run")),
    valid("CKP01", gang("--epochs 3", {"emptyDir": {}})),
    valid("CKP01", gang("checkpoint.directory=/state/run")),
    valid("CKP01", gang("--save /state"), edge=True),
    invalid("CKP01", gang("--save /stateful"), says="/stateful (in the container's own file system)", edge=True),
    invalid("CKP01", gang("--save /state/run", {"emptyDir": {}}), says="/state/run (on emptyDir state)"),
    invalid("CKP01", gang("--checkpoint-dir /state/run", {"hostPath": {"path": "/mnt"}}), says="(on hostPath state)"),
    invalid("CKP01", gang("--save /state/run"), *lustre("SCRATCH_2"), says="(on SCRATCH_2 Lustre)"),
    invalid("CKP01", gang("--save /state/ckpt.pt"), says="/state/ckpt.pt; allowed: a folder"),
    invalid("CKP01", named("/tmp/run"), says="env[0].value is /tmp/run (in the container's own"),
    invalid("CKP01", gang("checkpoint.directory=/local/run"), says="/local/run"),
    valid("CKP02", gang("--keep 3")),
    valid("CKP02", gang("checkpoint.keep=5 --save-only-model false")),
    valid("CKP02", gang("--epochs 1")),
    valid("CKP02", config_map(readme="how we train")),
    valid("CKP02", gang("", {"configMap": {"name": "settings"}}), config_map(auto_resume="true")),
    valid("CKP02", gang("--save_total_limit 2"), edge=True),
    invalid("CKP02", gang("--save_total_limit 1"), says="1 checkpoint kept; allowed: at least 2", edge=True),
    invalid("CKP02", gang("checkpoint.keep=1"), says="1 checkpoint kept"),
    # None counted is all kept, where the program says so.
    valid("CKP02", gang("--checkpoint.keep-latest-k 0"), edge=True),
    valid("CKP02", gang("--save_total_limit=0 --keep 2")),
    invalid("CKP02", gang("--checkpoint.keep_latest_k 1"), says="1 checkpoint kept", edge=True),
    invalid("CKP02", gang("--keep 0"), says="0 checkpoint kept"),
    invalid("CKP02", gang("--save-total-limit 0 --keep 1"), says="1 checkpoint kept"),
    invalid("CKP02", gang("checkpoint.keep=5 checkpoint.keep=1 --keep-last 3"), says="1 checkpoint kept"),
    invalid("CKP02", gang("--no-save-optim"), says="a resume needs the optimizer"),
    invalid("CKP02", gang("--save_only_model true"), says="is --save-only-model"),
    invalid("CKP02", gang("--no-save-rng"), says="the random generators"),
    invalid("CKP02", config_map(auto_resume="true"), gang(""), says="data.auto_resume is auto_resume, which no job reads"),
    valid("CKP01", ranks(1, 1), edge=True),
    invalid("CKP01", ranks(1, 2), says="/state/ckpt.pt; allowed: a folder", edge=True),
    invalid("CKP01", ranks(2, 1), says="/state/ckpt.pt; allowed: a folder", edge=True),
    valid("CKP01", nested(CLAIM, {"emptyDir": {}})),
    invalid("CKP01", nested({"emptyDir": {}}, CLAIM), says="/state/run/last (on emptyDir inner)"),
    invalid("CKP01", gang("--save /state/run", {"ephemeral": {"volumeClaimTemplate": {}}}), says="(on ephemeral state)"),
    # The job's own claim and its class are made elsewhere, as the volume of a mount is that Volcano adds.
    valid("CKP01", gang("--save /state/run", {"persistentVolumeClaim": {"claimName": "kept"}}), *lustre("SCRATCH_2")),
    valid("CKP01", gang("--save /state/run", {"nfs": {"server": "10.0.0.7", "path": "/"}}), *lustre("SCRATCH_2")),
    valid("CKP01", gang("--save /state/run"), lustre("SCRATCH_2")[0]),
    valid("CKP01", gang("--save /state/run", None, **{f"{POD}/volumes": []})),
    valid("CKP01", gang("--save /state/run", None, **variable("LOG_DIR", "/tmp/logs"))),
    # What is beside a place inside the working folder, or beside a file, is looked at too.
    invalid("CKP01", gang("--save runs", None, **variable("SAVE_DIR", "/tmp/run")), says="env[0].value is /tmp/run"),
    invalid("CKP01", gang("--save /state/ckpt.pt", None, **variable("SAVE_DIR", "/tmp/run")), says="env[0].value is /tmp/run"),
    valid("CKP02", gang("--save-only-model 0")),
    valid("CKP02", gang("--save-only-model No")),
    valid("CKP02", gang("", {"configMap": {"name": "settings"}}), b.mpi_job(), config_map(auto_resume="true")),
)
