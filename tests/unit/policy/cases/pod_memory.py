"""Shared memory, quality of service, and the time to save."""

import shlex
from dataclasses import replace
from typing import Any

from guardrails import tokens
from guardrails.template import GPU, NEURON
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_devices import asking
from tests.unit.policy.cases.pod_security import pod
from tests.unit.policy.cases.ray import cluster as ray
from tests.unit.policy.cases.ray import ending as ray_job

KEPT = {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}


MEMORY = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
DISK = {"name": "shm", "emptyDir": {}}


def shm(*, limits: dict[str, Any] | None = None, **options: Any) -> Thing:
    """A trainer that mounts a volume of memory with these options at /dev/shm."""
    volume = {"name": "shm", "emptyDir": {"medium": "Memory", **options}}
    return mounting([volume], limits=limits or {GPU: 8, "memory": "500Gi"})


def mounting(volumes: list[Any], path: str = "/dev/shm", *, limits: dict[str, Any] | None = None, **container: Any) -> Thing:
    """A trainer that mounts the volume `shm`."""
    mount = {"name": "shm", "mountPath": path}
    return pod(container={"resources": {"limits": limits or {GPU: 8}}, "volumeMounts": [mount], **container}, volumes=volumes)


def working(
    limits: dict[str, Any] | None = None, path: str = "/tmp", *words: str, requests: dict[str, Any] | None = None, **options: Any
) -> Thing:
    """A pod without devices, with a volume of memory at this path."""
    container = {"resources": {"limits": limits or {}, "requests": requests or {}}, "volumeMounts": [{"name": "tmp", "mountPath": path}]}
    volume = {"name": "tmp", "emptyDir": {"medium": "Memory", **options}}
    return pod(container={**container, "command": list(words)}, volumes=[volume])


SMALL = {"memory": "256Mi"}


def running(*words: str) -> Thing:
    return pod(container={"command": list(words)})


def trainer(metadata: dict[str, Any] | None = None, gpus: int = 8, **spec: Any) -> Thing:
    base = pod(container={"resources": {"limits": {GPU: gpus}}}, **spec)
    return Thing(type=base.type, name=base.name, properties={**base.properties, "metadata": {"name": "trainer", **(metadata or {})}})


def kept(job: Thing, *templates: str) -> Thing:
    """The job with the protection and a long grace period in these pod templates."""
    protection = {f"{each}/template/metadata": KEPT for each in templates}
    grace = {f"{each}/template/spec/terminationGracePeriodSeconds": 300 for each in templates}
    return replace(job, properties=b.changed(job.properties, {**protection, **grace}))


