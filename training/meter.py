"""What follows from a step's time: throughput, utilisation, memory."""

import resource
from dataclasses import dataclass
from pathlib import Path

import torch

from training.peaks import peak_flops

_MIB = 1 << 20
_PAGE = resource.getpagesize()


@dataclass(frozen=True, kw_only=True)
class Meter:
    """Turns seconds into rates."""

    tokens_per_step: int
    """Over all replicas."""
    flops_per_token: int
    """Of the model, forwards and backwards, without recomputation."""
    peak_flops: float | None
    """Of all devices together; None where it is not known, and then there is no utilisation."""
    device: torch.device

    def measure(self, seconds: float) -> dict[str, float]:
        """Rates of a step that took this long."""
        rate = self.tokens_per_step / seconds
        values = {"tokens_per_second": rate, "seconds": seconds, "memory_mib": self.memory_mib()}
        if self.peak_flops:
            values["mfu"] = rate * self.flops_per_token / self.peak_flops
        return values

    def memory_mib(self) -> float:
        """Most memory that tensors have taken on this rank's device so far; on a CPU what the process holds now."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / _MIB
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / _MIB


def find_peak(device: torch.device, precision: str, world_size: int, stated_tflops: float | None) -> float | None:
    """Operations per second of all devices: as stated in the configuration, else from the table; None for a device that is not in it."""
    if stated_tflops is not None:
        return stated_tflops * 1e12 * world_size
    one = peak_flops(torch.cuda.get_device_name(device), precision) if device.type == "cuda" else None
    return one * world_size if one else None
