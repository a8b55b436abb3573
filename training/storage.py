"""Directories that are either whole or not there: durable files, a manifest written last, one rename.

Layout of a checkpoint folder, all of it under <run>/checkpoints:

    step-000000020/                 whole: published by the rename of a finished folder
    step-000000030.saving-<id>/     being written, or left by a run that died: never read, removed at the next start
    step-000000020.damaged-<id>/    found damaged when its step was saved again: kept for a look, never read

The manifest lists every file's size and digest, and its own. Standard library only, but for the reading of digests.
"""

import hashlib
import heapq
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
ALGORITHM = "xxh3_128"
_FORMAT = 2
_STEP = re.compile(r"step-(\d{9,})")


@dataclass(frozen=True)
class FileRecord:
    """What a manifest says about one file."""

    path: str
    """Relative to the checkpoint, with forward slashes."""
    size: int
    digest: str


def step_directory(root: Path, step: int) -> Path:
    """Where the checkpoint of a step is published."""
    return root / f"step-{step:09d}"


def published_steps(root: Path) -> list[int]:
    """Steps with a published folder, newest first; whether they are valid is another question."""
    if not root.is_dir():
        return []
    matches = (_STEP.fullmatch(path.name) for path in root.iterdir())
    return sorted((int(match.group(1)) for match in matches if match), reverse=True)


def saving_directory(root: Path, step: int) -> Path:
    """A new, empty folder to write a checkpoint in; its name is never that of a published one."""
    directory = root / f"{step_directory(root, step).name}.saving-{uuid.uuid4().hex[:12]}"
    directory.mkdir(parents=True)
    return directory


def clear_leftovers(root: Path) -> list[str]:
    """Remove folders that no run will finish or read; gives their names. Call only while holding the run's lease."""
    leftovers = [path for path in root.iterdir() if re.search(r"\.(saving|deleting)-", path.name)] if root.is_dir() else []
    for path in leftovers:
        shutil.rmtree(path)
    return sorted(path.name for path in leftovers)


def sync_path(path: Path) -> None:
    """Make a file's content, or a folder's list of names, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, text: str) -> None:
    """Write a small file so that its name never shows a part of it, even after a power cut."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    sync_path(path.parent)


def record_file(directory: Path, path: Path) -> FileRecord:
    """Size and digest of a file as storage gives it back. Raises OSError."""
    # Only here, so that what merely lists checkpoints needs no library.
    from training.durable import digest_file

    read = digest_file(path)
    return FileRecord(path.relative_to(directory).as_posix(), read.size, read.digest)


def write_manifest(directory: Path, step: int, records: Iterable[FileRecord]) -> None:
    """Record what the folder must hold; the last file written into it. Makes the folder and its subfolders durable."""
    files = {record.path: {"size": record.size, "digest": record.digest} for record in sorted(records, key=lambda record: record.path)}
    body = {"format": _FORMAT, "algorithm": ALGORITHM, "step": step, "files": files}
    adopt_manifest(directory, json.dumps({**body, "digest": _digest(body)}, indent=1) + "\n")


def adopt_manifest(directory: Path, text: str) -> None:
    """Give a folder of durable files a manifest that was written elsewhere. Makes the folder and its subfolders durable."""
    for folder in (path for path in directory.rglob("*") if path.is_dir()):
        sync_path(folder)
    write_durably(directory / MANIFEST, text)


def publish(directory: Path, target: Path) -> None:
    """Give a finished folder its name, in one step. A folder already there is moved aside: the caller has found it damaged."""
    if target.exists():
        target.rename(target.with_name(f"{target.name}.damaged-{uuid.uuid4().hex[:12]}"))
    directory.rename(target)
    sync_path(target.parent)


def condemn(directory: Path) -> Path:
    """Take a published folder's name away; gives the new one, to delete at leisure. One that is half deleted is never read."""
    return directory.rename(directory.with_name(f"{directory.name}.deleting-{uuid.uuid4().hex[:12]}"))


def read_manifest(directory: Path) -> list[FileRecord]:
    """The files that a checkpoint must hold. Raises ValueError naming the damage when the manifest itself is not whole."""
    try:
        return parse_manifest((directory / MANIFEST).read_text(encoding="utf-8"), directory.name)
    except FileNotFoundError:
        raise ValueError(f"{MANIFEST}: missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{MANIFEST}: unreadable ({type(error).__name__}: {error})") from None


def parse_manifest(text: str, name: str) -> list[FileRecord]:
    """The files of the checkpoint folder of this name. Raises ValueError naming the damage."""
    try:
        body = json.loads(text)
        digest = body.pop("digest")
        if body["format"] != _FORMAT or body["algorithm"] != ALGORITHM:
            raise ValueError(f"{MANIFEST}: format {body['format']} with {body['algorithm']} is not {_FORMAT} with {ALGORITHM}")
        if digest != _digest(body):
            raise ValueError(f"{MANIFEST}: its content does not match its own digest")
        if step_directory(Path(), body["step"]).name != name:
            raise ValueError(f"{MANIFEST}: it belongs to step {body['step']}")
        return [FileRecord(path, entry["size"], entry["digest"]) for path, entry in body["files"].items()]
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{MANIFEST}: unreadable ({type(error).__name__}: {error})") from None


def find_damage(directory: Path, *, part: int = 0, parts: int = 1, leave: Collection[str] = ()) -> list[str]:
    """What is wrong with a published checkpoint, one line per file; empty if nothing is.

    The files can be shared out over `parts` readers; each checks about as many bytes, and all check the manifest. Of those in `leave` only
    the size is checked.
    """
    try:
        records = read_manifest(directory)
    except ValueError as error:
        return [str(error)]
    own = share(records, part, parts)
    return [damage for record in own if (damage := _damage(directory, record, with_content=record.path not in leave))]


def share(records: Iterable[FileRecord], part: int, parts: int) -> list[FileRecord]:
    """One reader's files: the largest first, each to the reader with the least so far."""
    loads = [(0, reader) for reader in range(parts)]
    chosen = []
    for record in sorted(records, key=lambda record: (-record.size, record.path)):
        size, reader = heapq.heappop(loads)
        heapq.heappush(loads, (size + record.size + 1, reader))
        if reader == part:
            chosen.append(record)
    return chosen


def _damage(directory: Path, record: FileRecord, *, with_content: bool) -> str | None:
    path = directory / record.path
    try:
        if not stat.S_ISREG(mode := path.lstat().st_mode):
            return f"{record.path}: not a regular file (mode {mode:o})"
        size = path.stat().st_size
        if size != record.size:
            return f"{record.path}: {size} bytes in place of {record.size}"
        if with_content and record_file(directory, path).digest != record.digest:
            return f"{record.path}: its content does not match its digest"
    except FileNotFoundError:
        return f"{record.path}: missing"
    except OSError as error:
        return f"{record.path}: unreadable ({error})"
    return None


def _digest(body: dict) -> str:
    return hashlib.new("sha256", json.dumps(body, sort_keys=True).encode()).hexdigest()
