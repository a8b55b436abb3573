"""The launch contract: which rank this process is, of how many, and where rank 0 is, whatever started it.

Reads the environment of torchrun (or anything that sets RANK and WORLD_SIZE), OpenMPI's mpirun, MPICH-like launchers (PMI) and srun.
Pure: it takes a mapping and opens nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_PORT = 29500
LOOPBACK = "127.0.0.1"


class LaunchError(ValueError):
    """An environment that does not say which rank this is; the message names the variables."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """This process's place among the ranks."""

    launcher: str
    """torchrun, environment, mpirun, pmi, srun or none."""
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
    """The names by which one launcher tells ranks."""

    launcher: str
    rank: str
    world_size: str
    local_rank: str
    local_world_size: str


_DIALECTS = (
    _Dialect(launcher="environment", rank="RANK", world_size="WORLD_SIZE", local_rank="LOCAL_RANK", local_world_size="LOCAL_WORLD_SIZE"),
    _Dialect(
        launcher="mpirun",
        rank="OMPI_COMM_WORLD_RANK",
        world_size="OMPI_COMM_WORLD_SIZE",
        local_rank="OMPI_COMM_WORLD_LOCAL_RANK",
        local_world_size="OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    _Dialect(launcher="pmi", rank="PMI_RANK", world_size="PMI_SIZE", local_rank="MPI_LOCALRANKID", local_world_size="MPI_LOCALNRANKS"),
    # The step's own task count: SLURM_NTASKS is also set in a batch script, where there is but one process.
    _Dialect(
        launcher="srun",
        rank="SLURM_PROCID",
        world_size="SLURM_STEP_NUM_TASKS",
        local_rank="SLURM_LOCALID",
        local_world_size="SLURM_STEP_TASKS_PER_NODE",
    ),
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
    by_torchrun = "TORCHELASTIC_RUN_ID" in environ
    rank, world_size = _number(environ, dialect.rank), _number(environ, dialect.world_size)
    if world_size < 1 or not 0 <= rank < world_size:
        raise LaunchError(f"{dialect.rank}={rank} with {dialect.world_size}={world_size}: ranks go from 0 to {dialect.world_size} - 1")
    if not by_torchrun:
        _refuse_disagreement(environ, spoken)
    local_world_size = _number(environ, dialect.local_world_size) if dialect.local_world_size in environ else None
    return Launch(
        launcher="torchrun" if by_torchrun else dialect.launcher,
        rank=rank,
        world_size=world_size,
        local_rank=_local_rank(environ, dialect, rank, world_size),
        local_world_size=local_world_size,
        master_addr=_master_addr(environ, dialect, world_size, local_world_size),
        master_port=_number(environ, "MASTER_PORT") if "MASTER_PORT" in environ else DEFAULT_PORT,
        attempt=_number(environ, "TORCHELASTIC_RESTART_COUNT") if by_torchrun and "TORCHELASTIC_RESTART_COUNT" in environ else 0,
        store_is_served=by_torchrun and environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
    )


def first_host(nodelist: str) -> str:
    """First host of a Slurm node list: `gpu[03-07,9],login` gives `gpu03`."""
    match = re.match(r"([^,\[]+)(?:\[([^\],-]+)[^\]]*\]([^,]*))?", nodelist)
    if not match:
        raise LaunchError(f"SLURM_STEP_NODELIST={nodelist!r} holds no host")
    prefix, index, suffix = match.groups()
    return f"{prefix}{index or ''}{suffix or ''}"


def _number(environ: Mapping[str, str], name: str) -> int:
    try:
        return int(environ[name])
    except ValueError:
        raise LaunchError(f"{name}={environ[name]!r} is not a whole number") from None


def _refuse_half_a_contract(environ: Mapping[str, str], spoken: list[_Dialect]) -> None:
    """RANK without WORLD_SIZE (or the reverse) is a mistake unless another launcher tells both."""
    contract = _DIALECTS[0]
    given = [name for name in (contract.rank, contract.world_size) if name in environ]
    if len(given) == 1 and not spoken:
        missing = contract.world_size if given == [contract.rank] else contract.rank
        raise LaunchError(f"{given[0]}={environ[given[0]]} is set but {missing} is not; set both, or neither to run as one process")


def _refuse_disagreement(environ: Mapping[str, str], spoken: list[_Dialect]) -> None:
    """A RANK that was exported to all processes alike hides the rank that the launcher gives each."""
    first, *others = spoken
    for other in others:
        for ours, theirs in ((first.rank, other.rank), (first.world_size, other.world_size)):
            if environ[ours] != environ[theirs]:
                raise LaunchError(
                    f"{ours}={environ[ours]} but {theirs}={environ[theirs]}: unset {ours} so that {other.launcher}'s own value counts"
                )


def _local_rank(environ: Mapping[str, str], dialect: _Dialect, rank: int, world_size: int) -> int:
    if dialect.local_rank in environ:
        return _number(environ, dialect.local_rank)
    if world_size == 1:
        return rank
    raise LaunchError(f"{dialect.local_rank} is not set, so rank {rank} cannot tell which device of its host is its own")


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
