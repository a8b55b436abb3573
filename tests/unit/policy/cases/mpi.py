"""MPIJobs."""

from typing import Any

from guardrails import tokens
from guardrails.template import EFA, GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

LAUNCHER = "spec/mpiReplicaSpecs/Launcher"
LAUNCHER_LIMITS = f"{LAUNCHER}/template/spec/containers/0/resources/limits"
CLEAN = "spec/runPolicy/cleanPodPolicy"


def mpirun(*words: str, **changes: Any) -> Thing:
    return b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", *words], **changes})


def script(text: str) -> Thing:
    return b.mpi_job({b.LAUNCHER_COMMAND: ["bash", "-c", text]})


LAUNCHER_ENV = f"{LAUNCHER}/template/spec/containers/0/env"
UNBOUND = {"name": "main", "image": "registry.example/trainer:1"}
SIDECAR = {**UNBOUND, "name": "logs", "resources": {"limits": {"cpu": "100m"}}}


def old_job(version: str) -> Thing:
    return Thing(type=f"kubernetes:kubeflow.org/{version}:MPIJob", name="pretrain", properties=b.mpi_job().properties)


def operator(*arguments: str, **container: Any) -> Thing:
    spec = {"template": {"spec": {"containers": [{"name": "operator", "args": list(arguments), **container}]}}}
    return Thing(type=tokens.DEPLOYMENT, name="mpi-operator", properties={"metadata": {"name": "mpi-operator"}, "spec": spec})


