"""The order of samples: a permutation, another one each epoch and seed, and computed alone at any position."""

import itertools

import pytest

from training.shuffle import shuffled

pytestmark = pytest.mark.unit


def order(size: int, seed: int = 0, epoch: int = 0) -> list[int]:
    return [shuffled(position, size=size, seed=seed, epoch=epoch) for position in range(size)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000])
def test_every_epoch_holds_each_sample_once(size: int) -> None:
    assert sorted(order(size)) == list(range(size))


def test_seeds_and_epochs_give_other_orders() -> None:
    assert len({tuple(order(50, seed, epoch)) for seed in range(5) for epoch in range(5)}) == 25


def test_the_order_is_far_from_sorted() -> None:
    size = 4096
    moved = [abs(index - position) for position, index in enumerate(order(size))]
    # A uniform permutation moves an element by a third of the size on average.
    assert sum(moved) / size == pytest.approx(size / 3, rel=0.05)


def test_neighbours_do_not_stay_together() -> None:
    places = order(4096)
    assert sum(abs(one - other) == 1 for one, other in itertools.pairwise(places)) < 10


@pytest.mark.parametrize("position", [-1, 10])
def test_positions_outside_are_refused(position: int) -> None:
    with pytest.raises(ValueError, match="outside 0 to 9"):
        shuffled(position, size=10, seed=0, epoch=0)
