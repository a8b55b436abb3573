"""A plan as Markdown, for the comment on a pull request."""

from collections.abc import Iterable, Mapping

from trainyard.events import Summary
from trainyard.pack import LONGEST, escaped, fence, markdown, rows

_LONGEST_ERRORS = 20_000
"""Characters; the rest of the comment is left to what the policy pack says."""


def plan_markdown(stack: str, summaries: Mapping[str, Summary]) -> str:
    """What a change does to each project, and what the policy pack says of it, in as many characters as a comment takes."""
    head = [f"### Plan of stack `{stack}`", "", "| project | changes |", "|---|---|"]
    head += [f"| {project} | {summary.text()} |" for project, summary in summaries.items()]
    charts = [escaped(chart) for summary in summaries.values() for chart in summary.charts]
    if charts:
        head += ["", f"Helm renders these charts on the cluster, so no plan shows their objects: {', '.join(charts)}"]
    errors = _errors(line for summary in summaries.values() for line in summary.errors)
    room = LONGEST - sum(len(line) + 1 for line in (*head, *errors))
    said = markdown([row for summary in summaries.values() for row in rows(summary)], longest=room).rstrip()
    return "\n".join([*head, "", said, *errors]) + "\n"


def _errors(lines: Iterable[str]) -> list[str]:
    text = "\n".join(lines)
    if not text:
        return []
    if len(text) > _LONGEST_ERRORS:
        text = f"{text[:_LONGEST_ERRORS]}\n... there is more in the job's log"
    marks = fence(text)
    return ["", "#### Errors", "", f"{marks}text", text, marks]
