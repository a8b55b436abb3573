"""A shuffled order that needs no memory: any position of any epoch is computed alone.

A Feistel network permutes the smallest power of four that holds `size`; indices that fall outside are walked on until they fall inside.
The order depends on the seed, the epoch and the size alone: not on the number of ranks, the batch size or a library's random generator.
"""

from functools import lru_cache

_ROUNDS = 6
_MASK = (1 << 64) - 1


def shuffled(position: int, *, size: int, seed: int, epoch: int) -> int:
    """The element at `position` of this epoch's permutation of range(size)."""
    if not 0 <= position < size:
        raise ValueError(f"position {position} is outside 0 to {size - 1}")
    half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
    keys = _keys(seed, epoch)
    index = position
    while True:
        index = _feistel(index, half_bits, keys)
        if index < size:
            return index


@lru_cache(maxsize=64)
def _keys(seed: int, epoch: int) -> tuple[int, ...]:
    return tuple(_mix(seed * 0x9E3779B97F4A7C15 + epoch * 0xC2B2AE3D27D4EB4F + number) for number in range(_ROUNDS))


def _feistel(index: int, half_bits: int, keys: tuple[int, ...]) -> int:
    mask = (1 << half_bits) - 1
    left, right = index >> half_bits, index & mask
    for key in keys:
        left, right = right, left ^ (_mix(right + key) & mask)
    return left << half_bits | right


def _mix(value: int) -> int:
    """SplitMix64's finaliser: every input bit reaches every output bit."""
    value &= _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31
