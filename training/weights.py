"""Values of parameters, of which a rank may hold a part: whole tensors, DTensors, and the flat parts that ZeRO-3 leaves.

First values are a function of the seed, the parameter's name and the place in it, whatever the ranks and the sharding.
"""

import math
import zlib
from typing import Any

import torch
from torch import Tensor

# Rows are drawn in blocks of about so many values, each block from a generator of its own: a rank draws only the blocks that it holds.
_BLOCK = 1 << 20


def whole_shape(parameter: Tensor) -> torch.Size:
    """Shape of the whole parameter; ZeRO-3 leaves nothing in the parameter itself, and a flat part of it as `ds_tensor`."""
    return getattr(parameter, "ds_shape", parameter.shape)


@torch.no_grad()
def fill_normal(parameter: Tensor, name: str, seed: int, std: float) -> None:
    """Fill what this rank holds of a parameter from a normal distribution around 0."""
    shape = whole_shape(parameter)
    first, last = _held_rows(parameter)
    rows = max(1, _BLOCK // math.prod(shape[1:]))
    for block in range(first // rows, math.ceil(last / rows)):
        begin, end = block * rows, min((block + 1) * rows, shape[0])
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}/{block}".encode()))
        _put_rows(parameter, begin, torch.empty(end - begin, *shape[1:]).normal_(0.0, std, generator=generator))


@torch.no_grad()
def fill_constant(parameter: Tensor, value: float) -> None:
    """Fill what this rank holds of a parameter with one value."""
    getattr(parameter, "ds_tensor", parameter).fill_(value)


@torch.no_grad()
def copy_whole(parameter: Tensor, whole: Any) -> None:
    """Copy a whole tensor into what this rank holds of a parameter.

    `whole` may be anything that slicing makes a tensor of, such as a tensor in a file, of which just the part is read then.
    """
    if _is_flat(parameter):
        first, last = _held_rows(parameter)
        if first < last:
            _put_rows(parameter, first, whole[first:last] if whole_shape(parameter) else whole[...])
    elif hasattr(parameter, "device_mesh"):
        local, offset = local_part(parameter)
        local.copy_(whole[tuple(slice(start, start + size) for start, size in zip(offset, local.shape, strict=True))])
    else:
        parameter.copy_(whole[...])


def local_part(tensor: Tensor) -> tuple[Tensor, tuple[int, ...]]:
    """What this rank holds of a whole tensor or a DTensor, and where that starts along each dimension."""
    if not hasattr(tensor, "device_mesh"):
        return tensor, (0,) * tensor.dim()
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    assert isinstance(tensor, DTensor)
    _, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return tensor.to_local(), tuple(offset)


def _held_rows(parameter: Tensor) -> tuple[int, int]:
    """The rows along the first dimension of which this rank holds anything: from the first up to the second, none if they are equal."""
    if _is_flat(parameter):
        width = math.prod(whole_shape(parameter)[1:])
        start, stop = _flat_range(parameter)
        return (start // width, math.ceil(stop / width)) if start < stop else (0, 0)
    local, offset = local_part(parameter)
    return (offset[0], offset[0] + local.shape[0]) if local.numel() else (0, 0)


def _put_rows(parameter: Tensor, begin: int, values: Tensor) -> None:
    """Copy whole rows, of which the first is the one numbered `begin`, as far as this rank holds them."""
    if _is_flat(parameter):
        start, stop = _flat_range(parameter)
        _put_span(parameter.ds_tensor, start, stop, begin * math.prod(whole_shape(parameter)[1:]), values.reshape(-1))
        return
    local, offset = local_part(parameter)
    inner = tuple(slice(start, start + size) for start, size in zip(offset[1:], local.shape[1:], strict=True))
    low, high = max(begin, offset[0]), min(begin + values.shape[0], offset[0] + local.shape[0])
    local[low - offset[0] : high - offset[0]].copy_(values[(slice(low - begin, high - begin), *inner)])


def _put_span(part: Tensor, start: int, stop: int, begin: int, values: Tensor) -> None:
    """Copy values that begin at one place of a flat tensor into a part that holds it from `start` up to `stop`."""
    low, high = max(begin, start), min(begin + values.numel(), stop)
    part[low - start : high - start].copy_(values[low - begin : high - begin])


def _is_flat(parameter: Tensor) -> bool:
    return hasattr(parameter, "ds_tensor")


def _flat_range(parameter: Any) -> tuple[int, int]:
    """Where in the flattened parameter this rank's part lies; the last ranks' parts are padded, and their ends left out here."""
    size = parameter.ds_tensor.ds_numel
    rank = torch.distributed.get_rank(group=parameter.ds_process_group)
    return tuple(min(place * size, parameter.ds_numel) for place in (rank, rank + 1))
