"""The launch contract: which rank this process is, of how many, and where rank 0 is, whatever started it.

Reads the environment of torchrun, the deepspeed launcher, Ray Train and anything else that sets RANK and WORLD_SIZE; of OpenMPI, MVAPICH,
MPICH and Intel MPI; of srun; and of an indexed Job that runs one rank in each pod. What they contradict each other in is refused by name.
Pure: it takes a mapping and opens nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_PORT = 29500
LOOPBACK = "127.0.0.1"

ATTEMPT = "TRAINYARD_ATTEMPT"
"""How often the supervisor has restarted the ranks."""
COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
"""A pod's index in an indexed Job of Kubernetes."""
CONTRACT_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", ATTEMPT)
"""What a launcher tells each rank; whoever writes a job's environment must leave these to it."""

# Jobs that share a host need a port each; these lie below the range that Linux gives to outgoing connections.
_FIRST_SLURM_PORT, _NUM_SLURM_PORTS = 15000, 15000


class LaunchError(ValueError):
    """An environment that does not say which rank this is; the message names the variables."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """This process's place among the ranks."""

    launcher: str
    """torchrun, supervisor, deepspeed, ray, environment, mpirun, mvapich, mpich, intel-mpi, srun, indexed-job or none."""
    rank: int
    world_size: int
    local_rank: int
    """Index among the ranks of this host: picks the device."""
    local_world_size: int | None
    """Ranks on this host, where the launcher says so."""
    master_addr: str
    master_port: int
    attempt: int = 0
    """How often the launcher has restarted the ranks."""
    store_is_served: bool = False
    """Whether the launcher already serves the rendezvous store, so that rank 0 must not."""


@dataclass(frozen=True, kw_only=True)
class _Dialect:
    """The names by which one launcher tells ranks. A name that is None is not told."""

    launcher: str
    rank: str
    world_size: str
    local_rank: str | None
    local_world_size: str | None


_CONTRACT = _Dialect(
    launcher="environment", rank="RANK", world_size="WORLD_SIZE", local_rank="LOCAL_RANK", local_world_size="LOCAL_WORLD_SIZE"
)
_DIALECTS = (
    _CONTRACT,
    _Dialect(
        launcher="mpirun",
        rank="OMPI_COMM_WORLD_RANK",
        world_size="OMPI_COMM_WORLD_SIZE",
        local_rank="OMPI_COMM_WORLD_LOCAL_RANK",
        local_world_size="OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    _Dialect(
        launcher="mvapich",
        rank="MV2_COMM_WORLD_RANK",
        world_size="MV2_COMM_WORLD_SIZE",
        local_rank="MV2_COMM_WORLD_LOCAL_RANK",
        local_world_size="MV2_COMM_WORLD_LOCAL_SIZE",
    ),
    # The step's own task count: SLURM_NTASKS is also set in a batch script, where there is but one process. Before PMI: `srun --mpi=pmi2`
    # tells both, and only Slurm's own names tell the place on the host.
    _Dialect(
        launcher="srun",
        rank="SLURM_PROCID",
        world_size="SLURM_STEP_NUM_TASKS",
        local_rank="SLURM_LOCALID",
        local_world_size="SLURM_STEP_TASKS_PER_NODE",
    ),
    # Hydra, the process manager of MPICH and Intel MPI.
    _Dialect(launcher="mpich", rank="PMI_RANK", world_size="PMI_SIZE", local_rank="MPI_LOCALRANKID", local_world_size="MPI_LOCALNRANKS"),
    _Dialect(launcher="indexed-job", rank=COMPLETION_INDEX, world_size="WORLD_SIZE", local_rank=None, local_world_size=None),
)


