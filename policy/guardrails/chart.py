"""Helm charts of a program, whichever resource installs them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from guardrails.document import DocumentError, read_yaml
from guardrails.node import ASSET, Node, Undecided
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.tokens import APPLICATION, RELEASE
from guardrails.view import documents

HELM_TYPES = frozenset({RELEASE, "kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart"})
CHART_TYPES = HELM_TYPES | {APPLICATION}
"""Whatever installs charts: Helm's own, and Argo CD's Applications."""
ARCHIVE = re.compile(r"-v?[0-9][^/]*\.tgz$")
"""How the address of an archive ends that has its version in its name."""
_RELEASE = re.compile(r"v?(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?(?:[-+].*)?")
_LOCAL = (".", "/", "~")
"""How the path of a chart beside the program begins; any other is the name of a repository's chart, or an address."""
_SET = {"true": True, "false": False, "null": None}


@dataclass(frozen=True)
class Chart:
    """One chart that a resource installs."""

    resource: Resource
    source: Node
    """The resource itself, or the source of an Application."""

    @property
    def address(self) -> Node:
        """The chart's name or address; of an Application's folder in Git, its path."""
        chart = self.source.at("chart")
        return chart if chart.present or not self._is_application else self.source.at("path")

    @property
    def name(self) -> str:
        """Last part of the name or address, without an archive's version."""
        return last_part(self.address)

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, in Git or beside the program: what values are there, or whether Helm reads it at all, nobody sees here.

        What wraps a chart as its dependency is often called as that, and takes its values under that name.
        """
        if self._is_application:
            return not self.source.at("chart").present
        address = self.address.text()
        return address.startswith(_LOCAL) and not address.endswith(".tgz")

    @property
    def version(self) -> Node:
        """The chart's version; of a folder, the revision in Git."""
        return self.source.at("targetRevision" if self._is_application else "version")

    def value(self, *keys: str) -> Node:
        """One of the values it is given; the place where it would be, where none is.

        Raises:
            Undecided: a file that may have it can't be read here.
        """
        return next(self.given(*keys), self._own.at(*keys))

    def given(self, *keys: str) -> Iterator[Node]:
        """What each of the places with values says of one of them, the one that counts first.

        Raises:
            Undecided: a file that may have it can't be read here.
        """
        if self._is_application:
            yield from (found for found in self._parameters(".".join(keys)) if found.present)
        yield from (found for values in self._values() if (found := values.at(*keys)).present)

    def removes(self, *keys: str) -> bool:
        """Whether the values take away a default of the chart, as Helm reads a null."""
        *parents, last = keys
        return any(
            isinstance(place.raw, dict) and place.raw.get(last, "") is None for each in self._values() for place in [each.at(*parents)]
        )

    @property
    def _is_application(self) -> bool:
        return self.resource.type == APPLICATION

    @property
    def _own(self) -> Node:
        return self.source.at("helm", "valuesObject") if self._is_application else self.source.at("values")

    def _values(self) -> Iterator[Node]:
        yield self._own
        if not self._is_application:
            yield from map(_content, reversed(list(self.source.at("valueYamlFiles").elements())))
            return
        # Argo CD reads the text only where there is no object.
        if not self._own.present:
            yield from values_text(self.source)
        for file in self.source.at("helm", "valueFiles").elements():
            raise Undecided(file.place)

    def _parameters(self, name: str) -> Iterator[Node]:
        helm = self.source.at("helm")
        for parameter in (*helm.at("parameters").elements(), *helm.at("fileParameters").elements()):
            told = parameter.at("name").text().replace("\\", "")
            if told == name and not parameter.at("path").present:
                yield _as_set(parameter)
            elif told == name or told.startswith((f"{name}.", f"{name}[")):
                # A file, or a part of what is asked for: what the rest is depends on how Helm puts them together.
                raise Undecided(parameter.place)


def _as_set(parameter: Node) -> Node:
    """The value of a parameter as Helm reads a text that is set; what is forced to be a text stays one."""
    value = parameter.at("value")
    raw = value.raw
    if isinstance(raw, str) and parameter.at("forceString").value is not True:
        raw = _SET[raw] if raw in _SET else int(raw) if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", raw) else raw
    return Node(raw, value.path, value.owner)


def _content(file: Node) -> Node:
    text = file.text()
    if text.startswith(ASSET):
        raise Undecided(file.place)
    try:
        documents = read_yaml(text)
    except DocumentError:
        raise Undecided(file.place) from None
    return Node(documents[0] if documents else None, file.path, file.owner)


def charts_of(resource: Resource) -> Iterator[Chart]:
    """The charts that a resource of `CHART_TYPES` installs: one, or one for each source of an Application."""
    if resource.type != APPLICATION:
        yield Chart(resource, resource.properties)
        return
    spec = resource.at("spec")
    for source in (spec.at("source"), *spec.at("sources").elements()):
        if source.at("chart").present or source.at("path").present:
            yield Chart(resource, source)


def last_part(chart: Node) -> str:
    """Last part of a chart's name or address, without an archive's version."""
    return ARCHIVE.sub("", chart.text().rstrip("/").rpartition("/")[2])


def charts(program: Program, *names: str) -> Iterator[Chart]:
    """The charts called one of `names`; where none is given all, and folders in Git that may be charts."""
    for resource in program.of(*sorted(CHART_TYPES)):
        for chart in charts_of(resource):
            if not names or (chart.name in names and not chart.is_folder):
                yield chart


def version(text: str) -> tuple[int, int, int] | None:
    """A version such as 1.14.1, v1.36 or 1.5.0-rc1 as numbers; None where it is none (a range, latest)."""
    matched = _RELEASE.fullmatch(text.strip())
    return (int(matched[1]), int(matched[2] or 0), int(matched[3] or 0)) if matched else None


def values_text(source: Node) -> Iterator[Node]:
    """The values that a source of an Application gives its chart as text; nothing where that can't be read."""
    text = source.at("helm", "values")
    if isinstance(text.value, str):
        yield from documents(text)
