"""The chart of a Slurm cluster on Kubernetes: what its values make of Slinky's objects."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from guardrails.chart import Chart, charts_of, version
from guardrails.node import UNKNOWN, Node
from guardrails.rule import Resource

_FIRST = (1, 0, 0)
"""The first release whose objects are those of today."""
_SPACED = re.compile(r"(?<=[<>=~^])\s+")
_OLDER = re.compile(r"(?:^|[\s,|])(?:[=~^]|~>|<=?)?v?0(?![0-9])|<v?1(?:\.0){0,2}(?![.0-9])")
"""In a range of versions: one that only older releases are in."""


@dataclass(frozen=True)
class Member:
    """One of a map of sets, over which the chart lays it on the defaults."""

    own: Node
    defaults: Node

    def at(self, *keys: str) -> Node:
        """What counts of a setting; the place in the set itself where neither says it."""
        own, default = self.own.at(*keys), self.defaults.at(*keys)
        return default if default.present and not own.present else own

    def merged(self, *keys: str) -> Node:
        """What counts of a mapping, key by key."""
        own, default = self.own.at(*keys), self.defaults.at(*keys)
        place = own if own.raw else default
        both = isinstance(own.value, Mapping) and isinstance(default.value, Mapping)
        return Node(_laid(own.value, default.value), place.path, place.owner) if both else place


def _laid(own: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping laid on its defaults, as Helm's mergeOverwrite does it: nothing takes the place of something."""
    said = {key: value for key, value in own.items() if value is not None}
    below = {
        key: _laid(value, default[key]) for key, value in said.items() if isinstance(value, dict) and isinstance(default.get(key), dict)
    }
    # What a mapping is laid on decides what comes of it.
    unknown = {key: UNKNOWN for key, value in said.items() if isinstance(value, dict) and default.get(key) is UNKNOWN}
    return {**default, **said, **below, **unknown}


def slurm_charts(resource: Resource) -> Iterator[Chart]:
    """Slinky's charts of a cluster among those that a resource installs."""
    for chart in charts_of(resource):
        if chart.name == "slurm" and not chart.is_folder and not _is_older(chart.version.text()):
            yield chart


def _is_older(text: str) -> bool:
    """Whether a version, or range of versions, is below the first release; none at all is the newest."""
    known = version(text)
    return known < _FIRST if known else bool(_OLDER.search(_SPACED.sub("", text.strip())))


def members(chart: Chart, sets: str) -> Iterator[Member]:
    """The sets that the chart makes of the values under `sets` (nodesets, loginsets)."""
    defaults = chart.value(f"{sets.removesuffix('s')}Defaults")
    for given in chart.given(sets):
        for _, own in given.entries():
            member = Member(own, defaults)
            if member.at("enabled").value is not False:
                yield member
