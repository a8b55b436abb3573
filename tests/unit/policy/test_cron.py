"""Week arithmetic of budget schedules, held against a simulation that goes minute by minute as Karpenter does."""

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrails.cron import CronError, Schedule, Span, open_spans, parse, written

pytestmark = pytest.mark.unit

WEEK = 7 * 24 * 60
MONDAY = datetime.datetime(2025, 3, 3)


def simulated(windows: list[tuple[Schedule, int]]) -> set[int]:
    """Uncovered minutes of a week for schedules that know weekdays only: a window is open at t if it was hit in (t - duration, t]."""

    def hit(schedule: Schedule, minute: int) -> bool:
        at = MONDAY + datetime.timedelta(minutes=minute)
        return at.minute in schedule.minutes and at.hour in schedule.hours and at.isoweekday() % 7 in schedule.weekdays

    covered = set()
    for schedule, duration in windows:
        hits = [minute for minute in range(WEEK) if hit(schedule, minute)]
        covered |= {(start + offset) % WEEK for start in hits for offset in range(min(duration, WEEK))}
    return set(range(WEEK)) - covered


def minutes(spans: list[Span]) -> set[int]:
    return {minute % WEEK for span in spans for minute in range(span.start, span.end)}


WEEKDAYS = st.sampled_from(["*", "mon-fri", "0", "sat,sun", "1-3", "?", "5/1", "*/2"])
HOURS = st.sampled_from(["*", "0", "9", "9-17", "*/6", "22,23", "3/8"])
MINUTES = st.sampled_from(["0", "30", "*/15", "59", "0-10/5"])
WINDOWS = st.lists(st.tuples(st.tuples(MINUTES, HOURS, WEEKDAYS), st.integers(1, 3 * 24 * 60)), max_size=3)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(WINDOWS)
def test_open_minutes_are_those_of_the_simulation(windows) -> None:
    parsed = [(parse(f"{minute} {hour} * * {day}"), duration) for (minute, hour, day), duration in windows]
    assert minutes(open_spans(parsed)) == simulated(parsed)


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ([], "every hour of the week"),
        ([("@daily", 24 * 60)], ""),
        ([("0 6 * * *", 20 * 60)], "daily 02:00-06:00 UTC"),
        ([("0 6 * * *", 20 * 60), ("0 2 * * *", 4 * 60)], ""),
        ([("0 9 * * mon-fri", 24 * 60)], "Sat 09:00-Mon 09:00 UTC"),
        ([("0 0 * * sun", 24 * 60)], "Mon 00:00-Sun 00:00 UTC"),
        ([("0 0 * * mon,tue,thu,sat,sun", 24 * 60)], "Wed 00:00-Thu 00:00, Fri 00:00-Sat 00:00 UTC"),
        ([("0 0 1 * *", 24 * 60)], "every hour of the week"),
        ([("0 0 1 * *", 31 * 24 * 60)], ""),
        ([("0 0 1 jan *", 367 * 24 * 60)], ""),
        ([("0 0 1 * mon", 24 * 60)], "Tue 00:00-Mon 00:00 UTC"),
        # In each week some days are covered, in no week the same ones.
        ([("0 0 1-24 * *", 24 * 60)], "every hour of the week"),
        # 25 December is a Wednesday and then a Thursday.
        ([("0 0 1-24,26-31 * *", 24 * 60), ("0 0 25 1-11 *", 24 * 60)], "Wed 00:00-Fri 00:00 UTC"),
        ([("0 0 29 2 *", 60)], "every hour of the week"),
    ],
)
def test_spans_are_told_as_people_say_them(windows, words: str) -> None:
    spans = open_spans([(parse(schedule), duration) for schedule, duration in windows])
    assert (written(spans) if spans else "") == words


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("*/20 9-11,14 1,15 jan-mar/2 mon-fri", ({0, 20, 40}, {9, 10, 11, 14}, {1, 15}, {1, 3}, {1, 2, 3, 4, 5})),
        ("5/25 0 ? 12 sun", ({5, 30, 55}, {0}, set(range(1, 32)), {12}, {0})),
        ("0-10/5 22/1 31 * 6", ({0, 5, 10}, {22, 23}, {31}, set(range(1, 13)), {6})),
        ("0059 9 1 1 *", ({59}, {9}, {1}, {1}, set(range(7)))),
    ],
)
def test_a_field_holds_values_ranges_steps_and_names(text: str, fields: tuple[set[int], ...]) -> None:
    schedule = parse(text)
    assert (schedule.minutes, schedule.hours, schedule.days, schedule.months, schedule.weekdays) == fields


@pytest.mark.parametrize(
    ("text", "day", "hit"),
    [
        ("0 0 * * mon", "2026-11-30", True),
        ("0 0 * * mon", "2026-12-01", False),
        ("0 0 * * sun", "2026-11-29", True),
        ("0 0 * dec *", "2026-11-30", False),
        ("0 0 29 * *", "2026-11-30", False),
        # A day that is left open limits nothing, however it is written.
        *((f"0 0 {every} * mon", "2026-12-01", False) for every in ("*", "?", "*/1", "?/1", "1,*")),
        *((f"0 0 30 * {every}", "2026-12-01", False) for every in ("*", "?", "*/1", "?/1")),
        ("0 0 */2 * mon", "2026-12-01", True),
    ],
)
def test_a_schedule_hits_on_its_days_alone(text: str, day: str, hit: bool) -> None:
    assert parse(text).on(datetime.date.fromisoformat(day)) == hit


def test_both_kinds_of_day_limited_means_either() -> None:
    friday_or_13th = parse("0 0 13 * fri")
    assert friday_or_13th.on(datetime.date(2026, 11, 13))
    assert friday_or_13th.on(datetime.date(2026, 11, 20))
    assert friday_or_13th.on(datetime.date(2026, 10, 13))
    assert not friday_or_13th.on(datetime.date(2026, 11, 14))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 9 * *", "five fields"),
        ("@every 1h", "five fields"),
        ("", "five fields"),
        ("60 9 * * *", "minute between 0 and 59"),
        ("0 24 * * *", "hour between 0 and 23"),
        ("0 9 0 * *", "day of month between 1 and 31"),
        ("0 9 * 13 *", "month between 1 and 12"),
        ("0 9 * * 7", "day of week between 0 and 6"),
        ("0 9 * * fri-mon", "day of week"),
        ("0 9 * * */0", "day of week"),
        ("0 9 * * monday", "day of week"),
        ("-1 9 * * *", "minute"),
        ("0 9 * * mo", "day of week"),
        ("0 9-noon * * *", "hour"),
        ("9" * 5000 + " 9 * * *", "minute"),
    ],
)
def test_what_karpenter_cannot_parse_is_refused_with_the_field(text: str, words: str) -> None:
    with pytest.raises(CronError, match=words):
        parse(text)
