"""Contents of one image layer: entries of ours, written as a tar that is the same for the same input."""

import itertools
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Protocol

from local.errors import LocalStackError


class Sink(Protocol):
    """Where a layer is written to."""

    def write(self, data: bytes, /) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file, folder or symbolic link. Missing parents are made by whoever unpacks the layer, as root's with mode 755."""

    path: str
    """Place in the image, absolute."""
    source: Path | bytes | None = None
    """A file's contents; None for folders and links."""
    target: str | None = None
    """Where a symbolic link points; None for everything else."""
    mode: int = 0o644
    owner: int = 0
    """User and group id."""

    @property
    def name(self) -> str:
        """The path as a tar stores it."""
        return self.path.strip("/")


def file(path: str, source: Path | bytes, *, mode: int = 0o644, owner: int = 0) -> Entry:
    """A regular file with the contents of `source`."""
    return Entry(path=path, source=source, mode=mode, owner=owner)


def folder(path: str, *, mode: int = 0o755, owner: int = 0) -> Entry:
    """An empty folder, or the mode and owner of one that lower layers have."""
    return Entry(path=path, mode=mode, owner=owner)


def link(path: str, target: str) -> Entry:
    """A symbolic link."""
    return Entry(path=path, target=target, mode=0o777)


def python_sources(source: Path, at: str) -> Iterator[Entry]:
    """The Python files (and JSON data) of a package folder, with its sub-packages, placed at the image path `at`."""
    for path in sorted(source.rglob("*")):
        if path.suffix in {".py", ".json"} and "__pycache__" not in path.parts:
            yield file(str(PurePosixPath(at, *path.relative_to(source).parts)), path)


def write_layer(entries: Iterable[Entry], sink: Sink) -> None:
    """Write an uncompressed tar of `entries`, sorted by path, without times or names of users.

    Raises:
        LocalStackError: two entries have one path, or a source file is missing.
    """
    ordered = sorted(entries, key=lambda entry: entry.name)
    for one, other in itertools.pairwise(ordered):
        if one.name == other.name:
            raise LocalStackError(f"an image layer holds {one.path} twice")
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # ty: ignore[no-matching-overload]
        for entry in ordered:
            _add(tar, entry)


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.name)
    info.mode, info.uid, info.gid = entry.mode, entry.owner, entry.owner
    match entry.source:
        case bytes(data):
            info.size = len(data)
            tar.addfile(info, BytesIO(data))
        case Path() as path:
            try:
                with path.open("rb") as contents:
                    info.size = path.stat().st_size
                    tar.addfile(info, contents)
            except FileNotFoundError as error:
                raise LocalStackError(f"the image file {entry.path} is to be made from {path}, which does not exist") from error
        case None:
            info.type = tarfile.DIRTYPE if entry.target is None else tarfile.SYMTYPE
            info.linkname = entry.target or ""
            tar.addfile(info)
