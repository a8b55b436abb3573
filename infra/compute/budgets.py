"""Disruption budgets of a training pool: pure functions of the hours in which Karpenter may act.

Budgets only restrict: a reason without an active budget is unlimited. "Only in these hours" therefore takes a zero budget for every other
hour of the week, and a reason without any hours takes one without a schedule.
"""

from collections.abc import Sequence
from typing import Any

from infra.settings import DisruptionWindow

# Reasons that end work on a node that is in use; Empty does not.
GUARDED_REASONS = ("Drifted", "Underutilized")

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES

Span = tuple[int, int]
"""Start and end in minutes since Monday 00:00 UTC; the end may lie beyond the week."""


def disruption_budgets(windows: Sequence[DisruptionWindow]) -> list[dict[str, Any]]:
    """Return Karpenter's budgets for a pool that may lose empty nodes at any time, and others only in `windows`."""
    budgets: list[dict[str, Any]] = [{"nodes": "100%", "reasons": ["Empty"]}]
    for reason in GUARDED_REASONS:
        mine = [window for window in windows if reason in window.reasons]
        budgets += _zero_budgets(reason, [span for window in mine for span in _spans(window)])
        budgets += [_window_budget(reason, window) for window in mine]
    return budgets


def gaps(spans: Sequence[Span]) -> list[Span]:
    """Return the parts of the week that no span covers, each in one piece even across Sunday midnight; [] where nothing is left."""
    if not spans:
        return [(0, _WEEK_MINUTES)]
    covered = sorted(spans)
    first = covered[0][0]
    found: list[Span] = []
    end = first
    for start, stop in covered:
        if start > end:
            found.append((end, start))
        end = max(end, stop)
    if end < first + _WEEK_MINUTES:
        found.append((end, first + _WEEK_MINUTES))
    return found


def _spans(window: DisruptionWindow) -> list[Span]:
    hours, minutes = (int(part) for part in window.start.split(":"))
    starts = [_DAYS.index(day) * _DAY_MINUTES + hours * 60 + minutes for day in window.days]
    return [(start, start + window.hours * 60) for start in starts]


def _zero_budgets(reason: str, spans: Sequence[Span]) -> list[dict[str, Any]]:
    if not spans:
        return [{"nodes": "0", "reasons": [reason]}]
    # A span over Sunday midnight also covers the start of the week.
    wrapped = [(start - _WEEK_MINUTES, stop - _WEEK_MINUTES) for start, stop in spans if stop > _WEEK_MINUTES]
    clipped = [(0, stop) for _, stop in wrapped]
    return [
        {"nodes": "0", "reasons": [reason], "schedule": _cron(start), "duration": _duration(stop - start)}
        for start, stop in gaps([*spans, *clipped])
    ]


def _window_budget(reason: str, window: DisruptionWindow) -> dict[str, Any]:
    hours, minutes = window.start.split(":")
    return {
        "nodes": window.nodes,
        "reasons": [reason],
        "schedule": f"{int(minutes)} {int(hours)} * * {','.join(window.days)}",
        "duration": f"{window.hours}h",
    }


def _cron(minute_of_week: int) -> str:
    day, minute = divmod(minute_of_week % _WEEK_MINUTES, _DAY_MINUTES)
    return f"{minute % 60} {minute // 60} * * {_DAYS[day]}"


def _duration(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours}h{rest}m" if rest else f"{hours}h"
