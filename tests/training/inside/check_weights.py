"""First values and gradients of parameters that are cut: the same as of whole ones, for every rank and any way of cutting."""

import math
from collections.abc import Iterator, Sequence
from types import EllipsisType

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

from training.gradient import _copies
from training.layout import Layout
from training.weights import copy_whole, fill_constant, fill_normal, local_part, whole_shape

# Several blocks of values, and no dimension that parts evenly.
SHAPE = (3001, 701)
RANKS = 4


@pytest.fixture(params=range(RANKS))
def rank(request: pytest.FixtureRequest) -> Iterator[int]:
    """One of four ranks, whose collectives do nothing."""
    dist.init_process_group("fake", store=FakeStore(), rank=request.param, world_size=RANKS)
    yield request.param
    dist.destroy_process_group()


def empty(placements: Sequence[Placement]) -> DTensor:
    """A parameter without values, cut over a mesh of 2 x 2."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("shard", "tensor"))
    shape, _ = compute_local_shape_and_global_offset(torch.Size(SHAPE), mesh, placements)
    return DTensor.from_local(
        torch.full(shape, torch.nan), mesh, placements, run_check=False, shape=torch.Size(SHAPE), stride=(SHAPE[1], 1)
    )


@pytest.mark.parametrize(
    ("placements", "copies"),
    [
        ((Shard(0), Replicate()), 2),
        ((Replicate(), Replicate()), 4),
        ((Shard(0), Shard(1)), 1),
        ((_StridedShard(0, split_factor=2), Shard(0)), 1),
    ],
    ids=["sharded", "replicated", "by rows and columns", "by rows twice"],
)
def test_a_rank_draws_its_part_of_the_same_values(rank: int, placements: Sequence[Placement], copies: int) -> None:
    whole = torch.empty(SHAPE)
    fill_normal(whole, "name", seed=3, std=0.02)
    parameter = empty(placements)
    fill_normal(parameter, "name", seed=3, std=0.02)
    local, (row, column) = local_part(parameter)
    assert torch.equal(local, whole[row : row + local.shape[0], column : column + local.shape[1]])
    assert _copies(parameter, Layout(shard=2, tensor=2)) == copies


class FlatPart(torch.nn.Parameter):
    """A parameter as ZeRO-3 leaves it on a rank: nothing in it, and a flat, padded part beside."""

    @classmethod
    def of(cls, shape: Sequence[int]) -> "FlatPart":
        """With values that nothing has filled."""
        part = cls(torch.empty(0))
        part.ds_shape, part.ds_numel, part.ds_process_group = torch.Size(shape), math.prod(shape), dist.group.WORLD
        part.ds_tensor = torch.full((-(-part.ds_numel // RANKS),), torch.nan)
        part.ds_tensor.ds_numel = part.ds_tensor.numel()
        return part

    def expected(self, whole: torch.Tensor, rank: int) -> torch.Tensor:
        """This rank's values of the whole, without what pads the last ranks'."""
        return whole.reshape(-1)[rank * self.ds_tensor.numel() : (rank + 1) * self.ds_tensor.numel()]


@pytest.mark.parametrize("shape", [SHAPE, (5, 3), (2, 3), (7,), (1,), (3, 2, 5)], ids=str)
def test_a_rank_fills_its_flat_part_with_the_same_values_and_no_more(rank: int, shape: Sequence[int]) -> None:
    whole, part = torch.empty(shape), FlatPart.of(shape)
    fill_normal(whole, "name", seed=3, std=0.02)
    fill_normal(part, "name", seed=3, std=0.02)
    expected = part.expected(whole, rank)
    assert torch.equal(part.ds_tensor[: expected.numel()], expected)
    assert part.ds_tensor[expected.numel() :].isnan().all()
    assert whole_shape(part) == whole.shape


@pytest.mark.parametrize("shape", [SHAPE, (5, 3), (2, 3), (7,), (1,), (3, 2, 5), ()], ids=str)
def test_a_rank_reads_only_the_rows_that_its_flat_part_touches(rank: int, shape: Sequence[int]) -> None:
    class File:
        """Notes what is read of it."""

        def __getitem__(self, rows: slice | EllipsisType) -> torch.Tensor:
            read.append(rows.stop - rows.start if isinstance(rows, slice) else 1)
            return whole[rows]

    whole, part, read = torch.randn(shape), FlatPart.of(shape), []
    copy_whole(part, File())
    expected = part.expected(whole, rank)
    assert torch.equal(part.ds_tensor[: expected.numel()], expected)
    width = math.prod(shape[1:])
    assert sum(read) <= part.ds_tensor.numel() / width + 2
    fill_constant(part, 1.0)
    assert part.ds_tensor.eq(1.0).all()


def test_values_depend_on_seed_and_name_and_have_the_spread_asked_for() -> None:
    first, other_name, other_seed = (torch.empty(SHAPE) for _ in range(3))
    fill_normal(first, "name", seed=3, std=0.02)
    fill_normal(other_name, "another", seed=3, std=0.02)
    fill_normal(other_seed, "name", seed=4, std=0.02)
    assert not torch.equal(first, other_name)
    assert not torch.equal(first, other_seed)
    assert abs(float(first.std()) - 0.02) < 1e-4
    rows = first[:1], first[1:2], first[2000:2001]
    assert len({tuple(row.flatten()[:4].tolist()) for row in rows}) == 3, "no block may repeat another"
