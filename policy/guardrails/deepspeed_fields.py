"""What DeepSpeed takes for the value of a field, by the table in facts/deepspeed.json: most fields are read by pydantic, which is generous.

A kind in the table is one or more of these words, with `|` between: any, null, section (a mapping), list, text, choice, boolean, switch
(what pydantic takes for true or false), whole and number (digits in a text count), integer and real (as Python has them).
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard

from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Resource

AUTO = "auto"
GLOBAL, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"
_TRUE = frozenset({"1", "on", "t", "true", "y", "yes"})
_FALSE = frozenset({"0", "off", "f", "false", "n", "no"})
_WHOLE = re.compile(r"[+-]?[0-9](_?[0-9]){0,30}(\.0*)?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,4})?|[+-]?(inf(inity)?|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class Field:
    """What a field may be; a bound that is missing does not bind."""

    kinds: tuple[str, ...]
    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    of: tuple[str, ...] = ()
    any_case: bool = False
    """Whether a choice counts in capitals too."""
    finite: bool = False
    boolean: bool = True
    """Whether true and false count as numbers."""

    def takes(self, value: Any) -> bool:
        """Whether DeepSpeed takes a value that is known."""
        return any(_READERS[kind](self, value) for kind in self.kinds)

    def __str__(self) -> str:
        return " or ".join(dict.fromkeys(self._said(kind) for kind in self.kinds))

    def _said(self, kind: str) -> str:
        if kind == "choice":
            return ", ".join(self.of)
        number = f"{_SAID[kind]}{self._range()}" if kind in _BOUND else _SAID[kind]
        return f"{number}, not in quotes" if kind in _AS_PYTHON_HAS_THEM else number

    def _range(self) -> str:
        if self.above > -math.inf:
            return f" above {self.above:g}" + (f" and below {self.below:g}" if self.below < math.inf else "")
        if self.most < math.inf:
            return f" from {self.least:g} to {self.most:g}"
        return f" of at least {self.least:g}" if self.least > -math.inf else ""

    def _number(self, value: Any) -> bool:
        if isinstance(value, bool) and not self.boolean:
            return False
        number = numeric(value)
        if number is None or (self.finite and not -math.inf < number < math.inf):
            return False
        unbound = (self.least, self.most, self.above, self.below) == (-math.inf, math.inf, -math.inf, math.inf)
        return unbound or (self.least <= number <= self.most and self.above < number < self.below)


@dataclass(frozen=True)
class Section:
    """A mapping of the configuration."""

    closed: bool
    """DeepSpeed takes no key but `fields`."""
    fields: Mapping[str, Field]


def truth(value: Any) -> bool | None:
    """What pydantic takes a value for where it wants true or false; None where it takes it for neither."""
    if isinstance(value, str):
        return True if value.lower() in _TRUE else False if value.lower() in _FALSE else None
    return bool(value) if isinstance(value, int | float) and value in (0, 1) else None


def whole(value: Any) -> int | None:
    """What pydantic takes a value for where it wants a whole number."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    return None


def numeric(value: Any) -> float | None:
    """What pydantic takes a value for where it wants a number."""
    if isinstance(value, int | float):
        return value
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else None


def counts(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number as Python has it, which digits in a text are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def given(node: Node, name: str) -> bool:
    """Whether a mapping has a key, be it for null."""
    return isinstance(node.value, dict) and name in node.value


def stage_of(config: Resource) -> int:
    """ZeRO's stage, 0 where there is none."""
    zero = config.at("zero_optimization")
    return int(zero.value) if isinstance(zero.value, bool) else whole(zero.at("stage").value) or 0


def bf16_of(config: Resource) -> Node:
    """The part on bf16, which has two names."""
    return config.at("bf16") if config.at("bf16").present else config.at("bfloat16")


@cache
def sections() -> Mapping[tuple[str, ...], Section]:
    """The parts of a configuration that are known, by the keys that lead there; the whole of it has none."""
    return {
        tuple(path.split(".")) if path else (): Section(each["closed"], {name: _field(kind) for name, kind in each["fields"].items()})
        for path, each in load("deepspeed")["sections"].items()
    }


def autos(node: Node, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Each place below `node` that says auto, or may come to, where DeepSpeed does not know the word; and the keys that lead there."""
    known = load("deepspeed")["auto"]
    if ".".join(keys) in (*known["known"], *known["apart"]):
        return
    if not node.known or node.raw == AUTO:
        yield keys, node
        return
    for key, member in node.entries():
        yield from autos(member, (*keys, key))
    for member in node.elements():
        yield from autos(member, keys)


def trainer_fills(config: Node) -> bool:
    """Whether Hugging Face's Trainer puts a value for each auto; a file that it alone reads is whole then."""
    filled = load("deepspeed")["auto"]["filled"]
    # A list with the word in it is not the word.
    return all(".".join(keys) in filled and config.at(*keys).raw == AUTO for keys, _ in autos(config))


def _field(kind: str | Mapping[str, Any]) -> Field:
    row = {"is": kind} if isinstance(kind, str) else dict(kind)
    of, any_case = tuple(row.pop("of", ())), row.pop("anyCase", False)
    return Field(kinds=tuple(row.pop("is").split("|")), of=of, any_case=any_case, **row)


def _chosen(field: Field, value: Any) -> bool:
    return isinstance(value, str) and (value in field.of or (field.any_case and value.lower() in (each.lower() for each in field.of)))


_READERS: Mapping[str, Callable[[Field, Any], bool]] = {
    "any": lambda _field, _value: True,
    "null": lambda _field, value: value is None,
    "section": lambda _field, value: isinstance(value, Mapping),
    "list": lambda _field, value: isinstance(value, list),
    "text": lambda _field, value: isinstance(value, str),
    "boolean": lambda _field, value: isinstance(value, bool),
    "switch": lambda _field, value: truth(value) is not None,
    "choice": _chosen,
    "whole": lambda field, value: whole(value) is not None and field._number(value),
    "number": lambda field, value: field._number(value),
    "integer": lambda field, value: isinstance(value, int) and field._number(value),
    "real": lambda field, value: isinstance(value, int | float) and field._number(value),
}
_AS_PYTHON_HAS_THEM = frozenset({"integer", "real"})
_BOUND = frozenset({"whole", "number"}) | _AS_PYTHON_HAS_THEM
_SAID: Mapping[str, str] = {
    "any": "anything",
    "null": "null",
    "section": "a mapping",
    "list": "a list",
    "text": "a text",
    "boolean": "true or false",
    "switch": "true or false",
    "whole": "a whole number",
    "number": "a number",
    "integer": "a whole number",
    "real": "a number",
}
