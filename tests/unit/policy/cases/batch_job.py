"""Trainers over the pods of a Job, and processes per device."""

from typing import Any

from guardrails import tokens
from guardrails.template import GPU
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid
from tests.unit.policy.cases.pod_security import config_map

_JOB = {
    "metadata": {"name": "pretrain"},
    "spec": {
        "parallelism": 4,
        "completions": 4,
        "completionMode": "Indexed",
        "backoffLimit": 8,
        "template": {
            "spec": {
                "subdomain": "ranks",
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "main",
                        "command": [
                            "torchrun",
                            "--nnodes=4",
                            "--nproc-per-node=8",
                            "--rdzv-backend=c10d",
                            "--rdzv-endpoint=pretrain-0.ranks:29500",
                            "train.py",
                        ],
                        "resources": {"limits": {GPU: 8}},
                    }
                ],
            }
        },
    },
}
POD = "spec/template/spec"
COMMAND = f"{POD}/containers/0/command"
ENV = f"{POD}/containers/0/env"
LIMITS = f"{POD}/containers/0/resources/limits"
CORES = "aws.amazon.com/neuroncore"
TYPE = "node.kubernetes.io/instance-type"
NEURON = {LIMITS: {"aws.amazon.com/neuron": 16}, COMMAND: ["python3", "train.py"]}


def job(changes: dict[str, Any] | None = None) -> Thing:
    return Thing(type=tokens.JOB, name="pretrain", properties=b.changed(_JOB, changes or {}))


def torchrun(*words: str, **changes: Any) -> Thing:
    return job({COMMAND: ["torchrun", *words, "train.py"], **changes})


def shell(*lines: str, **changes: Any) -> Thing:
    """A shell script in the container."""
    return job({COMMAND: ["bash", "-ec", "\n".join(lines)], **changes})


def variables(**values: Any) -> list[dict[str, Any]]:
    """Environment entries: literal values, or where they come from."""
    return [{"name": name, **(value if isinstance(value, dict) else {"value": value})} for name, value in values.items()]


def owned(kind: str, *words: str, **changes: Any) -> Thing:
    """Four pods of a Deployment or the like."""
    spec = job({COMMAND: list(words), **changes}).properties["spec"]["template"]
    return Thing(type=kind, name="serve", properties={"metadata": {"name": "serve"}, "spec": {"replicas": 4, "template": spec}})


def cron(changes: dict[str, Any]) -> Thing:
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": job(changes).properties["spec"]}}
    return Thing(type=tokens.CRON_JOB, name="nightly", properties={"metadata": {"name": "nightly"}, "spec": spec})


def master(*, before: list[dict[str, Any]] | None = None, **source: Any) -> Thing:
    return torchrun("--nnodes=4", "--node-rank=0", "--master-addr=x", **{ENV: [*(before or []), {"name": "MASTER_ADDR", **source}]})