CASES = (
    valid("MPI01", b.mpi_job()),
    valid("MPI01", b.mpi_job({"spec/mpiImplementation": "Intel", f"{b.WORKER}/restartPolicy": "OnFailure"})),
    valid("MPI01", b.mpi_job({f"{LAUNCHER}/replicas": b.DELETE})),
    valid("MPI01", b.mpi_job({"metadata/name": b.DELETE})),
    valid("MPI01", operator("--lock-namespace=mpi")),
    valid("MPI01", b.mpi_job({"metadata/name": "a" * 54}), edge=True),
    valid("MPI01", b.mpi_job({f"{b.WORKER}/replicas": 1}), edge=True),
    invalid("MPI01", b.mpi_job({"metadata/name": "a" * 55}), says="at most 54 characters", edge=True),
    # The last worker's number is a part of its host name.
    valid("MPI01", b.mpi_job({"metadata/name": "a" * 54, f"{b.WORKER}/replicas": 10}), edge=True),
    valid("MPI01", b.mpi_job({"metadata/name": "a" * 53, f"{b.WORKER}/replicas": 11}), edge=True),
    invalid("MPI01", b.mpi_job({"metadata/name": "a" * 54, f"{b.WORKER}/replicas": 11}), says="at most 53 characters", edge=True),
    invalid("MPI01", b.mpi_job({f"{b.WORKER}/replicas": 0}), says="Worker.replicas is 0", edge=True),
    invalid(
        "MPI01", old_job("v1"), says="mpi-operator 0.8 serves (v1 is that of training operator 1.9, whose definition has the same name"
    ),
    invalid("MPI01", old_job("v1alpha2"), says="v1alpha2; allowed: kubeflow.org/v2beta1, the only version that mpi-operator 0.8 serves."),
    invalid("MPI01", b.mpi_job({f"{b.WORKER}/replicas": b.DELETE}), says="Worker.replicas is unset; allowed: at least 1"),
    invalid("MPI01", b.mpi_job({f"{LAUNCHER}/replicas": 2}), says="Launcher.replicas is 2; allowed: 1"),
    invalid("MPI01", b.mpi_job({LAUNCHER: b.DELETE}), says="Launcher is unset; allowed: one Launcher"),
    invalid("MPI01", b.mpi_job({f"{b.WORKER}/restartPolicy": "Always"}), says="restartPolicy is Always"),
    invalid("MPI01", b.mpi_job({"metadata/name": "Pretrain_1"}), says="it becomes a host name"),
    invalid("MPI01", b.mpi_job({"spec/mpiImplementation": "Open-MPI"}), says="OpenMPI, Intel, MPICH"),
    invalid(
        "MPI01",
        b.mpi_job({f"{LAUNCHER}/template/spec/initContainers": [{"name": "k", "image": "mpioperator/kubectl-delivery:0.2"}]}),
        says="no kubectl-delivery container",
    ),
    invalid("MPI01", operator("--kubectl-delivery-image=x"), says="no kubectl-delivery flag"),
    invalid(
        "MPI01",
        operator(command=["/opt/mpi-operator", "-kubectl-delivery-image", "x"]),
        says="containers[0].command[1] is -kubectl-delivery-image; allowed: no kubectl-delivery flag",
    ),
    valid("MPI02", b.mpi_job()),
    valid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["/bin/sh", "-c", "exec mpirun -np 32 -N 8 python3 train.py"]})),
    valid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["deepspeed", "--hostfile", "/etc/mpi/hostfile", "train.py"]})),
    valid("MPI02", mpirun("-np", "40", "x", **{"spec/runLauncherAsWorker": True})),
    valid("MPI02", mpirun("-np", "32", "--map-by", "ppr:8:node", "x")),
    valid("MPI02", mpirun("-np", "8", "x", **{f"{b.WORKER}/replicas": 1}), edge=True),
    invalid("MPI02", mpirun("-np", "31", "x"), says="is -np 31", edge=True),
    invalid("MPI02", mpirun("-np", "4", "x"), says="-np 32 (4 workers x 8 slots)"),
    invalid("MPI02", mpirun("python3", "train.py"), says="without -np"),
    invalid("MPI02", b.mpi_job({b.LAUNCHER_COMMAND: ["bash", "-c", "mpirun -np 64 x"]}), says="is -np 64"),
    invalid("MPI02", mpirun("-np", "32", "--map-by", "ppr:4:node", "x"), says="4 processes per node"),
    invalid("MPI02", mpirun("-n", "32", "-N", "4", "x"), says="is 4 processes per node; allowed: 8"),
    # MPI03 asks for the slots that are missing: both reckon with them.
    valid("MPI02", b.mpi_job({"spec/slotsPerWorker": b.DELETE}), edge=True),
    invalid(
        "MPI02", mpirun("-np", "16", "x", **{"spec/slotsPerWorker": b.DELETE}), says="is -np 16; allowed: -np 32 (4 workers x 8 slots)"
    ),
    invalid("MPI02", mpirun("-np", "16", "x", **{"spec/slotsPerWorker": 4}), says="is -np 16; allowed: -np 32 (4 workers x 8 slots)"),
    invalid("MPI02", mpirun("-np", "64", "x", **{"spec/slotsPerWorker": 16}), says="is -np 64; allowed: -np 32 (4 workers x 8 slots)"),
    valid("MPI03", b.mpi_job()),
    valid("MPI03", b.mpi_job({"spec/slotsPerWorker": "8"})),
    valid("MPI03", b.mpi_job({"spec/slotsPerWorker": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"cpu": "500m"}}})),
    valid("MPI03", b.mpi_job({"spec/slotsPerWorker": 64, f"{b.WORKER_CONTAINER}/resources": {}})),
    valid("MPI03", b.mpi_job({"spec/slotsPerWorker": 2, f"{b.WORKER_CONTAINER}/resources": {"limits": {"cpu": "2"}}}), edge=True),
    invalid(
        "MPI03",
        b.mpi_job({"spec/slotsPerWorker": 3, f"{b.WORKER_CONTAINER}/resources": {"limits": {"cpu": "2"}}}),
        says="at most 2",
        edge=True,
    ),
    invalid("MPI03", b.mpi_job({"spec/slotsPerWorker": b.DELETE}), says="1 (the default)"),
    invalid("MPI03", b.mpi_job({"spec/slotsPerWorker": 4}), says="slotsPerWorker is 4; allowed: 8"),
    invalid("MPI03", b.mpi_job({"spec/slotsPerWorker": 16}), says="slotsPerWorker is 16"),
    invalid(
        "MPI03", b.mpi_job({"spec/slotsPerWorker": 9, f"{b.WORKER_CONTAINER}/resources": {"requests": {"cpu": "7500m"}}}), says="at most 8"
    ),
    valid("MPI04", b.mpi_job()),
    valid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {"cpu": "1", "memory": "2Gi"}})),
    valid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {GPU: 8}, "spec/runLauncherAsWorker": True})),
    valid("MPI04", b.mpi_job({LAUNCHER: b.DELETE})),
    valid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {GPU: 0}}), edge=True),
    invalid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {GPU: 1}}), says='limits["nvidia.com/gpu"] is 1', edge=True),
    invalid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {GPU: "8"}}), says="is 8; allowed: none for a launcher"),
    invalid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {EFA: 4}}), says="vpc.amazonaws.com/efa"),
    invalid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {"aws.amazon.com/neuron": 16}}), says="aws.amazon.com/neuron"),
    invalid("MPI04", b.mpi_job({LAUNCHER_LIMITS: {GPU: 1}, "spec/runLauncherAsWorker": False}), says="runLauncherAsWorker: true"),
    valid("MPI05", b.mpi_job()),
    valid("MPI05", b.mpi_job({CLEAN: "All"})),
    valid("MPI05", b.mpi_job({"spec/runPolicy": {"cleanPodPolicy": "Running"}})),
    valid("MPI05", b.mpi_job({CLEAN: "Running", "spec/runPolicy/ttlSecondsAfterFinished": 60})),
    valid("MPI05", b.mpi_job({CLEAN: "All", "spec/runPolicy/suspend": True}), edge=True),
    invalid("MPI05", b.mpi_job({CLEAN: b.DELETE}), says="unset, so None", edge=True),
    invalid("MPI05", b.mpi_job({CLEAN: "None"}), says="cleanPodPolicy is None"),
    invalid("MPI05", b.mpi_job({"spec/runPolicy": b.DELETE}), says="unset, so None"),
    invalid("MPI05", b.mpi_job({CLEAN: "running"}), says="cleanPodPolicy is running; allowed: Running"),
    invalid("MPI05", b.mpi_job({CLEAN: ""}), says="cleanPodPolicy is "),
    # What the operator's own validation refuses beyond the definition.
    invalid("MPI01", b.mpi_job({"spec/slotsPerWorker": -1}), says="slotsPerWorker is -1; allowed: 0 or more", edge=True),
    valid("MPI01", b.mpi_job({"spec/slotsPerWorker": 0}), edge=True),
    *(
        invalid("MPI01", b.mpi_job({f"spec/runPolicy/{key}": -1}), says=f"runPolicy.{key} is -1; allowed: 0 or more")
        for key in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")
    ),
    valid(
        "MPI01",
        b.mpi_job({f"spec/runPolicy/{key}": 0 for key in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit")}),
        edge=True,
    ),
    invalid("MPI01", b.mpi_job({"spec/runPolicy/managedBy": "kueue"}), says="kubeflow.org/mpi-operator or kueue.x-k8s.io/multikueue"),
    valid("MPI01", b.mpi_job({"spec/runPolicy/managedBy": "kueue.x-k8s.io/multikueue"})),
    valid("MPI01", b.mpi_job({"spec/runPolicy/managedBy": "kubeflow.org/mpi-operator"}), edge=True),
    invalid("MPI01", b.mpi_job({f"{LAUNCHER}/template/spec/containers": []}), says="at least one container"),
    invalid("MPI01", b.mpi_job({f"{LAUNCHER}/template/spec/containers": b.DELETE}), says="at least one container"),
    invalid("MPI01", b.mpi_job({f"{b.WORKER}/template/spec/containers": []}), says="at least one container"),
    invalid("MPI01", b.mpi_job({f"{b.WORKER}/template": b.DELETE}), says="at least one container"),
    # Options of mpirun end at its program, and each call counts.
    valid("MPI02", mpirun("-N", "8", "bash", "-c", "python train.py"), edge=True),
    valid("MPI02", mpirun("--npernode", "8", "python", "train.py", "-n", "5")),
    valid("MPI02", mpirun("-np", "32", "python", "train.py", "-N", "5"), edge=True),
    valid("MPI02", mpirun("--allow-run-as-root", "-mca", "btl", "tcp", "-x", "A=1", "-np", "32", "./train", "-np", "5")),
    invalid("MPI02", mpirun("-mca", "btl", "-np", "-np", "31", "./train"), says="is -np 31"),
    valid("MPI02", mpirun("-ppn", "8", "-n", "32", "./train"), edge=True),
    invalid("MPI02", mpirun("-ppn", "4", "-n", "32", "./train"), says="is 4 processes per node; allowed: 8", edge=True),
    invalid("MPI02", mpirun("--ppn", "4", "./train"), says="is 4 processes per node; allowed: 8"),
    invalid("MPI02", mpirun("-perhost", "16", "./train"), says="is 16 processes per node; allowed: 8"),
    invalid("MPI02", mpirun("--pernode", "./train"), says="is 1 processes per node; allowed: 8"),
    valid("MPI02", mpirun("-n", "1", "./first", ":", "-n", "31", "./others"), edge=True),
    invalid("MPI02", mpirun("-n", "1", "./first", ":", "-n", "32", "./others"), says="is -np 33", edge=True),
    invalid("MPI02", script("mpirun -np 32 ./a && mpirun -np 4 ./b"), says="is -np 4"),
    invalid("MPI02", script("mpirun -np 32 ./a\nmpirun ./b"), says="without -np"),
    valid("MPI02", script("# mpirun -np 4 ./b\nmpirun -np 32 ./a")),
    # What prepares each node is run once there.
    valid("MPI02", script("mpirun -N 1 ./fetch && mpirun -np 32 ./train"), edge=True),
    invalid("MPI02", script("mpirun -N 1 ./train"), says="is 1 processes per node; allowed: 8"),
    valid("MPI02", script("NP=32; mpirun -np $NP ./train"), edge=True),
    invalid("MPI02", script("NP=4; mpirun -np $NP ./train"), says="is -np 4"),
    valid("MPI02", mpirun("-np", "$(NP)", "x", **{LAUNCHER_ENV: [{"name": "NP", "value": "32"}]}), edge=True),
    invalid("MPI02", mpirun("-np", "$(NP)", "x", **{LAUNCHER_ENV: [{"name": "NP", "value": "31"}]}), says="is -np 31", edge=True),
    invalid("MPI02", mpirun("-np", "many", "x"), says="is -np many"),
    valid("MPI02", mpirun("-np", "4", "x", **{b.WORKER: b.DELETE})),
    invalid("MPI02", mpirun("-np", "4", "x", **{b.WORKER: b.DELETE, "spec/runLauncherAsWorker": True}), says="(0 workers + launcher) x 8"),
    # A container that names no CPUs may use all of the node.
    valid("MPI03", b.mpi_job({f"{b.WORKER}/template/spec/containers": [UNBOUND, SIDECAR]}), edge=True),
    invalid("MPI03", b.mpi_job({f"{b.WORKER}/template/spec/containers": [SIDECAR]}), says="at most 1, the CPUs"),
)

SLOTS, LIMITS_OF_WORKER = "spec/slotsPerWorker", f"{b.WORKER_CONTAINER}/resources/limits"
CPUS = {SLOTS: 1, LIMITS_OF_WORKER: {"cpu": "36"}}


def one_slot(*words: str, **changes: Any) -> Thing:
    """A slot for each worker of eight GPUs."""
    return mpirun(*words, **{SLOTS: 1, **changes})


OVERSUBSCRIBED = (
    # mpirun does not stop for lack of slots where it is told not to.
    *(
        invalid("MPI02", mpirun(*words, "-np", "144", "x", **CPUS), says="-np 4 (4 workers x 1 slots), or a slotsPerWorker")
        for words in (
            ("--oversubscribe",),
            ("--map-by", "slot:OVERSUBSCRIBE"),
            ("--map-by", ":PE=2,oversubscribe"),
            ("--mca", "rmaps_base_oversubscribe", "1"),
        )
    ),
    *(
        invalid("MPI02", mpirun(*words, "-np", "144", "x", **CPUS), says="-np 4 (4 workers x 1 slots).", edge=True)
        for words in (("--map-by", "slot:NOOVERSUBSCRIBE"), ("--mca", "rmaps_base_oversubscribe", "0"))
    ),
    invalid(
        "MPI02",
        mpirun("-np", "144", "x", **CPUS, **{LAUNCHER_ENV: [{"name": "OMPI_MCA_rmaps_base_oversubscribe", "value": "true"}]}),
        says="or a slotsPerWorker",
    ),
    invalid("MPI02", mpirun("--oversubscribe", "-npernode", "36", "x", **CPUS), says="is 36 processes per node; allowed: 1"),
    invalid("MPI02", mpirun("--oversubscribe", "-np", "31", "x"), says="is -np 31", edge=True),
    invalid("MPI02", mpirun("--oversubscribe", "-np", "33", "x"), says="is -np 33", edge=True),
    invalid("MPI02", mpirun("--oversubscribe", "-N", "7", "x"), says="is 7 processes per node"),
    valid("MPI02", mpirun("--oversubscribe", "-np", "32", "x"), edge=True),
)

LAUNCHERS = (
    # One launcher on each node starts a process for each GPU.
    valid("MPI03", one_slot("-N", "1", "torchrun", "--nproc-per-node", "8", "x"), edge=True),
    valid("MPI02", one_slot("-N", "1", "torchrun", "--nproc-per-node", "8", "x")),
    valid("MPI02", mpirun("-np", "4", "-N", "1", "torchrun", "--nproc-per-node=8", "x"), edge=True),
    invalid("MPI02", mpirun("-np", "4", "-N", "1", "torchrun", "--nproc-per-node=4", "x"), says="is 1 processes per node", edge=True),
    invalid("MPI02", mpirun("-np", "2", "-N", "1", "torchrun", "--nproc-per-node=8", "x"), says="is -np 2"),
    # Several launchers on a worker that have its GPUs between them.
    valid("MPI02", mpirun("-np", "8", "-N", "2", "torchrun", "--nnodes=8", "--nproc-per-node=4", "x"), edge=True),
    valid("MPI02", mpirun("--map-by", "ppr:4:node", "torchrun", "--nproc-per-node=2", "x")),
    invalid("MPI02", mpirun("-np", "8", "torchrun", "--nproc-per-node=4", "x"), says="is -np 8; allowed: -np 32"),
    invalid("MPI02", mpirun("-np", "12", "-N", "3", "torchrun", "--nproc-per-node=4", "x"), says="is 3 processes per node", edge=True),
    invalid("MPI02", mpirun("-np", "4", "-N", "2", "torchrun", "--nproc-per-node=4", "x"), says="is -np 4; allowed: -np 32"),
    # A variable of Hydra's in one word is no pair.
    valid("MPI02", mpirun("-genv", "I_MPI_DEBUG=5", "-n", "32", "-ppn", "8", "python", "x")),
    invalid("MPI02", mpirun("-genv", "I_MPI_DEBUG=5", "-n", "16", "python", "x"), says="is -np 16"),
    invalid("MPI02", mpirun("-env", "A", "1", "-n", "16", "python", "x"), says="is -np 16"),
    valid("MPI03", one_slot("-np", "4", "bash", "-c", "torchrun --nproc_per_node=gpu x")),
    valid("MPI03", one_slot("-np", "8", "torchrun", "--nproc-per-node=4", "x", **{SLOTS: 2})),
    valid("MPI03", one_slot("-N", "1", "deepspeed", "--num_gpus=8", "x")),
    valid("MPI03", one_slot("-N", "1", "accelerate", "launch", "--num_machines=4", "--num_processes=32", "x")),
    valid("MPI03", one_slot("-N", "1", "accelerate", "launch", "--num_processes=8", "x"), edge=True),
    invalid(
        "MPI02", one_slot("-np", "2", "-N", "1", "torchrun", "--nproc-per-node=1", "x"), says="is -np 2; allowed: -np 32 (4 workers x 8"
    ),
    *(
        invalid("MPI02", mpirun(*options.split(), "torchrun", "--nproc-per-node=8", "x"), says=f"{found}-np 4 --map-by ppr:1:node (one")
        for options, found in (
            ("-np 5", "is -np 5; allowed: "),
            ("-np 2 -N 1", "is -np 2; allowed: "),
            ("-x A=b", "without -np; allowed: mpirun with "),
        )
    ),
    # A torchrun in each slot that starts a process for each GPU.
    *(
        invalid("MPI02", mpirun(*options.split(), "torchrun", each, "x"), says="is 8 torchruns x 8 processes = 64 on a worker")
        for options in ("-np 32", "-np 32 -N 8", "-np 32 --map-by ppr:8:node", "-np 32 -x A=b numactl -l")
        for each in ("--nproc-per-node=8", "--nproc_per_node=gpu")
    ),
    invalid("MPI02", mpirun("-np", "32", "torchrun", "--standalone", "--nproc-per-node=8", "x"), says="= 64 on a worker"),
    *(
        invalid("MPI02", mpirun("-np", "32", shell, "-c", "torchrun --nproc-per-node=8 x"), says="= 64 on a worker")
        for shell in ("sh", "bash")
    ),
    invalid(
        "MPI02", script("mpirun -np 32 torchrun --nproc-per-node=2 x"), says="is 8 torchruns x 2 processes = 16 on a worker", edge=True
    ),
    valid("MPI02", script("mpirun -np 32 torchrun --nproc-per-node=1 x"), edge=True),
    valid("MPI02", script("mpirun -np 32 torchrun x")),
    valid("MPI02", script("mpirun -np 32 bash -c 'CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_LOCAL_RANK torchrun --nproc-per-node=gpu x'")),
    valid("MPI02", script("mpirun -np 32 torchrun --nproc-per-node=$EACH x")),
    valid("MPI02", script("mpirun -np 32 ./train && torchrun --nproc-per-node=8 x")),
    valid("MPI02", one_slot("-np", "4", "torchrun", "--nproc-per-node=8", "x"), edge=True),
    valid("MPI02", mpirun("-np", "4", "--map-by", "ppr:1:node", "torchrun", "--nproc-per-node=8", "x"), edge=True),
    valid("MPI02", mpirun("-npernode", "1", "torchrun", "--nproc-per-node=8", "x"), edge=True),
    invalid(
        "MPI02", mpirun("-N", "1", "torchrun", "x", **{SLOTS: 2, LIMITS_OF_WORKER: {GPU: 2}}), says="is 1 processes per node; allowed: 2"
    ),
    valid("MPI03", one_slot("-N", "1", "deepspeed", "x"), edge=True),
    *(
        invalid("MPI03", one_slot("-N", "1", "deepspeed", f"--{option}=4", "x"), says="allowed: 8, the GPUs of each worker.")
        for option in ("num_gpus", "num_accelerators")
    ),
    invalid(
        "MPI03", one_slot("-N", "1", "torchrun", "--nproc-per-node=7", "x"), says="is 1; allowed: 8, the GPUs of each worker.", edge=True
    ),
    invalid("MPI03", one_slot("-N", "1", "torchrun", "x"), says="allowed: 8, the GPUs of each worker."),
    invalid("MPI03", one_slot("-np", "4", "python3", "x"), says="allowed: 8, the GPUs of each worker."),
    invalid("MPI03", b.mpi_job({SLOTS: 1, b.LAUNCHER_COMMAND: ["torchrun", "--nproc-per-node=8", "x"]}), says="the GPUs of each worker."),
    # A program of its own may do so too.
    invalid("MPI03", one_slot("-N", "1", "/scripts/train.sh"), says="unless the program starts a process for each itself"),
    invalid("MPI03", one_slot("--map-by", "ppr:1:node", "x"), says="unless the program starts"),
    invalid("MPI03", one_slot("-N", "1", "torchrun", "$ARGS", "x"), says="unless the program starts"),
    invalid("MPI03", one_slot("-N", "1", "torchrun", "--nproc-per-node=$GPUS", "x"), says="unless the program starts"),
    invalid("MPI03", one_slot("-N", "1", "accelerate", "launch", "x"), says="unless the program starts"),
    invalid(
        "MPI03", one_slot("-N", "1", "x", **{SLOTS: b.DELETE}), says="is 1 (the default); allowed: 8, the GPUs of each worker.", edge=True
    ),
    invalid("MPI03", one_slot("-N", "1", "x", **{SLOTS: 2}), says="allowed: 8, the GPUs of each worker.", edge=True),
)

CASES += OVERSUBSCRIBED + LAUNCHERS

WORKER_USER = f"{b.WORKER_CONTAINER}/securityContext"
POD_USER = f"{b.WORKER}/template/spec/securityContext"
LAUNCHER_USER = f"{LAUNCHER}/template/spec/securityContext"
WORKER_COMMAND = f"{b.WORKER_CONTAINER}/command"
STARTED = {"postStart": {"exec": {"command": ["service", "ssh", "start"]}}}
DROPPED = {"capabilities": {"drop": ["ALL"]}}

CASES += (
    # Where the keys are, and who may read them.
    invalid("MPI01", b.mpi_job({WORKER_USER: {"runAsUser": 1000}}), says="runAsUser is 1000; allowed: 0, or spec.sshAuthMountPath"),
    valid("MPI01", b.mpi_job({WORKER_USER: {"runAsUser": 0}}), edge=True),
    valid("MPI01", b.mpi_job({WORKER_USER: {"runAsUser": 1000}, "spec/sshAuthMountPath": "/home/mpiuser/.ssh"})),
    invalid("MPI01", b.mpi_job({POD_USER: {"runAsUser": 1000}, "spec/sshAuthMountPath": "/root/.ssh"}), says="runAsUser is 1000"),
    valid("MPI01", b.mpi_job({POD_USER: {"runAsUser": 1000}, WORKER_USER: {"runAsUser": 0}}), edge=True),
    invalid("MPI01", b.mpi_job({LAUNCHER_USER: {"runAsUser": 1000}}), says="Launcher.template.spec.security"),
    invalid("MPI01", b.mpi_job({LAUNCHER_USER: {"fsGroup": 1337, "runAsUser": 0}}), says="fsGroup is 1337; allowed: unset for root"),
    invalid("MPI01", b.mpi_job({LAUNCHER_USER: {"fsGroup": 1337}}), says="ssh takes none that others may read", edge=True),
    valid("MPI01", b.mpi_job({POD_USER: {"fsGroup": 1337, "runAsUser": 0}}), edge=True),
    valid("MPI01", b.mpi_job({POD_USER: {"fsGroup": 1337, "runAsUser": 1000}, "spec/sshAuthMountPath": "/home/mpiuser/.ssh"})),
    # What runs in the workers.
    invalid("MPI01", b.mpi_job({WORKER_COMMAND: ["sleep", "infinity"]}), says="sleep in each worker; allowed: unset, so /usr/sbin/sshd"),
    invalid("MPI01", b.mpi_job({WORKER_COMMAND: ["bash", "-c", "python3 train.py"]}), says="python3 in each worker"),
    valid("MPI01", b.mpi_job({WORKER_COMMAND: ["/usr/sbin/sshd", "-De"]})),
    # The image's own program, or a hook, may start it.
    valid("MPI01", b.mpi_job({f"{b.WORKER_CONTAINER}/args": ["sleep", "infinity"]}), edge=True),
    valid("MPI01", b.mpi_job({WORKER_COMMAND: ["sleep", "infinity"], f"{b.WORKER_CONTAINER}/lifecycle": STARTED}), edge=True),
    valid("MPI01", b.mpi_job({WORKER_COMMAND: ["bash", "-c", "service ssh start; sleep infinity"]}), edge=True),
    valid("MPI01", b.mpi_job({WORKER_COMMAND: ["/opt/entrypoint.sh"]}), edge=True),
    # What sshd may do.
    invalid("MPI01", b.mpi_job({WORKER_USER: {**DROPPED, "runAsUser": 0}}), says="drop is [ALL]; allowed: with SYS_CHROOT under add"),
    invalid("MPI01", b.mpi_job({WORKER_USER: DROPPED}), says="or another user than root", edge=True),
    valid("MPI01", b.mpi_job({WORKER_USER: {"capabilities": {"drop": ["ALL"], "add": ["SYS_CHROOT"]}}}), edge=True),
    valid("MPI01", b.mpi_job({f"{LAUNCHER}/template/spec/containers/0/securityContext": DROPPED})),
)
