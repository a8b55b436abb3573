"""The rules see one moment, so that a verdict does not change with the day the tests run."""

from collections.abc import Generator

import pytest

from guardrails import clock
from tests.unit.policy.case import NOW


@pytest.fixture(autouse=True)
def stopped_clock() -> Generator[None]:
    with clock.stopped_at(NOW):
        yield
