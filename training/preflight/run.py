"""The pre-flight as ranks run it: facts, links, then one decision that all ranks share."""

import logging
import time

import torch
import torch.distributed as dist
from torch import Tensor

from training.architecture import choose_architecture
from training.config import EngineConfig, TrainConfig
from training.distributed import Ranks
from training.errors import PreflightError
from training.layout import Layout
from training.precision import DTYPES
from training.preflight.checks import Findings, check_bandwidth, check_facts, check_transport
from training.preflight.facts import Facts, gather_facts
from training.preflight.memory import state_bytes
from training.preflight.transport import NcclLog, Transport
from training.schema import ConfigError

_MIB = 1 << 20
_GPU_COLLECTIVE_MIB, _CPU_COLLECTIVE_MIB = 256, 1
_REPETITIONS = 3
_log = logging.getLogger(__name__)


def run_preflight(config: TrainConfig, ranks: Ranks, layout: Layout) -> None:
    """Check hosts and links; collective. Raises PreflightError, the same on every rank, or ConfigError for a demand that cannot be met."""
    settings = config.preflight
    if not settings.enabled:
        return
    if settings.transport == "efa" and ranks.backend != "nccl":
        raise ConfigError("preflight.transport", "efa", f"any with backend {ranks.backend}: only nccl uses EFA")
    nccl_log = NcclLog() if ranks.backend == "nccl" else None
    facts = gather_facts(ranks)
    found = [check_facts(facts, settings, needed_mib=_needed_mib(config, ranks, layout))]
    _decide(ranks, found)
    speed = measure_bus_bandwidth(ranks, _collective_mib(config, ranks))
    if speed is not None:
        found.append(check_bandwidth(speed, settings))
    transports = ranks.gather(nccl_log.transport()) if nccl_log and ranks.world_size > 1 else []
    if transports:
        found.append(check_transport(transports, facts, settings))
    _decide(ranks, found)
    if ranks.is_main:
        _report(facts, speed, _collective_mib(config, ranks), transports, found)


def measure_bus_bandwidth(ranks: Ranks, mib: int) -> float | None:
    """Gigabytes per second that each link carries in an all-reduce of this size, the best of three; None for one rank or no size."""
    if ranks.world_size == 1 or not mib:
        return None
    block = torch.zeros(mib * _MIB // 4, device=ranks.device)
    best = float("inf")
    for repetition in range(_REPETITIONS + 1):
        ranks.barrier()
        started = time.monotonic()
        dist.all_reduce(block)
        if ranks.device.type == "cuda":
            torch.cuda.synchronize(ranks.device)
        # The first one connects.
        best = min(best, time.monotonic() - started) if repetition else best
    # The slowest rank's time: all of them have to wait for it.
    slowest = max(ranks.gather(best))
    return 2 * (ranks.world_size - 1) / ranks.world_size * mib * _MIB / slowest / 1e9


def _collective_mib(config: TrainConfig, ranks: Ranks) -> int:
    automatic = _GPU_COLLECTIVE_MIB if ranks.device.type == "cuda" else _CPU_COLLECTIVE_MIB
    return automatic if config.preflight.collective_mib is None else config.preflight.collective_mib


def _needed_mib(config: TrainConfig, ranks: Ranks, layout: Layout) -> int:
    parameters = list(choose_architecture(config).build().parameters())
    trained = sum(parameter.numel() for parameter in parameters if parameter.requires_grad)
    frozen = sum(parameter.numel() * _stored_bytes(parameter, config.engine) for parameter in parameters if not parameter.requires_grad)
    return state_bytes(trained, config.engine, layout, on_host=ranks.device.type == "cpu", frozen_bytes=frozen) // _MIB


def _stored_bytes(parameter: Tensor, engine: EngineConfig) -> int:
    """Bytes of each value of a frozen parameter: ZeRO-3 makes it in the precision that it computes in, everything else starts from fp32."""
    in_precision = engine.zero_stage == 3 and parameter.is_floating_point()
    return DTYPES[engine.precision].itemsize if in_precision else parameter.element_size()


def _decide(ranks: Ranks, found: list[Findings]) -> None:
    """Raise what was found; every rank has the same facts, and rank 0's reading of them counts."""
    problems = ranks.broadcast([problem for findings in found for problem in findings.problems])
    if problems:
        raise PreflightError("; ".join(problems))


def _report(facts: list[Facts], speed: float | None, mib: int, transports: list[Transport], found: list[Findings]) -> None:
    hosts = {fact.host for fact in facts}
    times = [fact.time for fact in facts]
    words = [f"{len(hosts)} host{'s' if len(hosts) > 1 else ''}", f"clocks within {1000 * (max(times) - min(times)):.0f} ms"]
    words.append(f"{min(fact.free_mib for fact in facts)} MiB free at least")
    if speed is not None:
        words.append(f"all-reduce of {mib} MiB at {speed:.2f} GB/s bus bandwidth")
    if transports:
        words.append(f"NCCL over {'; '.join(sorted({str(transport) for transport in transports}))}")
    _log.info("pre-flight: %s", ", ".join(words))
    for findings in found:
        for warning in findings.warnings:
            _log.warning("pre-flight: %s", warning)