LIMITED = {"name": "main", "resources": {"limits": {GPU: 8, "memory": "500Gi"}}, "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}
LARGE = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Ti"}}]
LAUNCHER, TASK, HEAD, GROUP = "spec/mpiReplicaSpecs/Launcher", "spec/tasks/0", "spec/headGroupSpec", "spec/workerGroupSpecs/0"
SUBMITTER = {"submitterPodTemplate": {"spec": {"containers": [{"name": "submit", "image": "rayproject/ray:2.55.0"}]}}}
LAUNCHED = {"name": "rank", "resources": {"limits": {"cpu": "4"}}}
ETL_COMMAND = "spec/tasks/0/template/spec/containers/0/command"


def starting_over(action: str, place: str = "spec", **occasion: str) -> dict[str, Any]:
    return {f"{place}/policies": [{"action": action, **(occasion or {"event": "PodEvicted"})}]}


CPU_ONLY = {"spec/tasks/0/template/spec/containers/0/resources": {"limits": {"cpu": "4"}}}
ETL = {**CPU_ONLY, ETL_COMMAND: ["sh", "-c", "sleep 60"]}


def indexed(**limits: Any) -> Thing:
    container = {"name": "trainer", "resources": {"limits": limits}}
    return Thing(type=tokens.JOB, name="sweep", properties={"spec": {"template": {"spec": {"containers": [container]}}}})


def alone(line: str, image: str, **container: Any) -> Thing:
    """A pod of no job, with GPUs and without protection."""
    command = {"command": shlex.split(line)} if line else {}
    return pod(container={"image": image, "resources": {"limits": {GPU: 1}}, **command, **container})


A_TEST_JOB = {"spec": {"template": {"spec": alone("nvidia-smi", "cuda:12").properties["spec"]}}}
FULL = {"cpu": "8", "memory": "64Gi"}


def beside(init: dict[str, Any], **spec: Any) -> Thing:
    """A Guaranteed container with GPUs, and an init container or sidecar."""
    return asking({GPU: 8, **FULL}, initContainers=[{"name": "other", "image": "other:1.4.2", **init}], **spec)


def node_set(metadata: dict[str, Any] | None = None, **spec: Any) -> Thing:
    slurmd = {"image": "slurmd:25.11.2", "resources": {"limits": {GPU: 8}}}
    body = {"slurmd": slurmd, "template": {"spec": {"terminationGracePeriodSeconds": 300}}, **spec}
    return Thing(type=tokens.NODE_SET, name="gpu", properties={"metadata": {"name": "gpu", **(metadata or {})}, "spec": body})


def job_set(template: dict[str, Any]) -> Thing:
    pods = {"metadata": template, "spec": {"containers": [{"name": "main", "resources": {"limits": {GPU: 8}}}]}}
    group = {"name": "ranks", "template": {"spec": {"parallelism": 2, "template": pods}}}
    return Thing(type=tokens.JOB_SET, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": {"replicatedJobs": [group]}})


UNGUARDED: dict[str, Any] = {"workloadDisruptionProtection": False}
LOADERS = ("torchrun", "train.py", "--num-workers")
PODS, SHM = "workerGroupSpecs/0/template/spec", [{"name": "shm", "mountPath": "/dev/shm"}]


CASES = (
    valid("POD07", shm(sizeLimit="64Gi")),
    valid("POD07", asking({"cpu": "4"})),
    valid("POD07", shm(limits={GPU: 8}, sizeLimit="64Gi")),
    valid("POD07", mounting([{"name": "work", "emptyDir": {}}, MEMORY])),
    valid("POD07", mounting([MEMORY], "/dev/shm/")),
    valid("POD07", mounting([MEMORY], limits={"cpu": "4"}, command=[*LOADERS, "4"])),
    valid("POD07", running("torchrun", "train.py")),
    valid("POD07", running("python3", "-m", "http.server", "--workers", "4")),
    valid("POD07", running(*LOADERS, "0"), edge=True),
    valid("POD07", ray()),
    valid("POD07", shm(sizeLimit="499Gi"), edge=True),
    invalid("POD07", shm(sizeLimit="500Gi"), says="less than 500Gi, the pod's memory limit", edge=True),
    # The kubelet takes the pod's memory limit for the size of the volume where that is less.
    valid("POD07", working(SMALL)),
    valid("POD07", working(SMALL, sizeLimit="255Mi"), edge=True),
    invalid("POD07", working(SMALL, sizeLimit="256Mi"), says="less than 256Mi, the pod's memory limit", edge=True),
    invalid("POD07", working(), says="sizeLimit is unset; allowed: a size such as 1Gi, and a memory limit of the pod above it"),
    invalid("POD07", working(SMALL, "/dev/shm"), says="a size below the pod's memory limit, such as 64Mi"),
    invalid("POD07", working(SMALL, "/tmp", "python3", "train.py"), says="a size below the pod's memory limit, such as 64Mi", edge=True),
    invalid("POD07", working(None, "/dev/shm", requests={"memory": "6Gi"}), says="a size such as 1Gi, and a memory limit of the pod"),
    invalid("POD07", working(None, "/tmp", "python3", "train.py"), says="a size such as 1Gi, and a memory limit of the pod above it"),
    invalid("POD07", working(SMALL, sizeLimit="lots"), says="lots; allowed: a quantity such as 64Mi"),
    invalid("POD07", shm(), says="emptyDir.sizeLimit is unset; allowed: a size below the pod's memory limit, such as 64Gi"),
    invalid("POD07", shm(limits={GPU: 8}), says="emptyDir.sizeLimit is unset; allowed: a size such as 64Gi, and a memory limit"),
    invalid("POD07", shm(sizeLimit="lots"), says="lots; allowed: a quantity"),
    invalid("POD07", shm(sizeLimit="1Ti"), says="sizeLimit is 1Ti"),
    invalid("POD07", asking({GPU: 8}), says="without one mounted at /dev/shm (64 MiB)"),
    invalid("POD07", asking({GPU: 1}), says="volumes is without one mounted at /dev/shm", edge=True),
    invalid("POD07", asking({NEURON: 1}), says="volumes is without one mounted at /dev/shm"),
    invalid("POD07", asking({GPU: 8}, volumes=[MEMORY]), says="volumes is without one mounted at /dev/shm"),
    invalid("POD07", mounting([MEMORY], "/shm"), says="volumes is without one mounted at /dev/shm"),
    invalid("POD07", mounting([DISK]), says="volumes is without one mounted at /dev/shm"),
    invalid("POD07", mounting([DISK, {**MEMORY, "name": "other"}]), says="volumes is without one mounted at /dev/shm"),
    invalid("POD07", running(*LOADERS, "1"), says="volumes is without one mounted at /dev/shm", edge=True),
    invalid("POD07", running("deepspeed", "train.py", "--dataloader_num_workers=8"), says="volumes is without one mounted at"),
    invalid("POD07", running("sh", "-c", "accelerate launch train.py data.num_workers=2"), says="volumes is without one mounted at"),
    invalid("POD07", ray({f"{PODS}/volumes": [DISK], f"{PODS}/containers/0/volumeMounts": SHM}), says="workerGroupSpecs[0].template.spec"),
    invalid("POD07", b.volcano_job(), says="spec.tasks[0].template.spec.volumes is without one"),
    valid("POD08", asking({GPU: 8, "cpu": "180", "memory": "1800Gi"})),
    valid("POD08", asking({GPU: 8, "cpu": "2", "memory": "1Gi"}, {"cpu": "2000m", "memory": "1024Mi"})),
    valid("POD08", asking({"cpu": "4"}, {"cpu": "1"})),
    valid("POD08", asking({GPU: 0})),
    valid("POD08", asking({GPU: 8, "cpu": "1", "memory": "1Gi"}, {"memory": "1Gi"}), edge=True),
    invalid("POD08", asking({GPU: 8, "cpu": "1", "memory": "1Gi"}, {"memory": "1023Mi"}), says="memory is 1023Mi; allowed: 1Gi", edge=True),
    invalid("POD08", asking({GPU: 8}), says="limits.cpu is unset"),
    invalid("POD08", asking({GPU: 8, "cpu": "4"}), says="limits.memory is unset"),
    invalid("POD08", asking({GPU: 8, "cpu": "8", "memory": "1Gi"}, {"cpu": "4"}), says="requests.cpu is 4; allowed: 8"),
    invalid("POD08", b.mpi_job(), says="Worker.template.spec.containers[0].resources.limits.memory is unset"),
    valid("POD09", trainer(KEPT, terminationGracePeriodSeconds=300)),
    valid("POD09", trainer(gpus=0)),
    valid("POD09", asking({"cpu": "4"})),
    valid("POD09", trainer(KEPT, terminationGracePeriodSeconds=3600)),
    valid("POD09", trainer(KEPT, terminationGracePeriodSeconds=120), edge=True),
    valid("POD09", kept(b.mpi_job(), LAUNCHER, b.WORKER)),
    valid("POD09", kept(b.volcano_job(), TASK)),
    valid("POD09", kept(ray(), HEAD, GROUP)),
    # A Job makes the pod that submits again, wherever it was.
    valid("POD09", kept(ray_job(SUBMITTER), "spec/rayClusterSpec/headGroupSpec", "spec/rayClusterSpec/workerGroupSpecs/0")),
    invalid("POD09", kept(ray_job(SUBMITTER), "spec/rayClusterSpec/workerGroupSpecs/0"), says="spec.rayClusterSpec.headGroupSpec.template"),
    valid("POD09", indexed(cpu="4")),
    valid("POD09", ray({"workerGroupSpecs/0/template/spec/containers/0/resources": {}}), edge=True),
    invalid("POD09", trainer(KEPT, terminationGracePeriodSeconds=119), says="terminationGracePeriodSeconds is 119", edge=True),
    invalid("POD09", trainer(KEPT), says="30 (the default)"),
    invalid("POD09", trainer(terminationGracePeriodSeconds=300), says='do-not-disrupt"] is unset'),
    invalid(
        "POD09", trainer({"annotations": {"karpenter.sh/do-not-disrupt": "false"}}, terminationGracePeriodSeconds=300), says="is false"
    ),
    # Nodes of a managed group are none of Karpenter's: advice.
    *(
        invalid(
            "POD09", trainer(terminationGracePeriodSeconds=300, nodeSelector={label: "gpu"}), says='do-not-disrupt"] is unset', edge=True
        )
        for label in ("eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "role")
    ),
    # A pod of no job counts where it trains: a test, a server or a notebook goes elsewhere when its node does.
    *(
        valid("POD09", alone(line, image), edge=edge)
        for line, image, edge in (
            ("nvidia-smi", "nvidia/cuda:12.4.1-base-ubuntu22.04", False),
            ("python3 -m vllm.entrypoints.openai.api_server --model m", "vllm/vllm-openai:v0.11.0", False),
            ("", "quay.io/jupyter/pytorch-notebook:2026-11-01", False),
            ("sleep infinity", "registry.example/trainer:1", True),
            ("python3 prepare_training.py", "registry.example/tools:1", True),
            ("", "registry.example/training-data:1", True),
            ("", "train.example:5000/team/server:training", True),
            ("mpirun -np 8 all_reduce_perf", "registry.example/nccl-tests:2.27", True),
        )
    ),
    valid("POD09", alone("", "registry.example/trainer:1", args=["nvidia-smi"]), edge=True),
    *(
        invalid("POD09", alone(line, image), says="do-not-disrupt", edge=edge)
        for line, image, edge in (
            ("python3 train.py", "registry.example/tools:1", False),
            ("torchrun --nproc-per-node=8 run.py", "registry.example/tools:1", False),
            ("bash -c 'mpirun -np 8 python3 finetune.py'", "registry.example/tools:1", False),
            ("", "registry.example:5000/pytorch-training@sha256:1f", True),
        )
    ),
    invalid("POD09", alone("", "registry.example/trainer:1", args=["--steps", "100"]), says="do-not-disrupt", edge=True),
    invalid("POD09", alone("python3 run.py", "tools:1", env=[{"name": "MASTER_ADDR", "value": "head"}]), says="do-not-disrupt", edge=True),
    invalid("POD09", replace(alone("nvidia-smi", "cuda:12"), type=tokens.JOB, properties=A_TEST_JOB), says="do-not-disrupt", edge=True),
    invalid("POD09", b.mpi_job(), says="spec.mpiReplicaSpecs.Worker.template.metadata"),
    invalid("POD09", kept(b.mpi_job(), b.WORKER), says="spec.mpiReplicaSpecs.Launcher.template.metadata", edge=True),
    invalid("POD09", b.volcano_job(CPU_ONLY), says='spec.tasks[0].template.metadata.annotations["karpenter.sh/do-not-disrupt"] is unset'),
    # Pods without devices lose each other's work where they are ranks, or where a policy says so.
    valid("POD09", b.volcano_job(ETL)),
    valid("POD09", b.volcano_job({**ETL, **starting_over("RestartTask")}), edge=True),
    valid("POD09", b.volcano_job({**ETL, **starting_over("RestartJob", event="TaskFailed")}), edge=True),
    invalid("POD09", b.volcano_job({**ETL, **starting_over("RestartJob")}), says="a job that has devices or starts over as a whole"),
    invalid("POD09", b.volcano_job({**ETL, **starting_over("RestartJob", "spec/tasks/0")}), says="starts over as a whole", edge=True),
    invalid("POD09", b.volcano_job({**ETL, ETL_COMMAND: ["python3", "train.py"]}), says="starts over as a whole", edge=True),
    invalid("POD09", b.volcano_job({**ETL, ETL_COMMAND: ["sh", "-c", "mpirun -np 4 hello"]}), says="starts over as a whole", edge=True),
    valid("POD09", b.mpi_job({b.WORKER_CONTAINER: LAUNCHED, b.LAUNCHER_COMMAND: ["sh", "-c", "sleep 60"]}), edge=True),
    invalid("POD09", b.mpi_job({b.WORKER_CONTAINER: LAUNCHED}), says="starts over as a whole", edge=True),
    # One pod without devices is no gang; one with them loses what it computed.
    valid("POD09", b.volcano_job({**CPU_ONLY, "spec/tasks/0/replicas": 1}), edge=True),
    invalid("POD09", b.volcano_job({**CPU_ONLY, "spec/tasks/0/replicas": 2}), says="do-not-disrupt", edge=True),
    invalid("POD09", b.volcano_job({"spec/tasks/0/replicas": 1}), says="do-not-disrupt", edge=True),
    invalid("POD09", b.mpi_job({b.WORKER_CONTAINER: LAUNCHED, f"{b.WORKER}/replicas": 1}), says="Launcher.template.metadata", edge=True),
    invalid("POD09", kept(ray(), GROUP), says="spec.headGroupSpec.template.metadata"),
    invalid("POD09", indexed(**{NEURON: 16}), says="spec.template.metadata"),
    valid("POD07", asking(volumes=LARGE, containers=[LIMITED, {"name": "logs"}])),
    invalid("POD07", asking(volumes=LARGE, containers=[LIMITED, {"name": "logs", **LIMITED}]), says="sizeLimit is 2Ti"),
    invalid("POD08", asking({GPU: 1, "cpu": "4"}), says="limits.memory is unset", edge=True),
    invalid("POD07", shm(limits={GPU: 8, "memory": "1e40"}, sizeLimit="2e40"), says="sizeLimit is 2e40; allowed: less than"),
    valid("POD07", shm(limits={GPU: 8, "memory": "2e40"}, sizeLimit="1e40")),
    invalid(
        "POD07",
        pod(container=LIMITED, volumes=[MEMORY], resources={"limits": {"memory": "4Gi"}}),
        says="sizeLimit is 8Gi; allowed: less than 4Gi, the pod's memory limit",
    ),
    invalid("POD08", beside({"restartPolicy": "Always"}), says="initContainers[0].resources.limits.cpu is unset"),
    invalid("POD08", beside({}), says="initContainers[0].resources.limits.memory is unset"),
    valid("POD08", beside({"resources": {"limits": FULL}})),
    valid("POD08", beside({}, resources={"limits": FULL, "requests": FULL})),
    invalid("POD08", beside({}, resources={"limits": {"cpu": "8"}}), says="spec.resources.limits.memory is unset"),
    valid("POD08", asking({NEURON: 16, **FULL})),
    invalid("POD08", asking({NEURON: 16}), says="limits.cpu is unset"),
    valid("POD09", node_set()),
    valid("POD09", node_set({"annotations": KEPT["annotations"]}, **UNGUARDED)),
    invalid("POD09", node_set(**UNGUARDED), says='annotations["karpenter.sh/do-not-disrupt"] is unset'),
    invalid("POD09", node_set(template={}), says="terminationGracePeriodSeconds is 30 (the default)"),
    invalid("POD09", job_set({}), says="replicatedJobs[0].template.spec.template.metadata.annotations"),
    invalid("POD09", alone("python $(RUN)", "cuda:12", env=[{"name": "RUN", "value": "train.py"}]), says="do-not-disrupt", edge=True),
    valid("POD09", alone("python $(RUN)", "cuda:12", env=[{"name": "RUN", "value": "embed.py"}]), edge=True),
)

AT_SHM = {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}


def of_two(first: dict[str, Any], second: dict[str, Any]) -> Thing:
    """A trainer with a GPU and a helper beside it, in a pod with a volume of memory."""
    trainer = {"name": "trainer", "resources": {"limits": {GPU: 8, "memory": "500Gi"}}, **first}
    return replace(pod(), properties={"spec": {"containers": [trainer, {"name": "helper", **second}], "volumes": [MEMORY]}})


CASES += (
    # Each container has mounts of its own.
    invalid("POD07", of_two({}, AT_SHM), says="without one mounted at /dev/shm"),
    valid("POD07", of_two(AT_SHM, {}), edge=True),
)
