"""Gradients under any mixture of sharding: their true global norm, and clipping by it."""

import math
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, Partial

from training.layout import Layout


def settle_partial_sums(parameters: Iterable[Tensor]) -> None:
    """Sum up gradients that tensor ranks hold in parts, as those of norms over a cut sequence are."""
    for parameter in parameters:
        gradient = parameter.grad
        if isinstance(gradient, DTensor) and gradient.placements != parameter.placements:
            parameter.grad = gradient.redistribute(placements=parameter.placements)


def global_norm(parameters: Iterable[Tensor], layout: Layout, device: torch.device) -> Tensor:
    """Euclidean norm of the whole model's gradient, the same on every rank, as a scalar on the device.

    Every rank adds up the squares of what it holds, each divided by the number of ranks that hold the same values, and one sum over all
    ranks does the rest: that is right for any sharding of any parameter, and for parameters that only some pipeline stages have.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if layout.pipeline == 1 and not any(isinstance(gradient, DTensor) for gradient in gradients):
        return torch.nn.utils.get_total_norm(gradients).to(device)
    by_copies: dict[int, list[Tensor]] = {}
    for gradient in gradients:
        by_copies.setdefault(_copies(gradient, layout), []).append(_local(gradient))
    squares = torch.zeros((), dtype=torch.float64, device=device)
    for copies, held in by_copies.items():
        squares += torch.nn.utils.get_total_norm(held).to(device, torch.float64).square() / copies
    dist.all_reduce(squares)
    return squares.sqrt().float()


def local_gradients(parameters: Iterable[Tensor]) -> list[Tensor]:
    """What this rank holds of all gradients, to be changed in place."""
    return [_local(parameter.grad) for parameter in parameters if parameter.grad is not None]


def clip(parameters: Iterable[Tensor], norm: Tensor, limit: float) -> None:
    """Scale gradients down so that their global norm is at most the limit."""
    if gradients := local_gradients(parameters):
        factor = torch.clamp(limit / (norm + 1e-6), max=1.0)
        torch._foreach_mul_(gradients, factor.to(gradients[0].device))


def _copies(gradient: Tensor, layout: Layout) -> int:
    """How many ranks hold the same values of a gradient."""
    holders = layout.world_size // layout.pipeline
    if not isinstance(gradient, DTensor):
        return holders
    parts = [size for size, placement in zip(gradient.device_mesh.shape, gradient.placements, strict=True) if not placement.is_replicate()]
    return holders // math.prod(parts)


def _local(gradient: Tensor | None) -> Tensor:
    assert not (isinstance(gradient, DTensor) and any(isinstance(placement, Partial) for placement in gradient.placements))
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient
