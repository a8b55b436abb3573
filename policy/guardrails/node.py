"""Reading a resource's properties: paths for messages, unknown values that can't be mistaken for known ones.

`Node` reads plain data (dicts, lists, text, numbers, see `guardrails.decode`) without ever raising KeyError or TypeError.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_LONGEST_SHOWN = 120


@dataclass(frozen=True)
class Unknown:
    """Stands for a value that is only known once the resource it comes from has been made."""


UNKNOWN = Unknown()


class Undecided(Exception):
    """A rule needs a value that preview can't know. `place` names resource and property, such as `pool.spec.limits`."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


@dataclass(slots=True, eq=False)
class Node:
    """One value of a resource and the path that leads to it. A missing value is None."""

    raw: Any
    path: str = ""
    owner: str = ""
    """Name of the resource, for the list of what could not be evaluated."""

    def at(self, *keys: str) -> "Node":
        """The value under `keys`; missing where any of them is.

        Raises:
            Undecided: a value on the way is unknown, so whether the path exists can't be told.
        """
        raw, path = self.raw, self.path
        for key in keys:
            if isinstance(raw, Unknown):
                raise Undecided(_place(self.owner, path))
            raw = raw.get(key) if isinstance(raw, Mapping) else None
            path = _join(path, key)
        return Node(raw, path, self.owner)

    @property
    def value(self) -> Any:
        """The plain value. Raises `Undecided` where it is unknown."""
        if isinstance(self.raw, Unknown):
            raise Undecided(self.place)
        return self.raw

    @property
    def place(self) -> str:
        """Resource and path, as the list of what is not evaluated names it."""
        return _place(self.owner, self.path)

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
                yield Node(item, f"{self.path}[{index}]", self.owner)

    def entries(self) -> Iterator[tuple[str, "Node"]]:
        """The keys and members of a mapping; nothing where it is none."""
        value = self.value
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield key, Node(item, _join(self.path, key), self.owner)

    def text(self) -> str:
        """The value as text in full, empty where it is missing."""
        value = self.value
        return "" if value is None else _written(value)

    def integer(self) -> int | None:
        """The value as a whole number; None where it is missing or no whole number. Digits in a string count."""
        value = self.value
        if isinstance(value, bool):
            return None
        if isinstance(value, int):
            return value
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
            return int(value)
        return None


def shown(value: Any) -> str:
    """A value as people write it in YAML: 200, true, PERSISTENT_2, [a, b]; long text is cut, line breaks are spaces."""
    text = " ".join(_written(value).split()) or '""'
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def _written(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_written(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_written(item)}' for key, item in value.items())}}}"
    if isinstance(value, Unknown):
        return "(known after up)"
    return str(value)


def _place(owner: str, path: str) -> str:
    return f"{owner}.{path}" if owner and path else owner or path


def _join(path: str, key: str) -> str:
    step = key if _PLAIN_KEY.fullmatch(key) else f'["{key}"]'
    if not path:
        return step
    return f"{path}{step}" if step.startswith("[") else f"{path}.{step}"
