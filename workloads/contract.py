"""What job specifications and the trainer's image agree on: paths, ports and programs inside the pods."""

from pathlib import Path, PurePosixPath

PYTHON = "python3"
TRAINER_MODULE = "training.train"
# The agent of a pod: starts its ranks and, with the other pods' agents, starts all of them again when one dies.
AGENT_MODULE = "training.supervise"

CONFIG_DIRECTORY = PurePosixPath("/etc/trainyard")  # where the job's ConfigMap is mounted
CONFIG_FILE = "train.json"
DRAIN_SCRIPT = "drain_ranks.py"
STOP_SCRIPT = "stop_mpirun.py"
WAIT_SCRIPT = "wait_for_workers.py"

# The same ports for all jobs: every pod has its own address. Rank 0 listens on the first, the agents' coordinator on the second.
MASTER_PORT = 29500
CONTROL_PORT = 29501

# The image's user, and how its sshd runs without root.
USER_ID = 1000
SSH_DIRECTORY = PurePosixPath("/home/trainer/.ssh")
SSH_SERVER = ("/usr/sbin/sshd", "-De", "-f", "/home/trainer/.sshd_config")
SSH_PORT = 2222

SHARED_MEMORY = PurePosixPath("/dev/shm")
# Containers' own folders, which no mount of a job may hide.
RESERVED_PATHS = (CONFIG_DIRECTORY, SHARED_MEMORY, SSH_DIRECTORY, PurePosixPath("/opt/trainyard"), PurePosixPath("/etc/mpi"))

# Name of a pod's one interface, given by the container runtime.
POD_INTERFACE = "eth0"

_SCRIPTS = Path(__file__).with_name("pod_scripts")


def script(name: str) -> str:
    """Return the text of a script that pods run from their ConfigMap."""
    return (_SCRIPTS / name).read_text(encoding="utf-8")


def script_path(name: str) -> str:
    """Return where a pod finds a script of its ConfigMap."""
    return str(CONFIG_DIRECTORY / name)
