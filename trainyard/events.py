"""The Pulumi engine's event log: what it is doing, what it changed, what it refused."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_KINDS = ("resourcePreEvent", "resOutputsEvent", "resOpFailedEvent", "diagnosticEvent", "policyEvent", "summaryEvent")
_RELEASE_TYPE = "kubernetes:helm.sh/v3:Release"
# The engine's last word on a program that has already said what is wrong.
_PROGRAM_ENDED = "an unhandled error occurred: "
_STACK_TYPE = "pulumi:pulumi:Stack"
# Steps that leave a resource as it is, or only read it.
_QUIET = frozenset({"same", "read", "read-replacement", "refresh", "discard"})


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One policy finding."""

    policy: str
    resource: str
    message: str
    mandatory: bool
    urn: str = ""


@dataclass
class Summary:
    """What one run of the engine did."""

    changes: Counter[str] = field(default_factory=Counter)
    """Operation -> number of resources, such as create: 12; unchanged ones are under `same`."""
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    outputs_change: bool = True
    """Whether the stack's outputs are, as far as the engine has told, others than before. A secret one is compared by its cipher."""
    charts: list[str] = field(default_factory=list)
    """Names of Helm releases that change: their objects are rendered on the cluster, so no preview shows them."""
    touched: int = 0
    """Resources that the engine has started on so far, for progress."""

    @property
    def changed(self) -> int:
        """Resources made, changed, replaced or deleted."""
        return sum(count for operation, count in self.changes.items() if operation not in _QUIET)

    def text(self) -> str:
        """Such as "create 12, update 1, same 80", or "nothing"."""
        return ", ".join(f"{operation} {count}" for operation, count in sorted(self.changes.items())) or "nothing"

    def add(self, event: Mapping[str, Any]) -> None:
        """Take one event of the log in."""
        kind = next((name for name in _KINDS if name in event), None)
        if kind is None:
            return
        detail = event[kind]
        if kind == "resourcePreEvent":
            self.touched += 1
            self._chart(detail.get("metadata") or {})
        elif kind == "resOutputsEvent":
            self._outputs(detail.get("metadata") or {})
        elif kind == "summaryEvent":
            self.changes = Counter({str(operation): int(count) for operation, count in (detail.get("resourceChanges") or {}).items()})
        elif kind == "diagnosticEvent":
            self._diagnostic(detail)
        elif kind == "policyEvent":
            self._policy(detail)

    def _chart(self, step: Mapping[str, Any]) -> None:
        name = resource_name(step.get("urn", ""))
        if step.get("type") == _RELEASE_TYPE and step.get("op") not in _QUIET and name not in self.charts:
            self.charts.append(name)

    def _outputs(self, step: Mapping[str, Any]) -> None:
        if step.get("type") == _STACK_TYPE:
            old, new = ((step.get(side) or {}).get("outputs") for side in ("old", "new"))
            self.outputs_change = old != new

    def _diagnostic(self, detail: Mapping[str, Any]) -> None:
        if detail.get("ephemeral"):
            return
        where = resource_name(detail.get("urn", ""))
        text = plain_text(detail.get("message", "")).strip()
        line = f"{where}: {text}" if where else text
        if detail.get("severity") == "error" and line.startswith(_PROGRAM_ENDED) and self.errors:
            return
        if detail.get("severity") == "error" and line not in self.errors:
            self.errors.append(line)
        elif detail.get("severity") == "warning" and line not in self.warnings:
            self.warnings.append(line)

    def _policy(self, detail: Mapping[str, Any]) -> None:
        message = plain_text(detail.get("message", "")).strip()
        violation = Violation(
            policy=detail.get("policyName", ""),
            resource=resource_name(detail.get("resourceUrn", "")),
            message=message,
            urn=detail.get("resourceUrn", ""),
            mandatory=detail.get("enforcementLevel") == "mandatory",
        )
        if violation not in self.violations:
            self.violations.append(violation)


def resource_name(urn: str) -> str:
    """The logical name in a URN; the stack's own URN has none worth showing."""
    return "" if "pulumi:pulumi:Stack" in urn.rpartition("$")[2] else urn.rpartition("::")[2]


def plain_text(message: str) -> str:
    """The engine's message without its colour marks (`<{%reset%}>`)."""
    pieces = message.split("<{%")
    return pieces[0] + "".join(piece.partition("%}>")[2] for piece in pieces[1:])


def read_events(path: Path, position: int) -> tuple[list[dict[str, Any]], int]:
    """Whole events written to the log since `position`, and the new position. A missing file has none."""
    try:
        with path.open("rb") as log:
            log.seek(position)
            chunk = log.read()
    except FileNotFoundError:
        return [], position
    whole, found, _ = chunk.rpartition(b"\n")
    if not found:
        return [], position
    return list(_parsed(whole)), position + len(whole) + 1


def _parsed(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            # A line cut short by a killed engine; the events before it still tell what happened.
            continue
