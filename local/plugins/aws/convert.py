"""Between Pulumi's property values and AWS's parameters, by botocore's service model: names, wrapping, scalar types."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from local.plugins.aws.row import Call, Prop
from local.plugins.aws.schema import Kind

Shape = Any
"""A shape of botocore's service model. Its module costs half a second to import, and types only what all shapes have."""

PROVIDER_SET: Final = frozenset({"region", "tags", "tagsAll"})
"""Properties that the plug-in handles for every type alike."""


def member_name(shape: Shape, name: str) -> str | None:
    """A structure's member that a Pulumi name means: the same letters in any case, then singular for plural or the reverse."""
    members = {member.lower(): member for member in shape.members}
    wanted = name.lower()
    for spelling in (wanted, wanted.removesuffix("s"), wanted + "s", wanted.removesuffix("es"), wanted.removesuffix("ies") + "y"):
        if spelling in members:
            return members[spelling]
    return None


def param_path(shape: Shape, call: Call, name: str, prop: Prop | None) -> str | None:
    """Dotted parameter of an operation that a property fills, or None where it has none."""
    if prop is not None and prop.param == "":
        return None
    wanted = call.names.get(name) or (prop.param if prop is not None else None) or name
    if "." in wanted:
        return wanted
    found = member_name(shape, wanted)
    if found:
        return found
    if call.inside:
        inner = walk(shape, call.inside)
        found = member_name(inner, wanted) if inner is not None else None
        return f"{call.inside}.{found}" if found else None
    return None


def shape_of(shape: Shape, call: Call, name: str, prop: Prop | None) -> Shape:
    """Shape of the parameter that a property fills."""
    path = param_path(shape, call, name, prop)
    return walk(shape, path) if path else None


def walk(shape: Shape, path: str) -> Shape:
    """Shape at a dotted path of structure members; lists on the way are stepped into."""
    here: Shape = shape
    for step in path.split("."):
        while here is not None and here.type_name == "list":
            here = here.member
        if here is not None and here.type_name == "map":
            here = here.value
        else:
            here = here.members.get(step) if here is not None and here.type_name == "structure" else None
    return here


def to_aws(value: Any, shape: Shape, names: Mapping[str, str], path: str = "") -> Any:
    """A Pulumi value as the parameter of the given shape. Raises ValueError for a nested field that the shape has not."""
    match shape.type_name:
        case "structure":
            return _to_structure(value, shape, names, path)
        case "list":
            items = value if isinstance(value, list) else _pairs(value) if _is_pairs(shape, value) else [value]
            return [to_aws(item, shape.member, names, path) for item in items]
        case "map":
            return {str(key): to_aws(item, shape.value, names, path) for key, item in value.items()}
        case "string":
            return _text(value)
        case "integer" | "long":
            return int(value)
        case "float" | "double":
            return float(value)
        case "boolean":
            return value if isinstance(value, bool) else str(value).lower() == "true"
        case "blob":
            return value.encode() if isinstance(value, str) else value
    return value


def _to_structure(value: Any, shape: Shape, names: Mapping[str, str], path: str) -> Any:
    if not isinstance(value, Mapping):
        # EC2 wraps single values: {"Value": true}.
        if list(shape.members) == ["Value"]:
            return {"Value": to_aws(value, shape.members["Value"], names, path)}
        raise ValueError(f"{path or 'value'}: an object was expected, got {value!r}")
    result = {}
    for name, item in value.items():
        below = f"{path}.{name}".lstrip(".")
        wanted = names.get(below, name)
        if wanted == "" or item is None:
            continue
        member = member_name(shape, wanted)
        if member is None:
            raise ValueError(f"{below}: AWS has no such field here; it has {', '.join(shape.members)}")
        result[member] = to_aws(item, shape.members[member], names, below)
    return result


def _is_pairs(shape: Shape, value: Any) -> bool:
    """A map in Pulumi is a list of keys and values in AWS (tags)."""
    return isinstance(value, Mapping) and shape.member.type_name == "structure" and set(shape.member.members) == {"Key", "Value"}


def _pairs(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": item} for key, item in value.items()]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else str(value)


def from_aws(value: Any, kind: Kind, names: Mapping[str, str] | None = None, path: str = "") -> Any:
    """What AWS says as a value of the SDK's type; None where it says nothing that fits."""
    if value is None:
        return None
    match kind["t"]:
        case "object":
            return _from_structure(value, kind, names or {}, path)
        case "list":
            items = value if isinstance(value, list | tuple) else [value]
            return [from_aws(item, kind["of"], names, path) for item in items]
        case "map":
            if isinstance(value, list):
                value = {item["Key"]: item["Value"] for item in value if "Key" in item}
            return {key: from_aws(item, kind["of"], names, path) for key, item in value.items()} if isinstance(value, Mapping) else None
    return _leaf(value, kind["t"])


def _from_structure(value: Any, kind: Kind, names: Mapping[str, str], path: str) -> Any:
    if isinstance(value, list):
        if not value:
            return None
        value = value[0]
    if not isinstance(value, Mapping):
        return None
    result = {}
    for name, field in kind["props"].items():
        below = f"{path}.{name}".lstrip(".")
        found = from_aws(named(value, names.get(below) or name), field, names, below)
        if found is not None and found not in ([], {}):
            result[name] = found
    return result


def _leaf(value: Any, kind: str) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, list | tuple) and kind != "any":
        # Pulumi takes one where AWS has a list of at most one.
        return _leaf(value[0], kind) if value else None
    if isinstance(value, Mapping) and set(value) == {"Value"}:
        value = value["Value"]
    if kind == "string":
        return _text(value)
    if kind == "boolean":
        return value if isinstance(value, bool) else str(value).lower() == "true"
    if kind == "integer":
        return int(value)
    if kind == "number":
        return float(value)
    return value


def named(described: Mapping[str, Any], name: str) -> Any:
    """The entry of a described object that a Pulumi name means, by the rules of `member_name`; None if there is none."""
    if name in described:
        return described[name]
    lowered = {key.lower(): value for key, value in described.items()}
    wanted = name.lower()
    for spelling in (wanted, wanted.removesuffix("s"), wanted + "s", wanted.removesuffix("es"), wanted.removesuffix("ies") + "y"):
        if spelling in lowered:
            return lowered[spelling]
    return None
