"""Stages of a pipeline: every layer once, in order, and every hand-over between neighbours."""

import itertools

import pytest

from training.pipeline import split_layers, stages_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("num_layers", "num_stages"), [(4, 2), (5, 2), (9, 8), (32, 12), (7, 7), (3, 1)])
def test_each_layer_is_in_one_stage_and_stages_are_even_to_one_layer(num_layers: int, num_stages: int) -> None:
    stages = split_layers(num_layers, num_stages)
    assert [layer for stage in stages for layer in stage] == list(range(num_layers))
    sizes = [len(stage) for stage in stages]
    assert len(sizes) == num_stages
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True), "the last stage has the head to compute too"


@pytest.mark.parametrize(("num_ranks", "per_rank"), [(2, 1), (2, 2), (4, 3)])
def test_each_stage_is_on_one_rank_and_the_next_one_on_the_next(num_ranks: int, per_rank: int) -> None:
    owner = {stage: rank for rank in range(num_ranks) for stage in stages_of(rank, num_ranks, per_rank)}
    assert sorted(owner) == list(range(num_ranks * per_rank))
    assert all(owner[after] == (owner[before] + 1) % num_ranks for before, after in itertools.pairwise(sorted(owner)))
