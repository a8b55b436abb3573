"""Rules that go by the date: they take today's from the clock, and the last day counts."""

import datetime

import pytest

from guardrails import clock
from tests.unit.policy.analyzer import analyze, violations
from tests.unit.policy.cases import eks

pytestmark = pytest.mark.policy


def on(day: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00")


@pytest.mark.parametrize(
    ("version", "day", "refused"),
    [
        ("1.34", "2026-12-01", False),
        ("1.34", "2026-12-02", True),
        ("1.36", "2027-08-01", False),
        ("1.36", "2027-08-02", True),
        ("1.33", "2026-07-28", False),
        ("1.99", "2040-01-01", False),
    ],
)
def test_a_version_is_refused_from_the_day_its_standard_support_ends(version: str, day: str, refused: bool) -> None:
    with clock.stopped_at(on(day)):
        said = violations(analyze(eks.cluster({"version": version})), "EKS04")
    assert bool(said) == refused


def test_a_version_whose_support_ends_today_is_not_offered_instead_of_another() -> None:
    with clock.stopped_at(on("2026-12-02")):
        (said,) = violations(analyze(eks.cluster({"version": "1.33"})), "EKS04")
    assert "allowed: 1.35, 1.36 or later" in said


def test_when_every_known_version_has_ended_the_message_names_none() -> None:
    with clock.stopped_at(on("2040-01-01")):
        (said,) = violations(analyze(eks.cluster()), "EKS04")
    assert "1.36, whose standard support ended 2027-08-02; allowed: a version in standard support" in said


def test_without_a_stopped_clock_the_present_is_now() -> None:
    before = clock._now.set(None)
    try:
        assert abs(clock.now() - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(seconds=5)
    finally:
        clock._now.reset(before)