def field(path: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def batch(tasks: int, gpus: int, processes: int, *, gres: str | None = None) -> Thing:
    asked = f"--gres=gpu:{gres}" if gres else f"--gpus-per-node={gpus}"
    lines = [
        "#!/bin/bash",
        f"#SBATCH --ntasks-per-node={tasks}",
        f"#SBATCH {asked}",
        f"srun torchrun --nproc-per-node={processes} train.py",
    ]
    return config_map(script="\n".join(lines))


OF_NODES = "--nodes=4 --gpus-per-node=8"
FIRST = "--rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500"


def slurm(options: str, *lines: str) -> Thing:
    """A batch script with an option to a line at its head."""
    return config_map(script="\n".join(["#!/bin/bash", *(f"#SBATCH {each}" for each in options.split()), *lines]))


def step(
    options: str, processes: object = 8, *, nodes: object = 4, head: str = f"{OF_NODES} --ntasks-per-node=8", more: str = FIRST
) -> Thing:
    """A batch script of four nodes of eight GPUs, and torchrun in a step of it."""
    return slurm(head, f"srun {options} torchrun --nnodes={nodes} --nproc-per-node={processes} {more} train.py")


ONE_EACH = f"{OF_NODES} --ntasks-per-node=1"
EIGHT_EACH = f"{OF_NODES} --ntasks-per-node=8"
ITS_NAME = "$(hostname)"
NESTED = [f'{name}="{f"${after}" * 40}"' for name, after in zip("ABCDEF", "BCDEFG", strict=True)]
SUM = "export WORLD_SIZE=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))"
TORCHRUN = f"torchrun --nnodes=4 --nproc-per-node=8 {FIRST} train.py"
OF_STEPS = (
    # A step's own options come before those of the job.
    valid("JOB03", step('--ntasks="$SLURM_NNODES" --ntasks-per-node=1')),
    valid("JOB03", step("-n $SLURM_JOB_NUM_NODES"), edge=True),
    invalid("JOB03", step("-n 5"), says="2 tasks x 8 processes = 16 per node", edge=True),
    invalid("JOB03", step(""), says="8 tasks x 8 processes = 64 per node"),
    invalid("JOB03", step("", "$SLURM_NTASKS_PER_NODE"), says="8 tasks x 8 processes = 64 per node"),
    valid("JOB03", step("--ntasks=4 --ntasks-per-node=1", "$SLURM_NTASKS_PER_NODE")),
    valid("JOB03", step("", "$PROCESSES")),
    valid("JOB03", step("--ntasks=$TASKS")),
    valid("JOB03", step("", 1)),
    invalid("JOB03", step("--ntasks-per-node=8", head=OF_NODES), says="8 tasks x 8 processes"),
    invalid("JOB03", step("--label --job-name torch --tasks-per-node 8 -J x", head=OF_NODES), says="8 tasks x 8 processes"),
    # Some releases go by the job's number of tasks here.
    invalid("JOB03", step("--ntasks-per-node=8", head=ONE_EACH), says="8 tasks x 8 processes"),
    valid("JOB03", step("--nodes=1", head=f"{OF_NODES} --ntasks=8")),
    invalid("JOB03", step("", head=f"{OF_NODES} --ntasks=32"), says="8 tasks x 8 processes"),
    invalid("JOB03", step("", head="-N4 -n32 --gres=nvme:1,gpu:h100:8"), says="8 tasks x 8 processes"),
    invalid("JOB03", step("-N 4 -n 32", head=OF_NODES), says="8 tasks x 8 processes"),
    valid("JOB03", step("", head="--ntasks=32 --gpus-per-node=8")),
    invalid("JOB03", step("", head="--ntasks=32 --ntasks-per-node=8 --gpus-per-node=8"), says="8 tasks x 8 processes"),
    valid("JOB03", step("", head=f"{OF_NODES} --ntasks-per-gpu=1")),
    valid("JOB03", step("", head="--nodes=2-4 --ntasks=32 --gpus-per-node=8")),
    valid("JOB03", slurm(OF_NODES, "export SLURM_NTASKS=4", "srun --ntasks-per-node=8 " + TORCHRUN)),
    # sbatch reads no option after the first command.
    valid("JOB03", slurm(OF_NODES, "set -e", "#SBATCH --ntasks-per-node=8", "srun " + TORCHRUN)),
    valid("JOB03", slurm(f"{OF_NODES} --ntasks-per-node=8", TORCHRUN)),
    invalid("JOB03", step("", "gpu"), says="8 tasks x 8 processes"),
    valid("JOB03", step("", "gpu", head=ONE_EACH), edge=True),
    valid("JOB03", step("--gpu-bind=single:1", "gpu")),
    valid("JOB03", step("--gpus-per-task=1", "gpu")),
    invalid("JOB03", step("--gpus-per-task=1"), says="8 tasks x 8 processes = 64 per node; allowed: at most 8"),
    invalid("JOB03", step("", head="--nodes=4 --ntasks-per-node=8 --gpus-per-task=8"), says="8 tasks x 8 GPUs of their own"),
    valid("JOB03", step("", head="--nodes=4 --ntasks-per-node=2 --gpus-per-task=8"), edge=True),
    invalid("JOB03", slurm(f"{OF_NODES} --ntasks-per-node=8", SUM, "srun --ntasks=$WORLD_SIZE \\", f"  {TORCHRUN}"), says="8 tasks x 8"),
    valid("JOB03", slurm(f"{OF_NODES} --ntasks-per-node=8", SUM, "export WORLD_SIZE=4", "srun --ntasks=$WORLD_SIZE " + TORCHRUN)),
    valid("JOB03", slurm(f"{OF_NODES} --ntasks-per-node=8", "N=$((SLURM_NTASKS / 8))", "srun --ntasks=${N} " + TORCHRUN), edge=True),
    invalid("JOB03", slurm(f"{OF_NODES} --ntasks-per-node=8", "N=$((SLURM_NTASKS - 24))", "srun -n$N " + TORCHRUN), says="2 tasks x 8"),
    valid("JOB03", slurm(f"{OF_NODES} --ntasks-per-node=8", "N=$((SLURM_NTASKS / 0))", "srun -n$N " + TORCHRUN)),
    # Nodes that wait for others, and where they meet.
    valid("JOB03", step("", nodes="$SLURM_NNODES", head=ONE_EACH)),
    valid("JOB03", step("", nodes="1:8", head=ONE_EACH)),
    invalid("JOB03", step("", nodes=5, head=ONE_EACH), says="--nnodes 5; allowed: at most --nnodes 4, the tasks", edge=True),
    valid("JOB03", slurm(ONE_EACH, "srun -N1 -n1 torchrun --nnodes=8 --nproc-per-node=4 " + FIRST + " train.py")),
    valid("JOB03", slurm(ONE_EACH, *["srun torchrun --nnodes=8 --nproc-per-node=4 " + FIRST + " train.py &"] * 2)),
    invalid("JOB03", step("", head=ONE_EACH, more=""), says="--nnodes 4 alone"),
    valid("JOB03", slurm(ONE_EACH, "export PET_RDZV_ENDPOINT=a:1", "srun torchrun --nnodes=4 --nproc-per-node=8 train.py")),
    valid("JOB03", step("", head=ONE_EACH, more="$OPTIONS")),
    valid("JOB03", step("", head=ONE_EACH, more="--node-rank=0 " + FIRST)),
    invalid("JOB03", step("", head=ONE_EACH, more="--node-rank=0 --master-addr=a"), says="--node-rank 0 in 4 tasks"),
    valid("JOB03", step("", head=ONE_EACH, more="--node-rank=$SLURM_NODEID --master-addr=a")),
    # The shell of the script runs on the first node, one that srun starts on each.
    valid("JOB03", step("", head=ONE_EACH, more="--rdzv-backend=c10d --rdzv-endpoint=$(hostname):29500")),
    invalid(
        "JOB03", step("", head=ONE_EACH, more="--rdzv-backend=c10d --rdzv-endpoint=localhost:29500"), says="localhost:29500 on each node"
    ),
    invalid(
        "JOB03",
        slurm(ONE_EACH, f"srun bash -c '{TORCHRUN.replace('$MASTER_ADDR', '$(hostname)')}'"),
        says="$(hostname):29500 on each node",
    ),
    valid("JOB03", slurm(ONE_EACH, f'srun bash -c "{TORCHRUN.replace("$MASTER_ADDR", "$(hostname)")}"')),
    valid("JOB03", slurm(ONE_EACH, f"srun bash -c '{TORCHRUN}'")),
    # In double quotes a backslash leaves the name to each node.
    invalid(
        "JOB03",
        slurm(ONE_EACH, f'srun bash -c "{TORCHRUN.replace("$MASTER_ADDR", f"{chr(92)}{ITS_NAME}")}"'),
        says="$(hostname):29500 on each node",
    ),
    valid("JOB03", slurm(ONE_EACH, f'srun bash -c "echo {chr(92)}$SLURM_NODEID; {TORCHRUN.replace("$MASTER_ADDR", ITS_NAME)}"'), edge=True),
    # Options of the rendezvous in a variable.
    valid("JOB03", slurm(ONE_EACH, f'RDZV="{FIRST}"', "srun torchrun --nnodes=4 --nproc-per-node=8 $RDZV train.py")),
    valid(
        "JOB03", slurm(ONE_EACH, 'RDZV="--rdzv-backend=c10d --rdzv-endpoint=a:1"', "srun torchrun --nnodes=4 --nproc-per-node=8 $RDZV x")
    ),
    valid("JOB03", slurm(EIGHT_EACH, 'MORE="--nproc-per-node=1"', f"srun {TORCHRUN.replace('train.py', '$MORE train.py')}")),
    # What the list of srun's options lacks, and plug-ins' options without values.
    valid("JOB03", step("--container-image=x --no-container-mount-home --ntasks-per-node=1", head=EIGHT_EACH)),
    valid("JOB03", step("--container-writable --ntasks-per-node=1", head=EIGHT_EACH)),
    valid("JOB03", step("--of-a-plug-in --ntasks-per-node=1", head=EIGHT_EACH)),
    valid("JOB03", step("--of-a-plug-in value --ntasks-per-node=1", head=EIGHT_EACH), edge=True),
    invalid("JOB03", step("--container-writable --ntasks-per-node=8", head=EIGHT_EACH), says="8 tasks x 8 processes"),
    # Options of srun in a variable.
    valid("JOB03", slurm(EIGHT_EACH, 'OPTS="--ntasks-per-node=1"', f"srun $OPTS {TORCHRUN}")),
    valid("JOB03", slurm(EIGHT_EACH, 'SRUN_ARGS="--kill-on-bad-exit=1 --ntasks-per-node=1"', f"srun -l $SRUN_ARGS {TORCHRUN}")),
    invalid("JOB03", slurm(EIGHT_EACH, 'SRUN_ARGS="--kill-on-bad-exit=1"', f"srun $SRUN_ARGS {TORCHRUN}"), says="8 tasks x 8", edge=True),
    valid("JOB03", slurm(EIGHT_EACH, "ARGS=(--ntasks-per-node=1)", f'srun "${{ARGS[@]}}" {TORCHRUN}')),
    valid("JOB03", slurm(EIGHT_EACH, f"srun $OPTS {TORCHRUN}")),
    # Jobs of several parts, and of many.
    valid("JOB03", slurm(f"{EIGHT_EACH} hetjob --nodes=1", f"srun {TORCHRUN}")),
    valid("JOB03", slurm(f"{ONE_EACH} --array=0-1", f"srun {TORCHRUN.replace('--nnodes=4', '--nnodes=8')}"), edge=True),
    valid("JOB03", slurm(ONE_EACH, "echo $SLURM_ARRAY_TASK_ID", f"srun {TORCHRUN.replace('--nnodes=4', '--nnodes=8')}")),
    # What another script may set.
    *(
        valid("JOB03", slurm(f"{OF_NODES} --ntasks-per-node=2", "N=8", line, f"srun {TORCHRUN.replace('=8', '=$N')}"))
        for line in ("source ./env.sh", "set -a; . env.sh", 'eval "$(cat env)"', "if [ -f e ]; then . e; fi")
    ),
    invalid(
        "JOB03",
        slurm(f"{OF_NODES} --ntasks-per-node=2", "source activate", "N=8", f"srun {TORCHRUN.replace('=8', '=$N')}"),
        says="2 tasks x 8 processes",
        edge=True,
    ),
    # Variables of Slurm that say nothing of tasks.
    *(
        invalid("JOB03", slurm(EIGHT_EACH, line, f"srun {TORCHRUN}"), says="8 tasks x 8 processes")
        for line in ("export SRUN_CPUS_PER_TASK=12", "export SLURM_CPU_BIND=none", "unset SLURM_MEM_PER_CPU")
    ),
    *(
        valid("JOB03", slurm(EIGHT_EACH, line, f"srun {TORCHRUN}"))
        for line in ("unset SLURM_NTASKS_PER_NODE", "unset ${!SLURM_@}", "export SLURM_TASKS_PER_NODE=1", "export SLURM_GRES=gpu:1")
    ),
    valid("JOB03", slurm(EIGHT_EACH, *NESTED, "G=1", f"srun --ntasks=$A {TORCHRUN}")),
)


TWO_PODS = {"spec/parallelism": 2, "spec/completions": 2}
ONE_POD = {"spec/parallelism": 1, "spec/completions": 1}


def by_mpirun(text: str) -> Thing:
    """A Volcano job of four pods of eight GPUs."""
    return b.volcano_job({f"{b.TASK_CONTAINER}/command": text.split()})


BY_MPIRUN = (
    # A torchrun in each process of mpirun.
    invalid("JOB03", by_mpirun("mpirun -np 8 torchrun --nproc_per_node=8 x"), says="is 8 torchruns x 8 processes = 64 in the job"),
    invalid(
        "JOB03", by_mpirun("mpirun --host $H -np 5 torchrun --nproc-per-node=8 x"), says="= 40 in the job; allowed: at most 32", edge=True
    ),
    valid("JOB03", by_mpirun("mpirun --host $H -np 4 torchrun --nproc-per-node=8 x"), edge=True),
    invalid(
        "JOB03", by_mpirun("mpirun -npernode 2 torchrun --nproc-per-node=8 x"), says="= 16 in a pod; allowed: at most 8, the GPUs of a pod"
    ),
    valid("JOB03", by_mpirun("mpirun -npernode 1 torchrun --nproc-per-node=8 x"), edge=True),
    valid("JOB03", by_mpirun("mpirun -np 32 torchrun --nproc-per-node=1 x")),
    valid("JOB03", by_mpirun("mpirun -np 1 torchrun --nproc-per-node=8 x : -np 31 y")),
    invalid("JOB03", job({COMMAND: ["mpirun", "-np", "8", "torchrun", "--nproc-per-node=8", "x"], **ONE_POD}), says="= 64 in the job"),
    valid("JOB03", job({COMMAND: ["mpirun", "--hostfile", "h", "-np", "8", "torchrun", "--nproc-per-node=8", "x"], **ONE_POD})),
    # Whatever else may name other pods' hosts.
    *(
        valid("JOB03", job({COMMAND: ["mpirun", *more.split(), "-np", "8", "torchrun", "--nproc-per-node=8", "x"], **ONE_POD}))
        for more in (
            *("-rf f", "--map-by rankfile:file=f", "--tune f", "-configfile f", "--dvm file:f", "--pset a"),
            *("--mca orte_default_hostfile f", "--prtemca prte_default_hostfile f", "--mca rmaps_rank_file_path f"),
        )
    ),
    *(
        valid(
            "JOB03",
            job(
                {COMMAND: ["mpirun", "-np", "8", "torchrun", "--nproc-per-node=8", "x"], ENV: variables(**{name: "/etc/hosts"}), **ONE_POD}
            ),
        )
        for name in ("HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile")
    ),
    invalid(
        "JOB03",
        job({COMMAND: ["mpirun", "--mca", "btl", "tcp", "-np", "8", "torchrun", "--nproc-per-node=8", "x"], **ONE_POD}),
        says="= 64 in the job",
        edge=True,
    ),
)


def neuron(family: str, devices: int, cores: int | None = None, *words: str, pods: int = 1) -> Thing:
    limits = {"aws.amazon.com/neuron": devices, **({CORES: cores} if cores is not None else {})}
    where = {f"{POD}/nodeSelector": {TYPE: family}, LIMITS: limits, COMMAND: list(words) or ["python3", "train.py"]}
    return job({**where, "spec/parallelism": pods, "spec/completions": pods})


def neuron_told(family: str, **told: str) -> Thing:
    """A pod with 16 devices and variables of the Neuron runtime."""
    variables = [{"name": name, "value": value} for name, value in told.items()]
    where = {f"{POD}/nodeSelector": {TYPE: family}, LIMITS: {"aws.amazon.com/neuron": 16}, f"{POD}/containers/0/env": variables}
    return job({**where, COMMAND: ["python3", "train.py"], **ONE_POD})


def neuron_by_affinity(*types: str, cores: int) -> Thing:
    terms = [{"matchExpressions": [{"key": TYPE, "operator": "In", "values": list(types)}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    limits = {"aws.amazon.com/neuron": 16, CORES: cores}
    return job({f"{POD}/affinity": affinity, LIMITS: limits, COMMAND: ["python3", "train.py"], **ONE_POD})


LOCALHOST = [{"name": "MASTER_ADDR", "value": "localhost"}]
C10D = ("--rdzv-backend=c10d", "--rdzv-endpoint=a:1")
BY_VARIABLE = "torchrun --nnodes=4 --nproc-per-node=8 $RDZV train.py"
GANG = "torchrun --nnodes=4 --nproc-per-node=8 --rdzv-backend=c10d --rdzv-endpoint=pretrain-0.ranks:29500 train.py"
QUEUE = {"spec/completions": 100, "spec/completionMode": b.DELETE, f"{POD}/subdomain": b.DELETE, LIMITS: {GPU: 1}}
ALONE = {**QUEUE, "spec/completions": 4, COMMAND: b.DELETE, f"{POD}/containers/0/args": ["60"]}
ON_P5 = {f"{POD}/nodeSelector": {TYPE: "p5.48xlarge"}}
SET = [{"configMapRef": {"name": "rendezvous"}}]
ENV_FROM = f"{POD}/containers/0/envFrom"


def ranked(address: str) -> dict[str, Any]:
    """Rank and address in torchrun's own variables."""
    return {ENV: [{"name": "PET_NODE_RANK", **field("metadata.annotations['rank']")}, {"name": address, "value": "pretrain-0.ranks"}]}


def meeting(port: Any) -> Thing:
    """Four nodes that meet at a port of rank 0."""
    return torchrun("--nnodes=4", "--nproc-per-node=8", "--rdzv-backend=c10d", f"--rdzv-endpoint=pretrain-0.ranks:{port}")


def launched(*words: str, **changes: Any) -> Thing:
    return job({COMMAND: [*words, "train.py"], **changes})


def accelerated(*words: str, machines: int = 4, processes: int = 32, rank: str = "$(RANK)") -> Thing:
    told = (f"--num_machines={machines}", f"--num_processes={processes}", f"--machine_rank={rank}", "--main_process_ip=pretrain-0.ranks")
    return launched("accelerate", "launch", *told, *words)


STATIC = ("--nnodes=4", "--nproc-per-node=8", "--master-addr=pretrain-0.ranks")
# What launchers say of their own options.
OPTIONS = (
    valid("JOB02", meeting(1), edge=True),
    valid("JOB02", meeting(65535), edge=True),
    valid("JOB02", meeting("$(PORT)")),
    valid("JOB02", torchrun(*STATIC, "--node-rank=$(RANK)", "--master-port=$MASTER_PORT", **{ENV: variables(MASTER_PORT="29500")})),
    invalid(
        "JOB02", meeting(0), says="--rdzv-endpoint pretrain-0.ranks:0; allowed: --rdzv-endpoint with a port from 1 to 65535", edge=True
    ),
    invalid("JOB02", meeting(65536), says="with a port from 1 to 65535", edge=True),
    invalid("JOB02", accelerated("--main_process_port=69420"), says="--main-process-port 69420; allowed: --main-process-port with a port"),
    invalid("JOB02", torchrun(*STATIC, "--node-rank=$(RANK)", "--master-port=70000"), says="--master-port 70000"),
    invalid(
        "JOB02",
        torchrun(*STATIC, "--node-rank=$(RANK)", "--master-port=$MASTER_PORT", **{ENV: variables(MASTER_PORT="tcp://10.0.0.1:29500")}),
        says="env[0].value is MASTER_PORT=tcp://10.0.0.1:29500; allowed: a port from 1 to 65535",
    ),
    valid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=auto", *C10D)),
    valid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=$GPUS", *C10D)),
    invalid(
        "JOB03", torchrun("--nnodes=4", "--nproc-per-node=all", *C10D), says="--nproc-per-node all; allowed: --nproc-per-node with a number"
    ),
    invalid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=gpus", *C10D), says="--nproc-per-node gpus; allowed", edge=True),
    invalid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=musa", *C10D), says="--nproc-per-node musa; allowed", edge=True),
    invalid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=0", *C10D), says="--nproc-per-node 0", edge=True),
    valid("JOB03", torchrun(*STATIC, "--node-rank=3", **ONE_POD), edge=True),
    invalid("JOB03", torchrun(*STATIC, "--node-rank=4", **ONE_POD), says="rank 4; allowed: a rank below 4", edge=True),
    valid("JOB03", accelerated()),
    invalid("JOB03", accelerated(processes=30), says="--num-processes 30; allowed: a multiple of --num-machines 4", edge=True),
    invalid("JOB03", accelerated(machines=3, processes=8), says="of which each node starts 2"),
    valid("JOB03", launched("deepspeed", "--include=localhost:0,1", **ONE_POD)),
    valid("JOB03", launched("deepspeed", "--num_gpus=8", **ONE_POD)),
    invalid(
        "JOB03", launched("deepspeed", "--include=localhost:0", "--exclude=localhost:1", **ONE_POD), says="--include and --exclude; allowed"
    ),
    invalid("JOB03", launched("deepspeed", "--include=localhost:0", "--num_gpus=1", **ONE_POD), says="--include and --num-gpus", edge=True),
)

_CASES = (
    invalid("JOB01", job({LIMITS: {}, "spec/completionMode": b.DELETE}), says="completionMode is unset"),
    valid("JOB01", job()),
    valid("JOB01", job({"spec/backoffLimit": b.DELETE, "spec/backoffLimitPerIndex": 2})),
    valid("JOB01", job({LIMITS: {}, COMMAND: ["python3", "preprocess.py"], "spec/completionMode": b.DELETE})),
    valid("JOB01", job({f"{POD}/restartPolicy": "OnFailure"})),
    valid("JOB01", job({"spec/parallelism": 1, "spec/completions": 1, "spec/completionMode": b.DELETE}), edge=True),
    invalid("JOB01", job({"spec/parallelism": 2, "spec/completions": 1}), says="completions is 1; allowed: 2", edge=True),
    invalid("JOB01", job({"spec/completionMode": b.DELETE}), says="completionMode is unset; allowed: Indexed"),
    invalid("JOB01", job({"spec/completionMode": "NonIndexed"}), says="completionMode is NonIndexed"),
    invalid("JOB01", job({"spec/completions": b.DELETE}), says="completions is unset; allowed: 4"),
    invalid("JOB01", job({f"{POD}/subdomain": b.DELETE}), says="the name of a headless Service"),
    invalid("JOB01", job({f"{POD}/restartPolicy": b.DELETE}), says="restartPolicy is unset; allowed: Never or OnFailure"),
    invalid("JOB01", job({"spec/backoffLimit": b.DELETE}), says="unset, so 6"),
    # A Job for each node.
    invalid("JOB02", job({**ONE_POD, COMMAND: ["torchrun", "--nnodes=4", "x"], ENV: LOCALHOST}), says="env[0].value is localhost"),
    invalid("JOB02", job({**ONE_POD, COMMAND: ["torchrun", "--nnodes=4", "--master-addr=localhost", "x"]}), says="--master-addr localhost"),
    invalid(
        "JOB02",
        job({**ONE_POD, COMMAND: ["accelerate", "launch", "--num_machines=4", "--main_process_ip=localhost", "x"]}),
        says="--main-process-ip localhost",
    ),
    valid("JOB02", job({**ONE_POD, COMMAND: ["python3", "x"], ENV: [{"name": "MASTER_ADDR", "value": "localhost"}]}), edge=True),
    valid("JOB02", job({ENV: [{"name": "TRACKER_HOST", "value": "localhost"}]})),
    valid("JOB02", job()),
    valid("JOB02", master(value="pretrain-0.ranks")),
    valid("JOB02", torchrun("--nnodes=4", "--rdzv-endpoint=10.0.3.7:29500")),
    valid("JOB02", b.volcano_job()),
    valid("JOB02", job({"spec/parallelism": 1, COMMAND: ["torchrun", "--standalone", "--nproc-per-node=8", "x"]}), edge=True),
    invalid("JOB02", job({**TWO_PODS, COMMAND: ["torchrun", "--standalone", "x"]}), says="is --standalone", edge=True),
    invalid("JOB02", master(**field("status.podIP")), says="fieldPath is status.podIP"),
    invalid("JOB02", master(**field("metadata.name")), says="no field of the pod itself"),
    invalid("JOB02", master(value="localhost"), says="env[0].value is localhost"),
    invalid("JOB02", torchrun("--nnodes=4", "--rdzv_endpoint", "127.0.0.1:29500"), says="--rdzv-endpoint 127.0.0.1:29500"),
    invalid("JOB02", torchrun("--nnodes=4", "--master_addr=$(hostname)"), says="--master-addr $(hostname)"),
    invalid("JOB02", job({COMMAND: ["bash", "-c", "torchrun --nnodes 4 --master-addr $POD_IP train.py"]}), says="--master-addr $POD_IP"),
    invalid("JOB03", torchrun("--nnodes=4", **{ENV: LOCALHOST}), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=2", *C10D), says="is --nnodes 2; allowed: --nnodes 4", edge=True),
    invalid("JOB03", torchrun("--nnodes=2", **{"spec/parallelism": 2}), says="--nnodes 2 alone", edge=True),
    invalid("JOB03", job({COMMAND: ["deepspeed", "--num_gpus=16", "train.py"]}), says="16 processes per node"),
    valid("JOB03", torchrun("--nnodes=4", **ranked("PET_MASTER_ADDR"))),
    invalid("JOB03", torchrun("--nnodes=4", **ranked("MASTER_ADDR")), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=4", **{ENV: variables(PET_RDZV_ENDPOINT="a:1")}), says="--nnodes 4 alone", edge=True),
    valid("JOB03", torchrun("--nnodes=4", **{ENV: variables(PET_RDZV_ENDPOINT="a:1", PET_RDZV_BACKEND="c10d")}), edge=True),
    valid("JOB03", Thing(type=tokens.POD, name="rank", properties={"spec": job().properties["spec"]["template"]["spec"]})),
    valid("JOB03", torchrun("--nnodes=1", "--nproc-per-node=8")),
    valid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=8", *C10D, **{LIMITS: {}})),
    valid("JOB03", job()),
    valid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=gpu", *C10D)),
    valid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=8", "--node-rank=$(RANK)", "--master-addr=a.b")),
    valid("JOB03", batch(1, 8, 8)),
    valid("JOB03", batch(8, 8, 1, gres="h100:8")),
    valid("JOB03", b.volcano_job({f"{b.TASK_CONTAINER}/command": ["python3", "train.py"]})),
    valid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=8", *C10D, **{LIMITS: {GPU: 8}}), edge=True),
    invalid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=9", *C10D), says="at most 8 processes", edge=True),
    invalid("JOB03", batch(8, 8, 8), says="8 tasks x 8 processes = 64 per node"),
    invalid("JOB03", batch(2, 8, 8, gres="gpu:8"), says="at most 8, the node's GPUs"),
    invalid("JOB03", torchrun("--nnodes=8", "--nproc-per-node=8", *C10D), says="--nnodes 4, the pods of the job"),
    invalid("JOB03", torchrun("--nnodes=4", "--nproc-per-node=8"), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=4", "--node-rank=0"), says="--rdzv-endpoint (or --node-rank and --master-addr)"),
    invalid("JOB03", b.volcano_job(), says="containers[0].command is --nnodes 4 alone"),
    invalid("JOB04", neuron("trn1.32xlarge", 16, None, "neuron_parallel_compile", "torchrun", "x", pods=2), says="in 2 pods", edge=True),
    # The nodes of one run compile its graphs together.
    *(
        invalid("JOB04", neuron("trn1.32xlarge", 16, None, *compiled, pods=4), says="in 4 pods; allowed: the training command, unless")
        for compiled in (
            ("neuron_parallel_compile", "torchrun", "--nnodes=4", "x"),
            ("neuron_parallel_compile", "torchrun", "--nnodes=$NODES", "x"),
            ("neuron_parallel_compile", "bash", "train.sh"),
            ("bash", "-c", "neuron_parallel_compile torchrun --nnodes=4 x && torchrun --nnodes=4 x"),
        )
    ),
    invalid(
        "JOB04",
        neuron("trn1.32xlarge", 16, None, "neuron_parallel_compile", "torchrun", "--nnodes=1", "x", pods=4),
        says="allowed: the training command; compile beforehand",
        edge=True,
    ),
    valid("JOB04", neuron("trn9.48xlarge", 16, 16)),
    valid("JOB04", neuron("trn1.32xlarge", 16, 32)),
    valid("JOB04", neuron("trn2.48xlarge", 16, 128)),
    valid("JOB04", neuron("trn1.32xlarge", 16, None, "torchrun", "--nproc-per-node=32", "x")),
    valid("JOB04", neuron("trn1.32xlarge", 16, None, "neuron_parallel_compile", "torchrun", "x")),
    valid("JOB04", config_map(train='ScalingConfig(num_workers=8, resources_per_worker={"GPU": 1})')),
    valid("JOB04", neuron("trn2.48xlarge", 1, 8), edge=True),
    invalid("JOB04", neuron("trn2.48xlarge", 1, 2), says="8: 1 devices x 8 cores on trn2", edge=True),
    invalid("JOB04", neuron("trn1.32xlarge", 16, 16), says="32: 16 devices x 2 cores on trn1"),
    invalid("JOB04", neuron("trn1.32xlarge", 16, None, "torchrun", "--nproc-per-node=64", "x"), says="at most 32 processes"),
    invalid("JOB04", neuron("trn1.32xlarge", 16, None, "neuron_parallel_compile", "torchrun", "x", pods=4), says="in 4 pods"),
    invalid("JOB04", config_map(train='ScalingConfig(resources_per_worker={"CPU": 8, "GPU": 8})'), says='with "GPU": 8'),
    invalid("JOB01", job({COMMAND: ["python3", "train.py"], "spec/completionMode": b.DELETE}), says="completionMode is unset"),
    invalid("JOB01", job({**NEURON, "spec/completionMode": b.DELETE}), says="completionMode is unset"),
    valid("JOB03", config_map(script="#!/bin/bash\ntorchrun --nproc-per-node=8 train.py")),
    valid("JOB03", config_map(script="#!/bin/bash\n#SBATCH --ntasks-per-node=8\ntorchrun --nproc-per-node=2 train.py")),
    invalid("JOB03", batch(8, 8, 8, gres="h100:8(S:0-1)"), says="8 tasks x 8 processes = 64 per node"),
    valid("JOB04", config_map(train='ScalingConfig(resources_per_worker={"GPU": 0.5})')),
    invalid("JOB04", config_map(train='ScalingConfig(resources_per_worker={"GPU": 2})'), says='with "GPU": 2', edge=True),
    valid("JOB04", neuron_by_affinity("trn1.32xlarge", "trn2.48xlarge", cores=16)),
    invalid("JOB04", neuron_by_affinity("trn1.32xlarge", cores=16), says="32: 16 devices x 2 cores on trn1"),
    # The same by the words of a call, and what the runtime is told.
    invalid("JOB04", config_map(train="ScalingConfig(resources_per_worker=dict(CPU=8, GPU=8))"), says='with "GPU": 8'),
    invalid("JOB04", config_map(train="ScalingConfig(resources_per_worker=dict(GPU=2))"), says='with "GPU": 2', edge=True),
    valid("JOB04", config_map(train="ScalingConfig(resources_per_worker=dict(CPU=8, GPU=1, NO_GPU=4))")),
    *(
        invalid("JOB04", neuron_told(kind, **told), says=f"{says} devices x", edge=edge)
        for kind, told, says, edge in (
            ("trn1.32xlarge", {"NEURON_RT_NUM_CORES": "64"}, "NUM_CORES=64; allowed: at most 32 cores: 16", False),
            ("trn1.32xlarge", {"NEURON_RT_VISIBLE_CORES": "0-63"}, "VISIBLE_CORES=0-63; allowed: at most 32 cores: 16", False),
            ("trn2.48xlarge", {"NEURON_RT_NUM_CORES": "129"}, "NUM_CORES=129; allowed: at most 128 cores: 16", True),
        )
    ),
    *(
        valid("JOB04", neuron_told(kind, **told), edge=edge)
        for kind, told, edge in (
            ("trn1.32xlarge", {"NEURON_RT_NUM_CORES": "32"}, True),
            ("trn1.32xlarge", {"NEURON_RT_VISIBLE_CORES": "0-15,16-31"}, True),
            ("trn1.32xlarge", {"NEURON_RT_VISIBLE_CORES": "40-43"}, False),
            ("trn1.32xlarge", {"NEURON_RT_NUM_CORES": "$(CORES)"}, False),
            ("trn9.48xlarge", {"NEURON_RT_NUM_CORES": "640"}, False),
        )
    ),
    # Ray's checkpoints.
    *(
        invalid("JOB04", config_map(train=f"from ray import train\n{code}"), says=says)
        for code, says in (
            (
                "def loop():\n    with train.get_checkpoint() as c:\n        load(c)\n",
                "is with train.get_checkpoint(); allowed: checkpoint =",
            ),
            ("if rank == 0: train.report({}, checkpoint=c)\n", "is train.report() on rank 0 alone; allowed: train.report() on every"),
            (
                "if train.get_context().get_world_rank() == 0:\n\n    save()\n    train.report({})\nend()\n",
                "train.report() on rank 0 alone",
            ),
        )
    ),
    *(
        valid("JOB04", config_map(train=code), edge="else" in code)
        for code in (
            "import ray\nc = train.get_checkpoint()\nwith c.as_directory() as d:\n    load(d)\n",
            "import ray\nif rank == 0:\n    save()\ntrain.report({})\n",
            "import ray\nif rank == 0:\n    train.report({}, checkpoint=c)\nelse:\n    train.report({})\n",
            "import ray\nif rank == 0:\n    train.report({})\nScalingConfig(num_workers=1)\n",
            "import ray\n# with train.get_checkpoint() as c:\n#     if rank == 0: train.report({})\n",
            "import train\nif rank == 0: train.report({})\n",
            "\n" * 30_000 + "import train\n",
            "import ray\n" + "\n" * 30_000,
        )
    ),
)

MEETING = (
    # torchrun's rendezvous is static unless a backend is named: every pod would be node 0.
    invalid("JOB03", torchrun("--nnodes=4", "--rdzv-endpoint=a:1"), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=4", "--rdzv-backend=static", "--rdzv-endpoint=a:1"), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=4", "--rdzv-backend=c10d"), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=4", "--rdzv-backend=c10d", "--node-rank=$(RANK)", "--master-addr=a.b"), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=4", "--node-rank=$(RANK)", **{ENV: variables(MASTER_ADDR="a.b")}), says="--nnodes 4 alone"),
    invalid("JOB03", torchrun("--nnodes=4", "--node-rank=0", "--master-addr=a.b"), says="--node-rank 0 in 4 pods"),
    invalid(
        "JOB03",
        torchrun("--nnodes=4", "--master-addr=a.b", **{ENV: variables(PET_NODE_RANK="0")}),
        says="--node-rank 0 in 4 pods",
        edge=True,
    ),
    valid("JOB03", torchrun("--nnodes=4", "--node-rank=$(RANK)", "--rdzv-endpoint=a:1"), edge=True),
    valid("JOB03", torchrun("--nnodes=4", "--node-rank=$(RANK)", **{ENV: variables(PET_MASTER_ADDR="a.b")}), edge=True),
    valid("JOB03", torchrun("--nnodes=4", "--rdzv_backend", "etcd-v2", "--rdzv_endpoint", "etcd:2379")),
    valid("JOB03", shell("export PET_RDZV_ENDPOINT=a:1 PET_RDZV_BACKEND=c10d", "torchrun --nnodes=4 train.py")),
    # A Job for each node.
    valid("JOB03", torchrun("--nnodes=4", "--node-rank=1", "--master-addr=a.b", **ONE_POD), edge=True),
    invalid("JOB03", torchrun("--nnodes=4", *C10D, **ONE_POD), says="is --nnodes 4; allowed: --nnodes 1"),
    # Addresses of the pod itself.
    invalid("JOB02", torchrun(**{ENV: variables(PET_RDZV_ENDPOINT="localhost:29500")}), says="env[0].value is localhost:29500"),
    invalid("JOB02", torchrun(**{ENV: variables(PET_MASTER_ADDR=field("status.podIP"))}), says="fieldPath is status.podIP"),
    invalid("JOB02", shell("MASTER_ADDR=$(hostname -i) torchrun --nnodes=4 train.py"), says="MASTER_ADDR=$(hostname -i)"),
    invalid("JOB02", shell('export MASTER_ADDR="$(hostname -I | cut -d" " -f1)"', "python3 train.py"), says="MASTER_ADDR=$(hostname -I"),
    invalid(
        "JOB02",
        shell("export MASTER_ADDR=localhost; torchrun --nnodes=4 --node-rank=$R --master-addr=$MASTER_ADDR x"),
        says="MASTER_ADDR=localhost",
    ),
    invalid("JOB02", master(value="$(MY_IP)", before=variables(MY_IP=field("status.podIP"))), says="env[1].value is $(MY_IP)"),
    invalid("JOB02", master(value="$(ME).ranks", before=variables(ME=field("metadata.name"))), says="env[1].value is $(ME).ranks"),
    invalid(
        "JOB02", torchrun("--nnodes=4", "--master-addr=$(ME)", **{ENV: variables(ME=field("status.podIP"))}), says="--master-addr $(ME)"
    ),
    invalid("JOB02", torchrun("--nnodes=4", "--master-addr=::1"), says="--master-addr ::1"),
    invalid("JOB02", torchrun("--nnodes=4", "--rdzv-endpoint=[::1]:29500"), says="--rdzv-endpoint [::1]:29500"),
    invalid("JOB02", torchrun("--nnodes=4", "--rdzv-endpoint=0.0.0.0:29500"), says="--rdzv-endpoint 0.0.0.0:29500", edge=True),
    valid("JOB02", torchrun("--nnodes=4", "--rdzv-endpoint=[fd00::1]:29500"), edge=True),
    valid("JOB02", torchrun("--nnodes=4", "--master-addr=fd00::1")),
    valid("JOB02", master(value="$(ME)-0.ranks", before=variables(ME="pretrain")), edge=True),
    valid("JOB02", shell("export MASTER_ADDR=$(hostname | sed 's/[0-9]*$/0/').ranks", "torchrun --nnodes=4 train.py"), edge=True),
    valid("JOB02", shell("MASTER_ADDR=${HOSTNAME%-*}-0.ranks torchrun --nnodes=4 train.py")),
    valid(
        "JOB02", shell("if test $R = 0; then MASTER_ADDR=localhost; else MASTER_ADDR=a.b; fi", "torchrun --nnodes=4 train.py"), edge=True
    ),
)

COUNTS = (
    invalid("JOB03", torchrun(**{ENV: variables(PET_NPROC_PER_NODE="64")}), says="64 processes per node"),
    invalid("JOB03", torchrun(*C10D, **{ENV: variables(PET_NNODES="8")}), says="--nnodes 4, the pods of the job"),
    invalid("JOB03", torchrun("--nnodes=$(NODES)", *C10D, **{ENV: variables(NODES="8")}), says="is --nnodes 8"),
    valid("JOB03", shell(BY_VARIABLE, **{ENV: variables(RDZV="--rdzv-backend=c10d --rdzv-endpoint=pretrain-0.ranks:29500")})),
    valid("JOB03", shell("RDZV='--node-rank=$R --master-addr=pretrain-0.ranks'", BY_VARIABLE)),
    invalid("JOB03", shell(BY_VARIABLE, **{ENV: variables(RDZV="--max-restarts=3")}), says="--nnodes 4 alone", edge=True),
    invalid("JOB03", shell("NODES=8", "torchrun --nnodes=$NODES --rdzv-backend=c10d --rdzv-endpoint=a:1 train.py"), says="is --nnodes 8"),
    valid(
        "JOB03", torchrun("--nnodes=4", "--nproc-per-node=8", *C10D, **{ENV: variables(PET_NPROC_PER_NODE="64", PET_NNODES="8")}), edge=True
    ),
    valid("JOB03", torchrun("--nnodes=$(NODES)", *C10D, **{ENV: variables(NODES=field("metadata.annotations['n']"))})),
    invalid(
        "JOB03", job({COMMAND: ["accelerate", "launch", "--num_machines=8", "train.py"]}), says="--num-machines 4, the pods of the job"
    ),
    invalid("JOB03", job({COMMAND: ["deepspeed", "--num_nodes=8", "train.py"]}), says="at most --num-nodes 4"),
    invalid("JOB03", job({COMMAND: ["deepspeed", "--no_ssh", "--num_nodes=2", "train.py"]}), says="--num-nodes 4, the pods of the job"),
    valid("JOB03", job({COMMAND: ["deepspeed", "--num_nodes=4", "train.py"]}), edge=True),
    # One pod reaches the others, of another resource, by their host names.
    valid("JOB03", job({**ONE_POD, COMMAND: ["deepspeed", "--hostfile=/etc/hosts", "--num_nodes=4", "train.py"]}), edge=True),
    invalid("JOB03", torchrun("--nnodes=8:8", *C10D), says="is --nnodes 8"),
    invalid("JOB03", torchrun("--nnodes=5:8", *C10D), says="is --nnodes 5:8; allowed: at most 4", edge=True),
    valid("JOB03", torchrun("--nnodes=4:8", *C10D), edge=True),
    valid("JOB03", torchrun("--nnodes=1:2", *C10D)),
    invalid("JOB03", cron({COMMAND: ["torchrun", "--nnodes=8", *C10D, "train.py"]}), says="--nnodes 4, the pods of the job"),
    valid("JOB03", cron({})),
    invalid("JOB01", cron({"spec/completionMode": "NonIndexed"}), says="jobTemplate.spec.completionMode is NonIndexed"),
    valid("JOB01", cron({})),
    # Each line of a script is a command of its own, and a script's arguments are not the launcher's.
    invalid("JOB03", shell("torchrun --nproc-per-node=64 train.py; python x.py --nproc-per-node=8"), says="64 processes per node"),
    invalid("JOB03", shell("torchrun --nproc-per-node=64 train.py", "torchrun --nproc-per-node=8 eval.py"), says="64 processes per node"),
    invalid(
        "JOB03", shell("torchrun --nproc-per-node=8 train.py && \\", "  torchrun --nproc-per-node=64 eval.py"), says="64 processes per node"
    ),
    valid("JOB03", shell("# torchrun --nnodes=8 --nproc-per-node=64 train.py", GANG), edge=True),
    valid("JOB03", shell(f"{GANG} --nproc-per-node=64"), edge=True),
    valid("JOB03", shell(f"echo 'then torchrun --nproc-per-node=64 x' && {GANG}")),
    valid("JOB02", shell(GANG, "torchrun --standalone --nproc-per-node=8 eval.py"), edge=True),
    valid("JOB02", torchrun("--nnodes=4", "train.py", "--master-addr", "localhost")),
)

QUEUES = (
    valid("JOB01", job({**QUEUE, COMMAND: ["python3", "infer.py"]}), edge=True),
    valid("JOB01", job({**QUEUE, "spec/completions": b.DELETE, COMMAND: ["python3", "infer.py"]})),
    valid("JOB01", job({**QUEUE, COMMAND: ["torchrun", "--standalone", "--nproc-per-node=1", "infer.py"]})),
    valid("JOB02", job({**QUEUE, COMMAND: ["torchrun", "--standalone", "infer.py"]})),
    # Pods that all run at once, of which nothing says that they meet, may be copies.
    valid("JOB01", job({**ALONE, LIMITS: {}})),
    valid("JOB01", job({**ALONE, "spec/completions": 5}), edge=True),
    invalid("JOB01", job(ALONE), says="completionMode is unset; allowed: Indexed, which gives each its rank, unless the 4 pods work alone"),
    invalid("JOB01", job({**ALONE, COMMAND: ["python3", "infer.py"]}), says="unless the 4 pods work alone", edge=True),
    invalid("JOB01", job({**ALONE, COMMAND: ["python3", "burn.py", "--data=train.py"]}), says="unless the 4 pods work alone", edge=True),
    invalid("JOB01", job({**ALONE, COMMAND: ["bash", "/opt/train.sh"]}), says="Indexed: the index is the pod's rank", edge=True),
    valid("EFA06", job({**ALONE, **ON_P5}), edge=True),
    invalid("EFA06", job({**ALONE, **ON_P5, COMMAND: ["bash", "/opt/train.sh"]}), says="because 4 pods with GPUs train together"),
    invalid("JOB01", job({**ALONE, COMMAND: ["python3", "pretrain.py"]}), says="Indexed: the index is the pod's rank", edge=True),
    invalid("JOB01", job({**ALONE, COMMAND: ["torchrun", "main.py"]}), says="Indexed: the index is the pod's rank", edge=True),
    invalid("JOB01", job({**ALONE, ENV: variables(WORLD_SIZE="4")}), says="Indexed: the index is the pod's rank", edge=True),
    invalid("JOB01", job({**ALONE, f"{POD}/subdomain": "ranks"}), says="Indexed: the index is the pod's rank", edge=True),
    invalid("JOB01", job({**QUEUE, COMMAND: ["torchrun", "--nnodes=4", *C10D, "x"]}), says="completions is 100; allowed: 4"),
    invalid("JOB01", job({**QUEUE, COMMAND: ["python3", "x"], ENV: variables(MASTER_ADDR="a.b")}), says="completions is 100; allowed: 4"),
    # A launcher's name is no call of it.
    *(
        valid("JOB01", shell(line, **{LIMITS: {}, "spec/completionMode": b.DELETE}))
        for line in (
            "pip install accelerate && python prep.py",
            "cd /opt/deepspeed && python prep.py",
            "python prep.py --strategy deepspeed",
            "python -m pip install deepspeed",
            "command -v torchrun || echo torchrun",
            "accelerate config default",
        )
    ),
    *(
        invalid("JOB01", shell(line, **{LIMITS: {}, "spec/completionMode": b.DELETE}), says="completionMode is unset")
        for line in (
            "exec torchrun --nnodes=4 x",
            "env NCCL_DEBUG=WARN OMP_NUM_THREADS=8 torchrun x",
            "NCCL_DEBUG=WARN /opt/conda/bin/torchrun x",
            "python -u -m torch.distributed.run x",
            "python3.11 -m accelerate.commands.launch x",
            "numactl --interleave=all torchrun x",
            "if true; then torchrun x; fi",
            "conda run -n train torchrun x",
            "bash -c 'torchrun x'",
            "/opt/nvidia/nvidia_entrypoint.sh deepspeed x",
            "cat <<END\nit's\nEND\ntorchrun x",
        )
    ),
    # Copies of a server are no run of several nodes.
    valid("JOB02", owned(tokens.DEPLOYMENT, "torchrun", "--standalone", "serve.py")),
    valid("JOB02", owned(tokens.STATEFUL_SET, "python3", "serve.py", **{ENV: LOCALHOST})),
    valid("JOB02", owned(tokens.DAEMON_SET, "python3", "serve.py", **{ENV: LOCALHOST})),
    invalid("JOB02", owned(tokens.STATEFUL_SET, "torchrun", "--nnodes=4", "x", **{ENV: LOCALHOST}), says="is localhost", edge=True),
)

POD_0 = "--master-addr=pretrain-0.ranks"
NO_SUBDOMAIN: dict[str, Any] = {f"{POD}/subdomain": b.DELETE}
VOLCANO_COMMAND = f"{b.TASK_CONTAINER}/command"


def job_set(*words: str) -> Thing:
    """A JobSet of one Job."""
    jobs = [{"name": "workers", "template": {"spec": job({COMMAND: list(words)}).properties["spec"]}}]
    return Thing(type=tokens.JOB_SET, name="resnet", properties={"metadata": {"name": "resnet"}, "spec": {"replicatedJobs": jobs}})


ALONE = (
    # torchrun without a number of nodes is alone, whatever address it has.
    invalid("JOB03", torchrun("--nproc-per-node=8", POD_0), says="without --nnodes, so 1 node; allowed: --nnodes 4, the pods of the job"),
    invalid("JOB03", torchrun("--node-rank=$(RANK)", POD_0, **TWO_PODS), says="allowed: --nnodes 2, the pods of the job", edge=True),
    invalid("JOB03", torchrun(*C10D), says="allowed: --nnodes 4, the pods"),
    invalid("JOB03", torchrun(**{ENV: variables(MASTER_ADDR="pretrain-0.ranks")}), says="allowed: --nnodes 4, the pods"),
    invalid(
        "JOB03", shell("export PET_RDZV_ENDPOINT=a:1 PET_RDZV_BACKEND=c10d", "torchrun train.py"), says="allowed: --nnodes 4, the pods"
    ),
    invalid("JOB03", job_set("torchrun", "--master_addr=resnet-workers-0-0.resnet", "x"), says="allowed: --nnodes 4, the pods"),
    invalid("JOB03", cron({COMMAND: ["torchrun", POD_0, "x"]}), says="allowed: --nnodes 4, the pods"),
    invalid("JOB03", shell("A=train.py", f"torchrun {POD_0} $A"), says="allowed: --nnodes 4, the pods"),
    invalid("JOB03", torchrun("--nproc-per-node=8"), says="--nnodes 4 and an address, unless each pod trains alone"),
    invalid("JOB03", b.volcano_job({VOLCANO_COMMAND: ["torchrun", POD_0, "x"]}), says="so 1 node; allowed: --nnodes"),
    valid("JOB03", torchrun(POD_0, **ONE_POD), edge=True),
    valid("JOB03", torchrun("--nnodes=4", "--node-rank=$(RANK)", POD_0), edge=True),
    valid("JOB03", torchrun("--nnodes=$NODES", "--node-rank=$(RANK)", POD_0)),
    valid("JOB03", torchrun("--node-rank=$(RANK)", POD_0, **{ENV: variables(PET_NNODES="4")}), edge=True),
    valid("JOB03", torchrun("--standalone", "--nproc-per-node=8")),
    valid("JOB03", shell(GANG, "torchrun --nproc-per-node=8 eval.py")),
    valid("JOB03", shell(f'A="--nnodes 4 --node-rank $R"; torchrun {POD_0} $A train.py'), edge=True),
    valid("JOB03", shell("mpirun -N 1 torchrun --nproc-per-node=8 train.py")),
    valid("JOB03", owned(tokens.DEPLOYMENT, "torchrun", "--nproc-per-node=8", "serve.py")),
    valid("JOB03", job({**QUEUE, COMMAND: ["torchrun", "--nproc-per-node=1", "infer.py"]})),
)

NAMES = (
    # Only pods' own names need the subdomain; a Service that selects the pods gives addresses without it.
    *(
        invalid("JOB01", torchrun("--nnodes=4", f"--master-addr={address}", **NO_SUBDOMAIN), says="the 4 pods host names.")
        for address in ("pretrain-0.ranks", "pretrain-0.ranks.ns", "pretrain-0.ranks.ns.svc.cluster.local", "${HOSTNAME%-*}-0.ranks")
    ),
    *(
        invalid("JOB01", torchrun("--nnodes=4", f"--master-addr={address}", **NO_SUBDOMAIN), says="unless they find rank 0 by a Service")
        for address in ("meeting", "meeting.ns.svc", "pretrain-0.ns.svc.cluster.local", "ip-10-0-3-7.ec2.internal", "10.0.3.7", "$RANK_0")
    ),
    invalid("JOB01", job({COMMAND: ["python3", "x"], **NO_SUBDOMAIN}), says="unless they find rank 0 by a Service"),
    invalid(
        "JOB01",
        job({COMMAND: ["python3", "x"], **NO_SUBDOMAIN, ENV: variables(MASTER_ADDR="pretrain-0.ranks")}),
        says="the 4 pods host names.",
        edge=True,
    ),
    valid("JOB01", torchrun("--nnodes=4", POD_0), edge=True),
)


def lws(words: list[str], leader: list[str] | None = None, *, replicas: int = 1, size: int = 2, env: Any = ()) -> Thing:
    """A LeaderWorkerSet; its leaders run something else if told so."""
    worker, first = (job({COMMAND: each or words, ENV: list(env)}).properties["spec"]["template"] for each in (words, leader))
    templates = {"workerTemplate": worker, **({"leaderTemplate": first} if leader else {})}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, **templates}}
    return Thing(type=tokens.LEADER_WORKER_SET, name="vllm", properties={"metadata": {"name": "vllm"}, "spec": spec})


TO_LEADER = "--master-addr=$LWS_LEADER_ADDRESS"


def of_group(rank: str, address: str = TO_LEADER, nodes: int = 2) -> list[str]:
    return ["torchrun", f"--nnodes={nodes}", f"--node-rank={rank}", address, "x"]


GROUPS = (
    # Each group of a LeaderWorkerSet is a gang of its own.
    *(valid("JOB02", lws(["torchrun", alone, "x"], replicas=3, size=1)) for alone in ("--master-addr=localhost", "--standalone")),
    invalid("JOB02", lws(["torchrun", "--standalone", "x"]), says="is --standalone", edge=True),
    valid("JOB03", lws(of_group("$LWS_WORKER_INDEX"), of_group("0"), replicas=2), edge=True),
    invalid("JOB03", lws(of_group("0")), says="--node-rank 0 in 2 pods", edge=True),
    invalid("JOB03", lws(of_group("1", nodes=3), of_group("0", nodes=3), size=3), says="--node-rank 1 in 2 pods"),
)


def job_set_of(*groups: list[str]) -> Thing:
    """A JobSet of Jobs of one pod each."""
    jobs = [{"name": f"g{at}", "template": {"spec": job({**ONE_POD, COMMAND: each}).properties["spec"]}} for at, each in enumerate(groups)]
    return Thing(type=tokens.JOB_SET, name="pretrain", properties={"metadata": {"name": "pretrain"}, "spec": {"replicatedJobs": jobs}})


def by_index(first: str, rest: str) -> Thing:
    """A script in which one pod runs another call than the rest."""
    return shell('if [ "$I" = 0 ]; then', f"  torchrun --nnodes=4 {first} x", "else", f"  torchrun --nnodes=4 {rest} x", "fi")


OF_ITS_OWN = "--master-addr=localhost"
TO_FIRST = "--master-addr=pretrain-g0-0-0.pretrain"
DYNAMIC = ["torchrun", "--nnodes=2", "--rdzv-backend=c10d"]
TO_ITSELF, TO_ANOTHER = [*DYNAMIC, "--rdzv-endpoint=localhost:1", "x"], [*DYNAMIC, "--rdzv-endpoint=$(LWS_LEADER_ADDRESS):1", "x"]
RANK_0 = (
    # Rank 0 is the server of a static rendezvous: whatever it calls itself, it is there.
    *(
        valid("JOB02", one)
        for one in (
            lws(of_group("$LWS_WORKER_INDEX"), of_group("0", OF_ITS_OWN)),
            lws(of_group("$LWS_WORKER_INDEX"), of_group("$LWS_WORKER_INDEX", OF_ITS_OWN)),
            lws(TO_ANOTHER, TO_ITSELF),
            job_set_of(of_group("0", OF_ITS_OWN), of_group("1", TO_FIRST)),
            torchrun("--nnodes=2", "--node-rank=0", "--master-addr=$(hostname -i)", **ONE_POD),
            torchrun("--nnodes=2", "--node-rank=0", OF_ITS_OWN, **ONE_POD, **{ENV: LOCALHOST}),
            job({**ONE_POD, COMMAND: ["accelerate", "launch", "--num_machines=2", "--machine_rank=0", "--main_process_ip=localhost", "x"]}),
            by_index(f"--node-rank=0 {OF_ITS_OWN}", f"--node-rank=$I {POD_0}"),
        )
    ),
    *(
        invalid("JOB02", one, says="--master-addr localhost", edge=True)
        for one in (
            lws(of_group("$LWS_WORKER_INDEX", OF_ITS_OWN)),
            lws(of_group("$LWS_WORKER_INDEX", OF_ITS_OWN), of_group("0", TO_LEADER)),
            lws(of_group("0", TO_LEADER), of_group("1", OF_ITS_OWN)),
            job_set_of(of_group("0", TO_FIRST), of_group("1", OF_ITS_OWN)),
            torchrun("--nnodes=2", "--node-rank=1", OF_ITS_OWN, **ONE_POD),
            torchrun("--nnodes=2", "--node-rank=$R", OF_ITS_OWN, **ONE_POD),
            torchrun("--nnodes=4", "--node-rank=0", OF_ITS_OWN),
            by_index(f"--node-rank=0 {POD_0}", f"--node-rank=$I {OF_ITS_OWN}"),
            shell(f"torchrun --nnodes=4 --node-rank=0 {OF_ITS_OWN} x", f"torchrun --nnodes=4 --node-rank=$I {POD_0} x"),
        )
    ),
    invalid("JOB02", lws(TO_ITSELF, TO_ITSELF), says="workerTemplate.spec.containers[0].command is --rdzv-endpoint localhost:1"),
    invalid("JOB02", torchrun("--nnodes=2", "--node-rank=1", **ONE_POD, **{ENV: LOCALHOST}), says="is localhost", edge=True),
    valid("JOB03", by_index(f"--node-rank=0 {POD_0}", f"--node-rank=$I {POD_0}"), edge=True),
    invalid("JOB03", by_index(f"--node-rank=0 {POD_0}", f"--node-rank=0 {POD_0}"), says="--node-rank 0 in 4 pods", edge=True),
    invalid("JOB03", shell(*(f"torchrun --nnodes=4 --node-rank={rank} {POD_0} x" for rank in ("0", "$I"))), says="--node-rank 0 in 4 pods"),
)


NO_LIMITS: dict[str, Any] = {LIMITS: {}}


def group(*words: str, replicas: int = 1, pods: int = 4, **changes: Any) -> dict[str, Any]:
    """A group of a JobSet."""
    spec = job({COMMAND: list(words), "spec/parallelism": pods, "spec/completions": pods, **changes}).properties["spec"]
    return {"name": "workers", "replicas": replicas, "template": {"spec": spec}}


def job_set_with(*groups: dict[str, Any], **spec: Any) -> Thing:
    properties = {"metadata": {"name": "pretrain"}, "spec": {"replicatedJobs": list(groups), **spec}}
    return Thing(type=tokens.JOB_SET, name="pretrain", properties=properties)


def waiting_for(nodes: int | str) -> tuple[str, ...]:
    return ("torchrun", f"--nnodes={nodes}", "--node-rank=$(RANK)", "--master-addr=a.b", "x")


TO_ITS_LEADER = variables(M="$(LWS_LEADER_ADDRESS)")
IN_SET = "replicatedJobs[0].template.spec"
NODES = (
    # A run of a JobSet is one Job, a group of them, one Job of each group, or all.
    *(
        valid("JOB03", job_set_with(*groups), edge=True)
        for groups in (
            [group(*waiting_for(4))],
            [group(*waiting_for(4), replicas=2)],
            [group(*waiting_for(8), replicas=2)],
            [group(*waiting_for(4), replicas=4, pods=1)],
            [group(*waiting_for(5), pods=1), group(*waiting_for(5))],
            [group(*waiting_for(3), pods=1, replicas=4), group(*waiting_for(3), pods=2, replicas=4)],
            [group("python3", "prepare.py", pods=2, **NO_LIMITS), group(*waiting_for(4))],
            [group("torchrun", "--nnodes=4:8", *C10D, "x")],
            [group(*waiting_for(2), pods=1)],
            [group("deepspeed", "--num_nodes=4", "x")],
        )
    ),
    *(
        invalid("JOB03", job_set_with(*groups), says=says, edge=True)
        for groups, says in (
            ([group(*waiting_for(8))], "is --nnodes 8; allowed: --nnodes 4, the pods"),
            ([group(*waiting_for(2))], "is --nnodes 2; allowed: --nnodes 4, the pods"),
            ([group(*waiting_for(6), replicas=2)], "allowed: --nnodes 4 or 8, the pods"),
            ([group(*waiting_for(6), pods=1), group(*waiting_for(6))], "allowed: --nnodes 4 or 5, the pods"),
            ([group("python3", "prepare.py", pods=2, **NO_LIMITS), group(*waiting_for(6))], "allowed: --nnodes 4, the pods"),
            ([group("torchrun", "--nnodes=5:8", *C10D, "x")], "is --nnodes 5:8; allowed: at most 4"),
            ([group("deepspeed", "--num_nodes=8", "x")], "at most --num-nodes 4"),
        )
    ),
    valid("JOB03", owned(tokens.STATEFUL_SET, *waiting_for(4)), edge=True),
    *(
        invalid("JOB03", owned(tokens.STATEFUL_SET, *waiting_for(n)), says=f"is --nnodes {n}; allowed: --nnodes 4", edge=True)
        for n in (2, 8)
    ),
    *(valid("JOB03", owned(kind, *waiting_for(8))) for kind in (tokens.DEPLOYMENT, tokens.DAEMON_SET)),
    valid("JOB03", lws(of_group("$LWS_WORKER_INDEX"), replicas=2), edge=True),
    valid("JOB03", lws(list(waiting_for(2)), ["router"], size=3), edge=True),
    *(
        invalid("JOB03", lws(of_group("$LWS_WORKER_INDEX", nodes=n), replicas=2, size=2), says=f"is --nnodes {n}; allowed: --nnodes 2, the")
        for n in (3, 4)
    ),
    invalid("JOB03", lws(list(waiting_for(3)), replicas=2), says="is --nnodes 3; allowed: --nnodes 2 or 4, the pods", edge=True),
    # A JobSet makes its Jobs Indexed unless told otherwise.
    valid("JOB01", job_set_with(group(*waiting_for(4), **{"spec/completionMode": b.DELETE})), edge=True),
    invalid(
        "JOB01",
        job_set_with(group(*waiting_for(4), **{"spec/completionMode": "NonIndexed"})),
        says=f"{IN_SET}.completionMode is NonIndexed",
    ),
    *(
        invalid("JOB01", job_set_with(group(*waiting_for(4), **{"spec/completions": n})), says=f"{IN_SET}.completions is {n}; allowed: 4")
        for n in (2, 100)
    ),
    valid("JOB01", job_set_with(group("python3", "infer.py", **{"spec/completions": 100, "spec/completionMode": "NonIndexed"}))),
    valid("JOB01", job_set_with(group(*waiting_for(4), replicas=4, pods=1, **{"spec/completionMode": "NonIndexed"})), edge=True),
    valid("JOB01", job_set_with(group("torchrun", "--nnodes=4", *C10D, "x", **{"spec/completionMode": "NonIndexed"})), edge=True),
    invalid(
        "JOB01",
        job_set_with(group(*DYNAMIC, "--rdzv-endpoint=pretrain-workers-0-0.pretrain:1", "x", **{"spec/completionMode": "NonIndexed"})),
        says="completionMode is NonIndexed",
        edge=True,
    ),
    valid("JOB03", lws(list(waiting_for(4)), replicas=2), edge=True),
    invalid("JOB03", lws(of_group("$LWS_WORKER_INDEX", "--master-addr=$M", nodes=4), replicas=2, env=TO_ITS_LEADER), says="--nnodes 4; a"),
)


def meeting_at(address: str) -> tuple[str, ...]:
    return ("torchrun", "--nnodes=4", "--node-rank=$(RANK)", f"--master-addr={address}", "x")


def stateful_set(address: str, **spec: Any) -> Thing:
    thing = owned(tokens.STATEFUL_SET, *meeting_at(address))
    return Thing(type=thing.type, name=thing.name, properties=b.changed(thing.properties, {f"spec/{key}": spec[key] for key in spec}))


def torch_job(address: str, **changes: Any) -> Thing:
    words = meeting_at(address)
    return b.pytorch_job({f"{b.TORCH_CONTAINER}/command": list(words), f"{b.TORCH_MASTER_CONTAINER}/command": list(words), **changes})


NO_MASTER = {f"{b.TORCH_ROLES}/Master": b.DELETE, f"{b.TORCH_CONTAINER}/command": list(meeting_at("align-master-0"))}
AT_ENDPOINT = ("--nnodes=4", "--rdzv-backend=c10d", "--rdzv-endpoint=pretrain-0.ranks:29500")
PET_ENDPOINT = {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "pretrain-0.ranks:29500"}
NO_HOST_NAMES = {"network": {"enableDNSHostnames": False}}
HOSTS = (
    *(
        invalid(
            "JOB02", torchrun("--nnodes=4", f"--master-addr={address}", **{ENV: []}), says=f"allowed: --master-addr with {says}", edge=True
        )
        for address, says in (
            ("pretrain-0.wrong", "pretrain-0.ranks, the pods'"),
            ("pretrain-0.wrong.ml.svc.cluster.local", "pretrain-0.ranks, the pods'"),
            ("pretrain-4.ranks", "a pod that is there, pretrain-0 to pretrain-3."),
        )
    ),
    invalid(
        "JOB02", torchrun("--nnodes=4", "--rdzv-endpoint=pretrain-4.ranks:29500"), says="is --rdzv-endpoint pretrain-4.ranks:29500; all"
    ),
    invalid(
        "JOB02",
        torchrun("--nnodes=4", **{ENV: variables(MASTER_ADDR="pretrain-0.wrong")}),
        says="env[0].value is MASTER_ADDR=pretrain-0.wrong",
        edge=True,
    ),
    # With a rendezvous at an endpoint torchrun reads no master's address, and gives its ranks its own.
    *(valid("JOB02", job({ENV: variables(MASTER_ADDR=address)}), edge=True) for address in ("pretrain-0.wrong", "localhost")),
    valid("JOB02", torchrun(*AT_ENDPOINT, "--master-addr=localhost", "--node-rank=0")),
    valid("JOB02", torchrun(*AT_ENDPOINT, "--master-addr=pretrain-9.ranks")),
    valid("JOB02", torchrun("--nnodes=4", "--master-addr=localhost", **{ENV: variables(**PET_ENDPOINT)}), edge=True),
    invalid(
        "JOB02", torchrun("--nnodes=4", "--rdzv-backend=c10d", "--master-addr=localhost"), says="is --master-addr localhost", edge=True
    ),
    invalid(
        "JOB02", torchrun(*AT_ENDPOINT, "--rdzv-backend=static", "--master-addr=localhost"), says="is --master-addr localhost", edge=True
    ),
    invalid("JOB02", torchrun(*AT_ENDPOINT[:2], "--rdzv-endpoint=localhost:29500"), says="is --rdzv-endpoint localhost:29500"),
    invalid(
        "JOB02",
        shell("export MASTER_ADDR=$(hostname)", f"torchrun {' '.join(AT_ENDPOINT[:2])} --rdzv-endpoint=$MASTER_ADDR:29500 x"),
        says="is --rdzv-endpoint",
    ),
    invalid("JOB02", shell("export PET_MASTER_ADDR=pretrain-9.ranks", "torchrun --nnodes=4 x"), says="is PET_MASTER_ADDR=pretrain-9.ranks"),
    *(
        valid("JOB02", torchrun("--nnodes=4", f"--master-addr={address}"), edge=True)
        for address in (
            "pretrain-3.ranks",
            "pretrain-0.ranks.ml.svc.cluster.local",
            "pretrain-0.ml.svc.cluster.local",
            "pretrain-0.$DOMAIN",
            "pretrain-$N.ranks",
            "pretrain-9",
            "other-9.wrong",
            "pretrain-main-0.wrong",
        )
    ),
    valid("JOB02", torchrun("--nnodes=4", "--master-addr=pretrain-0.ml", **{"metadata/namespace": "ml"}), edge=True),
    valid("JOB02", torchrun("--nnodes=4", "--master-addr=pretrain-0.x", **{f"{POD}/dnsConfig": {"searches": ["y"]}})),
    valid("JOB02", torchrun("--nnodes=4", "--master-addr=pretrain-0.x", **{"metadata/name": b.DELETE})),
    valid("JOB02", torchrun("--nnodes=4", "--master-addr=pretrain-0.x", **NO_SUBDOMAIN)),
    valid("JOB02", job({**ONE_POD, COMMAND: ["python3", "x"], ENV: variables(MASTER_ADDR="pretrain-7.x")})),
    *(
        invalid("JOB02", job_set_with(group(*meeting_at(address), replicas=2), **spec), says=f"--master-addr with {says}", edge=True)
        for address, spec, says in (
            ("pretrain-workers-0-0.other", {}, "pretrain-workers-0-0.pretrain, the pods'"),
            ("pretrain-workers-$JOB_INDEX-0.other", {}, "pretrain-workers-$JOB_INDEX-0.pretrain, the pods'"),
            ("pretrain-workers-0-4.pretrain", {}, "a pod that is there, pretrain-workers-0-0 to pretrain-workers-1-3."),
            ("pretrain-workers-2-0.pretrain", {}, "a pod that is there, pretrain-workers-0-0 to pretrain-workers-1-3."),
            ("pretrain-worker-0-0.pretrain", {}, "a pod of a group that is there: workers."),
            ("pretrain-workers-0-0.pretrain", {"network": {"subdomain": "other"}}, "pretrain-workers-0-0.other, the pods'"),
            ("pretrain-workers-0-0.pretrain", NO_HOST_NAMES, "pretrain-workers-0-0.ranks, the pods'"),
        )
    ),
    *(
        valid("JOB02", job_set_with(group(*meeting_at(address), replicas=2), **spec), edge=True)
        for address, spec in (
            ("pretrain-workers-1-3.pretrain", {}),
            ("pretrain-workers-$JOB_INDEX-0.pretrain.ml.svc", {}),
            ("pretrain-workers-0-0.other", {"network": {"subdomain": "other"}}),
            ("pretrain-workers-0-0.ranks", NO_HOST_NAMES),
            ("pretrain-worker-0-0.other", {"network": {"subdomain": "other"}}),
            ("pretrain-b-workers-0-0.pretrain-b", {}),
            ("pretrain-workers-0-9", {}),
        )
    ),
    invalid("JOB02", stateful_set("serve-4.ranks", serviceName="ranks"), says="a pod that is there, serve-0 to serve-3.", edge=True),
    invalid("JOB02", stateful_set("serve-0.other", serviceName="ranks"), says="with serve-0.ranks, the pods'"),
    invalid("JOB02", stateful_set("serve-0.ranks", serviceName="ranks", ordinals={"start": 1}), says="serve-1 to serve-4.", edge=True),
    valid("JOB02", stateful_set("serve-3.ranks", serviceName="ranks"), edge=True),
    valid("JOB02", stateful_set("serve-0.ranks", serviceName="ranks", replicas=0), edge=True),
    invalid("JOB02", torch_job("align-worker-3"), says="a pod that is there, align-worker-0 to align-worker-2.", edge=True),
    invalid(
        "JOB02",
        job_set_with(group(*meeting_at("pretrain-workers-0-0.pretrain"), **NO_SUBDOMAIN), **NO_HOST_NAMES),
        says="--master-addr with network.enableDNSHostnames: true",
        edge=True,
    ),
    invalid("JOB02", torch_job("align-master-1"), says="a pod that is there, align-master-0."),
    invalid("JOB02", torch_job("align-worker-3.ml.svc", **{"metadata/namespace": "ml"}), says="align-worker-0 to align-worker-2."),
    valid("JOB02", torch_job("align-worker-3.other.svc", **{"metadata/namespace": "ml"}), edge=True),
    invalid("JOB02", b.pytorch_job(NO_MASTER), says="a pod that is there: there is no align-master.", edge=True),
    valid("JOB02", torch_job("align-worker-2"), edge=True),
    valid("JOB02", torch_job("align-master-0")),
    valid("JOB02", torch_job("align-worker-7", **{"spec/elasticPolicy": {"minReplicas": 2, "maxReplicas": 8}}), edge=True),
)

TO_JOB: dict[str, Any] = {ENV: variables(MASTER_ADDR="pretrain-workers-0.pretrain")}
NAMED_BY_HAND: dict[str, Any] = {"spec/completionMode": "NonIndexed", f"{POD}/hostname": "pretrain-workers-0"}
SET_NAMES = (
    # A pod of a JobSet is called by the index of its Job and its own.
    *(
        invalid(
            "JOB02", job_set_with(group(*meeting_at(address), replicas=2), **spec), says=f"allowed: --master-addr with {says}", edge=edge
        )
        for address, spec, says, edge in (
            ("pretrain-workers-0.pretrain", {}, "pretrain-workers-0-0.pretrain: a pod is called after its group", True),
            ("pretrain-workers-0.pretrain.ml.svc.cluster.local", {}, "pretrain-workers-0-0.pretrain: a pod is", False),
            ("pretrain-0.pretrain", {}, "pretrain-workers-0-0.pretrain: a pod is called after its group", True),
            ("pretrain-0-0.pretrain", {}, "pretrain-workers-0-0.pretrain: a pod is called after its group", False),
            ("pretrain-workers-1.other", {"network": {"subdomain": "other"}}, "pretrain-workers-0-0.other: a pod is", False),
        )
    ),
    invalid(
        "JOB02",
        job_set_with(group("python3", "train.py", **TO_JOB)),
        says="env[0].value is MASTER_ADDR=pretrain-workers-0.pretrain; allowed: MASTER_ADDR with pretrain-workers-0-0.pretrain",
    ),
    invalid(
        "JOB02",
        job_set_with(group("torchrun", *AT_ENDPOINT[:2], "--rdzv-endpoint=pretrain-workers-0.pretrain:29500", "x")),
        says="is --rdzv-endpoint pretrain-workers-0.pretrain:29500; allowed: --rdzv-endpoint with pretrain-workers-0-0.pretrain",
    ),
    *(
        valid("JOB02", job_set_with(group(*meeting_at(address), replicas=2), **spec), edge=edge)
        for address, spec, edge in (
            ("pretrain-workers-0-0.pretrain", {}, True),
            # A Service of that name, in this namespace or another, and what a variable may fill up.
            ("pretrain-workers-0", {}, False),
            ("pretrain-workers-0.ml", {}, False),
            ("pretrain-workers-0.pretrain.svc", {}, True),
            ("pretrain-workers-$INDEX.pretrain", {}, True),
            ("pretrain-workers.pretrain", {}, False),
            ("pretrain-0.other", {"network": {"subdomain": "other"}}, True),
            ("pretrain-workers-0.pretrain", NO_HOST_NAMES, True),
            ("pretrain-evaluator-0.pretrain", {}, False),
        )
    ),
    valid("JOB02", job_set_with(group(*meeting_at("pretrain-workers-0.pretrain"), **NAMED_BY_HAND)), edge=True),
)


def accelerated(options: str, **changes: Any) -> Thing:
    return job({COMMAND: ["accelerate", "launch", *options.split(), "train.py"], **changes})


def deepspeed(options: str, **changes: Any) -> Thing:
    return job({COMMAND: ["deepspeed", *options.split(), "train.py"], **changes})


FOUR = "--num_machines 4 --num_processes 32"
IP = "--main_process_ip pretrain-0.ranks"
SETTINGS = {f"{POD}/containers/0/volumeMounts": [{"name": "settings", "mountPath": "/root/.cache/huggingface/accelerate"}]}
TOLD = (
    # accelerate and DeepSpeed without ssh have no rank but the one that they are told.
    valid("JOB03", accelerated(f"{FOUR} {IP} --machine_rank $(JOB_COMPLETION_INDEX)"), edge=True),
    invalid("JOB03", accelerated(f"{FOUR} {IP}"), says="without --machine-rank; allowed: --machine-rank with each pod's own", edge=True),
    invalid("JOB03", accelerated(f"{FOUR} {IP} --rdzv_backend c10d"), says="without --machine-rank"),
    invalid("JOB03", accelerated(f"{FOUR} {IP} --machine_rank 0"), says="--machine-rank 0 in 4 pods; allowed: --machine-rank of each"),
    invalid("JOB03", accelerated(f"{FOUR} {IP} --machine_rank 0", **TWO_PODS), says="--machine-rank 0 in 2 pods", edge=True),
    invalid("JOB03", accelerated(f"{FOUR} {IP} --machine_rank $(R)", **{ENV: variables(R="1")}), says="--machine-rank 1 in 4 pods"),
    invalid("JOB03", accelerated(f"{FOUR} --machine_rank $(R)"), says="--main-process-ip; allowed: --main-process-ip with the name"),
    invalid("JOB03", accelerated(FOUR), says="without --machine-rank and --main-process-ip"),
    invalid("JOB03", cron({COMMAND: ["accelerate", "launch", *FOUR.split(), "x"]}), says="without --machine-rank and --main-process-ip"),
    # Settings that come by a variable behind the options, or from a file.
    *(
        valid("JOB03", job({COMMAND: ["bash", "-c", f"{given}accelerate launch --num_processes 64 $ARGS train.py"]}))
        for given in ("", 'ARGS="--num_machines 4 --machine_rank $JOB_COMPLETION_INDEX --main_process_ip a-0.b"; ')
    ),
    # A group that serves beside those that train, and a set whose ranks meet at another's.
    valid("JOB03", job_set_with(group(*waiting_for(4), pods=1), group(*waiting_for(4), pods=3), group("vllm", "serve", pods=1)), edge=True),
    invalid(
        "JOB03",
        job_set_with(group(*waiting_for(6), pods=1), group(*waiting_for(6), pods=3), group("vllm", "serve", pods=1)),
        says="is --nnodes 6; allowed: --nnodes 1 or 4 or 5",
        edge=True,
    ),
    invalid("JOB03", stateful_set("other-0.t:29500", replicas=3), says="is --nnodes 4; allowed: --nnodes 3"),
    invalid("JOB03", owned(tokens.STATEFUL_SET, "accelerate", "launch", *FOUR.split(), "x"), says="without --machine-rank and"),
    valid("JOB03", accelerated(f"{FOUR} {IP} --machine_rank 0 --rdzv_backend c10d"), edge=True),
    valid("JOB03", accelerated(f"{FOUR} {IP} --machine_rank 3", **ONE_POD)),
    valid("JOB03", accelerated(f"{FOUR} --config_file settings.yaml")),
    valid("JOB03", accelerated(FOUR, **SETTINGS)),
    valid("JOB03", accelerated(f"{FOUR} --use_deepspeed")),
    valid("JOB03", accelerated(f"--use_deepspeed --deepspeed_multinode_launcher nossh --machine_rank $(R) {FOUR}"), edge=True),
    invalid("JOB03", accelerated(f"--use_deepspeed --deepspeed_multinode_launcher nossh {FOUR}"), says="nodes without --machine-rank;"),
    invalid("JOB03", accelerated(f"--use_deepspeed --deepspeed_multinode_launcher standard {FOUR} {IP}"), says="without --machine-rank"),
    valid("JOB03", accelerated("--num_machines 1 --num_processes 8")),
    valid("JOB03", shell('A="--machine_rank $R --main_process_ip a"', f"accelerate launch {FOUR} $A train.py")),
    valid(
        "JOB03",
        shell(
            f'if [ "$I" = 0 ]; then accelerate launch {FOUR} {IP} --machine_rank 0 x',
            f"else accelerate launch {FOUR} {IP} --machine_rank $I x; fi",
        ),
    ),
    valid("JOB03", deepspeed("--no_ssh --num_nodes 4 --node_rank $(JOB_COMPLETION_INDEX)"), edge=True),
    invalid("JOB03", deepspeed("--no_ssh --num_nodes 4"), says="deepspeed for several nodes without --node-rank", edge=True),
    invalid("JOB03", deepspeed("--no_ssh --hostfile /etc/hosts.txt"), says="deepspeed for several nodes without --node-rank"),
    invalid("JOB03", deepspeed("--no_ssh --num_nodes 4 --node_rank 0"), says="--node-rank 0 in 4 pods"),
    valid("JOB03", deepspeed("--no_ssh --num_nodes 4 --node_rank 2", **ONE_POD)),
    valid("JOB03", deepspeed("--num_nodes 4")),
    # accelerate's processes are those of all nodes.
    invalid("JOB03", accelerated("--num_machines 4 --num_processes 64 --config_file a"), says="16 processes per node; allowed: at most 8"),
    invalid("JOB03", accelerated("--num_processes 16", **ONE_POD), says="16 processes per node; allowed: at most 8"),
    invalid("JOB03", accelerated("--num_processes 9", **ONE_POD), says="9 processes per node; allowed: at most 8", edge=True),
    valid("JOB03", accelerated("--num_processes 8", **ONE_POD), edge=True),
    valid("JOB03", accelerated("--num_processes 32 --config_file a.yaml")),
    valid("JOB03", accelerated("--num_machines $(N) --num_processes 32 --config_file a.yaml")),
)

ON_FAILURE: dict[str, Any] = {f"{POD}/restartPolicy": "OnFailure"}


def failing(rule: dict[str, Any] | None = None, **changes: Any) -> Thing:
    """A Job with a policy on failures of one rule."""
    rules = [rule or {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [78]}}]
    return job({"spec/podFailurePolicy": {"rules": rules}, **changes})


def partly(least: Any, *words: str) -> Thing:
    """A Job in a queue of Kueue, which may start with fewer pods."""
    return torchrun(*(words or ("--nnodes=4", *C10D)), **{"metadata/annotations": {"kueue.x-k8s.io/job-min-parallelism": least}})


def in_set(**changes: Any) -> Thing:
    return job_set_with(group("torchrun", "--nnodes=4", *C10D, "train.py", **changes))


OF_INDEX = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [78]}}
POLICIES = (
    valid("JOB01", failing()),
    invalid("JOB01", failing(None, **ON_FAILURE), says="restartPolicy is OnFailure; allowed: Never beside podFailurePolicy"),
    invalid("JOB01", failing(OF_INDEX), says="rules[0].action is FailIndex"),
    valid("JOB01", failing(OF_INDEX, **{"spec/backoffLimitPerIndex": 1}), edge=True),
    invalid("JOB01", failing({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1, 0]}}), says="values[1] is 0", edge=True),
    valid("JOB01", failing({"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [0]}}), edge=True),
    invalid("JOB01", failing({"action": "Ignore"}), says="is with neither"),
    invalid("JOB01", failing({**OF_INDEX, "action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}), says="is with both"),
    valid("JOB01", failing({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]})),
    invalid("JOB01", failing(**{"spec/podReplacementPolicy": "TerminatingOrFailed"}), says="allowed: Failed beside podFailurePolicy"),
    valid("JOB01", failing(**{"spec/podReplacementPolicy": "Failed"}), edge=True),
    valid("JOB01", job({"spec/podReplacementPolicy": "TerminatingOrFailed"})),
    invalid("JOB01", job({"spec/backoffLimitPerIndex": 1, **ON_FAILURE}), says="allowed: Never beside backoffLimitPerIndex"),
    invalid("JOB01", job({"spec/maxFailedIndexes": 1}), says="backoffLimitPerIndex is unset; allowed: set beside maxFailedIndexes"),
    valid("JOB01", job({"spec/maxFailedIndexes": 4, "spec/backoffLimitPerIndex": 1}), edge=True),
    invalid("JOB01", job({"spec/maxFailedIndexes": 5, "spec/backoffLimitPerIndex": 1}), says="is 5; allowed: at most 4", edge=True),
    valid("JOB01", job({"spec/successPolicy": {"rules": [{"succeededIndexes": "0"}]}})),
    invalid(
        "JOB01",
        job({"spec/parallelism": 1, "spec/completions": 1, "spec/completionMode": b.DELETE, "spec/successPolicy": {"rules": []}}),
        says="completionMode is unset; allowed: Indexed beside successPolicy",
    ),
    invalid(
        "JOB01",
        job({"spec/completionMode": "NonIndexed", "spec/successPolicy": {"rules": []}}),
        says="completionMode is NonIndexed; allowed: Indexed beside successPolicy",
        edge=True,
    ),
    invalid(
        "JOB01",
        in_set(**{"spec/completionMode": "NonIndexed", "spec/successPolicy": {"rules": []}}),
        says="completionMode is NonIndexed; allowed: Indexed beside successPolicy",
        edge=True,
    ),
    invalid("JOB01", cron({"spec/maxFailedIndexes": 1}), says="jobTemplate.spec.backoffLimitPerIndex is unset"),
    # A JobSet makes its Jobs Indexed.
    valid("JOB01", in_set(**{"spec/backoffLimitPerIndex": 1, "spec/completionMode": b.DELETE}), edge=True),
    invalid("JOB01", in_set(**{"spec/backoffLimitPerIndex": 1, **ON_FAILURE}), says="Never beside backoffLimitPerIndex"),
    # Fewer pods than ranks.
    invalid("JOB01", partly("2"), says="is 2; allowed: unset, or 4 at least"),
    invalid("JOB01", partly("3"), says="Kueue may start 3", edge=True),
    valid("JOB01", partly("4"), edge=True),
    valid("JOB01", partly("2", "--nnodes=2:4", *C10D), edge=True),
    invalid("JOB01", partly("1", "--nnodes=2:4", *C10D), says="unset, or 2 at least", edge=True),
    valid("JOB01", partly("2", "--standalone", "--nproc-per-node=1")),
)

RANKS = {"app": "pretrain"}
LABELS = f"{POD.removesuffix('/spec')}/metadata"


def service(selector: Any = None, *, name: str = "ranks", namespace: str | None = None, **spec: Any) -> Thing:
    """A headless Service."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    properties = {"metadata": metadata, "spec": {"clusterIP": "None", "selector": RANKS if selector is None else selector, **spec}}
    return Thing(type=tokens.SERVICE, name=f"service-{name}", properties=properties)


def labelled(changes: dict[str, Any] | None = None, labels: Any = None) -> Thing:
    """A Job whose pods have labels."""
    return job({LABELS: {"labels": RANKS if labels is None else labels}, **(changes or {})})


def set_of(labels: dict[str, str], **spec: Any) -> Thing:
    """A JobSet whose pods look for each other, with labels."""
    changes: dict[str, Any] = {LABELS: {"labels": labels}}
    return job_set_with(group(*meeting_at("pretrain-workers-0-0.pretrain"), **changes), **spec)


IN_ML: dict[str, Any] = {"metadata/namespace": "ml"}
WITHOUT_ADDRESS: dict[str, Any] = {COMMAND: ["python3", "train.py"]}
ALONE_UNDER_A_NAME: dict[str, Any] = {**ONE_POD, **WITHOUT_ADDRESS}
FULL_NAME: dict[str, Any] = {COMMAND: ["torchrun", *AT_ENDPOINT[:2], "--rdzv-endpoint=pretrain-0.ranks.ml.svc.cluster.local:29500", "x"]}
OF_SET = {"jobset.sigs.k8s.io/jobset-name": "pretrain", "jobset.sigs.k8s.io/replicatedjob-name": "workers"}
SERVICES = (
    # The labels that the Service wants and the pods have.
    valid("JOB05", labelled(), service()),
    valid("JOB05", labelled(labels={"app": "pretrain", "team": "ml"}), service(), edge=True),
    valid("JOB05", labelled(labels={"app": "pretrain", "role": ""}), service({"role": ""}), edge=True),
    invalid("JOB05", labelled(), service({"role": ""}), says="a label that the pods of pretrain have", edge=True),
    valid("JOB05", job(), service({"job-name": "pretrain", "batch.kubernetes.io/job-name": "pretrain"}), edge=True),
    # What a controller or an operator may label pods with, and Services that select by other means.
    valid("JOB05", labelled(), service({"app": "pretrain", "kueue.x-k8s.io/podset": "main", "controller-uid": "1"}), edge=True),
    valid("JOB05", labelled(), service({"batch.kubernetes.io/job-completion-index": "0"}), edge=True),
    valid("JOB05", labelled(), service({})),
    valid("JOB05", labelled(), service({"app": "x"}, type="ExternalName")),
    # Other Services of the program.
    valid("JOB05", labelled(), service(), service({"app": "web"}, name="web")),
    valid("JOB05", labelled(IN_ML), service({"app": "x"}, namespace="other"), service(namespace="ml"), edge=True),
    valid("JOB05", labelled(IN_ML), service({"app": "x"}, namespace="other")),
    valid("JOB05", labelled(ALONE_UNDER_A_NAME), service({"app": "x"})),
    valid("JOB05", job({**NO_SUBDOMAIN, **WITHOUT_ADDRESS}), service({"app": "x"})),
    valid("JOB05", job({"metadata/name": b.DELETE}), service({"app": "x"})),
    valid("JOB05", labelled({COMMAND: list(meeting_at("master-0.ranks"))}), service({"app": "master"}), edge=True),
    valid("JOB05", labelled({f"{POD}/dnsConfig": {"searches": ["ml.svc.cluster.local"]}}), service({"app": "x"}), edge=True),
    valid("JOB05", set_of(RANKS), service(name="pretrain"), edge=True),
    valid("JOB05", set_of({}), service(OF_SET, name="pretrain"), edge=True),
    valid("JOB05", set_of(RANKS), service(OF_SET, name="other")),
    valid("JOB05", stateful_set("serve-0.ranks", serviceName="ranks"), service({"apps.kubernetes.io/pod-index": "0"})),
    valid("JOB05", stateful_set("other-0.ranks", serviceName="ranks", replicas=0), service({"app": "x"})),
    *(
        invalid("JOB05", *things, says=says, edge=edge)
        for *things, says, edge in (
            (labelled(), service({"app": "trainer"}), "selector.app is trainer; allowed: pretrain, as in the pods of pretrain", True),
            (job(), service(), "selector.app is pretrain; allowed: a label that the pods of pretrain have: pretrain-0.ranks is", True),
            (labelled(), service({"app": "pretrain", "role": "rank"}), "selector.role is rank; allowed: a label that", True),
            (job(), service({"job-name": "train"}), "selector.job-name is train; allowed: pretrain, as in the pods", True),
            (labelled(labels={"a/b": "c"}), service({"a/b": "d"}), 'selector["a/b"] is d; allowed: c, as in the pods', False),
            (labelled({**IN_ML, **FULL_NAME}), service({"app": "x"}, namespace="ml"), "selector.app is x", False),
            (set_of(RANKS), service({"app": "x"}, name="pretrain"), "pretrain-workers-0-0.pretrain is nobody's name", False),
            (set_of({}), service({**OF_SET, "jobset.sigs.k8s.io/jobset-name": "x"}, name="pretrain"), "is x; allowed: pretrain", False),
            (stateful_set("serve-0.ranks", serviceName="ranks"), service({"app": "x"}), "serve-0.ranks is nobody's name", False),
            # Names that nobody is seen to use, and Services that may be there beside the program's.
            (labelled(WITHOUT_ADDRESS), service({"app": "trainer"}), "selector.app is trainer", True),
            (labelled(IN_ML), service(namespace="other"), "namespace is other; allowed: ml, the namespace of the pods of pretrain", True),
            (labelled(), service(name="pretrain"), "metadata.name is pretrain; allowed: ranks, under which the pods of pretrain", True),
            (
                stateful_set("serve-0.ranks", serviceName="ranks", **{"template/metadata": {"labels": RANKS}}),
                service(name="serve"),
                "metadata.name is serve; allowed: ranks, under which the pods of serve",
                False,
            ),
        )
    ),
    valid("JOB05", labelled(), service(namespace="other"), edge=True),
    valid("JOB05", labelled(), service(name="pretrain", clusterIP="10.0.0.1"), edge=True),
    valid("JOB05", labelled(), service(RANKS, name="pretrain", namespace="ml"), edge=True),
)

CASES = (
    _CASES
    + POLICIES
    + GROUPS
    + RANK_0
    + NODES
    + HOSTS
    + TOLD
    + MEETING
    + COUNTS
    + QUEUES
    + ALONE
    + NAMES
    + OPTIONS
    + SET_NAMES
    + SERVICES
    + OF_STEPS
    + BY_MPIRUN
)
