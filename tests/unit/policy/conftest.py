"""The rules see one moment, so that a verdict does not change with the day the tests run."""

import sys
from collections.abc import Generator

import pytest

from guardrails import clock
from tests.unit.policy.case import NOW


def pytest_sessionstart() -> None:
    """Forget what the pack has computed: mutation testing runs the tests in a copy of a process that ran them on the pack as it is."""
    for name, module in list(sys.modules.items()):
        if name.startswith("guardrails.") and not name.startswith("guardrails.facts"):
            for value in vars(module).values():
                if value.__class__.__name__ == "_lru_cache_wrapper" and value.__module__ == name:
                    value.cache_clear()


@pytest.fixture(autouse=True)
def stopped_clock() -> Generator[None]:
    with clock.stopped_at(NOW):
        yield
