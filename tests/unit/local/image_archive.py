"""Reads an image archive back, without the code that wrote it."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any


def members(archive: Path | bytes) -> dict[str, bytes]:
    """Contents of the regular files of a tar by name."""
    found = {}
    with open_tar(archive) as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file:
                found[member.name] = file.read()
    return found


def entries(layer: bytes) -> dict[str, tarfile.TarInfo]:
    """Everything in a layer by name, in its order."""
    with open_tar(layer) as tar:
        return {member.name: member for member in tar}


def open_tar(archive: Path | bytes) -> tarfile.TarFile:
    return tarfile.open(archive) if isinstance(archive, Path) else tarfile.open(fileobj=io.BytesIO(archive))


def image(archive: Path) -> tuple[dict[str, Any], dict[str, Any], list[bytes]]:
    """Manifest, configuration and layers of the archive's one image."""
    found = members(archive)
    index = json.loads(found["index.json"])
    manifest = json.loads(blob(found, index["manifests"][0]["digest"]))
    return manifest, json.loads(blob(found, manifest["config"]["digest"])), [blob(found, it["digest"]) for it in manifest["layers"]]


def blob(found: dict[str, bytes], digest: str) -> bytes:
    return found[f"blobs/sha256/{digest.removeprefix('sha256:')}"]
