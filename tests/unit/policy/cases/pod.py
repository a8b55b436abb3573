"""What pods ask for."""

from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

NO_EFA = {f"{b.WORKER}/replicas": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}}
MPIRUN = ["mpirun", "-x", "FI_PROVIDER=efa", "python3", "train.py"]
LAUNCHER_ENV = "spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/env"


def shell(line: str, efa: int | str) -> Thing:
    """One pod of a Volcano job that runs a shell, with so many EFA interfaces."""
    limits = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": efa}
    command = {f"{b.TASK_CONTAINER}/command": ["sh", "-c", line], "spec/tasks/0/replicas": 1}
    return b.volcano_job({**command, f"{b.TASK_CONTAINER}/resources": {"limits": limits}})


ASKED = "vpc.amazonaws.com/efa"


def efa_on(count: int | str, *types: str, replicas: int = 4, gpus: int = 8) -> Thing:
    """A Volcano job of pods that say by affinity on which types they run."""
    terms = [{"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    limits = {"nvidia.com/gpu": gpus, **({ASKED: count} if count else {})}
    pod = {f"{b.TASK_CONTAINER}/resources": {"limits": limits}, "spec/tasks/0/template/spec/affinity": affinity}
    return b.volcano_job({**pod, "spec/tasks/0/template/spec/nodeSelector": b.DELETE, "spec/tasks/0/replicas": replicas})


def workers_asking(count: str) -> dict[str, Any]:
    return {f"{b.WORKER}/replicas": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8, ASKED: count}}}


def verbs(count: int | str, *, privileged: bool = False) -> Thing:
    """One pod with the host's folder of devices over its own."""
    container = {"name": "main", "resources": {"limits": {ASKED: count}}, "securityContext": {"privileged": privileged}}
    volume = {"name": "verbs", "hostPath": {"path": "/dev/infiniband"}}
    return Thing(type=tokens.POD, name="trainer", properties={"spec": {"containers": [container], "volumes": [volume]}})


def serving(kind: str, *command: str) -> Thing:
    container = {"name": "main", "command": list(command), "resources": {"limits": {"nvidia.com/gpu": 8}}}
    spec = {"nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"}, "containers": [container]}
    return Thing(type=kind, name="serve", properties={"spec": {"replicas": 2, "template": {"spec": spec}}})


def queue(completions: int, *command: str) -> Thing:
    """A Job of four pods at a time, of one GPU each."""
    container = {"name": "main", "command": list(command), "resources": {"limits": {"nvidia.com/gpu": 1}}}
    spec = {"nodeSelector": {"node.kubernetes.io/instance-type": "g5.8xlarge"}, "containers": [container]}
    counts = {"parallelism": 4, "completions": completions}
    return Thing(type=tokens.JOB, name="infer", properties={"spec": {**counts, "template": {"spec": spec}}})


_P5 = {"node.kubernetes.io/instance-type": "p5.48xlarge"}
TOGETHER = ("torchrun", "--nnodes=2", "--node-rank=$(RANK)", "--master-addr=a.b", "x")


def computing(*command: str, gpus: int = 8, selector: dict[str, str] | None = None) -> dict[str, Any]:
    """A template of pods with GPUs and without EFA, on a type that has it."""
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    return {"spec": {"nodeSelector": selector or _P5, "containers": [{"name": "main", "command": list(command), "resources": resources}]}}


def lws(worker: dict[str, Any], leader: dict[str, Any] | None = None, *, replicas: Any = 1, size: Any = 1) -> Thing:
    """A LeaderWorkerSet."""
    templates = {"workerTemplate": worker, **({"leaderTemplate": leader} if leader else {})}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, **templates}}
    return Thing(type=tokens.LEADER_WORKER_SET, name="vllm", properties={"metadata": {"name": "vllm"}, "spec": spec})


