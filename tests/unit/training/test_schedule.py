"""The learning rate: its shape, its bounds, and that it depends on the optimizer step alone."""

import itertools
from functools import partial

import pytest

from training.schedule import learning_rate

pytestmark = pytest.mark.unit

rate = partial(learning_rate, peak=1.0, warmup_steps=4, decay_steps=20, floor=0.1)


def test_warm_up_is_linear_and_the_peak_comes_right_after_it() -> None:
    assert [rate(step) for step in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_the_rate_never_rises_after_the_peak_nor_leaves_its_bounds() -> None:
    rates = [rate(step) for step in range(4, 200)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(rates))
    assert min(rates) == pytest.approx(0.1)


def test_the_floor_is_reached_at_the_horizon_and_kept() -> None:
    assert rate(20) == rate(10_000) == pytest.approx(0.1)


def test_no_warm_up_starts_at_the_peak() -> None:
    assert learning_rate(0, peak=2.0, warmup_steps=0, decay_steps=1, floor=0.0) == 2.0


@pytest.mark.parametrize(("step", "warmup"), [(-1, 4), (0, 20), (0, -1)])
def test_bounds_are_checked(step: int, warmup: int) -> None:
    with pytest.raises(ValueError, match="need step >= 0 and 0 <= warmup < decay"):
        learning_rate(step, peak=1.0, warmup_steps=warmup, decay_steps=20, floor=0.1)
