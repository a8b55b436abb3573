"""Command lines: one agent for each pod, or one mpirun for the whole job. Every count comes from the job's world."""

from collections.abc import Mapping

from workloads import contract
from workloads.plan import JobPlan

# When a rank has failed or has left with 75, mpirun asks each other rank of a node to end, waits this long, and only then turns to the next
# (it does so even if they are gone). Long enough for ranks that leave together after a save, short enough for eight of them in turn.
_RANK_END_SECONDS = 3
# What the image sets for its programs: a session of sshd does not have it of itself.
_IMAGE_VARIABLES = ("PATH", "PYTHONPATH")


def worker_host(job: str, namespace: str, index: int | str) -> str:
    """Return the full DNS name of a worker: pod, headless service of the job, namespace. A bare pod name resolves in no other pod."""
    return f"{job}-worker-{index}.{job}.{namespace}.svc"


def trainer_words() -> list[str]:
    """Return the trainer's module and arguments, as they follow the interpreter or its `-m`."""
    return [contract.TRAINER_MODULE, "--config", str(contract.CONFIG_DIRECTORY / contract.CONFIG_FILE)]


def agent_command(plan: JobPlan, job: str, *, node_rank: str) -> list[str]:
    """Return the command of a pod's agent; `node_rank` may be a `$(VARIABLE)` that the kubelet fills in.

    The rendezvous is static: the agent of worker 0 listens because of its number, not because it recognises its own name, and the others
    try again until the name resolves. A rank that dies costs a restart of all ranks in the pods that there are; the job itself only has to
    start again when a pod is lost.
    """
    return [
        contract.PYTHON,
        "-m",
        contract.AGENT_MODULE,
        f"--nnodes={plan.world.workers}",
        f"--nproc-per-node={plan.world.processes}",
        f"--node-rank={node_rank}",
        f"--master-addr={worker_host(job, plan.platform.namespace, 0)}",
        f"--master-port={contract.MASTER_PORT}",
        f"--control-port={contract.CONTROL_PORT}",
        f"--max-restarts={plan.spec.max_restarts}",
        f"--shutdown-timeout={plan.drain_seconds}",
        "-m",
        *trainer_words(),
    ]


def mpirun_command(plan: JobPlan, env: Mapping[str, str]) -> list[str]:
    """Return the command of an MPI launcher. The host file, with its slots, comes from the operator."""
    exports = [word for name in _IMAGE_VARIABLES for word in ("-x", name)]
    exports += [word for name, value in env.items() for word in ("-x", f"{name}={value}")]
    return [
        "mpirun",
        "-np",
        str(plan.world.size),
        # Ranks of a node are neighbours: global rank = node x processes + local rank, as the agents have it.
        "--map-by",
        f"ppr:{plan.world.processes}:node",
        # The container's CPU set is already the ranks' own; binding to cores of the machine fails in it or overlaps.
        "--bind-to",
        "none",
        # A pod has one interface between nodes; loopback and links of node agents are none.
        "--mca",
        "oob_tcp_if_include",
        contract.POD_INTERFACE,
        "--mca",
        "btl",
        "self,tcp",
        "--mca",
        "btl_tcp_if_include",
        contract.POD_INTERFACE,
        "--mca",
        "odls_base_sigkill_timeout",
        str(_RANK_END_SECONDS),
        *exports,
        contract.PYTHON,
        "-m",
        *trainer_words(),
    ]