def job_set(*groups: dict[str, Any]) -> Thing:
    """A JobSet of Jobs of one pod each."""
    jobs = [{"name": f"g{index}", "template": {"spec": {"template": each}}} for index, each in enumerate(groups)]
    return Thing(type=tokens.JOB_SET, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": {"replicatedJobs": jobs}})


def volcano(*tasks: dict[str, Any]) -> Thing:
    """A Volcano job of tasks of one pod each."""
    made = [{"name": f"t{index}", "replicas": 1, "template": each} for index, each in enumerate(tasks)]
    return Thing(type=tokens.VOLCANO_JOB, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": {"tasks": made}})


def ray(*groups: dict[str, Any]) -> Thing:
    """A RayCluster of worker groups of one pod each."""
    made = [{"groupName": f"g{index}", "template": each} for index, each in enumerate(groups)]
    head = {"template": {"spec": {"containers": [{"name": "head"}]}}}
    spec = {"headGroupSpec": head, "workerGroupSpecs": made}
    return Thing(type=tokens.RAY_CLUSTER, name="tune", properties={"metadata": {"name": "tune"}, "spec": spec})


G5 = {"node.kubernetes.io/instance-type": "g5.48xlarge"}
VLLM = ("vllm", "serve", "--tensor-parallel-size", "8")
GANGS = (
    # A gang of a LeaderWorkerSet is one group, however many there are.
    valid("EFA06", lws(computing(*VLLM), replicas=3)),
    valid("EFA06", lws(computing(*VLLM), replicas=3, size=None), edge=True),
    valid("EFA06", lws(computing(*VLLM), replicas=0, size=2)),
    invalid("EFA06", lws(computing(*VLLM), size=2), says="because 2 pods with GPUs train together", edge=True),
    invalid("EFA06", lws(computing(*VLLM), replicas=3, size=4), says="because 4 pods with GPUs train together"),
    invalid("EFA06", lws(computing(*TOGETHER), computing(*TOGETHER), size=2), says="leaderTemplate.spec.containers is asking no"),
    invalid("EFA06", lws(computing(*TOGETHER), computing(*TOGETHER), size=2), says="workerTemplate.spec.containers is asking no"),
    valid("EFA06", lws(computing(*VLLM), computing("router", gpus=0), size=2), edge=True),
    # The parts of a job train together where their launchers wait for each other.
    *(
        invalid("EFA06", made(computing(*TOGETHER), computing(*TOGETHER)), says="because 2 pods with GPUs train together")
        for made in (job_set, volcano)
    ),
    *(valid("EFA06", made(computing("python3", "prepare.py"), computing(*TOGETHER)), edge=True) for made in (job_set, volcano)),
    invalid("EFA06", ray(computing(), computing()), says="because 2 pods with GPUs train together"),
    valid("EFA06", ray(computing(), computing(selector=G5)), edge=True),
)

CASES = (
    valid("EFA06", b.mpi_job()),
    valid("EFA06", b.volcano_job()),
    valid("EFA06", b.mpi_job({f"{b.WORKER_CONTAINER}/env": [{"name": "FI_PROVIDER", "value": "efa"}]})),
    valid("EFA06", b.mpi_job(NO_EFA)),
    valid("EFA06", b.mpi_job({b.LAUNCHER_COMMAND: MPIRUN})),
    valid("EFA06", b.mpi_job({LAUNCHER_ENV: [{"name": "FI_PROVIDER", "value": "efa"}]})),
    valid("EFA06", b.mpi_job({**NO_EFA, b.LAUNCHER_COMMAND: ["mpirun", "-x", "FI_PROVIDER=tcp"]})),
    valid("EFA06", shell("export FI_PROVIDER=efa && torchrun train.py", 32)),
    valid("EFA06", shell("FI_PROVIDER=efa,tcp torchrun train.py", 32), edge=True),
    # A pod with all GPUs leaves the interfaces that it does not ask for to nobody.
    valid("EFA06", efa_on(32, "p5.48xlarge"), edge=True),
    valid("EFA06", efa_on(16, "p5en.48xlarge")),
    valid("EFA06", efa_on(4, "p5.48xlarge", "p4d.24xlarge"), edge=True),
    valid("EFA06", efa_on(16, "p5.48xlarge", gpus=4), edge=True),
    invalid("EFA06", efa_on(31, "p5.48xlarge"), says="asking 31 vpc.amazonaws.com/efa; allowed: 32", edge=True),
    invalid("EFA06", efa_on(16, "p5.48xlarge"), says="on p5.48xlarge: the pod has all of its devices, and a part of its bandwidth"),
    invalid("EFA06", efa_on(3, "p5.48xlarge", "p4d.24xlarge"), says="allowed: 4 vpc.amazonaws.com/efa on p5.48xlarge or p4d.24xlarge"),
    invalid("EFA06", shell("FI_PROVIDER=efa,tcp torchrun train.py", 0), says="command[2] is FI_PROVIDER=efa,tcp; allowed", edge=True),
    invalid("EFA06", shell("export NCCL_NET_PLUGIN=aws-ofi && torchrun train.py", 0), says="command[2] is NCCL_NET_PLUGIN=aws-ofi"),
    invalid("EFA06", shell('export FI_PROVIDER="efa" && torchrun train.py', 0), says="command[2] is FI_PROVIDER=efa;"),
    invalid("EFA06", b.mpi_job({**NO_EFA, b.LAUNCHER_COMMAND: ["mpirun", "-genv", "FI_PROVIDER", "efa", "x"]}), says="FI_PROVIDER=efa"),
    invalid("EFA06", b.mpi_job({**NO_EFA, b.LAUNCHER_COMMAND: MPIRUN}), says="FI_PROVIDER=efa; allowed: only for workers that ask"),
    invalid(
        "EFA06",
        b.mpi_job({**NO_EFA, LAUNCHER_ENV: [{"name": "FI_PROVIDER", "value": "efa"}]}),
        says="Launcher.template.spec.containers[0].env[0].value is FI_PROVIDER=efa; allowed: only for workers",
    ),
    invalid(
        "EFA06",
        b.mpi_job({"spec/runLauncherAsWorker": True, b.LAUNCHER_COMMAND: MPIRUN}),
        says="command[2] is FI_PROVIDER=efa; allowed: only in a container",
    ),
    invalid(
        "EFA06", b.mpi_job({f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}}), says="asking no vpc.amazonaws.com/efa"
    ),
    invalid(
        "EFA06",
        b.volcano_job({f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 64}}}),
        says="at most 32",
    ),
    invalid(
        "EFA06",
        b.volcano_job(
            {
                f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 4}},
                f"{b.TASK_CONTAINER}/env": [{"name": "FI_PROVIDER", "value": "efa"}],
            }
        ),
        says="env[0].value is FI_PROVIDER=efa",
    ),
    valid("EFA06", efa_on(4, "p4d.24xlarge"), edge=True),
    invalid("EFA06", efa_on(5, "p4d.24xlarge"), says="asking 5 vpc.amazonaws.com/efa; allowed: at most 4", edge=True),
    valid("EFA06", efa_on(32, "p4d.24xlarge", "p5.48xlarge")),
    invalid("EFA06", efa_on(33, "p4d.24xlarge", "p5.48xlarge"), says="at most 32 vpc.amazonaws.com/efa on p4d.24xlarge or p5.48xlarge"),
    valid("EFA06", efa_on(40, "p4d.24xlarge", "x9.unheardof")),
    invalid("EFA06", efa_on(0, "p4d.24xlarge"), says="asking no vpc.amazonaws.com/efa"),
    valid("EFA06", efa_on(0, "p4d.24xlarge", "g5.xlarge")),
    valid("EFA06", shell("export NCCL_NET_PLUGIN=none && torchrun train.py", 0)),
    valid("EFA06", serving(tokens.DEPLOYMENT)),
    valid("EFA06", serving(tokens.REPLICA_SET)),
    valid("EFA06", serving(tokens.STATEFUL_SET, "torchrun", "--standalone", "serve.py"), edge=True),
    valid("EFA06", serving(tokens.DAEMON_SET, "python3", "serve.py")),
    invalid(
        "EFA06", serving(tokens.STATEFUL_SET, "torchrun", "--nnodes=2", "x"), says="because 2 pods with GPUs train together", edge=True
    ),
    # A placeholder is filled in before it reaches the cluster; POD04 says that it is no number yet.
    valid("EFA06", shell("export FI_PROVIDER=efa && torchrun train.py", "${EFA_PER_NODE}")),
    valid("EFA06", efa_on("${EFA_PER_NODE}", "p4d.24xlarge")),
    valid("EFA06", b.mpi_job({**workers_asking("${EFA_PER_NODE}"), b.LAUNCHER_COMMAND: MPIRUN})),
    invalid("EFA06", b.mpi_job({**workers_asking("0"), b.LAUNCHER_COMMAND: MPIRUN}), says="only for workers that ask", edge=True),
    invalid("EFA06", verbs("${EFA_PER_NODE}"), says="hostPath.path is /dev/infiniband; allowed: no such volume: the plug-in alone brings"),
    invalid("EFA06", verbs(1), says="and libfabric gives up at one it may not open", edge=True),
    valid("EFA06", verbs(1, privileged=True), edge=True),
    valid("EFA06", verbs(0, privileged=True), edge=True),
    valid("EFA06", queue(100, "python3", "infer.py"), edge=True),
    valid("EFA06", queue(4, "python3", "infer.py"), edge=True),
    invalid("EFA06", queue(4, "python3", "train.py"), says="because 4 pods with GPUs train together", edge=True),
    invalid("EFA06", queue(100, "torchrun", "--nnodes=4", "x"), says="because 4 pods with GPUs train together"),
)


