"""One line of an outcome, whoever judged: the engine's preview or a check of files."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any

from guardrails.judge import AnyRule, Verdict
from guardrails.node import printable

_VIOLATION = re.compile(
    r"(?P<id>[A-Z]{2,4}[0-9]{2}[a-z]?) (?P<resource>.*?): (?P<path>.+?) is (?P<found>.*?); allowed: (?P<allowed>.*)\.\n"
    r"  Otherwise: (?P<why>.*)\n  Fix: (?P<fix>.*)",
    re.DOTALL,
)


class Kind(Enum):
    """What a line tells."""

    VIOLATION = "violation"
    ADVICE = "advice"
    NOTE = "note"
    """Something was not evaluated, or an exemption is of no use."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What the pack says of one place. Texts are empty where there is nothing to say."""

    kind: Kind
    rule: str = ""
    title: str = ""
    resource: str = ""
    path: str = ""
    found: str = ""
    allowed: str = ""
    why: str = ""
    fix: str = ""
    source: str = ""
    message: str
    """All of it in words, as the engine prints it."""
    urn: str = ""
    file: str = ""
    line: int = 0
    """Counted from 1; 0 where no file is known."""

    @property
    def summary(self) -> str:
        """The first line of the message without rule and resource."""
        return f"{self.path} is {self.found}; allowed: {self.allowed}" if self.path else self.message

    def as_json(self) -> dict[str, Any]:
        """The row for machines; what is empty is left out."""
        values = asdict(self) | {"kind": self.kind.value}
        return {key: value for key, value in values.items() if value}


def row_of_verdict(verdict: Verdict, *, file: str = "", line: int = 0) -> Row:
    """The row of a verdict on a file; its parts are those of the finding, whatever a name or a value has in it."""
    made = row(verdict.rule, verdict.message, mandatory=verdict.level.value == "mandatory", urn=verdict.urn, file=file, line=line)
    rule, found = verdict.rule, verdict.finding
    if rule is None or found is None:
        return made
    name = printable(found.resource.name)
    kind = Kind.ADVICE if made.kind is Kind.NOTE else made.kind
    return replace(made, kind=kind, resource=name, path=found.place, found=found.found, allowed=found.allowed, why=rule.why, fix=rule.fix)


def row(rule: AnyRule | None, message: str, *, mandatory: bool, urn: str = "", file: str = "", line: int = 0) -> Row:
    """The row of a message of the pack. `rule` is None where the pack speaks of itself."""
    matched = _VIOLATION.fullmatch(message)
    kind = Kind.NOTE if not mandatory and not matched else Kind.VIOLATION if mandatory else Kind.ADVICE
    about = {"rule": rule.id, "title": rule.title, "source": rule.source} if rule else {}
    details = {key: value for key, value in matched.groupdict().items() if key != "id"} if matched else {}
    return Row(kind=kind, message=message, urn=urn, file=file, line=line, **about, **details)


def refused(rows: Iterable[Row]) -> bool:
    """Whether any of them stops a deployment."""
    return any(each.kind is Kind.VIOLATION for each in rows)


def counted(rows: Iterable[Row]) -> str:
    """Such as "2 violations, 1 advice, 3 notes"."""
    kinds = [each.kind for each in rows]
    plural = {Kind.VIOLATION: "violations", Kind.ADVICE: "advice", Kind.NOTE: "notes"}
    return ", ".join(f"{kinds.count(kind)} {kind.value if kinds.count(kind) == 1 else plural[kind]}" for kind in Kind)