def read_launch(environ: Mapping[str, str]) -> Launch:
    """The place of this process among the ranks. Raises LaunchError on a partial or contradictory environment."""
    spoken = [dialect for dialect in _DIALECTS if dialect.rank in environ and dialect.world_size in environ]
    _refuse_half_a_contract(environ, spoken)
    if not spoken:
        return Launch(
            launcher="none", rank=0, world_size=1, local_rank=0, local_world_size=1, master_addr=LOOPBACK, master_port=DEFAULT_PORT
        )
    dialect = spoken[0]
    launcher = _launcher(environ, dialect)
    rank, world_size = _number(environ, dialect.rank), _number(environ, dialect.world_size)
    if world_size < 1 or not 0 <= rank < world_size:
        raise LaunchError(f"{dialect.rank}={rank} with {dialect.world_size}={world_size}: ranks go from 0 to {dialect.world_size} - 1")
    _refuse_disagreement(environ, spoken, launcher)
    local_world_size = _local_world_size(environ, dialect)
    local_rank = _local_rank(environ, dialect, rank, world_size)
    _refuse_impossible_place(dialect, rank, world_size, local_rank, local_world_size)
    _refuse_other_pod(environ, rank, local_world_size)
    return Launch(
        launcher=launcher,
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        local_world_size=local_world_size,
        master_addr=_master_addr(environ, dialect, world_size, local_world_size),
        master_port=_master_port(environ, dialect),
        attempt=_attempt(environ, launcher),
        store_is_served=launcher == "torchrun" and environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
    )


def first_host(nodelist: str) -> str:
    """First host of a Slurm node list: `gpu[03-07,9],login` gives `gpu03`."""
    match = re.match(r"([^,\[]+)(?:\[([^\],-]+)[^\]]*\]([^,]*))?", nodelist)
    if not match:
        raise LaunchError(f"SLURM_STEP_NODELIST={nodelist!r} holds no host")
    prefix, index, suffix = match.groups()
    return f"{prefix}{index or ''}{suffix or ''}"


def tasks_on_node(tasks_per_node: str, node: int) -> int:
    """Tasks of one node in Slurm's compressed list: `2(x3),1` means 2 on nodes 0 to 2 and 1 on node 3."""
    first = 0
    for part in tasks_per_node.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if not match:
            break
        first += int(match[2] or 1)
        if node < first:
            return int(match[1])
    raise LaunchError(f"SLURM_STEP_TASKS_PER_NODE={tasks_per_node!r} says nothing of node {node} (SLURM_NODEID)")


def refuse_other_local_rank(environ: Mapping[str, str], argument: int) -> None:
    """The deepspeed launcher gives the local rank as an argument too. Raises LaunchError if it is another than the environment's."""
    if environ.get("LOCAL_RANK", str(argument)) != str(argument):
        raise LaunchError(f"--local_rank {argument} but LOCAL_RANK={environ['LOCAL_RANK']}; leave the argument to the launcher")


def _launcher(environ: Mapping[str, str], dialect: _Dialect) -> str:
    """Who started the ranks, for the log; programs that speak the plain contract are told apart by what else they set."""
    if dialect is _CONTRACT:
        signs = {"torchrun": "TORCHELASTIC_RUN_ID", "supervisor": ATTEMPT, "deepspeed": "CROSS_RANK", "ray": "RAY_JOB_ID"}
        return next((name for name, sign in signs.items() if sign in environ), dialect.launcher)
    if dialect.launcher == "mpich" and any(name.startswith("I_MPI_") for name in environ):
        return "intel-mpi"
    return dialect.launcher


def _number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise LaunchError(f"{name}={environ[name]!r} is not a whole number") from None


def _refuse_half_a_contract(environ: Mapping[str, str], spoken: list[_Dialect]) -> None:
    """RANK without WORLD_SIZE (or the reverse) is a mistake unless another launcher tells both."""
    given = [name for name in (_CONTRACT.rank, _CONTRACT.world_size) if name in environ]
    if len(given) == 1 and not spoken:
        missing = _CONTRACT.world_size if given == [_CONTRACT.rank] else _CONTRACT.rank
        raise LaunchError(f"{given[0]}={environ[given[0]]} is set but {missing} is not; set both, or neither to run as one process")


