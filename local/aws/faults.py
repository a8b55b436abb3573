"""Faults on purpose, for tests: calls that are throttled, fail, are late, or succeed and lose their answer."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from threading import Lock
from typing import Any

KINDS = ("throttle", "error", "delay", "drop")


class FaultError(Exception):
    """A fault rule that is not valid: names the field, the value and what is allowed."""


@dataclass(kw_only=True)
class Fault:
    """One rule. `service` and `operation` are names of boto3 and of the AWS API, `*` for any; `count` is how often it still strikes."""

    kind: str
    service: str = "*"
    operation: str = "*"
    probability: float = 1.0
    count: int | None = None
    seconds: float = 0.5

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise FaultError(f"kind: {self.kind!r}, allowed are {', '.join(KINDS)}")
        if not 0 <= self.probability <= 1:
            raise FaultError(f"probability: {self.probability!r}, allowed is 0 to 1")
        if self.count is not None and self.count < 1:
            raise FaultError(f"count: {self.count!r}, allowed is 1 or more, or null for no end")
        if not 0 <= self.seconds <= 60:
            raise FaultError(f"seconds: {self.seconds!r}, allowed is 0 to 60")


class Faults:
    """The rules in force; none at first."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self._random = random.Random()
        self._lock = Lock()

    def replace(self, rules: Sequence[dict[str, Any]], seed: int | None) -> None:
        """Set the rules. With a seed, the same sequence of calls meets the same faults.

        Raises:
            FaultError: a rule has an unknown field or a value that is not allowed.
        """
        known = {field.name for field in fields(Fault)}
        for rule in rules:
            for name in rule.keys() - known:
                raise FaultError(f"{name}: unknown field, allowed are {', '.join(sorted(known))}")
            if "kind" not in rule:
                raise FaultError(f"kind: missing, allowed are {', '.join(KINDS)}")
        parsed = [Fault(**rule) for rule in rules]
        with self._lock:
            self._rules = parsed
            self._random = random.Random(seed)

    def listed(self) -> list[dict[str, Any]]:
        """The rules in force, as plain data."""
        return [asdict(rule) for rule in self._rules]

    def strike(self, service: str, operation: str) -> Fault | None:
        """The first rule that hits this call, if any; uses up its count."""
        with self._lock:
            for rule in self._rules:
                if rule.service not in ("*", service) or rule.operation not in ("*", operation):
                    continue
                if self._random.random() >= rule.probability:
                    continue
                if rule.count is not None:
                    rule.count -= 1
                    self._rules = [each for each in self._rules if each.count != 0]
                return rule
        return None
