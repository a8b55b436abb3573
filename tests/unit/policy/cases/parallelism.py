"""Parallelism by command line."""

from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.batch_job import COMMAND, ENV, LIMITS, cron, job, owned, shell, variables


def gang(arguments: str, **changes: Any) -> Thing:
    """Four pods of eight GPUs."""
    return b.volcano_job({f"{b.TASK_CONTAINER}/command": ["python3", "pretrain.py", *arguments.split()], **changes})


def mpi(arguments: str) -> Thing:
    return b.mpi_job({b.LAUNCHER_COMMAND: ["mpirun", "-np", "32", "python3", "pretrain.py", *arguments.split()]})


def with_launcher(workers: int, arguments: str) -> Thing:
    """An MPIJob whose launcher runs ranks too."""
    command = ["mpirun", "-np", "32", "python3", "pretrain.py", *arguments.split()]
    return b.mpi_job({b.LAUNCHER_COMMAND: command, f"{b.WORKER}/replicas": workers, "spec/runLauncherAsWorker": True})


def sized(gpus: int, pods: int, arguments: str) -> Thing:
    return gang(arguments, **{f"{b.TASK_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": gpus}}, "spec/tasks/0/replicas": pods})


def launched(options: str, arguments: str, pods: int = 4, /, **changes: Any) -> Thing:
    """A Job of pods of eight GPUs whose launcher has these options."""
    plain = {COMMAND: [*options.split(), "train.py", *arguments.split()], "spec/parallelism": pods, "spec/completions": pods}
    return job({**plain, **changes})


def of_set(arguments: str, launcher: str = "python3", *, groups: int = 1, copies: int = 1, pods: int = 4, **spec: Any) -> Thing:
    """A JobSet of so many groups, each of so many Jobs of so many pods of eight GPUs."""
    inner = job({COMMAND: [*launcher.split(), "train.py", *arguments.split()], "spec/parallelism": pods, "spec/completions": pods})
    template = {"spec": {**inner.properties["spec"], **spec}}
    jobs = [{"name": f"group-{index}", "replicas": copies, "template": template} for index in range(groups)]
    return Thing(type=tokens.JOB_SET, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": {"replicatedJobs": jobs}})


def of_leaders(arguments: str, launcher: str) -> Thing:
    """Two groups of a leader and three workers each, of eight GPUs."""
    template = owned(tokens.STATEFUL_SET, *launcher.split(), "train.py", *arguments.split()).properties["spec"]["template"]
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template}}
    return Thing(type=tokens.LEADER_WORKER_SET, name="serve", properties={"metadata": {"name": "serve"}, "spec": spec})


