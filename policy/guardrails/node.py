"""Reading a resource's properties: paths for messages, unknown values that can't be mistaken for known ones.

CrossGuard hands a rule proxies that are neither `dict` nor `list`, numbers as floats, and an exception on each access to a value
that preview can't know. `plain` turns that into ordinary data once; `Node` reads it without ever raising KeyError or TypeError.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi_policy.proxy import UnknownValueError


@dataclass(frozen=True)
class Unknown:
    """Stands for a value that is only known once the resource it comes from has been made."""


UNKNOWN = Unknown()


class Undecided(Exception):
    """A rule needs a value that preview can't know. `path` names the property."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def plain(value: Any) -> Any:
    """Proxies to dicts and lists, whole floats to ints, unknown values to `UNKNOWN`."""
    if isinstance(value, Mapping):
        return {str(key): _item(value, key) for key in value}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_item(value, index) for index in range(len(value))]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _item(container: Any, key: Any) -> Any:
    try:
        return plain(container[key])
    except UnknownValueError:
        return UNKNOWN


@dataclass(frozen=True)
class Node:
    """One value of a resource and the path that leads to it. A missing value is None."""

    raw: Any
    path: str = ""

    def at(self, *keys: str) -> "Node":
        """The value under `keys`; missing where any of them is.

        Raises:
            Undecided: a value on the way is unknown, so whether the path exists can't be told.
        """
        node = self
        for key in keys:
            value = node.value
            child = value.get(key) if isinstance(value, Mapping) else None
            node = Node(child, _join(node.path, key))
        return node

    @property
    def value(self) -> Any:
        """The plain value. Raises `Undecided` where it is unknown."""
        if isinstance(self.raw, Unknown):
            raise Undecided(self.path)
        return self.raw

    @property
    def present(self) -> bool:
        """Whether the value is set at all; an unknown value counts as set."""
        return self.raw is not None

    @property
    def known(self) -> bool:
        """Whether the value, if set, can be read now."""
        return not isinstance(self.raw, Unknown)

    def elements(self) -> Iterator["Node"]:
        """The members of a list, with their indices in the path; nothing where it is no list."""
        value = self.value
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield Node(item, f"{self.path}[{index}]")

    def entries(self) -> Iterator[tuple[str, "Node"]]:
        """The keys and members of a mapping; nothing where it is none."""
        value = self.value
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield key, Node(item, _join(self.path, key))

    def text(self) -> str:
        """The value as text, empty where it is missing."""
        value = self.value
        return "" if value is None else shown(value)

    def integer(self) -> int | None:
        """The value as a whole number; None where it is missing or no whole number. Digits in a string count."""
        value = self.value
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return value
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value.strip()):
            return int(value)
        return None


def shown(value: Any) -> str:
    """A value as people write it in YAML: 200, true, PERSISTENT_2, [a, b]; long text is cut."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(shown(item) for item in value)}]"
    if isinstance(value, Unknown):
        return "(known after up)"
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def _join(path: str, key: str) -> str:
    step = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'["{key}"]'
    if not path:
        return step
    return f"{path}{step}" if step.startswith("[") else f"{path}.{step}"