def sharing(instance: str, gpus: int, *, replicas: int = 8) -> Thing:
    """Pods of one PyTorchJob, with so many GPUs each and no EFA."""
    pods = f"{b.TORCH_ROLES}/Worker"
    changes = {f"{pods}/replicas": replicas, f"{pods}/template/spec/nodeSelector": {"node.kubernetes.io/instance-type": instance}}
    return b.pytorch_job(
        {f"{b.TORCH_ROLES}/Master": b.DELETE, f"{b.TORCH_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": gpus}}, **changes}
    )


FABRIC = [{"name": "FI_PROVIDER", "value": "efa"}]


def with_fabric(*command: str, gpus: int = 0, efa: int = 0) -> dict[str, Any]:
    """A template of pods whose environment selects EFA."""
    limits = {**({"nvidia.com/gpu": gpus} if gpus else {}), **({ASKED: efa} if efa else {})}
    container = {"name": "main", "command": list(command), "env": FABRIC, "resources": {"limits": limits}}
    return {"spec": {"containers": [container]}}


def ray_with_head(head: dict[str, Any], *groups: dict[str, Any]) -> Thing:
    made = ray(*groups)
    return replace(made, properties=b.changed(made.properties, {"spec/headGroupSpec/template": head}))


WORKING = with_fabric(*TOGETHER, gpus=8, efa=32)
IDLE = with_fabric(*TOGETHER, gpus=8)
SHARES = (
    # With less than an interface for each pod, one that asked for it would keep the others from the node.
    valid("EFA06", sharing("g5.12xlarge", 1)),
    valid("EFA06", sharing("g5.12xlarge", 3), edge=True),
    invalid("EFA06", sharing("g5.12xlarge", 4), says="allowed: 1 vpc.amazonaws.com/efa on g5.12xlarge, because 8 pods", edge=True),
    valid("EFA06", sharing("p4d.24xlarge", 1), edge=True),
    invalid("EFA06", sharing("p4d.24xlarge", 2), says="allowed: 1 vpc.amazonaws.com/efa for 2 of the GPUs of p4d.24xlarge", edge=True),
    invalid("EFA06", sharing("p5.48xlarge", 1), says="allowed: 4 vpc.amazonaws.com/efa for 1 of the GPUs of p5.48xlarge, because 8 pods"),
    invalid("EFA06", sharing("p5en.48xlarge", 4, replicas=2), says="allowed: 8 vpc.amazonaws.com/efa for 4 of the GPUs"),
    invalid("EFA06", sharing("p5.48xlarge", 16), says="allowed: 32 vpc.amazonaws.com/efa on p5.48xlarge"),
)
HEADS = (
    # A pod that runs no rank may have the environment of those that do.
    valid("EFA06", ray_with_head(with_fabric(), WORKING)),
    valid("EFA06", volcano(with_fabric("mpirun", "-np", "16", "python3", "train.py"), WORKING)),
    valid("EFA06", lws(WORKING, with_fabric("python3", "router.py"), size=2), edge=True),
    invalid("EFA06", lws(WORKING, with_fabric(*TOGETHER), size=2), says="leaderTemplate.spec.containers[0].env[0].value is", edge=True),
    invalid("EFA06", ray_with_head(with_fabric(), IDLE), says="headGroupSpec.template.spec.containers[0].env[0].value is FI_PROVIDER=efa"),
    invalid("EFA06", ray_with_head(with_fabric(), IDLE), says="allowed: only for workers that ask"),
    invalid("EFA06", ray_with_head(with_fabric(gpus=1), WORKING), says="allowed: only in a container that asks", edge=True),
    invalid(
        "EFA06",
        b.pytorch_job({f"{b.TORCH_MASTER_CONTAINER}/resources": {}, f"{b.TORCH_MASTER_CONTAINER}/env": FABRIC}),
        says="Master.template.spec.containers[0].env[0].value is FI_PROVIDER=efa",
    ),
)

