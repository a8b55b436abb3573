"""Cron schedules as Karpenter reads them, and what they leave open of a week.

Karpenter takes five fields or a descriptor, in UTC, and calls a budget active from each hit of its schedule for its duration. The
grammar is that of robfig/cron's standard parser (day of week 0 to 6, names, `?` as `*`, days combined by "or" where both are limited).
No library: the few kept ones speak other dialects, and the arithmetic over a week is what the rule needs.
"""

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_DAY = 24 * 60
_WEEK = 7 * _DAY
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# All are Mondays. Two years to warm up, so that long durations have begun; then two years, one of them a leap year.
_START, _JUDGED_FROM, _END = datetime.date(2022, 1, 3), datetime.date(2024, 1, 1), datetime.date(2025, 12, 29)
_LONGEST = (_JUDGED_FROM - _START).days * _DAY
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = dict(zip(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], range(1, 13), strict=True))
_WEEKDAYS = dict(zip(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], range(7), strict=True))
# More than any number that Karpenter takes for one of a field; Python refuses to read very long ones.
_MOST_DIGITS = 18
_PART = re.compile(r"(?:(?P<all>[*?])|(?P<low>[0-9a-z]+)(?:-(?P<high>[0-9a-z]+))?)(?:/(?P<step>[0-9]{1,18}))?")


class CronError(ValueError):
    """The text is no schedule; says which field and what it may hold."""


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[tuple[str, int], ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, tuple(_MONTHS.items())),
    _Field("day of week", 0, 6, tuple(_WEEKDAYS.items())),
)


@dataclass(frozen=True)
class Schedule:
    """When a schedule hits, in UTC."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either_day: bool
    """Both kinds of day are limited, so one of them is enough."""

    def on(self, day: datetime.date) -> bool:
        """Whether it hits on that day at all."""
        if day.month not in self.months:
            return False
        matches = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return any(matches) if self.either_day else all(matches)


@dataclass(frozen=True)
class Span:
    """A part of the week, in minutes since Monday 00:00 UTC; `end` is the first minute after it."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{_written(self.start)}-{_written(self.end)}"


@lru_cache(1024)
def parse(text: str) -> Schedule:
    """The schedule that `text` describes. Raises CronError."""
    words = _DESCRIPTORS.get(text.strip(), text).split()
    if len(words) != len(_FIELDS):
        known = ", ".join(sorted(_DESCRIPTORS))
        raise CronError(f"five fields (minute hour day month weekday) or one of {known}")
    minutes, hours, days, months, weekdays = (_values(word.lower(), field) for word, field in zip(words, _FIELDS, strict=True))
    return Schedule(minutes, hours, days, months, weekdays, either_day=not (_is_open(words[2]) or _is_open(words[4])))


def open_spans(windows: Iterable[tuple[Schedule, int]]) -> list[Span]:
    """The parts of the week that no window covers in at least one week. A window is a schedule and its duration in minutes."""
    covered = 0
    for schedule, duration in windows:
        covered |= _active(schedule, min(duration, _LONGEST))
    return list(_spans(_folded(~covered)))


def written(spans: Iterable[Span]) -> str:
    """Spans as people say them, such as "daily 02:00-06:00" or "Fri 22:00-Mon 06:00", always followed by UTC."""
    spans = list(spans)
    if [(span.start, span.end) for span in spans] == [(0, _WEEK)]:
        return "every hour of the week"
    starts = {(span.start % _DAY, span.end - span.start) for span in spans}
    if len(spans) == len(_DAYS) and len(starts) == 1:
        start, length = starts.pop()
        return f"daily {_clock(start)}-{_clock(start + length)} UTC"
    return f"{', '.join(str(span) for span in spans)} UTC"


def _is_open(word: str) -> bool:
    """Whether a field takes everything; with a step it does not."""
    return any(part in ("*", "?", "*/1", "?/1") for part in word.split(","))


def _values(word: str, field: _Field) -> frozenset[int]:
    names, found = dict(field.names), set()
    # robfig/cron passes over what is empty between commas.
    for part in filter(None, word.split(",")):
        matched = _PART.fullmatch(part)
        if not matched:
            raise _error(field, part)
        step = int(matched["step"] or 1)
        low = field.low if matched["all"] else _number(matched["low"], names, field)
        high = field.high if matched["all"] or (matched["step"] and not matched["high"]) else low
        if matched["high"]:
            high = _number(matched["high"], names, field)
        if not field.low <= low <= high <= field.high or step < 1:
            raise _error(field, part)
        found.update(range(low, high + 1, step))
    return frozenset(found)


def _number(word: str, names: dict[str, int], field: _Field) -> int:
    if word in names:
        return names[word]
    if not word.isdecimal() or len(word) > _MOST_DIGITS:
        raise _error(field, word)
    return int(word)


def _error(field: _Field, text: str) -> CronError:
    return CronError(f"a {field.name} between {field.low} and {field.high}, not {text[:_MOST_DIGITS]!r}")


@lru_cache(128)
def _active(schedule: Schedule, duration: int) -> int:
    """A bit for each minute since `_START`: whether a window that began at a hit is still open."""
    hits = sum(1 << (hour * 60 + minute) for hour in schedule.hours for minute in schedule.minutes)
    bits = bytearray((_END - _START).days * _DAY // 8)
    pattern = hits.to_bytes(_DAY // 8, "little")
    for index in range((_END - _START).days):
        if schedule.on(_START + datetime.timedelta(index)):
            bits[index * len(pattern) : (index + 1) * len(pattern)] = pattern
    active, reach = int.from_bytes(bits, "little"), 1
    if duration <= 0:
        return 0
    while reach < duration:
        step = min(reach, duration - reach)
        active |= active << step
        reach += step
    return active


def _folded(uncovered: int) -> int:
    """The judged weeks laid over each other: a bit is set where any of them has it."""
    week = (1 << _WEEK) - 1
    uncovered >>= _LONGEST
    folded = 0
    for _ in range((_END - _JUDGED_FROM).days // 7):
        folded |= uncovered & week
        uncovered >>= _WEEK
    return folded


def _spans(week: int) -> Iterator[Span]:
    """Runs of set bits; one that goes over Sunday midnight is one run."""
    runs = [(found.start(), found.end()) for found in re.finditer("1+", format(week, f"0{_WEEK}b")[::-1])]
    if len(runs) > 1 and runs[0][0] == 0 and runs[-1][1] == _WEEK:
        first = runs.pop(0)
        runs[-1] = (runs[-1][0], _WEEK + first[1])
    for start, end in runs:
        yield Span(start, end)


def _written(minute: int) -> str:
    return f"{_DAYS[minute // _DAY % 7]} {_clock(minute)}"


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02}:{minute % 60:02}"
