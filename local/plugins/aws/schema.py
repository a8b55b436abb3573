"""Names, nesting, types and required properties of the table's types, as the genuine Python SDK has them.

Importing the SDK takes over a second, so what is needed of it is written once to a small file in the cache, keyed by the
SDK's and botocore's versions and by the table; from then on only that file is read.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final

from local.errors import LocalStackError
from local.paths import cache_dir

# Raise it when the file's form or what goes into it changes.
_FORMAT: Final = 5
_DAY_SECONDS: Final = 86400.0

Kind = Mapping[str, Any]
"""A type: {"t": "string" | "integer" | "number" | "boolean" | "any"}, {"t": "list" | "map", "of": Kind}, or {"t": "object",
"props": {name: Kind}, "required": [name]}. Leaves may carry "enum", "min" and "max" from botocore."""


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """One resource type of the SDK."""

    inputs: Mapping[str, Kind]
    """Every property that the `*Args` class takes."""
    required: tuple[str, ...]
    """The inputs without which a resource can't be declared."""
    outputs: Mapping[str, Kind]
    """Every property of the resource, inputs included."""


def schema_of(token: str) -> TypeSchema:
    """The SDK's schema of a type in the table. Raises KeyError for a token that the table does not have."""
    return _all_types()[token]


def function_outputs(token: str) -> Mapping[str, Kind]:
    """What the SDK expects back from a data source. Raises KeyError for a token that is not answered here."""
    return schema_of(token).outputs


def provider_inputs() -> Mapping[str, Kind]:
    """What the SDK's explicit provider takes."""
    return schema_of("pulumi:providers:aws").inputs


def sdk_version() -> str:
    """Version of the installed genuine SDK; the stand-in answers with the same one."""
    return _distribution_version("pulumi_aws")


@cache
def _all_types() -> Mapping[str, TypeSchema]:
    raw = json.loads(_cached_file().read_text())
    return {token: TypeSchema(entry["inputs"], tuple(entry["required"]), entry["outputs"]) for token, entry in raw.items()}


def _cached_file() -> Path:
    table = hashlib.sha256(_source_digest()).hexdigest()[:12]
    versions = f"{sdk_version()}-{_distribution_version('botocore')}"
    path = cache_dir() / "aws-schema" / f"{versions}-{_FORMAT}-{table}.json"
    if not path.exists():
        _generate(path)
    return path


def _source_digest() -> bytes:
    """Changes with any file of the table, because parameter limits are found through the rows."""
    folder = Path(__file__).parent
    files = sorted(
        (*(folder / "types").glob("*.py"), *(folder / "functions").glob("*.py"), folder / "sdk_extract.py", folder / "convert.py")
    )
    return b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)


def _generate(path: Path) -> None:
    """Write the file aside and rename it, so that two plug-ins starting together never read half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(descriptor)
    try:
        # In a process of its own: the SDK costs 60 MB that the plug-in would keep.
        done = subprocess.run(
            [sys.executable, "-m", "local.plugins.aws.sdk_extract", temporary],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).resolve().parents[3],
        )
        if done.returncode:
            raise LocalStackError(f"the schema of the installed pulumi-aws could not be read:\n{done.stderr.strip()[-2000:]}")
        Path(temporary).rename(path)
        _forget_others(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _forget_others(path: Path) -> None:
    """Remove what earlier versions left, but nothing that another copy may just be reading."""
    for other in path.parent.glob("*.json"):
        if other != path and time.time() - other.stat().st_mtime > _DAY_SECONDS:
            other.unlink(missing_ok=True)


@cache
def _distribution_version(package: str) -> str:
    # importlib.metadata would cost 30 ms of a start-up that has 600.
    spec = PathFinder.find_spec(package)
    if spec is None or spec.origin is None:
        raise LocalStackError(f"Python package {package} is not installed beside the stand-in aws plug-in; run `make setup`")
    for folder in _metadata_folders(Path(spec.origin).parent.parent, package):
        return folder.name.removesuffix(".dist-info").rpartition("-")[2]
    raise LocalStackError(f"Python package {package} has no metadata (*.dist-info); run `make setup`")


def _metadata_folders(site: Path, package: str) -> Iterable[Path]:
    return site.glob(f"{package}-*.dist-info")
