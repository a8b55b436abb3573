"""An outcome as SARIF 2.1.0, which code scanning shows beside the changed lines."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes

from guardrails.judge import AnyRule
from guardrails.row import Kind, Row

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Kind.VIOLATION: "error", Kind.ADVICE: "warning", Kind.NOTE: "note"}
_PACK = "GUARDRAILS"
"""Rule id of what the pack says of itself."""
_OWN = {
    "id": _PACK,
    "shortDescription": {"text": "What the pack says of its own configuration"},
    "fullDescription": {"text": "An exemption has ended, or nothing that it exempts is refused any more."},
    "help": {"text": "Take the exemption out of the configuration of the pack, or set a later day."},
    "defaultConfiguration": {"level": "note"},
}


def sarif(rows: Sequence[Row], rules: Sequence[AnyRule], *, name: str, version: str, fallback: str) -> dict[str, Any]:
    """One run with every rule that said something. `fallback` is the file that a row without one is shown at."""
    said = {row.rule for row in rows}
    described = [_rule(rule) for rule in rules if rule.id in said]
    if "" in said:
        described.append(_OWN)
    index = {rule["id"]: position for position, rule in enumerate(described)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": name, "version": version, "rules": described}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(row, index, fallback) for row in rows],
            }
        ],
    }


def _rule(rule: AnyRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.policy_name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.fix}\nSource: {rule.source}"},
        "defaultConfiguration": {"level": "error" if rule.mandatory else "warning"},
    }


def _uri(file: str) -> str:
    """Relative to the working directory, or, outside of it, with all of its path: code scanning takes no `..`."""
    path = Path(file)
    if path.is_absolute() or ".." in path.parts:
        return path.resolve().as_uri()
    return quote_from_bytes(os.fsencode(path))


def _result(row: Row, index: dict[str, int], fallback: str) -> dict[str, Any]:
    rule = row.rule or _PACK
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(row.file or fallback)}, "region": {"startLine": max(row.line, 1)}}
    }
    if row.urn or row.resource:
        full = f"{row.urn or row.resource}{'.' if row.path else ''}{row.path}"
        location["logicalLocations"] = [{"name": row.resource or full, "fullyQualifiedName": full, "kind": "resource"}]
    return {
        "ruleId": rule,
        "ruleIndex": index[rule],
        "level": _LEVELS[row.kind],
        "message": {"text": row.message},
        "locations": [location],
    }
