"""The process group of a run, its device, and the few collectives by which ranks take one decision together."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist

from training.config import DistributedConfig
from training.errors import RendezvousError, TrainingError
from training.launch import LOOPBACK, Launch
from training.rendezvous import meet
from training.schema import ConfigError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ranks:
    """All ranks of the run, seen from this one."""

    launch: Launch
    device: torch.device
    backend: str
    """gloo or nccl."""
    reason: str
    """Why this backend, for the log."""
    control: dist.ProcessGroup | None
    """Group of all ranks on the CPU, for decisions; None where the default group is one already."""
    owns_group: bool = True
    """Whether the default group was made here, and not by the launcher."""

    @property
    def rank(self) -> int:
        """This rank."""
        return self.launch.rank

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.launch.world_size

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which logs, measures and publishes."""
        return self.launch.rank == 0

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sums over all ranks, in double precision, the same on every rank."""
        if self.world_size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, group=self.control)
        return tensor.tolist()

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, by rank, on every rank."""
        values: list[Any] = [value] * self.world_size
        if self.world_size > 1:
            dist.all_gather_object(values, value, group=self.control)
        return values

    def broadcast(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        values = [value]
        if self.world_size > 1:
            dist.broadcast_object_list(values, src=0, group=self.control, device=torch.device("cpu"))
        return values[0]

    def together(self, action: Callable[[], Any], what: str, error: type[TrainingError]) -> list[Any]:
        """Run the action on every rank and gather the results.

        If it fails on any rank, `error` is raised on all of them, naming that rank and its reason.
        """
        try:
            outcome = (True, action())
        except (OSError, RuntimeError, ValueError) as problem:
            outcome = (False, f"{type(problem).__name__}: {problem}")
        outcomes = self.gather(outcome)
        failed = [f"rank {rank}: {result}" for rank, (succeeded, result) in enumerate(outcomes) if not succeeded]
        if failed:
            raise error(f"{what} failed on {'; '.join(failed)}")
        return [result for _, result in outcomes]

    def leave(self) -> None:
        """Part from the others, after everything is done; a launcher's own group is left to it."""
        self.barrier()
        if self.owns_group:
            dist.destroy_process_group()

    def barrier(self) -> None:
        """Wait for every rank."""
        if self.world_size > 1:
            dist.barrier(group=self.control)


def choose_backend(requested: str, num_gpus: int) -> tuple[str, str]:
    """Backend and the reason for it.

    Raises ConfigError when nccl is asked for and no GPU is visible: that it is compiled in is not enough.
    """
    if requested == "auto":
        return ("nccl", f"{num_gpus} GPUs visible") if num_gpus else ("gloo", "no GPU visible")
    if requested == "nccl" and not num_gpus:
        raise ConfigError("distributed.backend", "nccl", "auto or gloo: nccl needs a GPU and this rank sees none")
    return requested, "set in distributed.backend"


def join(launch: Launch, config: DistributedConfig, keep_waiting: Callable[[], None]) -> Ranks:
    """Meet the other ranks and make the process groups. Raises ConfigError or RendezvousError."""
    num_gpus = torch.cuda.device_count()
    backend, reason = choose_backend(config.backend, num_gpus)
    device = _device(launch, num_gpus) if backend == "nccl" else torch.device("cpu")
    timeout = timedelta(seconds=config.timeout_seconds)
    _tell_libraries(launch, device)
    if dist.is_initialized():
        return _adopt(launch, device, timeout)
    if launch.world_size == 1:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, timeout=timeout)
        return Ranks(launch, device, backend, reason, None)
    _log.info("waiting for %d ranks at %s:%d", launch.world_size, launch.master_addr, launch.master_port)
    store = meet(launch, config.init_timeout_seconds, keep_waiting)
    try:
        dist.init_process_group(backend, store=store, rank=launch.rank, world_size=launch.world_size, timeout=timeout)
        # None stands for the default group in every collective.
        control = None if backend == "gloo" else dist.new_group(backend="gloo", timeout=timeout)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise RendezvousError(f"all {launch.world_size} ranks have come, but they cannot connect to each other: {reason}") from error
    return Ranks(launch, device, backend, reason, cast("dist.ProcessGroup | None", control))


def _adopt(launch: Launch, device: torch.device, timeout: timedelta) -> Ranks:
    """Use the group that the launcher has made, as Ray Train does. Raises RendezvousError if it is another than the environment says."""
    rank, world_size, backend = dist.get_rank(), dist.get_world_size(), dist.get_backend()
    if (rank, world_size) != (launch.rank, launch.world_size):
        raise RendezvousError(
            f"the process group has rank {rank} of {world_size}, the environment rank {launch.rank} of {launch.world_size}"
        )
    control = None if backend == "gloo" or world_size == 1 else dist.new_group(backend="gloo", timeout=timeout)
    made = cast("dist.ProcessGroup | None", control)
    return Ranks(launch, device, backend, f"of the group that {launch.launcher} made", made, owns_group=False)


def is_lost_peer(error: RuntimeError) -> bool:
    """Whether a collective failed because another rank is gone or silent, and not by a fault of this one."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)


def _device(launch: Launch, num_gpus: int) -> torch.device:
    """The GPU of this rank: by local rank, or the only one where the launcher shows each rank its own."""
    if launch.local_rank >= num_gpus > 1:
        raise TrainingError(f"rank {launch.rank} has local rank {launch.local_rank} but sees only {num_gpus} GPUs; start one rank per GPU")
    device = torch.device("cuda", launch.local_rank if num_gpus > 1 else 0)
    torch.cuda.set_device(device)
    return device


def _tell_libraries(launch: Launch, device: torch.device) -> None:
    """Give the launch contract to libraries that read it from the environment themselves, DeepSpeed above all."""
    os.environ.update(
        RANK=str(launch.rank),
        WORLD_SIZE=str(launch.world_size),
        # They take it for the index of the device, which differs where each rank sees its own GPU alone.
        LOCAL_RANK=str(launch.local_rank if device.index is None else device.index),
        MASTER_ADDR=launch.master_addr,
        MASTER_PORT=str(launch.master_port),
    )
    if launch.master_addr in (LOOPBACK, "localhost"):
        # A host name that resolves to nothing reachable would otherwise stop gloo on a single machine.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
