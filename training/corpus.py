"""Files as one long array of tokens, whatever their number; nothing is read before it is asked for."""

import hashlib
import sysconfig
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import numpy as np

from training.config import DataConfig
from training.errors import DataError

_TYPES = {"bytes": np.dtype("u1"), "uint16": np.dtype("<u2"), "uint32": np.dtype("<u4")}
_SAMPLED_BYTES = 65536


class Corpus:
    """Read-only token array over memory-mapped files, in sorted order of their names."""

    def __init__(self, config: DataConfig) -> None:
        dtype = _TYPES[config.encoding]
        self.paths = corpus_files(config.files)
        for path in self.paths:
            if path.stat().st_size % dtype.itemsize:
                raise DataError(f"{path}: {path.stat().st_size} bytes do not hold whole {config.encoding} tokens of {dtype.itemsize} bytes")
        self._arrays = [np.memmap(path, dtype=dtype, mode="r") for path in self.paths]
        self._ends = list(accumulate(len(array) for array in self._arrays))
        self.num_tokens = min(self._ends[-1], config.max_tokens or self._ends[-1])
        self.fingerprint = self._fingerprint(config)

    def read(self, start: int, length: int) -> np.ndarray:
        """Tokens [start, start + length) as int64, across file borders."""
        if start < 0 or start + length > self.num_tokens:
            raise IndexError(f"tokens {start} to {start + length} of {self.num_tokens}")
        parts: list[np.ndarray] = []
        index = bisect_right(self._ends, start)
        while length:
            begin = start - (self._ends[index - 1] if index else 0)
            part = self._arrays[index][begin : begin + length]
            parts.append(part)
            start, length, index = start + len(part), length - len(part), index + 1
        return np.concatenate(parts).astype(np.int64)

    def _fingerprint(self, config: DataConfig) -> str:
        """Digest of sizes and of both ends of every file: tells another corpus from this one without reading terabytes."""
        digest = hashlib.sha256(f"{config.encoding} {self.num_tokens}".encode())
        for array in self._arrays:
            raw = array.view(np.uint8)
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw[:_SAMPLED_BYTES].tobytes())
            digest.update(raw[-_SAMPLED_BYTES:].tobytes())
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
