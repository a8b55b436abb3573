"""Typed sections of a configuration: checked on construction, read from plain mappings, written back as JSON.

A section is a frozen dataclass deriving from `Section`. Its annotations are its schema: `Literal` lists choices,
`Annotated[int, Range(...)]` bounds a number, a nested section is a nested mapping. Only the standard library is used, so that a preview can
check a configuration without torch.
"""

import dataclasses
import difflib
import json
import math
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints


class ConfigError(ValueError):
    """A refused setting: says where it is, what it was and what is allowed."""

    def __init__(self, path: str, value: object, allowed: str) -> None:
        super().__init__(f"{path}: {_show(value)} is refused; allowed: {allowed}")
        self.path = path
        self.value = value
        self.allowed = allowed

    def under(self, parent: str) -> "ConfigError":
        """The same refusal seen from the section that holds this one."""
        return ConfigError(f"{parent}.{self.path}" if parent else self.path, self.value, self.allowed)


@dataclasses.dataclass(frozen=True)
class Range:
    """Bounds of a number; None leaves that side open."""

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Whether the value lies within the bounds."""
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        bounds = ((">=", self.at_least), ("<=", self.at_most), (">", self.above), ("<", self.below))
        return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """Base of every configuration section; checks each field's type and bounds, then what `check` says about their combination."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for field in dataclasses.fields(self):
            _check(field.name, getattr(self, field.name), hints[field.name])
        self.check()

    def check(self) -> None:
        """Refuse combinations of fields that cannot work together, by raising ConfigError with a path relative to this section."""

    @classmethod
    def from_mapping(cls, values: object) -> Self:
        """Build the section from what a JSON file holds; an unknown key, a wrong type and a missing required key are all refused."""
        if not isinstance(values, Mapping):
            raise ConfigError(cls.__name__, values, "a mapping of settings")
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for key in values:
            if key not in fields:
                raise ConfigError(str(key), values[key], f"no such key; {_suggest(str(key), list(fields))}")
        for name, field in fields.items():
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if required and name not in values:
                raise ConfigError(name, None, "a value: this key is required")
        hints = get_type_hints(cls, include_extras=True)
        return cls(**{name: _convert(name, value, hints[name]) for name, value in values.items()})

    def to_mapping(self) -> dict[str, Any]:
        """The section as plain values, such that `from_mapping` gives back an equal section."""
        return json.loads(json.dumps(dataclasses.asdict(self)))


def _show(value: object) -> str:
    return "nothing" if value is None else json.dumps(value, default=repr)


def _suggest(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"


def _convert(path: str, value: object, hint: Any) -> object:
    """Turn JSON's lists and objects into the tuples and sections that the annotation asks for; checking comes with construction."""
    origin = get_origin(hint)
    if isinstance(hint, type) and issubclass(hint, Section):
        try:
            return hint.from_mapping(value)
        except ConfigError as error:
            raise (ConfigError(path, value, error.allowed) if error.path == hint.__name__ else error.under(path)) from None
    if origin is tuple and isinstance(value, list):
        return tuple(value)
    base = _strip(hint)
    if base is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _strip(hint: Any) -> Any:
    """The plain type inside Annotated and Optional."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif get_origin(hint) in (Union, types.UnionType):
            hint = next(argument for argument in get_args(hint) if argument is not type(None))
        else:
            return hint


def _check(path: str, value: object, hint: Any) -> None:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return
        _check(path, value, next(argument for argument in arguments if argument is not type(None)))
    elif origin is Annotated:
        _check(path, value, arguments[0])
        for bound in arguments[1:]:
            numbers = value if isinstance(value, tuple) else (value,)
            if isinstance(bound, Range) and not all(bound.holds(number) for number in numbers):
                raise ConfigError(path, value, f"a number {bound}")
    elif origin is Literal:
        if value not in arguments or type(value) not in {type(choice) for choice in arguments}:
            raise ConfigError(path, value, "one of " + ", ".join(json.dumps(choice) for choice in arguments))
    elif origin is tuple:
        _check_tuple(path, value, arguments)
    elif hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(path, value, "a finite number")
    elif not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ConfigError(path, value, _TYPE_NAMES.get(hint, f"a {hint.__name__} section"))


def _check_tuple(path: str, value: object, arguments: tuple[Any, ...]) -> None:
    if not isinstance(value, tuple):
        raise ConfigError(path, value, "a list")
    if arguments[-1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(value) != len(arguments):
        raise ConfigError(path, list(value), f"a list of {len(arguments)} values")
    for index, (item, hint) in enumerate(zip(value, arguments, strict=True)):
        _check(f"{path}[{index}]", item, hint)


_TYPE_NAMES = {int: "a whole number", bool: "true or false", str: "a text"}


def apply_override(values: dict[str, Any], override: str) -> None:
    """Set one `path.to.key=value` in nested mappings, in place. The value is read as JSON, or as a text where it is none."""
    path, equals, raw = override.partition("=")
    if not equals or not path:
        raise ConfigError("--set", override, "key=value, with dots for nested keys, such as optimizer.lr=1e-3")
    try:
        value = json.loads(raw)
    except json.JSONDecodeError:
        value = raw
    *parents, key = path.split(".")
    for parent in parents:
        child = values.setdefault(parent, {})
        if not isinstance(child, Mapping):
            raise ConfigError(path, raw, f"a key inside a section; {parent} is {child!r}")
        values = child if isinstance(child, dict) else dict(child)
    values[key] = value
