"""One row of a rule's truth table."""

import datetime
from dataclasses import dataclass

from tests.unit.policy.analyzer import Thing

NOW = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
"""The present, as the rules see it in tests."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program that `rule` lets pass (`says` is None) or refuses with the words `says` in its message."""

    rule: str
    things: tuple[Thing, ...]
    says: str | None = None
    edge: bool = False
    """It stands on a boundary: one step further and the verdict is the other one."""

    @property
    def refused(self) -> bool:
        return self.says is not None


def valid(rule: str, *things: Thing, edge: bool = False) -> Case:
    """A program that `rule` has nothing to say of."""
    return Case(rule=rule, things=things, edge=edge)


def invalid(rule: str, *things: Thing, says: str, edge: bool = False) -> Case:
    """A program that `rule` refuses (or, where it is advisory, advises against)."""
    assert says, "name a part of the message that only this refusal has"
    return Case(rule=rule, things=things, says=says, edge=edge)
