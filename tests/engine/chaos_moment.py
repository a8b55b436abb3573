"""The moments that matter most: AWS has been asked to make something, and has not answered yet; Helm is in the middle of a release."""

import json
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.pulumi_project import until

HELD_SECONDS = 3.0
"""How long the answer is held back. What was asked for is made then, whether anyone still listens or not."""


class Moment:
    """One call of an operation, held back by the emulator."""

    def __init__(self, endpoint: str, operation: str) -> None:
        self._admin, self._operation = f"{endpoint}/_trainyard", operation
        self._begun_at = time.time()

    def has_come(self, _seconds: float) -> bool:
        """Whether the call is being held."""
        return bool(self._held())

    def wait_until_made(self) -> None:
        """Return once AWS has done what it was asked for."""
        assert until(lambda: any(entry["status"] == 200 for entry in self._held()), seconds=HELD_SECONDS + 10), self._held()

    def _held(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self._admin}/requests", timeout=10) as answer:
            entries = json.loads(answer.read())
        return [
            entry
            for entry in entries
            if entry["operation"] == self._operation and entry["fault"] == "delay" and entry["time"] >= self._begun_at
        ]


class Said:
    """A while after the engine has said something."""

    def __init__(self, log: Path, text: str, *, wait_seconds: float) -> None:
        self._log, self._text, self._wait = log, text.encode(), wait_seconds
        self._begun_at = log.stat().st_size if log.exists() else 0
        self._seen: float | None = None

    def has_come(self, seconds: float) -> bool:
        """Whether it was said, and the time has passed."""
        if self._seen is None:
            with self._log.open("rb") as log:
                log.seek(self._begun_at)
                self._seen = seconds if self._text in log.read() else None
        return self._seen is not None and seconds >= self._seen + self._wait


@contextmanager
def held(endpoint: str, operation: str) -> Generator[Moment]:
    """Hold the next call of `operation` back."""
    _set(endpoint, [{"kind": "delay", "operation": operation, "seconds": HELD_SECONDS, "count": 1}])
    try:
        yield Moment(endpoint, operation)
    finally:
        _set(endpoint, [])


def _set(endpoint: str, rules: list[dict[str, Any]]) -> None:
    request = urllib.request.Request(f"{endpoint}/_trainyard/faults", data=json.dumps(rules).encode(), method="POST")
    urllib.request.urlopen(request, timeout=10).close()
