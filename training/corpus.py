"""What a run reads: token ids in parts, each of which is cut into samples on its own. Here the interface, and plain files as one part."""

import hashlib
import sysconfig
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import numpy as np

from training.config import DataConfig
from training.errors import DataError
from training.token_file import OpenFiles, TokenFile

_TYPES = {"bytes": np.dtype("u1"), "uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}
_SAMPLED_BYTES = 65536


class Corpus(Protocol):
    """Read-only token ids; every method can be called in several processes at once."""

    part_sizes: list[int]
    """Tokens of each part."""
    fingerprint: str
    """Digest that tells another corpus from this one, wherever it lies."""
    vocab_size: int | None
    """One more than the largest id that it may hold, where that is known."""
    document_end: int | None
    """Id that ends its documents, where that is known."""

    def describe(self) -> str:
        """Size and place, for the log."""
        ...

    def read_into(self, part: int, start: int, out: np.ndarray) -> None:
        """Fill `out` with the part's tokens from `start` on. Raises DataError naming the file that cannot be read."""
        ...

    def where(self, part: int, start: int) -> str:
        """File and place of a token, for messages."""
        ...

    def prepare(self, parts: Sequence[int]) -> None:
        """Start to bring these parts near, if they are far."""
        ...

    def find_damage(self, part: int, parts: int) -> list[str]:
        """What is wrong with the files, one line each; reader `part` of `parts` looks at its share. As thorough as data.verify says."""
        ...


class FileCorpus:
    """Files as one long array of tokens, in sorted order of their names; nothing is read before it is asked for."""

    vocab_size: int | None = None
    document_end: int | None = None

    def __init__(self, config: DataConfig) -> None:
        """Find the files. Raises DataError."""
        dtype = _TYPES[config.encoding]
        self.paths = corpus_files(config.files)
        sizes = [path.stat().st_size for path in self.paths]
        for path, size in zip(self.paths, sizes, strict=True):
            if size % dtype.itemsize:
                raise DataError(f"{path}: {size} bytes do not hold whole {config.encoding} tokens of {dtype.itemsize} bytes")
        files = OpenFiles()
        self._files = [
            TokenFile(str(path), dtype, size // dtype.itemsize, partial(files.descriptor, path))
            for path, size in zip(self.paths, sizes, strict=True)
        ]
        self._ends = list(accumulate(file.num_tokens for file in self._files))
        self.part_sizes = [min(self._ends[-1], config.max_tokens or self._ends[-1])]
        self.fingerprint = _fingerprint(f"{config.encoding} {self.part_sizes[0]}", self.paths, sizes)

    def describe(self) -> str:
        """See Corpus."""
        return f"{self.part_sizes[0]:,} tokens in {len(self.paths)} files ({self.paths[0]} ...)"

    def read_into(self, part: int, start: int, out: np.ndarray) -> None:
        """See Corpus. Goes across file borders."""
        if part or start < 0 or start + len(out) > self.part_sizes[0]:
            raise IndexError(f"tokens {start} to {start + len(out)} of {self.part_sizes[0]}")
        index, done = bisect_right(self._ends, start), 0
        while done < len(out):
            begin = start + done - (self._ends[index - 1] if index else 0)
            count = min(self._files[index].num_tokens - begin, len(out) - done)
            self._files[index].read_into(begin, out[done : done + count])
            index, done = index + 1, done + count

    def where(self, part: int, start: int) -> str:
        """See Corpus."""
        del part
        index = bisect_right(self._ends, start)
        return f"{self.paths[index]}, token {start - (self._ends[index - 1] if index else 0)}"

    def prepare(self, parts: Sequence[int]) -> None:
        """See Corpus. Files are as near as they get."""

    def find_damage(self, part: int, parts: int) -> list[str]:
        """See Corpus. Files without an index have nothing to be compared with."""
        del part, parts
        return []


def _fingerprint(head: str, paths: list[Path], sizes: list[int]) -> str:
    """Digest of sizes and of both ends of every file: tells another corpus from this one without reading terabytes."""
    digest = hashlib.sha256(head.encode())
    for path, size in zip(paths, sizes, strict=True):
        digest.update(size.to_bytes(8, "little"))
        try:
            with path.open("rb") as file:
                digest.update(file.read(_SAMPLED_BYTES))
                file.seek(max(0, size - _SAMPLED_BYTES))
                digest.update(file.read(_SAMPLED_BYTES))
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    return digest.hexdigest()


def corpus_files(patterns: tuple[str, ...], setting: str = "data.files") -> list[Path]:
    """The non-empty files that the patterns name, sorted; with no pattern, the sources of Python's own standard library.

    Raises DataError naming the `setting` and the pattern that matches nothing.
    """
    if not patterns:
        return standard_library()
    found: set[Path] = set()
    for pattern in patterns:
        path = Path(pattern)
        candidates = path.rglob("*") if path.is_dir() else Path(path.anchor).glob(str(path.relative_to(path.anchor)))
        matches = [item for item in candidates if item.is_file() and item.stat().st_size]
        if not matches:
            raise DataError(f"{setting}: {pattern!r} matches no file with anything in it")
        found.update(matches)
    return sorted(found)


def standard_library() -> list[Path]:
    """Sources of this Python's standard library, without installed packages and tests, in an order that no locale changes."""
    root = Path(sysconfig.get_paths()["stdlib"])
    left_out = {"site-packages", "dist-packages", "test", "tests", "__pycache__", "idlelib", "lib2to3"}
    files = [path for path in root.rglob("*.py") if not left_out.intersection(path.relative_to(root).parts) and path.stat().st_size]
    if not files:
        raise DataError(f"data.files is empty and {root} holds no Python sources; name the files to train on")
    return sorted(files, key=lambda path: path.relative_to(root).as_posix())
