"""What a rule is: which resources it judges, how it reports, and what it tells the reader to do."""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from guardrails.node import Node, Undecided, printable, shown
from guardrails.secret import HIDDEN, Secrets, hidden, is_secret, redacted

if TYPE_CHECKING:
    from guardrails.program import Program


# A name in capitals, or what Helm and the like fill in; a command line, a script, a variable and values of a chart may have their own.
_PLACEHOLDER = re.compile(r"\$\{[A-Z][A-Z0-9_]*\}|\{\{[^{}\n]*\}\}")
_BETWEEN_WORDS = re.compile(r"[\s;&|]")
# No name, size or address is longer, and a longer text takes time to search.
_LONGEST = 1_000
_FILLED_LATER = re.compile(r"(^|\.)(command|args|data|env|entrypoint|userData|values|valuesObject)\b")
_LEFT_IN = " (a placeholder was left in: fill the template in first)"


def _is_placeholder(node: Node) -> bool:
    """Whether a value is one of a template, so that what a rule says of its form misses the point."""
    if not isinstance(node.raw, str) or len(node.raw) > _LONGEST or _FILLED_LATER.search(node.path):
        return False
    rest, holes = _PLACEHOLDER.subn("", node.raw)
    return holes > 0 and not _BETWEEN_WORDS.search(rest)


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of the program, or one Kubernetes object that it carries (see `guardrails.view`)."""

    type: str
    name: str
    urn: str = ""
    properties: Node
    written: str = ""
    """The type token as the program has it, where that is another version of `type`, or what makes it of one, and has fields of its own."""
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Property name -> URNs of the resources its value comes from; only a stack rule sees them."""
    secrets: Secrets = frozenset()
    """Secret texts and numbers among the properties; no message shows them."""
    concealed: str = ""
    """Path of the secret text that this object was read from: no message shows more of it than that."""
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was worked out of the properties already: rules over several resources are run again with each one that comes."""

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
    advice: bool = False
    """Told as advice whatever the rule's level is."""

    @property
    def place(self) -> str:
        """The path, or the type of the resource where the finding is on all of it."""
        return self.path or self.resource.type


@dataclass
class Report:
    """Collects the findings of one run of one rule, and what it could not decide."""

    findings: list[Finding] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    """Resource and property, such as `pool.spec.limits`, of each unknown value that was needed."""
    others: Callable[[], Secrets] = frozenset
    """The secrets of other resources, which a rule over several of them may come upon."""

    def refuse(self, resource: Resource, node: Node, *, allowed: str, found: Any = None, remark: str = "") -> None:
        """Report that the value at `node` is not allowed. `found` overrides how the value is shown; `remark` follows it."""
        self._add(resource, node, allowed, (found, remark), advice=False)

    def advise(self, resource: Resource, node: Node, *, allowed: str, found: Any = None, remark: str = "") -> None:
        """As `refuse`, for the part of a mandatory rule that is only advice."""
        self._add(resource, node, allowed, (found, remark), advice=True)

    @contextmanager
    def part(self) -> Generator[None]:
        """A part of a check that an unknown value may end without ending the rest of the rule."""
        try:
            yield
        except Undecided as error:
            if error.place not in self.undecided:
                self.undecided.append(error.place)

    def _add(self, resource: Resource, node: Node, allowed: str, words: tuple[Any, str], *, advice: bool) -> None:
        found, remark = words
        remark += _LEFT_IN if _is_placeholder(node) else ""
        path, value = node.path, node.raw if found is None else found
        secrets = resource.secrets | self.others()
        if secrets:
            # What a rule makes of a secret value may be a part of it.
            told = found is None or not is_secret(node.raw, secrets)
            path, value, allowed = redacted(path, secrets), hidden(value, secrets) if told else HIDDEN, redacted(allowed, secrets)
        if resource.concealed:
            path, value = resource.concealed, None if value is None else HIDDEN
        self.findings.append(Finding(resource, printable(path), f"{shown(value)}{remark}", printable(allowed), advice))


@dataclass(frozen=True)
class Example:
    """One resource that shows what a rule means; as small as shows the point."""

    type: str
    properties: Mapping[str, Any]
    name: str = "example"
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Property name -> names of the example's other resources that its value comes from."""


# By identity: two rules are never the same one, and an example's data has no hash.
@dataclass(frozen=True, kw_only=True, eq=False)
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
    valid: Sequence[Example] = ()
    """A program that the rule lets pass, for the documentation; tests judge it."""
    invalid: Sequence[Example] = ()
    """A program that the rule refuses."""

    @property
    def policy_name(self) -> str:
        """The name that the engine prints."""
        return f"{self.id.lower()}-{self.name}"

    def message(self, finding: Finding) -> str:
        """Rule id, resource, path, value, what is allowed, what happens otherwise, and the fix, in that order."""
        place = f"{self.id} {printable(finding.resource.name)}: {finding.place} is {finding.found}"
        return f"{place}; allowed: {finding.allowed}.\n  Otherwise: {self.why}\n  Fix: {self.fix}"


@dataclass(frozen=True, kw_only=True, eq=False)
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


@dataclass(frozen=True, kw_only=True, eq=False)
class StackRule(_Described):
    """Judges resources that only together are right or wrong."""

    check: "Callable[[Program, Report], None]"
    types: frozenset[str] = frozenset()
    """Every type token the rule looks at; it sees no other and runs only where one is there. Empty: it sees all, which costs time."""

    early: bool = False
    """What it refuses among some of the resources it refuses among all (see `Program.whole`), without `sources`: it is then also run as
    each resource is registered, so that `up --skip-preview` is stopped before the resource is made."""

    def run(self, program: "Program") -> Report:
        """Judge all resources of a program."""
        report = Report(others=lambda: program.secrets)
        if not self.types or program.has(self.types):
            with report.part():
                self.check(program, report)
        return report
