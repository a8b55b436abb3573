"""The last requests, for tests: what was asked, how it ended, how long it took."""

import time
from collections import deque
from itertools import count
from typing import Any

from local.aws.faults import Fault
from local.aws.operation import Operation

KEPT = 5000


class RequestLog:
    """A ring of plain entries; the oldest fall out."""

    def __init__(self) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._numbers = count(1)

    def begin(self, operation: Operation, fault: Fault | None) -> dict[str, Any]:
        """Note a request that has arrived."""
        entry = {
            "number": next(self._numbers),
            "time": time.time(),
            "service": operation.service,
            "operation": operation.name,
            "region": operation.region,
            "fault": fault.kind if fault else None,
            "status": None,
            "milliseconds": None,
        }
        self._entries.append(entry)
        return entry

    def end(self, entry: dict[str, Any], status: int) -> None:
        """Note its end."""
        entry["status"] = status
        entry["milliseconds"] = round((time.time() - entry["time"]) * 1000, 2)

    def listed(self, *, service: str | None = None, after: int = 0) -> list[dict[str, Any]]:
        """Entries with a number above `after`, of one service or of all."""
        return [each for each in list(self._entries) if each["number"] > after and service in (None, each["service"])]

    def clear(self) -> None:
        """Forget all entries; numbers go on."""
        self._entries.clear()
