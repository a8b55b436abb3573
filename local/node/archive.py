"""OCI image archives: what one holds, and the archive of the sandbox image."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable
from pathlib import Path

from local.errors import LocalStackError

_NAME_KEYS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def archive_images(archive: Path) -> dict[str, str]:
    """Name -> digest of every image in an OCI archive (a tar file with an index.json).

    Raises:
        LocalStackError: the file is no such archive, or an image in it has no name.
    """
    try:
        with tarfile.open(archive) as tar:
            file = tar.extractfile("index.json")
            index = json.loads(file.read()) if file else {}
    except (OSError, tarfile.TarError, KeyError, ValueError) as error:
        raise LocalStackError(f"{archive} is no OCI image archive: {error}") from error
    images = {}
    for manifest in index.get("manifests", []):
        annotations = manifest.get("annotations", {})
        name = next((annotations[key] for key in _NAME_KEYS if key in annotations), None)
        if name is None:
            raise LocalStackError(f"{archive}: the image {manifest['digest']} has no name (annotation {_NAME_KEYS[0]})")
        images[name] = manifest["digest"]
    if not images:
        raise LocalStackError(f"{archive} holds no image")
    return images


def write_binary_archive(path: Path, name: str, binary: Path) -> None:
    """Write the archive of an image `name` that holds one static binary and runs it. The same input gives the same digest."""
    layer = _tar([(binary.name, binary.read_bytes(), 0o755)])
    machine = platform.machine()
    config = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": [f"/{binary.name}"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    blobs = {_digest(layer): layer}
    described = {"layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": _digest(layer), "size": len(layer)}]}
    config_bytes = _json(config)
    blobs[_digest(config_bytes)] = config_bytes
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": _digest(config_bytes),
                "size": len(config_bytes),
            },
            **described,
        }
    )
    blobs[_digest(manifest)] = manifest
    entry = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": _digest(manifest),
        "size": len(manifest),
        "annotations": {_NAME_KEYS[0]: name},
    }
    files = [
        ("oci-layout", _json({"imageLayoutVersion": "1.0.0"}), 0o644),
        ("index.json", _json({"schemaVersion": 2, "manifests": [entry]}), 0o644),
        *((f"blobs/{digest.replace(':', '/')}", blob, 0o644) for digest, blob in blobs.items()),
    ]
    path.write_bytes(_tar(files))


def _tar(files: Iterable[tuple[str, bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content, mode in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
