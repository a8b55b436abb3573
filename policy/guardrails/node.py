"""Reading a resource's properties: paths for messages, unknown values that can't be mistaken for known ones.

`Node` reads plain data (dicts, lists, text, numbers, see `guardrails.decode`) without ever raising KeyError or TypeError.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_LONGEST_SHOWN = 120
# What a terminal obeys or shows in another order, and halves of surrogate pairs, which no encoding has.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Unknown:
    """Stands for a value that is only known once the resource it comes from has been made."""


UNKNOWN = Unknown()
ASSET = "(content of "
"""How the value of an asset or archive begins whose content is elsewhere."""


class Undecided(Exception):
    """A rule needs a value that preview can't know. `place` names resource and property, such as `pool.spec.limits`."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


class Node:
    """One value of a resource and the path that leads to it. A missing value is None.

    A rule reads hundreds of nodes and reports few, so a node's path is only put together when somebody asks for it.
    """

    __slots__ = ("_parent", "_path", "_steps", "owner", "raw")

    def __init__(self, raw: Any, path: str = "", owner: str = "") -> None:
        """`owner` is the name of the resource, for the list of what could not be evaluated."""
        self.raw = raw
        self.owner = owner
        self._path: str | None = path
        self._parent: Node | None = None
        self._steps: tuple[str | int, ...] = ()

    def _below(self, raw: Any, steps: tuple[str | int, ...]) -> "Node":
        node = Node.__new__(Node)
        node.raw, node.owner, node._path, node._parent, node._steps = raw, self.owner, None, self, steps
        return node

    @property
    def path(self) -> str:
        """The way from the resource to the value, such as `spec.budgets[0].nodes`."""
        if self._path is None:
            path = self._parent.path if self._parent else ""
            for step in self._steps:
                path = f"{path}[{step}]" if isinstance(step, int) else _join(path, step)
            self._path = path
        return self._path

    def at(self, *keys: str) -> "Node":
        """The value under `keys`; missing where any of them is.

        Raises:
            Undecided: a value on the way is unknown, so whether the path exists can't be told.
        """
        raw = self.raw
        for index, key in enumerate(keys):
            if raw is UNKNOWN:
                raise Undecided(self._below(raw, keys[:index]).place)
            raw = raw.get(key) if isinstance(raw, dict) else None
        return self._below(raw, keys)

    @property
    def value(self) -> Any:
        """The plain value. Raises `Undecided` where it is unknown."""
        if self.raw is UNKNOWN:
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
        return self.raw is not UNKNOWN

    def elements(self) -> Iterator["Node"]:
        """The members of a list, with their indices in the path; nothing where it is no list."""
        value = self.value
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield self._below(item, (index,))

    def entries(self) -> Iterator[tuple[str, "Node"]]:
        """The keys and members of a mapping; nothing where it is none."""
        value = self.value
        if isinstance(value, dict):
            for key, item in value.items():
                yield key, self._below(item, (key,))

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


class Moved(Node):
    """The properties of an object that stands in another's: what it has as `spec` is at `steps` there."""

    __slots__ = ("steps",)

    def __init__(self, raw: Any, path: str = "", owner: str = "", *, steps: tuple[str, ...]) -> None:
        super().__init__(raw, path, owner)
        self.steps = steps

    def _below(self, raw: Any, steps: tuple[str | int, ...]) -> Node:
        return super()._below(raw, (*self.steps, *steps[1:]) if steps[:1] == ("spec",) else steps)


def shown(value: Any) -> str:
    """A value as people write it in YAML: 200, true, PERSISTENT_2, [a, b]; long text is cut, line breaks are spaces."""
    text = printable(" ".join(_written(value).split())) or '""'
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def printable(text: str) -> str:
    """A text in which control characters are written out, such as an escape as `\\x1b`, so that no terminal obeys them."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _written(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_written(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_written(item)}' for key, item in value.items())}}}"
    if value is UNKNOWN:
        return "(known after up)"
    return str(value)


def _place(owner: str, path: str) -> str:
    return f"{owner}.{path}" if owner and path else owner or path


def _join(path: str, key: str) -> str:
    step = key if _PLAIN_KEY.fullmatch(key) else f'["{key}"]'
    if not path:
        return step
    return f"{path}{step}" if step.startswith("[") else f"{path}.{step}"