CASES += GANGS + SHARES + HEADS


def set_beside(name: str, value: str, **changes: Any) -> Thing:
    """A Volcano job whose pods ask for EFA and have a variable."""
    return b.volcano_job({f"{b.TASK_CONTAINER}/env": [{"name": name, "value": value}], **changes})


ALONE = {"spec/tasks/0/replicas": 1, "spec/minAvailable": 1}
UNASKED = {f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 1}}, "spec/tasks/0/template/spec/nodeSelector": b.DELETE}

CASES += (
    # Interfaces that are asked for and kept off.
    invalid("EFA06", set_beside("NCCL_NET", "Socket"), says="NCCL_NET=Socket beside vpc.amazonaws.com/efa; allowed: unset"),
    invalid("EFA06", set_beside("NCCL_NET", "Socket", **ALONE), says="whatever interfaces the pod has", edge=True),
    valid("EFA06", set_beside("NCCL_NET", "AWS Libfabric"), edge=True),
    valid("EFA06", set_beside("NCCL_NET", "Socket", **UNASKED)),
    invalid("EFA06", set_beside("NCCL_NET_PLUGIN", "none"), says="NCCL_NET_PLUGIN=none beside"),
    valid("EFA06", set_beside("NCCL_NET_PLUGIN", "ofi"), edge=True),
    invalid("EFA06", set_beside("FI_PROVIDER", "tcp"), says="FI_PROVIDER=tcp beside"),
    valid("EFA06", set_beside("FI_PROVIDER", "tcp,efa"), edge=True),
    valid("EFA06", set_beside("FI_PROVIDER", "^tcp"), edge=True),
    valid("EFA06", set_beside("FI_PROVIDER", "${FI_PROVIDER}"), edge=True),
    valid("EFA06", set_beside("FI_PROVIDER", "")),
    valid("EFA06", set_beside("FI_PROVIDER", "efa;ofi_rxr,shm"), edge=True),
    valid("EFA06", set_beside("FI_PROVIDER", "efa-direct"), edge=True),
    valid("EFA06", set_beside("FI_PROVIDER", "^tcp,sockets")),
    valid("EFA06", set_beside("FI_PROVIDER", "^efa-direct"), edge=True),
    valid("EFA06", set_beside("FI_PROVIDER", "^$LEFT_OUT"), edge=True),
    invalid("EFA06", set_beside("FI_PROVIDER", "^efa"), says="FI_PROVIDER=^efa beside", edge=True),
    invalid("EFA06", set_beside("FI_PROVIDER", "^shm,efa"), says="FI_PROVIDER=^shm,efa beside"),
    invalid("EFA06", set_beside("FI_PROVIDER", "verbs", **ALONE), says="FI_PROVIDER=verbs beside"),
)
