"""How often a run may start again by itself: so many restarts within any window of time, with a pause after short-lived tries."""

from collections import deque
from dataclasses import dataclass, field

# A generation that lived this long has worked, so the next one starts at once.
_SETTLED_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 30.0


@dataclass
class RestartBudget:
    """At most `restarts` within `window_seconds`, so that a run of weeks is not ended by its fourth lost rank in a month."""

    restarts: int
    window_seconds: float
    _taken: deque[float] = field(default_factory=deque)
    _short_lived: int = 0

    def take(self, now: float, lived_seconds: float) -> float | None:
        """Use one restart and give the pause before it in seconds; None if the budget is spent.

        The first restart after a generation of any length comes at once: most failures are a lost process, and waiting helps none of them.
        """
        while self._taken and now - self._taken[0] > self.window_seconds:
            self._taken.popleft()
        if len(self._taken) >= self.restarts:
            return None
        self._taken.append(now)
        self._short_lived = 0 if lived_seconds >= _SETTLED_SECONDS else self._short_lived + 1
        return 0.0 if self._short_lived <= 1 else min(2.0 ** (self._short_lived - 2), _LONGEST_PAUSE_SECONDS)

    @property
    def used(self) -> int:
        """Restarts within the window so far."""
        return len(self._taken)
