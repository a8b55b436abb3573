"""An outcome as Markdown, for the comment on a pull request."""

from collections.abc import Sequence

from guardrails.row import Kind, Row, counted

_HEADS = {Kind.VIOLATION: "Violations", Kind.ADVICE: "Advice"}
_LONGEST = 60_000
"""Characters; a comment on GitHub takes 65,536."""


def markdown(rows: Sequence[Row], *, heading: str = "Policy") -> str:
    """Tables of violations and advice, notes as a list; cut with a word on what is left out where it gets too long."""
    lines = [f"#### {heading}", "", "No rule objects." if not rows else f"{counted(rows)}.", ""]
    for kind, head in _HEADS.items():
        chosen = [row for row in rows if row.kind is kind]
        if chosen:
            lines += [f"**{head}**", "", "| rule | resource | found | allowed | why and fix |", "|---|---|---|---|---|"]
            lines += [_line(row) for row in chosen] + [""]
    notes = [row for row in rows if row.kind is Kind.NOTE]
    if notes:
        lines += ["<details><summary>Notes</summary>", "", *(f"- {_cell(row.message)}" for row in notes), "", "</details>", ""]
    return _cut("\n".join(lines))


def _line(row: Row) -> str:
    resource = f"{row.resource} ({row.file}:{row.line})" if row.file else row.resource
    found = f"{_code(row.path)} is {_code(row.found)}" if row.path else _cell(row.message)
    return f"| {row.rule} | {_code(resource)} | {found} | {_cell(row.allowed)} | {_cell(row.why)} **Fix:** {_cell(row.fix)} |"


def _code(text: str) -> str:
    """As code, whatever is in it: a value from a pull request must not become markup."""
    plain = _cell(text).replace("`", "'")
    return f"`{plain}`" if plain else ""


def _cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("@", "&#64;")
    return " ".join(escaped.split())


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    kept = text[:_LONGEST].rpartition("\n")[0]
    # Else the last word would be folded away with the notes.
    closed = "\n\n</details>" if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{closed}\n\nThere is more than a comment holds; the job's artifact has all of it.\n"
