"""From the engine's messages to plain data: dicts, lists, text, whole numbers as int, and `UNKNOWN` where preview can't know.

The SDK's own way goes through three copies for each rule and raises on signatures it does not know; this is one pass for all
rules. The signatures are those of the engine's property encoding (sdk/go/common/resource/properties.go).
"""

from collections.abc import Callable, Mapping
from typing import Any

from pulumi_policy import proxy
from pulumi_policy.deserialize import SPECIAL_ARCHIVE_SIG, SPECIAL_ASSET_SIG, SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY

from guardrails.node import ASSET, UNKNOWN
from guardrails.secret import Secrets, members

_SENTINELS = frozenset(value for name, value in vars(proxy).items() if name.startswith("UNKNOWN_"))
_OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"


def plain_properties(struct: Any) -> tuple[dict[str, Any], Secrets]:
    """The properties of a protobuf Struct as plain data, and every secret text and number in them, which no message may show."""
    secrets: set[str | float] = set()
    return _mapping(struct, secrets), frozenset(secrets)


def _mapping(struct: Any, secrets: set[str | float]) -> Any:
    values = {key: _value(value, secrets) for key, value in struct.fields.items()}
    signature = values.get(SPECIAL_SIG_KEY)
    known = _SIGNED.get(signature) if isinstance(signature, str) else None
    return known(values, secrets) if known else values


def _value(value: Any, secrets: set[str | float]) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        return UNKNOWN if text in _SENTINELS else text
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "struct_value":
        return _mapping(value.struct_value, secrets)
    if kind == "list_value":
        return [_value(item, secrets) for item in value.list_value.values]
    return value.bool_value if kind == "bool_value" else None


def _secret(values: Mapping[str, Any], secrets: set[str | float]) -> Any:
    secrets.update(members(values.get("value")))
    return values.get("value")


def _output(values: Mapping[str, Any], secrets: set[str | float]) -> Any:
    if values.get("secret") is True:
        secrets.update(members(values.get("value")))
    return values.get("value", UNKNOWN)


def _resource_reference(values: Mapping[str, Any], _secrets: set[str | float]) -> Any:
    return values.get("id") or UNKNOWN


def _asset(values: Mapping[str, Any], _secrets: set[str | float]) -> Any:
    """The text of an asset made of text; what is in a file or behind a URL is not sent."""
    return values["text"] if isinstance(values.get("text"), str) else f"{ASSET}{values.get('path') or values.get('uri') or ''})"


def _archive(values: Mapping[str, Any], _secrets: set[str | float]) -> Any:
    return f"{ASSET}{values.get('path') or values.get('uri') or ''})"


_SIGNED: Mapping[Any, Callable[[Mapping[str, Any], set[str | float]], Any]] = {
    SPECIAL_SECRET_SIG: _secret,
    SPECIAL_ASSET_SIG: _asset,
    SPECIAL_ARCHIVE_SIG: _archive,
    _OUTPUT_SIGNATURE: _output,
    _RESOURCE_SIGNATURE: _resource_reference,
}
