"""The package schema that the engine asks for when it writes code for an import."""

import json
from collections.abc import Mapping
from typing import Any

from local.plugins.aws.schema import Kind, provider_inputs, schema_of, sdk_version
from local.plugins.aws.types import TABLE


def package_schema() -> str:
    """JSON in Pulumi's schema language: the table's types with their inputs and outputs."""
    types: dict[str, Any] = {}
    resources = {}
    for token in TABLE:
        found = schema_of(token)
        resources[token] = {
            "inputProperties": _properties(found.inputs, token, types),
            "requiredInputs": sorted(found.required),
            "properties": _properties(found.outputs, token, types),
        }
    provider = {"inputProperties": _properties(provider_inputs(), "aws:index/provider:Provider", types)}
    return json.dumps({"name": "aws", "version": sdk_version(), "provider": provider, "resources": resources, "types": types})


def _properties(kinds: Mapping[str, Kind], owner: str, types: dict[str, Any]) -> dict[str, Any]:
    return {name: _spec(kind, f"{owner}{name[0].upper()}{name[1:]}", types) for name, kind in kinds.items()}


def _spec(kind: Kind, owner: str, types: dict[str, Any]) -> dict[str, Any]:
    if kind["t"] == "list":
        return {"type": "array", "items": _spec(kind["of"], owner, types)}
    if kind["t"] == "map":
        return {"type": "object", "additionalProperties": _spec(kind["of"], owner, types)}
    if kind["t"] == "any":
        return {"$ref": "pulumi.json#/Any"}
    if kind["t"] != "object":
        return {"type": kind["t"]}
    package, module, name = owner.split(":")
    token = f"{package}:{module.split('/')[0]}/{name}:{name}"
    if token not in types:
        types[token] = {}
        types[token] = {
            "type": "object",
            "properties": _properties(kind["props"], token, types),
            "required": sorted(name for name in kind["required"] if name in kind["props"]),
        }
    return {"$ref": f"#/types/{token}"}
