"""How long training has stood still for its checkpoints."""

import time
from collections.abc import Generator
from contextlib import contextmanager


class Stall:
    """Adds up the time spent in `waiting` blocks, nested ones once, until it is taken."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._since: float | None = None

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Training stands still within this block."""
        if self._since is not None:
            yield
            return
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._add_up()
            self._since = None

    def take(self) -> float:
        """Seconds since the last call of this, up to now."""
        self._add_up()
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def _add_up(self) -> None:
        """Add what the present block has taken so far."""
        if self._since is not None:
            now = time.monotonic()
            self._seconds += now - self._since
            self._since = now
