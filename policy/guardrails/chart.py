"""Helm charts of a program, whichever resource installs them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from guardrails.decode import ASSET
from guardrails.document import DocumentError, read_yaml
from guardrails.node import Node, Undecided
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.tokens import RELEASE
from guardrails.view import documents

CHART_TYPES = frozenset({RELEASE, "kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart"})
ARCHIVE = re.compile(r"-v?[0-9][^/]*\.tgz$")
"""How the address of an archive ends that has its version in its name."""
_RELEASE = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?(?:[-+].*)?")


@dataclass(frozen=True)
class Chart:
    """One chart that the program installs."""

    resource: Resource
    name: str
    """Last part of the chart's name or address."""

    @property
    def version(self) -> Node:
        """The chart's version."""
        return self.resource.at("version")

    @property
    def values(self) -> Node:
        """The values it is given."""
        return self.resource.at("values")

    def value(self, *keys: str) -> Node:
        """One of the values it is given: by `values`, or else by the last of its YAML files that has it.

        Raises:
            Undecided: a file that may have it can't be read here.
        """
        own = self.values.at(*keys)
        files = [] if own.present else list(self.resource.at("valueYamlFiles").elements())
        in_files = (_content(file).at(*keys) for file in reversed(files))
        return next((found for found in in_files if found.present), own)


def _content(file: Node) -> Node:
    text = file.text()
    if text.startswith(ASSET):
        raise Undecided(file.place)
    try:
        documents = read_yaml(text)
    except DocumentError:
        raise Undecided(file.place) from None
    return Node(documents[0] if documents else None, file.path, file.owner)


def chart_name(resource: Resource) -> str:
    """Last part of the name or address of the chart that a resource of `CHART_TYPES` installs, without an archive's version."""
    return last_part(resource.at("chart"))


def last_part(chart: Node) -> str:
    """Last part of a chart's name or address, without an archive's version."""
    return ARCHIVE.sub("", chart.text().rstrip("/").rpartition("/")[2])


def charts(program: Program, *names: str) -> Iterator[Chart]:
    """The charts called one of `names` (all, where none is given)."""
    for resource in program.of(*sorted(CHART_TYPES)):
        name = chart_name(resource)
        if not names or name in names:
            yield Chart(resource, name)


def version(text: str) -> tuple[int, int, int] | None:
    """A version such as 1.14.1, v1.36 or 1.5.0-rc1 as numbers; None where it is none (a range, latest)."""
    matched = _RELEASE.fullmatch(text.strip())
    return (int(matched[1]), int(matched[2] or 0), int(matched[3] or 0)) if matched else None


def values_text(source: Node) -> Iterator[Node]:
    """The values that a source of an Application gives its chart as text; nothing where that can't be read."""
    text = source.at("helm", "values")
    if isinstance(text.value, str):
        yield from documents(text)
