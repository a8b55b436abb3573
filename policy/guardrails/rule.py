"""What a rule is: which resources it judges, how it reports, and what it tells the reader to do."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from guardrails.node import Node, Undecided, shown


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of the program as the engine sends it."""

    type: str
    name: str
    urn: str = ""
    properties: Node
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Property name -> URNs of the resources its value comes from; only a stack rule sees them."""

    def at(self, *keys: str) -> Node:
        """The property under `keys`; see `Node.at`."""
        return self.properties.at(*keys)


@dataclass(frozen=True)
class Finding:
    """One violation: where, what was found, what is allowed there."""

    resource: Resource
    path: str
    found: str
    allowed: str


@dataclass
class Report:
    """Collects the findings of one run of one rule, and what it could not decide."""

    findings: list[Finding] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)

    def refuse(self, resource: Resource, node: Node, *, allowed: str, found: Any = None) -> None:
        """Report that the value at `node` is not allowed. `found` overrides how the value is shown."""
        self.findings.append(Finding(resource, node.path, shown(node.raw if found is None else found), allowed))

    @contextmanager
    def part(self) -> Generator[None]:
        """A part of a check that an unknown value may end without ending the rest of the rule."""
        try:
            yield
        except Undecided as error:
            if error.path not in self.undecided:
                self.undecided.append(error.path)


@dataclass(frozen=True, kw_only=True)
class _Described:
    id: str
    """Catalogue id, such as FSX02: two to four letters and two digits."""
    name: str
    """Kebab-case, service-verb-what, with the verbs require, disallow and limit."""
    title: str
    why: str
    """How it fails and when, if nobody stops it."""
    fix: str
    source: str
    mandatory: bool = True

    @property
    def policy_name(self) -> str:
        """The name that the engine prints."""
        return f"{self.id.lower()}-{self.name}"

    def message(self, finding: Finding) -> str:
        """Rule id, resource, path, value, what is allowed, what happens otherwise, and the fix, in that order."""
        place = f"{self.id} {finding.resource.name}: {finding.path or finding.resource.type} is {finding.found}"
        return f"{place}; allowed: {finding.allowed}.\n  Otherwise: {self.why}\n  Fix: {self.fix}"


@dataclass(frozen=True, kw_only=True)
class Rule(_Described):
    """Judges one resource at a time."""

    types: frozenset[str]
    """Type tokens the rule looks at; others are passed over."""
    check: Callable[[Resource, Report], None]

    def run(self, resource: Resource) -> Report:
        """Judge `resource`; a type that the rule does not know gives an empty report."""
        report = Report()
        if resource.type in self.types:
            with report.part():
                self.check(resource, report)
        return report


@dataclass(frozen=True, kw_only=True)
class StackRule(_Described):
    """Judges resources that only together are right or wrong."""

    check: Callable[[Sequence[Resource], Report], None]

    def run(self, resources: Sequence[Resource]) -> Report:
        """Judge all resources of a program."""
        report = Report()
        with report.part():
            self.check(resources, report)
        return report
