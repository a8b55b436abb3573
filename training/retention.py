"""Which checkpoints go. Standard library only."""

from collections.abc import Iterable


def surplus(steps: Iterable[int], *, keep: int, keep_every: int, in_use: Iterable[int] = ()) -> list[int]:
    """Steps to delete, newest first: not among the `keep` newest, no multiple of `keep_every` (0 means none is), and not in use."""
    spared = set(in_use)
    older = sorted(steps, reverse=True)[keep:]
    return [step for step in older if step not in spared and not (keep_every and step % keep_every == 0)]
