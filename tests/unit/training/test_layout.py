"""The mesh as arithmetic: every rank has its place, groups along the axes are what they should be, misfits are refused by name."""

import math
from itertools import product

import pytest

from training.batch import plan_batch
from training.layout import AXES, Layout, check_nodes, plan_layout
from training.schema import ConfigError

pytestmark = pytest.mark.unit

LAYOUTS = [
    Layout(pipeline=pipeline, replicate=replicate, shard=shard, context=context, tensor=tensor)
    for pipeline, replicate, shard, context, tensor in product((1, 3), (1, 2), (1, 4), (1, 2), (1, 2))
]


def test_tensor_and_pipeline_ranks_do_not_multiply_the_batch() -> None:
    layout = plan_layout(64, tensor=8, pipeline=4)
    plan = plan_batch(replicas=layout.replicas, micro=1, accumulation=32)
    assert (layout.replicas, plan.global_batch) == (2, 64)
    assert str(layout) == "pipeline 4 x replicate 2 x tensor 8 = 64 ranks"
    assert check_nodes(layout, 8) == []


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_coordinates_and_ranks_are_each_others_inverse(layout: Layout) -> None:
    places = [layout.coordinates(rank) for rank in range(layout.world_size)]
    assert len(set(places)) == layout.world_size
    assert [layout.rank(place) for place in places] == list(range(layout.world_size))
    with pytest.raises(IndexError):
        layout.coordinates(layout.world_size)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_groups_along_an_axis_part_the_world_and_differ_in_that_axis_alone(layout: Layout) -> None:
    for axis in AXES:
        groups = layout.groups(axis)
        assert sorted(rank for group in groups for rank in group) == list(range(layout.world_size))
        for group in groups:
            places = [layout.coordinates(rank) for rank in group]
            assert [getattr(place, axis) for place in places] == list(range(getattr(layout, axis)))
            others = {tuple(getattr(place, other) for other in AXES if other != axis) for place in places}
            assert len(others) == 1


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_each_replica_has_one_voice_and_ranks_of_one_model_copy_share_samples(layout: Layout) -> None:
    voices = [layout.replica(rank) for rank in range(layout.world_size) if layout.reports_loss(rank)]
    assert sorted(voices) == list(range(layout.replicas))
    for axis in ("pipeline", "context", "tensor"):
        for group in layout.groups(axis):
            assert len({layout.replica(rank) for rank in group}) == 1, f"{axis} ranks work on the same samples"


def test_tensor_ranks_are_neighbours() -> None:
    assert plan_layout(8, tensor=2, pipeline=2).groups("tensor") == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert plan_layout(8, tensor=2, pipeline=2).groups("pipeline") == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_experts_are_divided_along_the_innermost_data_axis() -> None:
    assert plan_layout(8, tensor=2, expert=2).groups("expert") == [[0, 2], [4, 6], [1, 3], [5, 7]]
    hybrid = plan_layout(8, sharded=True, replicate=2, expert=4)
    assert hybrid.groups("expert") == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, (8, 1)),
        ({"sharded": True}, (1, 8)),
        ({"sharded": True, "shard": 4}, (2, 4)),
        ({"sharded": True, "replicate": 4}, (4, 2)),
        ({"sharded": True, "replicate": 2, "shard": 4}, (2, 4)),
        ({"sharded": True, "tensor": 2}, (1, 4)),
        ({"replicate": 8}, (8, 1)),
    ],
)
def test_the_data_axes_take_what_is_left(arguments: dict, expected: tuple[int, int]) -> None:
    layout = plan_layout(8, **arguments)
    assert (layout.replicate, layout.shard) == expected
    assert math.prod(layout.sizes) == layout.world_size == 8


@pytest.mark.parametrize(
    ("world_size", "arguments", "message"),
    [
        (
            12,
            {"tensor": 8},
            "parallel.tensor: 8 is refused; allowed: tensor 8 = 8 ranks per model copy to divide the world size 12; use 8 or 16 ranks",
        ),
        (
            60,
            {"tensor": 8, "pipeline": 4},
            'parallel: {"pipeline": 4, "tensor": 8} is refused; allowed: pipeline 4 x tensor 8 = 32 ranks per model copy to divide',
        ),
        (8, {"sharded": True, "shard": 3}, "parallel.shard: 3 is refused; allowed: a divisor of the 8 data-parallel ranks"),
        (8, {"replicate": 3}, "parallel.replicate: 3 is refused; allowed: a divisor of the 8 data-parallel ranks"),
        (8, {"replicate": 2, "shard": 2}, "parallel.shard: 2 is refused; allowed: 4: replicate 2 x shard 2 = 4, but there are 8"),
        (8, {"expert": 3}, "parallel.expert: 3 is refused; allowed: a divisor of the 8 ranks of the replicate axis"),
        (8, {"tensor": 0}, "parallel.tensor: 0 is refused"),
        (8, {"tensor": True}, "parallel.tensor: true is refused"),
        (0, {}, "world size: 0 is refused"),
    ],
)
def test_axes_that_do_not_fit_are_refused_by_name(world_size: int, arguments: dict, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_layout(world_size, **arguments)
    assert message in str(caught.value)


def test_a_tensor_group_that_spans_nodes_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"parallel.tensor: 16 is refused; allowed: a divisor of the 8 ranks of a node"):
        check_nodes(plan_layout(64, tensor=16), 8)
    with pytest.raises(ConfigError, match=r"parallel.tensor: 4 is refused"):
        check_nodes(plan_layout(12, tensor=4), 6)


def test_other_chatty_groups_that_span_nodes_are_warned_of() -> None:
    assert check_nodes(plan_layout(16, sharded=True), 8) == [], "full sharding has no smaller group to choose"
    hybrid = plan_layout(32, sharded=True, replicate=2)
    assert check_nodes(hybrid, 8) == ["parallel.shard = 16: its groups span nodes of 8 ranks, so that their traffic leaves the node"]
    assert "parallel.expert = 16" in check_nodes(plan_layout(16, expert=16), 8)[0]
