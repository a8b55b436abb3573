"""Today's date, which rules about support dates and capacity blocks need; a test sets it."""

import datetime
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_now: ContextVar[datetime.datetime | None] = ContextVar("now", default=None)


def now() -> datetime.datetime:
    """The present moment in UTC, or the one that `stopped_at` set."""
    return _now.get() or datetime.datetime.now(datetime.UTC)


@contextmanager
def stopped_at(moment: datetime.datetime) -> Generator[None]:
    """Rules that run inside see this moment as the present."""
    before = _now.set(moment)
    try:
        yield
    finally:
        _now.reset(before)
