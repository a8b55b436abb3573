"""Archives that are made once: each keeps beside it what it was made from, and is made again when that has changed."""

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

from local.images.layer import Entry
from local.images.oci import Archive


def ensure_archive(path: Path, recipe: str, make: Callable[[], Archive]) -> Archive:
    """The archive at `path`, made by `make` where there is none or where it was made from another recipe.

    One process on a machine makes an archive, others wait for it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = path.with_suffix(".json")
        known = _read(note, path, recipe)
        if known is None:
            known = make()
            note.write_text(json.dumps({"recipe": recipe, "references": known.references, "digest": known.digest}))
        return known


def recipe_of(entries: Iterable[Entry], *parts: object) -> str:
    """Hex digest over entries, contents of their files included, and whatever else decides the image."""
    digest = hashlib.sha256(repr(parts).encode())
    for entry in sorted(entries, key=lambda entry: entry.name):
        digest.update(repr((entry.path, entry.target, entry.mode, entry.owner)).encode())
        if isinstance(entry.source, Path):
            with entry.source.open("rb") as contents:
                digest.update(hashlib.file_digest(contents, "sha256").digest())
        elif entry.source is not None:
            digest.update(hashlib.sha256(entry.source).digest())
    return digest.hexdigest()


def _read(note: Path, path: Path, recipe: str) -> Archive | None:
    try:
        known = json.loads(note.read_text())
        if path.exists() and known["recipe"] == recipe:
            return Archive(path=path, references=tuple(known["references"]), digest=known["digest"])
    except (FileNotFoundError, ValueError, KeyError):
        pass
    return None
