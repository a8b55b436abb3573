"""What the policy pack knows of custom resources, taken from their own definitions.

`python -m local.toolchain.crds` writes policy/guardrails/facts/crds.json from the pinned modules; a test compares.
"""

import collections
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from local.paths import REPOSITORY, state_dir
from local.progress import Progress
from local.toolchain.builds import catalogue
from local.toolchain.tools import ensure

FACTS = REPOSITORY / "policy/guardrails/facts/crds.json"
# Chart of the store -> kinds whose definitions it holds.
_SOURCES = {
    "karpenter-crd-chart": ("NodePool", "EC2NodeClass"),
    "mpi-operator-manifest": ("MPIJob",),
    "volcano-chart": ("CronJob", "Job", "Queue"),
    "kuberay-crds": ("RayCluster", "RayJob", "RayService"),
    "training-operator-crds": ("PyTorchJob",),
}
_KEYWORDS = (
    *("type", "required", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties"),
    *("maxProperties", "format", "nullable", "allOf", "anyOf", "oneOf", "not", "x-kubernetes-int-or-string"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
)
_SHARED_LENGTH = 300
"""A part of a schema that is longer as text and occurs twice (a pod's container, say) is written once."""


def definitions() -> dict[str, Mapping[str, Any]]:
    """Every definition that the pack knows, by type token, as its module has it. Raises LocalStackError where one can't be had."""
    charts = ensure(list(_SOURCES), Progress(state_dir() / "logs" / "crds.log", total=1))
    found: dict[str, Mapping[str, Any]] = {}
    for chart, kinds in _SOURCES.items():
        for definition in _read(Path(charts[chart])):
            if definition["spec"]["names"]["kind"] in kinds:
                found |= dict.fromkeys(_tokens(definition), definition)
    return found


def facts() -> dict[str, Any]:
    """The content of the facts file."""
    schemas = {}
    for token, definition in sorted(definitions().items()):
        version = token.removeprefix("kubernetes:").partition("/")[2].partition(":")[0]
        served = next(each for each in definition["spec"]["versions"] if each["name"] == version)
        schemas[token] = _condensed(served["schema"]["openAPIV3Schema"])
    pins = ", ".join(f"{name.removesuffix('-chart')} {catalogue().charts[name].version}" for name in _SOURCES)
    return {"source": f"CustomResourceDefinitions of {pins}", **_shared(schemas)}


def write() -> None:
    """Write the facts file."""
    FACTS.write_text(json.dumps(facts(), indent=1, sort_keys=True) + "\n")


def _read(place: Path) -> Iterator[Mapping[str, Any]]:
    files = [place] if place.is_file() else sorted(place.rglob("*.yaml"))
    for file in files:
        if "/v1beta1/" in str(file) or "CustomResourceDefinition" not in (text := file.read_text()):
            continue
        # Charts wrap their definitions in a few template lines.
        plain = re.sub(r"^\s*\{\{-?.*?\}\}\s*$", "", text, flags=re.MULTILINE)
        for document in yaml.safe_load_all(re.sub(r"\{\{.*?\}\}", "x", plain)):
            if document and document.get("kind") == "CustomResourceDefinition":
                yield document


def _tokens(definition: Mapping[str, Any]) -> list[str]:
    spec = definition["spec"]
    served = [version["name"] for version in spec["versions"] if version["served"]]
    return [f"kubernetes:{spec['group']}/{version}:{spec['names']['kind']}" for version in served]


def _condensed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without descriptions, and without `status`, which nobody writes."""
    kept = {key: schema[key] for key in _KEYWORDS if key in schema}
    if "default" in schema and "required" not in kept:
        kept["default"] = True
    if "properties" in schema:
        kept["properties"] = {key: _condensed(value) for key, value in schema["properties"].items() if key != "status"}
    if "items" in schema:
        kept["items"] = _condensed(schema["items"])
    if "additionalProperties" in schema:
        more = schema["additionalProperties"]
        kept["additionalProperties"] = _condensed(more) if isinstance(more, dict) else more
    if any("default" in value for value in schema.get("properties", {}).values()):
        filled = {key for key, value in schema["properties"].items() if "default" in value}
        kept["required"] = [key for key in schema.get("required", ()) if key not in filled]
    return {key: value for key, value in kept.items() if value != []}


def _shared(schemas: Mapping[str, Any]) -> dict[str, Any]:
    counts = collections.Counter(_long_parts(list(schemas.values())))
    names = {text: hashlib.sha256(text.encode()).hexdigest()[:8] for text, count in counts.items() if count > 1}
    parts = {name: _referring(json.loads(text), names, top=True) for text, name in names.items()}
    return {"kinds": {token: _referring(schema, names, top=True) for token, schema in schemas.items()}, "shared": parts}


def _long_parts(value: Any) -> Iterator[str]:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, dict) and isinstance(value.get("type"), str) and len(text := _text(value)) > _SHARED_LENGTH:
        yield text
    for member in members:
        yield from _long_parts(member)


def _referring(value: Any, names: Mapping[str, str], *, top: bool = False) -> Any:
    if isinstance(value, dict):
        name = None if top else names.get(_text(value))
        return {"$ref": name} if name else {key: _referring(member, names) for key, member in value.items()}
    return [_referring(member, names) for member in value] if isinstance(value, list) else value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


if __name__ == "__main__":
    write()
