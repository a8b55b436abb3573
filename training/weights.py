"""First values of parameters: a function of the seed, the parameter's name and the place in it, whatever the ranks and the sharding."""

import math
import zlib

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

# Rows are drawn in blocks of about so many values, each block from a generator of its own: a rank draws only the blocks that it holds.
_BLOCK = 1 << 20


@torch.no_grad()
def fill_normal(parameter: Tensor, name: str, seed: int, std: float) -> None:
    """Fill what this rank holds of a parameter from a normal distribution around 0."""
    local, offset = local_part(parameter)
    if not local.numel():
        return
    first, last = offset[0], offset[0] + local.shape[0]
    rows = max(1, _BLOCK // math.prod(parameter.shape[1:]))
    inner = tuple(slice(start, start + size) for start, size in zip(offset[1:], local.shape[1:], strict=True))
    for block in range(first // rows, math.ceil(last / rows)):
        begin, end = block * rows, min((block + 1) * rows, parameter.shape[0])
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}/{block}".encode()))
        values = torch.empty(end - begin, *parameter.shape[1:]).normal_(0.0, std, generator=generator)
        low, high = max(begin, first), min(end, last)
        local[low - first : high - first].copy_(values[(slice(low - begin, high - begin), *inner)])


def local_part(tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """What this rank holds of a tensor, and where that starts along each dimension."""
    if not isinstance(tensor, DTensor):
        return tensor, (0,) * tensor.dim()
    _, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return tensor.to_local(), tuple(offset)
