"""Merging of chart values: pure."""

from collections.abc import Mapping
from typing import Any


def merge_values(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `override` laid over it, map by map; lists and other values are replaced whole, as Helm does."""
    merged = dict(base)
    for key, value in override.items():
        below = merged.get(key)
        merged[key] = merge_values(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged
