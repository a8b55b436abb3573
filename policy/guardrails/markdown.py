"""An outcome as Markdown, for the comment on a pull request."""

import re
from collections.abc import Sequence

from guardrails.row import Kind, Row, counted

_HEADS = {Kind.VIOLATION: "Violations", Kind.ADVICE: "Advice"}
LONGEST = 60_000
"""Characters; a comment on GitHub takes 65,536."""
_MARKUP = re.compile(r"[\\`*_\[\]|~]")


def markdown(rows: Sequence[Row], *, heading: str = "Policy", longest: int = LONGEST) -> str:
    """Tables of violations and advice, notes as a list; cut with a word on what is left out where it has more than `longest` characters."""
    lines = [f"#### {heading}", "", "No rule objects." if not rows else f"{counted(rows)}.", ""]
    for kind, head in _HEADS.items():
        chosen = [row for row in rows if row.kind is kind]
        if chosen:
            lines += [f"**{head}**", "", "| rule | resource | found | allowed | why and fix |", "|---|---|---|---|---|"]
            lines += [_line(row) for row in chosen] + [""]
    notes = [row for row in rows if row.kind is Kind.NOTE]
    if notes:
        lines += ["<details><summary>Notes</summary>", "", *(f"- {escaped(row.message)}" for row in notes), "", "</details>", ""]
    return _cut("\n".join(lines), longest)


def _line(row: Row) -> str:
    resource = f"{row.resource} ({row.file}:{row.line})" if row.file else row.resource
    found = f"{_code(row.path)} is {_code(row.found)}" if row.path else escaped(row.message)
    return f"| {row.rule} | {_code(resource)} | {found} | {escaped(row.allowed)} | {escaped(row.why)} **Fix:** {escaped(row.fix)} |"


def _code(text: str) -> str:
    """As code, in which nothing but its own end and that of the table's cell is markup."""
    plain = " ".join(text.split()).replace("|", "\\|")
    if not plain:
        return ""
    marks = fence(plain, least=1)
    space = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{marks}{space}{plain}{space}{marks}"


def fence(text: str, *, least: int = 3) -> str:
    """Backticks that nothing in the text ends."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def escaped(text: str) -> str:
    """As words on one line: a value from a pull request must not become markup, nor call anybody."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;")
    return _MARKUP.sub(r"\\\g<0>", plain)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    kept = text[:longest].rpartition("\n")[0]
    # Else the last word would be folded away with the notes.
    closed = "\n\n</details>" if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{closed}\n\nThere is more than a comment holds; the job's artifact has all of it.\n"
