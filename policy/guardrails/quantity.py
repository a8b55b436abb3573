"""Kubernetes quantities and Go durations as numbers."""

import re
from fractions import Fraction

MEBIBYTE = 1024**2
_EXACT_UNITS = {
    **{prefix: Fraction(10) ** power for prefix, power in zip(["n", "u", "m", "", *"kMGTPE"], range(-9, 19, 3), strict=True)},
    **{f"{prefix}i": Fraction(1024) ** power for power, prefix in enumerate("KMGTPE", start=1)},
}
_UNITS = {unit: float(size) for unit, size in _EXACT_UNITS.items()}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,30})?|\.[0-9]{1,30}))(?:[eE]([+-]?[0-9]{1,2}))?([numkMGTPE]|[KMGTPE]i|)")
_LARGEST = 1e300
"""A number in a manifest may have some three hundred digits, once it was read; beyond this it would be infinite."""
_DURATION = re.compile(r"(?:[0-9]{1,12}[smh])+")
_ROUNDING = 1e-9
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def quantity(text: str) -> float | None:
    """A quantity such as 96, 1500m or 4800Gi as a number; None where it is none."""
    matched = _QUANTITY.fullmatch(text.strip())
    if not matched or (matched[2] and matched[3]):
        return None
    number = float(matched[1]) * 10.0 ** int(matched[2] or 0) * _UNITS[matched[3]]
    return max(-_LARGEST, min(number, _LARGEST))


def exact(text: str) -> Fraction | None:
    """As `quantity`, for sums and comparisons that must not miss by a rounding: 100m and 200m are 300m."""
    matched = _QUANTITY.fullmatch(text.strip())
    if not matched or (matched[2] and matched[3]):
        return None
    return Fraction(matched[1]) * Fraction(10) ** int(matched[2] or 0) * _EXACT_UNITS[matched[3]]


def whole(text: str) -> int | None:
    """A quantity that is a whole number, such as 8 or 8000m; None where it is none."""
    number = quantity(text)
    return None if number is None or abs(number - round(number)) > _ROUNDING else round(number)


def gibibytes(text: str) -> float | None:
    """A quantity of bytes in GiB; None where it is none."""
    number = quantity(text)
    return None if number is None else number / _UNITS["Gi"]


def mebibytes(number: float) -> str:
    """Bytes as a quantity in whole MiB, such as 65536Mi."""
    return f"{number / MEBIBYTE:.0f}Mi"


def seconds(text: str) -> int | None:
    """A duration such as 1h30m in seconds; None where it is none (Never, for one)."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9]+)([smh])", text))
