"""What pods ask for."""

from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing
from tests.unit.policy.case import invalid, valid

NO_EFA = {f"{b.WORKER}/replicas": 1, f"{b.WORKER_CONTAINER}/resources": {"limits": {"nvidia.com/gpu": 8}}}
MPIRUN = ["mpirun", "-x", "FI_PROVIDER=efa", "python3", "train.py"]
LAUNCHER_ENV = "spec/mpiReplicaSpecs/Launcher/template/spec/containers/0/env"


def shell(line: str, efa: int) -> Thing:
    """One pod of a Volcano job that runs a shell, with so many EFA interfaces."""
    limits = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": efa}
    command = {f"{b.TASK_CONTAINER}/command": ["sh", "-c", line], "spec/tasks/0/replicas": 1}
    return b.volcano_job({**command, f"{b.TASK_CONTAINER}/resources": {"limits": limits}})


CASES = (
    valid("EFA06", b.mpi_job()),
    valid("EFA06", b.volcano_job()),
    valid("EFA06", b.mpi_job({f"{b.WORKER_CONTAINER}/env": [{"name": "FI_PROVIDER", "value": "efa"}]})),
    valid("EFA06", b.mpi_job(NO_EFA)),
    valid("EFA06", b.mpi_job({b.LAUNCHER_COMMAND: MPIRUN})),
    valid("EFA06", b.mpi_job({LAUNCHER_ENV: [{"name": "FI_PROVIDER", "value": "efa"}]})),
    valid("EFA06", b.mpi_job({**NO_EFA, b.LAUNCHER_COMMAND: ["mpirun", "-x", "FI_PROVIDER=tcp"]})),
    valid("EFA06", shell("export FI_PROVIDER=efa && torchrun train.py", 32)),
    valid("EFA06", shell("FI_PROVIDER=efa,tcp torchrun train.py", 1), edge=True),
    invalid("EFA06", shell("FI_PROVIDER=efa,tcp torchrun train.py", 0), says="command[2] is FI_PROVIDER=efa,tcp; allowed", edge=True),
    invalid("EFA06", shell("export NCCL_NET_PLUGIN=aws-ofi && torchrun train.py", 0), says="command[2] is NCCL_NET_PLUGIN=aws-ofi"),
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
)
