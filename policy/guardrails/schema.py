"""Structural schemas, as the API server applies them to a custom resource.

Values that preview can't know are passed over here and told by whoever walks; a null counts as absent, as the API server prunes it
where the schema does not allow it. Rules in CEL are not part of this: rules of the pack stand for them.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from guardrails.node import Node, shown

_INT32, _INT64 = 2**31, 2**63
_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


@dataclass(frozen=True)
class Mismatch:
    """A value that its schema does not allow, or, with `pruned`, that the API server drops without a word."""

    node: Node
    allowed: str
    found: Any = None
    """What is told instead of the value."""
    remark: str = ""
    """What is told behind the value."""
    pruned: bool = False
    newer: bool = False
    """Keys that the schema does not know stand beside it: a later one may have them in its place."""


class Schemas:
    """Schemas that may refer to shared parts by `$ref`."""

    def __init__(self, shared: Mapping[str, Mapping[str, Any]]) -> None:
        self._shared = shared

    def mismatches(self, node: Node, schema: Mapping[str, Any]) -> Iterator[Mismatch]:
        """Everything about `node` that `schema` does not allow. Raises Undecided at an unknown value; see `members`."""
        schema = self._resolved(schema)
        value = node.value
        if value is None:
            return
        wrong = _type(value, schema)
        if wrong:
            yield Mismatch(node, wrong, remark=f" ({_kind(value)})")
            return
        yield from (Mismatch(node, allowed) for allowed in _limits(value, schema))
        yield from (Mismatch(node, allowed) for allowed in self._combined(node, schema))
        if isinstance(value, dict):
            yield from self._object(node, value, schema)
        elif isinstance(value, list):
            yield from _duplicates(node, value, schema)
            yield from self._holes(node, schema)

    def members(self, node: Node, schema: Mapping[str, Any]) -> Iterator[tuple[Node, Mapping[str, Any]]]:
        """The members of a mapping or list that the schema says something of, each with its own schema."""
        schema = self._resolved(schema)
        more = schema.get("additionalProperties")
        for key, member in node.entries():
            below = schema.get("properties", {}).get(key, more)
            if isinstance(below, Mapping):
                yield member, below
        if isinstance(schema.get("items"), Mapping):
            for member in node.elements():
                yield member, schema["items"]

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._shared[schema["$ref"]] if "$ref" in schema else schema

    def _object(self, node: Node, value: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mismatch]:
        unknown = _unknown(value, schema)
        for key in schema.get("required", ()):
            if value.get(key) is None:
                yield Mismatch(node.at(key), "set", "unset", newer=_may_be_newer(key, unknown))
        for key in unknown:
            known = ", ".join(sorted(schema["properties"]))
            yield Mismatch(node.at(key), f"one of {known}" if len(known) < 400 else "a field of this kind", pruned=True)

    def _holes(self, node: Node, schema: Mapping[str, Any]) -> Iterator[Mismatch]:
        """A null in a list is not pruned as one in a mapping is."""
        items = schema.get("items")
        if isinstance(items, Mapping) and not self._resolved(items).get("nullable"):
            yield from (Mismatch(member, "no null in a list", "null") for member in node.elements() if member.raw is None)

    def _combined(self, node: Node, schema: Mapping[str, Any]) -> Iterator[str]:
        if schema.get("x-kubernetes-int-or-string"):
            return
        for name, enough in (("allOf", all), ("anyOf", any), ("oneOf", lambda fits: sum(fits) == 1)):
            parts = schema.get(name)
            if parts and not enough([self._fits(node, part) for part in parts]):
                yield f"what fits {'all' if name == 'allOf' else 'one'} of {json.dumps(parts)}"
        if "not" in schema and self._fits(node, schema["not"]):
            yield f"nothing that fits {json.dumps(schema['not'])}"

    def _fits(self, node: Node, schema: Mapping[str, Any]) -> bool:
        if any(not wrong.pruned for wrong in self.mismatches(node, schema)):
            return False
        return all(self._fits(member, below) for member, below in self.members(node, schema) if member.known)


def _unknown(value: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    if "properties" not in schema or "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    return [key for key in value if key not in schema["properties"]]


def _may_be_newer(key: str, unknown: Sequence[str]) -> bool:
    """Whether unknown keys may stand in place of a required one: none is that one misspelt, nor a reference's version of old."""
    wanted, names = key.lower(), [name.lower() for name in unknown]
    near = difflib.get_close_matches(wanted, names) or [name for name in names if wanted.startswith(name) or name.startswith(wanted)]
    return bool(unknown) and not near and "apiVersion" not in unknown


def _type(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What the type of the value should be, where it is another."""
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, int | str) and not isinstance(value, bool)
        return None if fits else "a whole number or a text"
    kind = schema.get("type")
    if kind is None:
        return None
    fits = isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
    return None if fits else f"{'an' if kind[0] in 'aoi' else 'a'} {kind}"


def _limits(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"one of {', '.join(map(shown, schema['enum']))}"
    if isinstance(value, str):
        if "pattern" in schema and not _pattern(schema["pattern"]).search(value):
            yield f"text of the form {schema['pattern']}"
        yield from _between(len(value), schema, "Length", "characters")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(value, schema)
    elif isinstance(value, list):
        yield from _between(len(value), schema, "Items", "items")
    elif isinstance(value, dict):
        yield from _between(len(value), schema, "Properties", "properties")


def _number(value: float, schema: Mapping[str, Any]) -> Iterator[str]:
    bound = {"int32": _INT32, "int64": _INT64}.get(schema.get("format", ""))
    if bound and not -bound <= value < bound:
        yield f"a whole number that {schema['format']} holds"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"at least {shown(schema['minimum'])}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"at most {shown(schema['maximum'])}"


def _between(size: int, schema: Mapping[str, Any], what: str, unit: str) -> Iterator[str]:
    if size < schema.get(f"min{what}", 0):
        yield f"at least {schema[f'min{what}']} {unit}"
    if size > schema.get(f"max{what}", size):
        yield f"at most {schema[f'max{what}']} {unit}"


def _duplicates(node: Node, value: list[Any], schema: Mapping[str, Any]) -> Iterator[Mismatch]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys", ())
    seen: set[str] = set()
    for member in node.elements() if kind in ("set", "map") else ():
        if not member.known:
            continue
        identity = {key: member.raw.get(key) for key in keys} if kind == "map" and isinstance(member.raw, dict) else member.raw
        text = json.dumps(identity, sort_keys=True, default=str)
        if text in seen:
            yield Mismatch(member, f"each {' and '.join(keys) or 'value'} once", identity)
        seen.add(text)


@lru_cache(512)
def _pattern(text: str) -> re.Pattern[str]:
    # In Go's dialect `$` is the end of the text alone, and character classes know ASCII alone.
    return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", text), re.ASCII)


def _kind(value: Any) -> str:
    names = {bool: "boolean", dict: "object", list: "array", str: "string", int: "integer", float: "number"}
    return names.get(type(value), type(value).__name__)
