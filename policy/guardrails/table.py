"""An outcome as text for a terminal."""

import textwrap
from collections.abc import Sequence

from guardrails.node import printable
from guardrails.row import Kind, Row, counted

_WIDTH = 120
_INDENT = " " * 4


def table(rows: Sequence[Row], *, width: int = _WIDTH) -> str:
    """Violations first, each with place, value, what is allowed, consequence and fix; the count last."""
    lines: list[str] = []
    for row in sorted(rows, key=lambda row: list(Kind).index(row.kind)):
        lines += [_head(row), *_body(row, width), ""]
    return "\n".join([*lines, counted(rows)]) + "\n"


def _head(row: Row) -> str:
    place = printable(f"{row.file}:{row.line}" if row.file else row.urn)
    words = (row.kind.value.upper(), row.rule, row.resource, place)
    return "  ".join(word for word in words if word)


def _body(row: Row, width: int) -> list[str]:
    if not row.path:
        return textwrap.wrap(row.message, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
    parts = {"at": row.path, "found": row.found, "allowed": row.allowed, "otherwise": row.why, "fix": row.fix}
    margin = max(map(len, parts)) + 2
    lines = []
    for name, text in parts.items():
        first = f"{_INDENT}{name + ':':{margin}}"
        lines += textwrap.wrap(text, width, initial_indent=first, subsequent_indent=" " * len(first), break_long_words=False) or [first]
    return lines
