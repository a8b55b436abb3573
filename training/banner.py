"""What a run says of itself at its start."""

import logging
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import torch

from training.architecture import choose_architecture
from training.batch import BatchPlan
from training.config import TrainConfig
from training.data import Dataset
from training.distributed import Ranks
from training.engines import Engine
from training.layout import Layout, check_nodes
from training.meter import Meter
from training.precision import DTYPES

_log = logging.getLogger(__name__)


def show_banner(config: TrainConfig, ranks: Ranks, layout: Layout, plan: BatchPlan, dataset: Dataset, engine: Engine, meter: Meter) -> None:
    """Log it, a fact a line."""
    launch, length = ranks.launch, config.data.sequence_length
    kernel = choose_architecture(config).attention_kernel(length, DTYPES[config.engine.precision], ranks.device)
    _log.info("run %s in %s: %d optimizer steps", config.name, config.run_directory, config.steps)
    _log.info("world size %d (launched by %s, rank 0 at %s:%d)", ranks.world_size, launch.launcher, launch.master_addr, launch.master_port)
    _log.info("mesh %s", layout)
    for warning in check_nodes(layout, launch.local_world_size or ranks.world_size):
        _log.warning("%s", warning)
    _log.info("backend %s (%s), device %s, %d threads per rank", ranks.backend, ranks.reason, _device(ranks), torch.get_num_threads())
    _log.info("global batch %s; %d tokens per step", plan, meter.tokens_per_step)
    _log.info("engine %s, %s parameters, attention kernel %s", config.engine, f"{engine.num_parameters:,}", kernel)
    peak = f"{meter.peak_flops / 1e12:.4g} TFLOP/s over all devices" if meter.peak_flops else "unknown, so there is no MFU"
    _log.info("%s FLOPs per token, peak %s", f"{meter.flops_per_token:,}", peak)
    _log.info("versions %s", ", ".join(f"{name} {found}" for name, found in versions(ranks.device).items()))
    _log.info("corpus %s", dataset.describe())


def versions(device: torch.device) -> dict[str, str]:
    """Of everything that decides what a rank computes, as far as it is installed."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    with suppress(PackageNotFoundError):
        found["deepspeed"] = version("deepspeed")
    if device.type == "cuda":
        found["cuda"] = str(torch.version.cuda)
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found


def _device(ranks: Ranks) -> str:
    return f"{ranks.device} ({torch.cuda.get_device_name(ranks.device)})" if ranks.device.type == "cuda" else str(ranks.device)