def _refuse_disagreement(environ: Mapping[str, str], spoken: list[_Dialect], launcher: str) -> None:
    """A RANK that was exported to all processes alike hides the rank that the launcher gives each.

    An agent that starts several ranks below another launcher's one is right about them, and so is a Job's index about pods.
    """
    if launcher in ("torchrun", "supervisor"):
        return
    first, *others = spoken
    for other in others:
        if other.launcher == "indexed-job":
            continue
        for ours, theirs in ((first.rank, other.rank), (first.world_size, other.world_size)):
            if environ[ours] != environ[theirs]:
                raise LaunchError(
                    f"{ours}={environ[ours]} but {theirs}={environ[theirs]}: unset {ours} so that {other.launcher}'s own value counts"
                )


def _refuse_impossible_place(dialect: _Dialect, rank: int, world_size: int, local_rank: int, local_world_size: int | None) -> None:
    if local_world_size is not None and not 1 <= local_world_size <= world_size:
        raise LaunchError(f"{dialect.local_world_size}={local_world_size} with {dialect.world_size}={world_size}: a host has 1 rank to all")
    most = rank if local_world_size is None else min(rank, local_world_size - 1)
    if not 0 <= local_rank <= most:
        raise LaunchError(
            f"{dialect.local_rank}={local_rank} with {dialect.rank}={rank}: it is rank {rank}'s place on its host, from 0 to {most}"
        )


def _refuse_other_pod(environ: Mapping[str, str], rank: int, local_world_size: int | None) -> None:
    """Each pod before this one in an indexed Job holds one rank or more, so a lower rank was written by hand for all pods."""
    if COMPLETION_INDEX not in environ:
        return
    index = _number(environ, COMPLETION_INDEX)
    least = index * (local_world_size or 1)
    if rank < least:
        raise LaunchError(
            f"RANK={rank} but {COMPLETION_INDEX}={index}: with {local_world_size or 1} ranks a pod its first is {least}; "
            "unset RANK so that the index counts"
        )


def _local_rank(environ: Mapping[str, str], dialect: _Dialect, rank: int, world_size: int) -> int:
    if dialect.local_rank is None:
        return 0
    if dialect.local_rank in environ:
        return _number(environ, dialect.local_rank)
    if world_size == 1:
        return rank
    raise LaunchError(f"{dialect.local_rank} is not set, so rank {rank} cannot tell which device of its host is its own")


def _local_world_size(environ: Mapping[str, str], dialect: _Dialect) -> int | None:
    if dialect.launcher == "indexed-job":
        return 1
    # The deepspeed launcher has a name of its own for it.
    name = "LOCAL_SIZE" if dialect is _CONTRACT and "LOCAL_WORLD_SIZE" not in environ else dialect.local_world_size
    if name is None or name not in environ:
        return None
    if dialect.launcher == "srun":
        return tasks_on_node(environ[name], _number(environ, "SLURM_NODEID") if "SLURM_NODEID" in environ else 0)
    return _number(environ, name)


def _master_addr(environ: Mapping[str, str], dialect: _Dialect, world_size: int, local_world_size: int | None) -> str:
    if "MASTER_ADDR" in environ:
        return environ["MASTER_ADDR"]
    if local_world_size == world_size or world_size == 1:
        return LOOPBACK
    nodes = environ.get("SLURM_STEP_NODELIST")
    if dialect.launcher == "srun" and nodes:
        return first_host(nodes)
    raise LaunchError(
        f"MASTER_ADDR is not set and {world_size} ranks run on more than one host; set it to the name of rank 0's host "
        f"(mpirun: -x MASTER_ADDR=<first worker>)"
    )


def _master_port(environ: Mapping[str, str], dialect: _Dialect) -> int:
    if "MASTER_PORT" in environ:
        port = _number(environ, "MASTER_PORT")
        if not 1 <= port <= 65535:
            raise LaunchError(f"MASTER_PORT={port} is no port; ports go from 1 to 65535")
        return port
    if dialect.launcher == "srun" and "SLURM_JOB_ID" in environ:
        return _FIRST_SLURM_PORT + _number(environ, "SLURM_JOB_ID") % _NUM_SLURM_PORTS
    return DEFAULT_PORT


def _attempt(environ: Mapping[str, str], launcher: str) -> int:
    name = {"torchrun": "TORCHELASTIC_RESTART_COUNT", "supervisor": ATTEMPT}.get(launcher)
    return _number(environ, name) if name and name in environ else 0
