"""The order of samples with and without windows of shards: each once per epoch, near each other where that is asked for."""

from itertools import pairwise

import pytest

from training.order import SampleOrder
from training.shuffle import shuffled

pytestmark = pytest.mark.unit

SIZES = [7, 0, 12, 1, 30, 9, 4]


def epoch_of(order: SampleOrder, epoch: int) -> list[int]:
    return [order.sample(epoch, position) for position in range(order.num_samples)]


@pytest.mark.parametrize("window", [None, 1, 2, 3, 6, 50])
def test_every_sample_comes_once_per_epoch_in_an_order_of_its_own(window: int | None) -> None:
    order = SampleOrder(SIZES, seed=3, window=window)
    epochs = [epoch_of(order, epoch) for epoch in range(4)]
    assert all(sorted(epoch) == list(range(sum(SIZES))) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    assert epoch_of(SampleOrder(SIZES, seed=3, window=window), 2) == epochs[2]
    assert epoch_of(SampleOrder(SIZES, seed=4, window=window), 2) != epochs[2]


def test_without_a_window_the_shards_make_no_difference() -> None:
    order = SampleOrder(SIZES, seed=3)
    assert epoch_of(order, 1) == [shuffled(position, size=63, seed=3, epoch=1) for position in range(63)]
    assert order.parts_from(1, 5) == []


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_window_needs_no_more_shards_than_it_names(window: int) -> None:
    order = SampleOrder(SIZES, seed=1, window=window)
    owner = [part for part, size in enumerate(SIZES) for _ in range(size)]
    for epoch in range(3):
        changes = 0
        for position, sample in enumerate(epoch_of(order, epoch)):
            at_hand = order.parts_from(epoch, position)
            assert owner[sample] in at_hand[:window]
            assert len(at_hand) <= 2 * window
            changes += position > 0 and at_hand != order.parts_from(epoch, position - 1)
        assert changes == -(-6 // window) - 1, "one change per border between windows"


def test_the_shards_of_the_next_window_are_announced_across_the_epochs_end() -> None:
    order = SampleOrder(SIZES, seed=1, window=2)
    last, first = order.parts_from(0, 62), order.parts_from(1, 0)
    assert set(first[:2]) <= set(last)


def test_samples_of_a_window_are_mixed() -> None:
    owner = [part for part, size in enumerate([40, 40]) for _ in range(size)]
    order = SampleOrder([40, 40], seed=0, window=2)
    turns = [owner[sample] for sample in epoch_of(order, 0)]
    assert 25 < sum(one != other for one, other in pairwise(turns)) < 55


def test_positions_outside_the_epoch_are_refused() -> None:
    for position in (-1, 63):
        with pytest.raises(ValueError, match="is outside 0 to 62"):
            SampleOrder(SIZES, seed=0, window=2).sample(0, position)
