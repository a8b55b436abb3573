"""What a program declares, held against the SDK's schema and AWS's limits, with defaults, names and tags filled in."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.plugins.aws.naming import automatic_name
from local.plugins.aws.row import Prop, Row
from local.plugins.aws.schema import Kind, TypeSchema
from local.plugins.aws.values import UNKNOWN, has_unknown

DEFAULTS_KEY = "__defaults"
"""Hidden input that lists the properties which the plug-in filled in; the engine shows no key that starts so."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A property that is refused, and why."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """A resource as the program declares it."""

    name: str
    news: Mapping[str, Any]
    olds: Mapping[str, Any] = field(default_factory=dict)
    seed: bytes = b""
    proposed_name: str | None = None
    """A name from the user's own automatic-naming settings."""
    naming_off: bool = False
    region: str = ""
    default_tags: Mapping[str, str] = field(default_factory=dict)


def check(row: Row, schema: TypeSchema, declared: Declared) -> tuple[dict[str, Any], list[Failure]]:
    """The complete inputs of a resource, and what is wrong with them."""
    failures = list(_unknown_names(row, schema, declared.news))
    inputs = {
        name: _coerce(value, schema.inputs[name], row.props.get(name))
        for name, value in declared.news.items()
        if name in schema.inputs and (name in row.props or name in ("region", "tags"))
    }
    for name, value in inputs.items():
        failures += _violations(value, schema.inputs[name], name)
    filled = _fill(row, schema, declared, inputs, failures)
    failures += [
        Failure(name, f"a value is required; {row.token} has none without it") for name in schema.required if inputs.get(name) is None
    ]
    if row.validate is not None and not failures:
        failures += [Failure(path, reason) for path, reason in row.validate(inputs).items()]
    inputs[DEFAULTS_KEY] = sorted(filled)
    return inputs, failures


def _unknown_names(row: Row, schema: TypeSchema, news: Mapping[str, Any]) -> Iterator[Failure]:
    for name in news:
        if name.startswith("__") or (name in ("tagsAll", "region", "tags") and name in schema.outputs):
            continue
        if name not in schema.inputs:
            near = difflib.get_close_matches(name, schema.inputs, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(schema.inputs))}"
            yield Failure(name, f"{row.token} has no input property {name}; {hint}")
        elif name not in row.props:
            known = ", ".join(sorted(row.props))
            yield Failure(name, f"the stand-in aws plug-in does not carry out property {name} of {row.token}; it knows {known}")


def _fill(row: Row, schema: TypeSchema, declared: Declared, inputs: dict[str, Any], failures: list[Failure]) -> set[str]:
    filled = set()
    for name, prop in row.props.items():
        if inputs.get(name) is None and prop.default is not None:
            inputs[name] = prop.default
            filled.add(name)
    if row.name is not None and inputs.get(row.name.prop) is None:
        filled.add(row.name.prop)
        _fill_name(row, declared, inputs, failures)
    if "region" in schema.inputs and inputs.get("region") is None and declared.region:
        inputs["region"] = declared.region
        filled.add("region")
    if row.tags is not None and (tags := _all_tags(declared.default_tags, inputs.get("tags"))):
        inputs["tagsAll"] = tags
    return filled


def _fill_name(row: Row, declared: Declared, inputs: dict[str, Any], failures: list[Failure]) -> None:
    rule = row.name
    assert rule is not None
    kept = rule.prop in declared.olds.get(DEFAULTS_KEY, ()) and declared.olds.get(rule.prop)
    prefix = inputs.get(rule.prefix_prop)
    if kept and declared.olds.get(rule.prefix_prop) == prefix:
        inputs[rule.prop] = declared.olds[rule.prop]
    elif declared.naming_off:
        failures.append(Failure(rule.prop, f"automatic naming is off for {row.token}; give {rule.prop} a value"))
    elif has_unknown(prefix):
        inputs[rule.prop] = UNKNOWN
    elif declared.proposed_name and prefix is None:
        inputs[rule.prop] = declared.proposed_name
    else:
        inputs[rule.prop] = automatic_name(rule, declared.name, declared.seed, prefix)


def _all_tags(defaults: Mapping[str, str], tags: Any) -> Any:
    if tags is UNKNOWN:
        return UNKNOWN
    return {**defaults, **(tags or {})}


def _coerce(value: Any, kind: Kind, prop: Prop | None) -> Any:
    """Scalars written in another type than the schema's ("3" for 3), and JSON documents given as objects."""
    if value is UNKNOWN or value is None:
        return value
    if prop is not None and prop.json and isinstance(value, Mapping | list):
        # An object that is not wholly known yet can't be text yet.
        return UNKNOWN if has_unknown(value) else json.dumps(value, sort_keys=True)
    match kind["t"]:
        case "object" if isinstance(value, Mapping):
            return {
                name: _coerce(item, kind["props"][name], None) if name in kind["props"] else item
                for name, item in value.items()
                if not name.startswith("__") and item is not None
            }
        case "list" if isinstance(value, list):
            return [_coerce(item, kind["of"], None) for item in value]
        case "map" if isinstance(value, Mapping):
            return {key: _coerce(item, kind["of"], None) for key, item in value.items() if item is not None}
        case "integer" if isinstance(value, str) and value.lstrip("-").isdigit():
            return int(value)
        case "boolean" if value in ("true", "false"):
            return value == "true"
        case "string" if isinstance(value, bool):
            return "true" if value else "false"
        case "string" if isinstance(value, int | float):
            return str(value)
    return value


_PYTHON = {"object": Mapping, "map": Mapping, "list": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def _violations(value: Any, kind: Kind, path: str) -> Iterator[Failure]:
    if value is UNKNOWN or value is None or kind["t"] == "any":
        return
    wrong_bool = isinstance(value, bool) and kind["t"] in ("integer", "number")
    if wrong_bool or not isinstance(value, _PYTHON[kind["t"]]):
        yield Failure(path, f"{path} is {value!r}; a value of type {kind['t']} is expected")
    elif kind["t"] == "object":
        yield from _object_violations(value, kind, path)
    elif kind["t"] == "list":
        for index, item in enumerate(value):
            yield from _violations(item, kind["of"], f"{path}[{index}]")
    elif kind["t"] == "map":
        for key, item in value.items():
            yield from _violations(item, kind["of"], f"{path}.{key}")
    else:
        yield from _limit_violations(value, kind, path)


def _object_violations(value: Mapping[str, Any], kind: Kind, path: str) -> Iterator[Failure]:
    for name in kind["required"]:
        if name not in value:
            yield Failure(f"{path}.{name}", f"{path}.{name} is required")
    for name, item in value.items():
        if name not in kind["props"]:
            yield Failure(f"{path}.{name}", f"{path} has no field {name}; it has {', '.join(sorted(kind['props']))}")
        else:
            yield from _violations(item, kind["props"][name], f"{path}.{name}")


def _limit_violations(value: Any, kind: Kind, path: str) -> Iterator[Failure]:
    allowed = kind.get("enum")
    if allowed and value not in allowed:
        near = difflib.get_close_matches(value, allowed, n=3) if len(allowed) > 20 else allowed
        yield Failure(path, f"{path} is {value!r}; AWS allows {', '.join(near) or f'{len(allowed)} values, none of them like it'}")
    size, unit = (len(value), " characters") if isinstance(value, str) else (value, "")
    if "min" in kind and size < kind["min"]:
        yield Failure(path, f"{path} is {value!r}; AWS allows at least {kind['min']}{unit}")
    if "max" in kind and size > kind["max"]:
        yield Failure(path, f"{path} is {value!r}; AWS allows at most {kind['max']}{unit}")
