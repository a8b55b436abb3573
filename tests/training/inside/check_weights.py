"""First values and gradients of parameters that are cut: the same as of whole ones, for every rank and any way of cutting."""

from collections.abc import Iterator, Sequence

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
from training.weights import fill_normal, local_part

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
