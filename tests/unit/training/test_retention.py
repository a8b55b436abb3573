"""Which checkpoints go, as a rule over step numbers."""

import pytest

from training.retention import surplus

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("steps", "keep", "keep_every", "in_use", "expected"),
    [
        ([], 2, 0, [], []),
        ([10, 20], 2, 0, [], []),
        ([10, 20, 30, 40], 2, 0, [], [20, 10]),
        ([40, 10, 30, 20], 2, 20, [], [10]),
        ([10, 20, 30, 40, 50], 2, 0, [20], [30, 10]),
        ([100, 200, 300, 400], 2, 100, [], []),
    ],
)
def test_the_newest_the_marked_and_those_in_use_stay(
    steps: list[int], keep: int, keep_every: int, in_use: list[int], expected: list[int]
) -> None:
    assert surplus(steps, keep=keep, keep_every=keep_every, in_use=in_use) == expected
