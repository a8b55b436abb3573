"""Writer of OCI image archives (an image layout in a tar), the form that `ctr -n k8s.io images import` takes.

Nothing is compressed: an archive is read once, on the machine that wrote it. Nothing is held in memory either: every blob is streamed
twice, first for its digest and size, then into the archive.
"""

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path
from platform import machine

from local.errors import LocalStackError
from local.images.layer import Entry, Sink, write_layer

Layer = Sequence[Entry] | Path
"""Entries of ours, or an existing uncompressed tar."""

NAME_ANNOTATION = "io.containerd.image.name"
TAG_ANNOTATION = "org.opencontainers.image.ref.name"

_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, kw_only=True)
class ImageConfig:
    """What a container of the image runs, unless its pod says otherwise."""

    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    user: str = "0"
    """User id, by number so that the kubelet can tell whether it is root."""
    workdir: str = "/"


@dataclass(frozen=True, kw_only=True)
class Archive:
    """One image in an archive on this machine."""

    path: Path
    references: tuple[str, ...]
    """Full names, each with registry and tag, that the image gets when it is imported."""
    digest: str
    """Of the image's manifest: `sha256:` and 64 hex digits."""

    @property
    def reference(self) -> str:
        """The first name."""
        return self.references[0]


@dataclass(frozen=True)
class _Blob:
    write: Callable[[Sink], object]
    digest: str
    size: int

    @property
    def member(self) -> str:
        return f"blobs/sha256/{self.digest}"


class _Meter:
    """A sink that keeps only digest and size, and passes the data on where there is somewhere to pass it to."""

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink, self._hash, self.size = sink, hashlib.sha256(), 0

    def write(self, data: bytes, /) -> int:
        self._hash.update(data)
        self.size += len(data)
        return self._sink.write(data) if self._sink else len(data)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def architecture() -> str:
    """This machine's architecture as images name it."""
    return _ARCHITECTURES.get(machine(), machine())


def full_reference(name: str) -> str:
    """The name that a container runtime gives to `name`: with a registry, and with a tag.

    Short names belong to Docker Hub, and those of one word to its `library`; a tag that is not given is `latest`.
    """
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{name}"
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def write_archive(path: Path, *, references: Sequence[str], layers: Sequence[Layer], config: ImageConfig) -> Archive:
    """Write the archive of one image; `path` appears only once it is whole.

    Raises:
        LocalStackError: no name or one with a digest, a missing or doubled file, or a file that changed while it was read.
    """
    names = tuple(dict.fromkeys(full_reference(name) for name in references))
    if not names or any("@" in name for name in names):
        raise LocalStackError(f"an image made here needs names without a digest, not {list(references)}")
    blobs = [_blob(_layer_writer(layer)) for layer in layers]
    settings = _json_blob(_config_document(config, blobs))
    manifest = _json_blob(_manifest_document(settings, blobs))
    index = _json_blob(_index_document(manifest, names))
    layout = _json_blob({"imageLayoutVersion": "1.0.0"})
    members = {"oci-layout": layout, "index.json": index} | {blob.member: blob for blob in (manifest, settings, *blobs)}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as archive:
            for name, blob in members.items():
                _append(archive, name, blob)
            archive.write(bytes(2 * tarfile.BLOCKSIZE))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return Archive(path=path, references=names, digest=f"sha256:{manifest.digest}")


def _append(archive: BufferedWriter, name: str, blob: _Blob) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = blob.size, 0o444
    archive.write(info.tobuf(tarfile.USTAR_FORMAT))
    meter = _Meter(archive)
    blob.write(meter)
    if meter.digest != blob.digest:
        raise LocalStackError(f"a file of an image changed while {archive.name} was written: try again once nothing writes to it")
    archive.write(bytes(-blob.size % tarfile.BLOCKSIZE))


def _layer_writer(layer: Layer) -> Callable[[Sink], object]:
    if isinstance(layer, Path):
        return lambda sink: _copy(layer, sink)
    return lambda sink: write_layer(layer, sink)


def _copy(source: Path, sink: Sink) -> None:
    with source.open("rb") as contents:
        shutil.copyfileobj(contents, sink, 1 << 20)


def _blob(write: Callable[[Sink], object]) -> _Blob:
    meter = _Meter()
    write(meter)
    return _Blob(write, meter.digest, meter.size)


def _json_blob(document: Mapping[str, object]) -> _Blob:
    data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    return _blob(lambda sink: sink.write(data))


def _config_document(config: ImageConfig, layers: Sequence[_Blob]) -> dict[str, object]:
    return {
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Env": [f"{name}={value}" for name, value in sorted(config.env.items())],
            "Entrypoint": list(config.entrypoint),
            "Cmd": list(config.command),
            "User": config.user,
            "WorkingDir": config.workdir,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
    }


def _manifest_document(config: _Blob, layers: Sequence[_Blob]) -> dict[str, object]:
    return {
        "schemaVersion": 2,
        "mediaType": _MANIFEST_TYPE,
        "config": _descriptor(config, _CONFIG_TYPE),
        "layers": [_descriptor(layer, _LAYER_TYPE) for layer in layers],
    }


def _index_document(manifest: _Blob, references: Sequence[str]) -> dict[str, object]:
    described = _descriptor(manifest, _MANIFEST_TYPE) | {"platform": {"architecture": architecture(), "os": "linux"}}
    named = [described | {"annotations": {NAME_ANNOTATION: name, TAG_ANNOTATION: name.rpartition(":")[2]}} for name in references]
    return {"schemaVersion": 2, "mediaType": _INDEX_TYPE, "manifests": named}


def _descriptor(blob: _Blob, media_type: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": f"sha256:{blob.digest}", "size": blob.size}
