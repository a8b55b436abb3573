"""Property values on the wire (protobuf structs) and in Python: secrets, unknowns, resource references, whole numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf import struct_pb2 as _struct_pb2

# Protobuf makes its classes when it is imported, so a type checker can't see them.
struct_pb2: Any = _struct_pb2
Struct = Any

# Fixed by the engine's protocol.
_UNKNOWN_STRINGS: Final = frozenset(
    {
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # any type; the engine writes this one for strings and all others alike
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
_UNKNOWN_WIRE: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
_RESOURCE: Final = "5cf8f73096256a8f31e491e813e4eb8e"
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


class Unknown:
    """A value that only the update will know. There is one, `UNKNOWN`; it equals nothing but itself."""

    def __repr__(self) -> str:
        return "<known after the update>"


UNKNOWN: Final = Unknown()


def decode(struct: Struct) -> dict[str, Any]:
    """A struct as plain Python: secrets opened (the engine marks them again by name), null properties left out.

    Raises:
        ValueError: an asset or archive, which no resource here takes.
    """
    return {key: value for key, wire in struct.fields.items() if (value := _decode_value(wire)) is not None}


def encode(values: Mapping[str, Any]) -> Struct:
    """Plain Python as a struct; `UNKNOWN` becomes the engine's marker."""
    struct = struct_pb2.Struct()
    for key, value in values.items():
        if value is not None:
            _encode_into(struct.fields[key], value)
    return struct


def has_unknown(value: Any) -> bool:
    """Whether `value` is, or holds at any depth, something not yet known."""
    if value is UNKNOWN:
        return True
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(has_unknown(item) for item in value)
    return False


def _decode_value(wire: Any) -> Any:
    kind = wire.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if wire.string_value in _UNKNOWN_STRINGS else wire.string_value
    if kind == "number_value":
        return int(wire.number_value) if wire.number_value.is_integer() else wire.number_value
    if kind == "bool_value":
        return wire.bool_value
    if kind == "list_value":
        return [_decode_value(item) for item in wire.list_value.values]
    if kind == "struct_value":
        if _SIGNATURE in wire.struct_value.fields:
            return _decode_special(wire.struct_value)
        return decode(wire.struct_value)
    return None


def _decode_special(struct: Struct) -> Any:
    signature = struct.fields[_SIGNATURE].string_value
    if signature in (_SECRET, _OUTPUT):
        return _decode_value(struct.fields["value"]) if "value" in struct.fields else UNKNOWN
    if signature == _RESOURCE:
        return _decode_value(struct.fields["id"]) if "id" in struct.fields else struct.fields["urn"].string_value
    raise ValueError("an asset or archive was given where a plain value is expected; no resource of this plug-in takes one")


def _encode_into(wire: Any, value: Any) -> None:
    # bool comes before the numbers because it is one of them.
    if value is UNKNOWN:
        wire.string_value = _UNKNOWN_WIRE
    elif isinstance(value, bool):
        wire.bool_value = value
    elif isinstance(value, str):
        wire.string_value = value
    elif isinstance(value, int | float):
        wire.number_value = value
    elif isinstance(value, Mapping):
        wire.struct_value.SetInParent()
        for key, item in value.items():
            if item is not None:
                _encode_into(wire.struct_value.fields[key], item)
    elif isinstance(value, Sequence):
        wire.list_value.SetInParent()
        for item in value:
            _encode_into(wire.list_value.values.add(), item)
    elif value is None:
        wire.null_value = struct_pb2.NULL_VALUE
    else:
        raise TypeError(f"{type(value).__name__} cannot be sent to the engine")
