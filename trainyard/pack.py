"""The policy pack from the command line.

The pack is a folder of its own that any team can take as it is, so it is no installed package: this is the one place that puts
it on the path.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from trainyard.events import Summary
from trainyard.project import POLICY_PACK

sys.path.insert(0, str(POLICY_PACK))

from guardrails import RULES
from guardrails.check import FORMATS, run
from guardrails.markdown import LONGEST, escaped, fence, markdown
from guardrails.row import Row, refused, row
from guardrails.table import table

__all__ = ["FORMATS", "LONGEST", "Row", "check_files", "escaped", "fence", "markdown", "refused", "rows", "table", "write_outcome"]

_SUFFIXES = {"markdown": "md", "sarif": "sarif", "json": "json"}


def rows(summary: Summary) -> list[Row]:
    """What the pack said in one run of the engine."""
    by_policy = {rule.policy_name: rule for rule in RULES}
    return [
        row(by_policy.get(violation.policy), violation.message, mandatory=violation.mandatory, urn=violation.urn)
        for violation in summary.violations
    ]


def write_outcome(outcome: Sequence[Row], folder: Path, *, fallback: str) -> list[Path]:
    """Write `policy.md`, `policy.sarif` and `policy.json` to `folder`.

    Code scanning shows what has no file of its own at `fallback`. Returns the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for form, suffix in _SUFFIXES.items():
        written.append(folder / f"policy.{suffix}")
        written[-1].write_text(FORMATS[form](outcome, fallback), encoding="utf-8", errors="backslashreplace")
    return written


def check_files(files: Sequence[str], *, form: str, output: str | None, config: str | None) -> int:
    """See `guardrails.check`; returns the exit status."""
    return run(files, form=form, output=output, config=config)
