"""The one error of wrong settings, and how pydantic's findings become its lines."""

import json
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pulumi
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that is wrong with the settings."""

    path: str
    """Where it stands, for instance `trainyard:pools[0].instanceType`."""
    value: Any
    """What stands there, or None where nothing does."""
    message: str
    """What is allowed, and what to do."""

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {_shown(self.value)}"
        return f"{self.path}{shown}: {self.message}"


class SettingsError(pulumi.RunError):
    """The settings of the stack are wrong; the message lists every fault."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        count = "1 setting is" if len(self.faults) == 1 else f"{len(self.faults)} settings are"
        super().__init__("\n".join([f"{count} wrong (nothing was created):", *(f"  - {fault}" for fault in self.faults)]))


def faults_of(error: ValidationError, model: type[BaseModel], prefix: str) -> list[Fault]:
    """Turn what pydantic found in data for `model` into faults with paths below `prefix` (`trainyard:`)."""
    found = error.errors()
    places = [details["loc"] for details in found]
    # A list whose items are wrong is also reported as too short: the items say it better.
    shown = [d for d in found if d["type"] != "too_short" or not any(p != d["loc"] and p[: len(d["loc"])] == d["loc"] for p in places)]
    return [_fault(details, model, prefix) for details in shown]


def keys_of(model: type[BaseModel]) -> list[str]:
    """Return the keys a user may write in `model`."""
    return [field.alias or name for name, field in model.model_fields.items()]


@dataclass(frozen=True)
class _Place:
    """Where a finding stands: the path a user would write, the model around its last part, and the type expected there."""

    path: str
    owner: type[BaseModel] | None
    annotation: Any


def _fault(details: Mapping[str, Any], model: type[BaseModel], prefix: str) -> Fault:
    place = _locate(details["loc"], model)
    suffix = ""
    key = str(details["loc"][-1]) if details["loc"] else ""
    value = None if details["type"] in ("missing", "union_tag_not_found") else details.get("input")
    if isinstance(value, dict) and details["type"] == "value_error":
        value = None
    if details["type"] == "union_tag_invalid":
        value, suffix = details["ctx"]["tag"], f".{_discriminator(details['ctx'])}"
    return Fault(path=f"{prefix}{place.path}{suffix}", value=value, message=_message(details, place, key))


def _message(details: Mapping[str, Any], place: _Place, key: str) -> str:
    context = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            foreign = getattr(place.owner, "foreign_keys", {}).get(key)
            return foreign or f"unknown key; allowed: {', '.join(keys_of(place.owner)) if place.owner else 'none'}"
        case "missing":
            return f"is required{_field_hint(place.owner, key)}"
        case "literal_error":
            return f"allowed: {context['expected']}{_description(place.owner, key)}"
        case "union_tag_invalid":
            return f"allowed: {context['expected_tags']}"
        case "union_tag_not_found":
            tags = sorted(tag for candidate in _models(place.annotation) for tag in _tags(candidate))
            return f"needs {_discriminator(context)}, which says what kind it is; allowed: {', '.join(tags)}"
        case "string_pattern_mismatch":
            return f"must match {context['pattern']}{_description(place.owner, key)}"
        case "too_short" | "too_long":
            limits = [f"{word} {context[f'{word}_length']}" for word in ("min", "max") if f"{word}_length" in context]
            return f"has {context['actual_length']} items; allowed: {', '.join(limits)}"
        case "value_error":
            return str(context["error"])
        case "model_type" | "model_attributes_type":
            inner = _models(place.annotation)
            return f"must be a map with keys {', '.join(keys_of(inner[0]))}" if inner else "must be a map"
    return details["msg"][0].lower() + details["msg"][1:]


def _discriminator(context: Mapping[str, Any]) -> str:
    """Return the key that tells a union's members apart, as a user writes it; pydantic lists the field's name and its alias."""
    return str(context["discriminator"]).split(" | ")[-1].strip("'")


def _field(owner: type[BaseModel] | None, key: str) -> FieldInfo | None:
    for name, field in owner.model_fields.items() if owner else ():
        if key in (field.alias, name):
            return field
    return None


def _description(owner: type[BaseModel] | None, key: str) -> str:
    field = _field(owner, key)
    return f" ({field.description.rstrip('.')})" if field and field.description else ""


def _field_hint(owner: type[BaseModel] | None, key: str) -> str:
    """Return what a missing key means and what is allowed: its description and its type's literals."""
    field = _field(owner, key)
    values = [repr(value) for value in get_args(field.annotation) if isinstance(value, (str, int))] if field else []
    return _description(owner, key) + (f"; allowed: {', '.join(values)}" if values else "")


def _locate(location: Sequence[str | int], model: type[BaseModel]) -> _Place:
    path = ""
    annotation: Any = model
    owner: type[BaseModel] | None = None
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
            annotation = _item(annotation)
            continue
        candidates = _models(annotation)
        tagged = [candidate for candidate in candidates if part in _tags(candidate)]
        if len(candidates) > 1 and tagged:
            # pydantic names the chosen member of a union in the location; a user never writes it.
            annotation = tagged[0]
            continue
        path += f".{part}" if path else part
        owner = candidates[0] if candidates else None
        field = _field(owner, part)
        annotation = field.annotation if field else _item(annotation)
    return _Place(path, owner, annotation)


def _tags(model: type[BaseModel]) -> set[str]:
    """Return the values of a model's fields that allow one value only: they tell the members of a union apart."""
    literals = [get_args(field.annotation) for field in model.model_fields.values() if get_origin(field.annotation) is Literal]
    return {str(values[0]) for values in literals if len(values) == 1}


def _item(annotation: Any) -> Any:
    """Return the type of what a list, tuple or map holds."""
    for candidate in _alternatives(annotation):
        arguments = [argument for argument in get_args(candidate) if argument is not Ellipsis]
        if arguments and get_origin(candidate) is not None:
            return arguments[-1]
    return None


def _models(annotation: Any) -> list[type[BaseModel]]:
    return [candidate for candidate in _alternatives(annotation) if isinstance(candidate, type) and issubclass(candidate, BaseModel)]


def _alternatives(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _alternatives(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [inner for argument in get_args(annotation) for inner in _alternatives(argument)]
    return [annotation]


def _shown(value: Any) -> str:
    """Return a value as YAML's reader would know it, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
