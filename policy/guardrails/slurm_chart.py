"""The chart of a Slurm cluster on Kubernetes: what its values make of Slinky's objects."""

from collections.abc import Iterator
from dataclasses import dataclass

from guardrails.chart import Chart, charts_of, version
from guardrails.node import Node
from guardrails.rule import Resource

_FIRST = (1, 0, 0)
"""The first release whose objects are those of today."""


@dataclass(frozen=True)
class Member:
    """One of a map of sets, over which the chart lays it on the defaults."""

    own: Node
    defaults: Node

    def at(self, *keys: str) -> Node:
        """What counts of a setting; the place in the set itself where neither says it."""
        own, default = self.own.at(*keys), self.defaults.at(*keys)
        return default if default.present and not own.present else own


def slurm_charts(resource: Resource) -> Iterator[Chart]:
    """Slinky's charts of a cluster among those that a resource installs."""
    for chart in charts_of(resource):
        if chart.name == "slurm" and not chart.is_folder and (version(chart.version.text()) or _FIRST) >= _FIRST:
            yield chart


def members(chart: Chart, sets: str) -> Iterator[Member]:
    """The sets that the chart makes of the values under `sets` (nodesets, loginsets)."""
    defaults = chart.value(f"{sets.removesuffix('s')}Defaults")
    for given in chart.given(sets):
        for _, own in given.entries():
            member = Member(own, defaults)
            if member.at("enabled").value is not False:
                yield member