OF_FOUR = "torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=pretrain-0.ranks:29500"
ENDPOINT = "--rdzv-backend=c10d --rdzv-endpoint=pretrain-0.ranks:29500"
QUEUE: dict[str, Any] = {"spec/completions": 100, "spec/completionMode": "NonIndexed"}
MODEL = "--num-attention-heads 64 --num-query-groups 8 --hidden-size 8192"
MEGATRON = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --micro-batch-size 1"
CASES = (
    # Megatron-LM divides batch, layers and experts evenly, unless it is told how else.
    valid("PAR01", gang(f"{MEGATRON} --global-batch-size 64"), edge=True),
    invalid(
        "PAR01",
        gang(f"{MEGATRON} --global-batch-size 63"),
        says="is global batch 63; allowed: a multiple of 2 = micro-batch 1 x 2 data-parallel replicas",
        edge=True,
    ),
    invalid("PAR01", gang(f"{MEGATRON} --context-parallel-size 2 --micro-batch-size 2 --global-batch-size 63"), says="a multiple of 2 ="),
    invalid("PAR01", mpi(f"{MEGATRON} --global-batch-size=63"), says="global batch 63"),
    valid("PAR01", gang(f"{MEGATRON} --global-batch-size 63 --decrease-batch-size-if-needed")),
    valid("PAR01", gang(f"{MEGATRON} --global-batch-size 63 --rampup-batch-size 16 8 300")),
    valid("PAR01", gang(f"{MEGATRON} --train-batch-size 63")),
    valid("PAR01", gang(f"{MEGATRON} --global-batch-size $BATCH")),
    valid("PAR01", gang("--micro-batch-size 2 --global-batch-size 63")),
    valid("PAR01", gang(f"{MEGATRON} --num-layers 30"), edge=True),
    invalid("PAR01", gang(f"{MEGATRON} --num-layers 31"), says="is 31 layers; allowed: a multiple of 2, the pipeline stages", edge=True),
    valid("PAR01", gang(f"{MEGATRON} --num-layers 31 --decoder-first-pipeline-num-layers 15")),
    valid("PAR01", gang(f"{MEGATRON} --num-layers 31 --account-for-embedding-in-pipeline-split")),
    valid("PAR01", gang("--pp 4 --num-layers 30")),
    # DeepSpeed's pipeline takes any number of layers.
    valid("PAR01", gang(f"{MEGATRON} --num-layers 31 --deepspeed --deepspeed_config ds.json")),
    valid("PAR01", gang(f"{MEGATRON} --num-layers 31 --pp-partition-method type:transformer")),
    invalid("PAR01", gang(f"{MEGATRON} --num-layers 31 --deepspeed --no-pipeline-parallel"), says="is 31 layers", edge=True),
    valid("PAR01", gang("--num-experts 8 --expert-model-parallel-size 4"), edge=True),
    invalid(
        "PAR01", gang("--num-experts 6 --expert-model-parallel-size 4"), says="is 6 experts; allowed: a multiple of 4, the ranks", edge=True
    ),
    valid("PAR01", gang("--num-experts 6 --expert-parallel-size 4")),
    valid("PAR01", gang("--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4")),
    valid("PAR01", gang("--tp 8 --pp 2 --dp 2")),
    valid("PAR01", mpi("parallel.tensor=8 parallel.pipeline=2")),
    valid("PAR01", gang("train.py")),
    valid("PAR01", mpi(f"parallel.tensor={'9' * 5000}")),
    valid("PAR01", job({COMMAND: ["torchrun", "train.py", "--parallelism.tensor_parallel_degree", "8"]})),
    valid("PAR01", gang("--tp 8 --pp 4 --micro-batch-size 1 --global-batch-size 4"), edge=True),
    invalid("PAR01", gang("--tp 8 --pp 4 --micro-batch-size 1 --global-batch-size 3"), says="at least 4 micro-batches", edge=True),
    invalid("PAR01", gang("--tp 8 --pp 8"), says="tensor 8 x pipeline 8 = 64; allowed: a product that divides 32 ranks"),
    invalid("PAR01", gang("--tp 8 --pp 2 --dp 4"), says="so data 2"),
    invalid("PAR01", mpi("parallel.tensor=3"), says="tensor 3 = 3; allowed: a product that divides 32 ranks (4 nodes x 8)"),
    invalid(
        "PAR01",
        gang("--tp 8 --expert-model-parallel-size 8"),
        says="is expert tensor 8 x expert 8 = 64; allowed: a product that divides 32",
    ),
    invalid("PAR01", job({COMMAND: ["torchrun", "train.py", "--context_parallel_size=5"]}), says="context 5 = 5"),
    valid("PAR02", gang(f"--tp 8 {MODEL}")),
    valid("PAR02", mpi("--tensor-model-parallel-size 4")),
    valid("PAR02", gang("--pp 4")),
    valid("PAR02", job({COMMAND: ["torchrun", "train.py", "--tp=2", "--num-attention-heads=6"]})),
    valid("PAR02", gang("--tp 8"), edge=True),
    invalid("PAR02", gang("--tp 16"), says="tensor 16; allowed: a divisor of 8, the ranks of a node", edge=True),
    invalid("PAR02", gang("--tp 8 --num-attention-heads 60"), says="a divisor of 60, attention heads"),
    invalid("PAR02", gang("--tp 8 --num-query-groups 4"), says="a divisor of 4, key and value heads"),
    invalid("PAR02", mpi("--tp 8 --hidden-size 4100"), says="a divisor of 4100, the hidden size"),
    invalid("PAR02", gang("--tp 3"), says="is tensor 3"),
    # Without GPUs nobody can tell the ranks.
    valid("PAR01", sized(0, 4, "--tp 8 --pp 8")),
    valid("PAR01", sized(8, 0, "--tp 8 --dp 4")),
    # What a trainer calls the batch of one rank.
    valid("PAR01", gang("--micro-batch-size 1 --train-batch-size 8")),
    valid("PAR01", sized(1, 2, "--tp 2"), edge=True),
    invalid("PAR01", sized(1, 1, "--tp 2"), says="a product that divides 1 ranks (1 nodes x 1)", edge=True),
    invalid("PAR01", gang("--dp 16"), says="1 x data 16 = 16; allowed: 32 ranks"),
    invalid("PAR01", gang("--tp 8 --pp 2 --micro-batch-size 1 --global-batch-size 2"), says="at least 2 micro-batches", edge=True),
    valid("PAR02", sized(0, 4, "--tp 16")),
    invalid("PAR02", gang("--tp 2 --num-attention-heads 5"), says="a divisor of 5", edge=True),
    invalid("PAR02", sized(1, 2, "--tp 2"), says="a divisor of 1, the ranks of a node", edge=True),
    valid("PAR01", gang("--tp 8 --sp 4")),
    valid("PAR01", gang("--sp 30")),
    valid("PAR01", gang("--tp 4 --sequence-parallel --ds-sequence-parallel-size 8"), edge=True),
    invalid("PAR01", gang("--tp 8 --sp 8"), says="tensor 8 x sequence 8 = 64; allowed: a product that divides 32 ranks", edge=True),
    invalid("PAR01", gang("--ulysses-degree 12"), says="sequence 12 = 12"),
    invalid("PAR01", gang("--tp 2 --ds-sequence-parallel-size 4 --dp 16"), says="so data 4"),
    # Experts have groups of their own: with the pipeline, and a tensor group that may be another than the rest's.
    valid("PAR01", gang("--tensor-model-parallel-size 8 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1"), edge=True),
    valid("PAR01", gang("--tp 2 --cp 4 --expert-model-parallel-size 8 --expert-tensor-parallel-size 2")),
    valid("PAR01", gang("--tp 2 --cp 4 --expert-model-parallel-size 16"), edge=True),
    valid(
        "PAR01",
        gang("--parallelism.tensor-parallel-degree 2 --parallelism.context-parallel-degree 4 --parallelism.expert-parallel-degree 16"),
    ),
    invalid("PAR01", gang("--tp 2 --cp 4 --expert-model-parallel-size 32"), says="expert tensor 2 x expert 32 = 64", edge=True),
    invalid("PAR01", gang("--pp 4 --parallelism.expert-parallel-degree 16"), says="expert 16 x pipeline 4 = 64", edge=True),
    invalid("PAR01", gang("--expert-parallel-size 4 --expert-tensor-parallel-size 16"), says="expert tensor 16 x expert 4 = 64"),
    # The project's own trainer divides them among the replicas only.
    valid("PAR01", mpi("parallel.tensor=8 parallel.expert=4"), edge=True),
    invalid(
        "PAR01", mpi("parallel.tensor=8 parallel.expert=8"), says="is expert 8; allowed: a divisor of 4 data-parallel ranks", edge=True
    ),
    # Epochs, where no axis is named.
    valid("PAR01", gang("--ep 30")),
    valid("PAR01", gang("--tp 8 --ep 4")),
    invalid("PAR01", gang("--tp 8 --ep 30"), says="expert 30 = 30"),
    valid("PAR01", with_launcher(3, "--tp 8 --dp 4"), edge=True),
    invalid("PAR01", with_launcher(4, "--tp 8 --dp 4"), says="40 ranks (5 nodes x 8), so data 5", edge=True),
    # Pods that take items of a queue work alone, and so does one that is told that it is the only node.
    valid("PAR01", launched("python3", "--tensor-parallel-size 8 --data-parallel-size 1", **QUEUE), edge=True),
    valid("PAR01", launched("python3", "--tensor-parallel-size 8 --data-parallel-size 1", **{**QUEUE, "spec/completions": b.DELETE})),
    invalid("PAR01", launched("python3", "--tp 8 --dp 4", **QUEUE), says="allowed: 8 ranks (1 nodes x 8), so data 1", edge=True),
    invalid("PAR01", launched("python3", "--tp 8 --dp 1"), says="allowed: 32 ranks (4 nodes x 8), so data 4"),
    valid("PAR01", launched("torchrun --standalone --nproc-per-node=8", "--tp 8 --dp 1")),
    invalid("PAR01", launched("torchrun --nnodes=1 --nproc-per-node=8", "--tp 8 --pp 4"), says="divides 8 ranks (1 nodes x 8)"),
    # A job for each node.
    valid("PAR01", launched("torchrun --nnodes=2 --node-rank=0 --master-addr=a", "--tp 8 --pp 2 --dp 1", 1)),
    valid("PAR01", launched("torchrun --nnodes=2 --node-rank=1 --master-addr=a", "--tp 8 --pp 2 --dp 1", 1), edge=True),
    invalid("PAR01", launched("torchrun --nnodes=2 --node-rank=1 --master-addr=a", "--tp 8 --pp 4", 1), says="16 ranks (2 nodes x 8)"),
    # The launcher may start fewer ranks than there are GPUs.
    valid("PAR01", launched("torchrun --nproc-per-node=4", "--data-parallel-size 4", 1)),
    invalid("PAR01", launched("torchrun --nproc-per-node=4", "--tensor-parallel-size 8", 1), says="4 ranks (1 nodes x 4)"),
    invalid("PAR01", launched(f"torchrun --nnodes=4 --nproc-per-node=4 {ENDPOINT}", "--tp 4 --dp 8"), says="so data 4", edge=True),
    valid("PAR01", launched(f"torchrun --nnodes=4 --nproc-per-node=gpu {ENDPOINT}", "--tp 4 --dp 8")),
    valid("PAR01", launched(f"torchrun --nnodes=2:4 --nproc-per-node=8 {ENDPOINT}", "--tp 8 --dp 4")),
    valid("PAR01", launched("accelerate launch --num_machines 4 --num_processes 16", "--tp 4 --dp 4")),
    invalid("PAR01", launched("accelerate launch --num_machines 4 --num_processes 32", "--tp 4 --dp 4"), says="so data 8"),
    valid("PAR01", launched("accelerate launch --num_processes 4", "--tp 4 --dp 1", 1)),
    invalid("PAR01", launched("accelerate launch --num_processes 4", "--tp 8", 1), says="4 ranks (1 nodes x 4)"),
    valid("PAR01", launched("accelerate launch --config_file a.yaml --num_processes 32", "--tp 8 --dp 4")),
    valid("PAR01", launched("deepspeed --num_gpus 4", "--tp 4 --dp 1", 1)),
    valid("PAR01", launched("torchrun --nproc-per-node=4", "--tp 8", 1, **{LIMITS: {"cpu": "4"}})),
    valid("PAR02", launched("torchrun --nproc-per-node=4", "--tp 4", 1)),
    invalid("PAR02", launched(f"torchrun --nnodes=4 --nproc-per-node=4 {ENDPOINT}", "--tp 8"), says="a divisor of 4, the ranks of a node"),
    # Each command has its own sizes, which may be variables of the container.
    valid("PAR01", launched(f"torchrun --nnodes=4 --nproc-per-node=8 {ENDPOINT}", "--tp $(TP) --pp 4", **{ENV: variables(TP="8")})),
    invalid("PAR01", launched("python3", "--tp $(TP)", **{ENV: variables(TP="5")}), says="tensor 5 = 5", edge=True),
    valid("PAR01", shell(f"torchrun --nnodes=4 {ENDPOINT} train.py --tp 8", "python3 eval.py --tp 3"), edge=True),
    invalid("PAR01", shell(f"torchrun --nnodes=4 {ENDPOINT} train.py --tp 3", "python3 eval.py --tp 8"), says="tensor 3 = 3"),
    valid("PAR01", shell("torchrun --standalone prepare.py", f"torchrun --nnodes=4 {ENDPOINT} train.py --tp 8 --dp 4")),
    valid(
        "PAR01", shell(f"torchrun --nnodes=4 {ENDPOINT} train.py --dp 32", "torchrun --standalone --nproc-per-node=8 eval.py --tp 8 --dp 1")
    ),
    invalid("PAR01", launched("python3", "parallel.tensor=$(TP)", **{ENV: variables(TP="5")}), says="tensor 5 = 5"),
    # Jobs of a CronJob and of a JobSet are runs as well; of a set's groups nobody knows which train together, unless the launcher says so.
    valid("PAR01", cron({COMMAND: ["python3", "train.py", "--tp", "8", "--dp", "4"]})),
    invalid("PAR01", cron({COMMAND: ["python3", "train.py", "--tp", "8", "--pp", "3"]}), says="divides 32 ranks (4 nodes x 8)"),
    valid("PAR01", of_set("--tp 8 --dp 4"), edge=True),
    invalid(
        "PAR01", of_set("--tp 8 --pp 3 --dp 4"), says="tensor 8 x pipeline 3 = 24; allowed: a product that divides 32 ranks", edge=True
    ),
    valid("PAR01", of_set("--tp 8 --dp 1", completions=100)),
    valid("PAR01", of_set("--tp 8 --dp 1", copies=4, pods=1)),
    valid("PAR01", of_set("--tp 8 --dp 4", copies=4, pods=1)),
    valid("PAR01", of_set("--tp 8 --dp 4", groups=2, pods=2)),
    valid("PAR01", of_set("--tp 8 --dp 4", OF_FOUR, copies=2)),
    invalid("PAR01", of_set("--tp 8 --dp 8", OF_FOUR, copies=2), says="so data 4"),
    invalid("PAR01", of_set("--tp 3", OF_FOUR, groups=4, pods=1), says="divides 32 ranks (4 nodes x 8)"),
    valid("PAR01", owned(tokens.STATEFUL_SET, "python3", "serve.py", "--tp", "8", "--dp", "1"), edge=True),
    valid("PAR01", owned(tokens.STATEFUL_SET, *OF_FOUR.split(), "train.py", "--tp", "8", "--dp", "4")),
    invalid("PAR01", owned(tokens.STATEFUL_SET, *OF_FOUR.split(), "train.py", "--tp", "8", "--dp", "1"), says="so data 4", edge=True),
    valid("PAR01", of_leaders("--tp 8 --dp 4", OF_FOUR)),
    valid("PAR01", of_leaders("--tp 8 --dp 1", "python3")),
    valid("PAR01", of_leaders("--tp 8 --dp 4", OF_FOUR.replace("=4", "=2:4"))),
    invalid("PAR01", of_leaders("--tp 8 --dp 8", OF_FOUR), says="so data 4"),
    invalid("PAR02", of_set("--tp 16", OF_FOUR), says="a divisor of 8, the ranks of a node"),
    valid("PAR02", of_leaders("--tp 16", "python3")),
)
