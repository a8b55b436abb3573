"""Kubernetes quantities and Go durations."""

from fractions import Fraction

import pytest

from guardrails.quantity import exact, gibibytes, quantity, seconds, whole

pytestmark = pytest.mark.policy


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("96", 96.0), (" 2 ", 2.0), ("1500m", 1.5), ("4k", 4e3), ("4M", 4e6), ("4G", 4e9), ("2T", 2e12), ("1P", 1e15), ("1E", 1e18)],
        *[("1Ki", 1024.0), ("4800Gi", 4800.0 * 2**30), ("1Ti", 2.0**40), ("1Pi", 2.0**50), ("1Ei", 2.0**60), ("-1.5Mi", -1.5 * 2**20)],
        *[("1e3", 1000.0), ("1E3", 1000.0), ("5e-1", 0.5), ("+7", 7.0), ("1.", 1.0), (".5", 0.5), ("0", 0.0)],
        *[("5n", 5e-9), ("5u", 5e-6), (".5Gi", 2.0**29), ("-.5k", -500.0)],
        *[("1" + "0" * 40, 1e40), ("-" + "9" * 400, -1e300), ("9" * 309, 1e300), ("1" + "0" * 290 + "Ei", 1e300)],
    ],
)
def test_a_quantity_is_a_number(text: str, number: float) -> None:
    assert quantity(text) == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "x", "1e3Gi", "1e3m", "1e3n", ".", "1 Gi", "Gi", "1kB", "1GiB", "--1", "1K"])
def test_what_is_no_quantity_is_none(text: str) -> None:
    assert quantity(text) is None
    assert exact(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("2300m", Fraction(23, 10)), ("2.3", Fraction(23, 10)), ("-.5k", Fraction(-500)), ("1.", Fraction(1)), ("5e-1", Fraction(1, 2))],
        *[("1n", Fraction(1, 10**9)), ("3u", Fraction(3, 10**6)), ("1.5Gi", Fraction(3 * 2**29)), ("9" * 20, Fraction(10**20 - 1))],
    ],
)
def test_a_quantity_without_rounding(text: str, number: Fraction) -> None:
    assert exact(text) == number


def test_parts_add_up_without_rounding() -> None:
    assert sum(exact(text) or 0 for text in ("100m", "200m")) == exact("0.3")


def test_gibibytes_of_a_quantity() -> None:
    assert gibibytes("2048Mi") == 2.0
    assert gibibytes("many") is None


@pytest.mark.parametrize(("text", "number"), [("30s", 30), ("5m", 300), ("1h30m", 5400), ("2h2h", 14400)])
def test_a_duration_is_seconds(text: str, number: int) -> None:
    assert seconds(text) == number


@pytest.mark.parametrize("text", ["", "Never", "1d", "1.5h", "30", "s"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert seconds(text) is None


@pytest.mark.parametrize(("text", "number"), [("8", 8), ("8000m", 8), ("7001m", None), ("8e0", 8), ("-1", -1), ("1.5", None), ("no", None)])
def test_a_whole_quantity_is_whole_however_it_is_written(text: str, number: int | None) -> None:
    assert whole(text) == number
