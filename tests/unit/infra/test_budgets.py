"""Disruption budgets, played through the week as Karpenter reads them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.compute.budgets import GUARDED_REASONS, disruption_budgets
from infra.settings import DisruptionWindow

pytestmark = pytest.mark.unit

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEK = 7 * 24 * 60


def active_minutes(budget):
    """The minutes of the week in which a budget holds; all of them without a schedule."""
    if "schedule" not in budget:
        return set(range(WEEK))
    minute, hour, _, _, days = budget["schedule"].split()
    hours, _, minutes = budget["duration"].partition("h")
    length = int(hours) * 60 + int(minutes.rstrip("m") or 0)
    starts = [DAYS.index(day) * 1440 + int(hour) * 60 + int(minute) for day in days.split(",")]
    return {(start + offset) % WEEK for start in starts for offset in range(length)}


def allowed_minutes(budgets, reason):
    """The minutes in which Karpenter may act for a reason: no active budget for it says zero."""
    zero = [active_minutes(budget) for budget in budgets if reason in budget["reasons"] and budget["nodes"] == "0"]
    return set(range(WEEK)) - set().union(*zero)


windows = st.builds(
    DisruptionWindow,
    reasons=st.lists(st.sampled_from(GUARDED_REASONS), min_size=1, max_size=2, unique=True).map(tuple),
    days=st.lists(st.sampled_from(DAYS), min_size=1, max_size=7, unique=True).map(tuple),
    start=st.tuples(st.integers(0, 23), st.sampled_from([0, 15, 30])).map(lambda at: f"{at[0]:02}:{at[1]:02}"),
    hours=st.integers(1, 24),
    nodes=st.just("1"),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(windows, max_size=3))
def test_karpenter_may_act_in_the_windows_and_at_no_other_minute(chosen):
    budgets = disruption_budgets(chosen)
    for reason in GUARDED_REASONS:
        inside = set()
        for window in chosen:
            if reason in window.reasons:
                hour, minute = (int(part) for part in window.start.split(":"))
                for day in window.days:
                    start = DAYS.index(day) * 1440 + hour * 60 + minute
                    inside |= {(start + offset) % WEEK for offset in range(window.hours * 60)}
        assert allowed_minutes(budgets, reason) == inside
    assert len(budgets) <= 50, "the CRD takes fifty budgets"


def test_without_windows_only_empty_nodes_ever_go():
    budgets = disruption_budgets([])
    assert [allowed_minutes(budgets, reason) for reason in GUARDED_REASONS] == [set(), set()]
    assert len(allowed_minutes(budgets, "Empty")) == WEEK


def test_each_budget_has_schedule_and_duration_together_in_karpenter_s_units():
    night = DisruptionWindow(reasons=("Drifted",), days=("sun",), start="02:30", hours=4)
    for budget in disruption_budgets([night]):
        assert ("schedule" in budget) == ("duration" in budget)
        assert re.fullmatch(r"(\d+(h|m))|(\d+h\d+m)", budget.get("duration", "1h"))
