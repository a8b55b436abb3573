"""The order of training samples: for any position of any epoch, computed alone, from the seed and the sizes of the parts.

Without a window, an epoch is one permutation of all samples. With a window of n parts (shards), the parts come in a shuffled order, n of
them at a time, and the samples of those n are mixed: whoever streams shards needs n of them at hand, not all. Either way every sample comes
once per epoch. Standard library only.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from training.shuffle import shuffled

# Apart from the seeds of the samples themselves, whose values are small numbers.
_PARTS_SALT = 0x5DEECE66D0000000
_WINDOW_SALT = 0x1B873593


@dataclass(frozen=True)
class _Epoch:
    """The windows of one epoch."""

    window_ends: list[int]
    """Position after the last sample of each window."""
    parts: list[list[int]]
    """Parts of each window, as they come."""
    part_ends: list[list[int]]
    """For each window, the number of samples up to the end of each of its parts."""


class SampleOrder:
    """Maps (epoch, position) to a sample; samples are numbered through the parts in their own order."""

    def __init__(self, sizes: Sequence[int], *, seed: int, window: int | None = None) -> None:
        """`sizes` are the samples of each part."""
        self._sizes, self._seed, self._window = list(sizes), seed, window
        self._ends = list(accumulate(sizes))
        self.num_samples = self._ends[-1] if self._ends else 0
        self._epoch = lru_cache(maxsize=4)(self._arrange)
        self._near = lru_cache(maxsize=4)(self._near_window)

    def sample(self, epoch: int, position: int) -> int:
        """The sample at this position of the epoch. Raises ValueError for a position outside it."""
        if self._window is None:
            return shuffled(position, size=self.num_samples, seed=self._seed, epoch=epoch)
        window, offset = self._place(epoch, position)
        arranged = self._epoch(epoch)
        ends = arranged.part_ends[window]
        index = shuffled(offset, size=ends[-1], seed=self._seed ^ (window + 1) * _WINDOW_SALT, epoch=epoch)
        number = bisect_right(ends, index)
        part = arranged.parts[window][number]
        return self._ends[part] - self._sizes[part] + index - (ends[number - 1] if number else 0)

    def parts_from(self, epoch: int, position: int) -> list[int]:
        """Parts that the window of this position needs, then those of the window after it: what is worth having at hand."""
        if self._window is None:
            return []
        return self._near(epoch, self._place(epoch, position)[0])

    def _near_window(self, epoch: int, window: int) -> list[int]:
        arranged = self._epoch(epoch)
        own = arranged.parts[window]
        following = arranged.parts[window + 1] if window + 1 < len(arranged.parts) else self._epoch(epoch + 1).parts[0]
        return [*own, *(part for part in following if part not in own)]

    def _place(self, epoch: int, position: int) -> tuple[int, int]:
        """Window of a position, and the position in it."""
        if not 0 <= position < self.num_samples:
            raise ValueError(f"position {position} is outside 0 to {self.num_samples - 1}")
        ends = self._epoch(epoch).window_ends
        window = bisect_right(ends, position)
        return window, position - (ends[window - 1] if window else 0)

    def _arrange(self, epoch: int) -> _Epoch:
        # Parts too short for a single sample have no place in the order.
        filled = [part for part, size in enumerate(self._sizes) if size]
        turns = [filled[shuffled(turn, size=len(filled), seed=self._seed ^ _PARTS_SALT, epoch=epoch)] for turn in range(len(filled))]
        step = self._window or len(turns)
        windows = [turns[first : first + step] for first in range(0, len(turns), step)]
        part_ends = [list(accumulate(self._sizes[part] for part in window)) for window in windows]
        return _Epoch(list(accumulate(ends[-1] for ends in part_ends)), windows, part_ends)
