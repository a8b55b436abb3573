"""A plan as Markdown, for the comment on a pull request."""

from collections.abc import Mapping

from trainyard.events import Summary
from trainyard.pack import markdown, rows


def plan_markdown(stack: str, summaries: Mapping[str, Summary]) -> str:
    """What a change does to each project, and what the policy pack says of it."""
    lines = [f"### Plan of stack `{stack}`", "", "| project | changes |", "|---|---|"]
    lines += [f"| {project} | {summary.text()} |" for project, summary in summaries.items()]
    charts = [chart for summary in summaries.values() for chart in summary.charts]
    if charts:
        lines += ["", f"Helm renders these charts on the cluster, so no plan shows their objects: {', '.join(charts)}"]
    lines += ["", markdown([row for summary in summaries.values() for row in rows(summary)]).rstrip()]
    errors = [line for summary in summaries.values() for line in summary.errors]
    if errors:
        lines += ["", "#### Errors", "", "```text", *errors, "```"]
    return "\n".join(lines) + "\n"
