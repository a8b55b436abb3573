"""A file of token ids, read in parts. Reads are `pread` calls and no memory map: what a damaged file or failing storage does to a map is
kill the process with a bus error, without a word."""

import os
from collections import OrderedDict
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from training.errors import DataError

_OPEN_FILES = 128


class OpenFiles:
    """Descriptors of the files read last, so that a read costs one call; the oldest is closed when there are too many."""

    def __init__(self, at_most: int = _OPEN_FILES) -> None:
        self._at_most = at_most
        self._descriptors: OrderedDict[Path, int] = OrderedDict()

    def descriptor(self, path: Path) -> int:
        """An open descriptor of this file. Raises DataError naming the file."""
        if path in self._descriptors:
            self._descriptors.move_to_end(path)
            return self._descriptors[path]
        try:
            self._descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise DataError(f"{path}: cannot be opened ({error.strerror})") from None
        if len(self._descriptors) > self._at_most:
            _, oldest = self._descriptors.popitem(last=False)
            os.close(oldest)
        return self._descriptors[path]


class TokenFile:
    """Token ids of one type in one file, from a byte offset on."""

    def __init__(self, path: Path, dtype: np.dtype, num_tokens: int, files: OpenFiles, offset: int = 0) -> None:
        self.path, self.num_tokens = path, num_tokens
        self._dtype, self._files, self._offset = dtype, files, offset

    def read_into(self, start: int, out: np.ndarray) -> None:
        """Fill `out`, of any integer type that holds the ids, with the tokens from `start` on. Raises DataError naming the file."""
        size = len(out) * self._dtype.itemsize
        begin = self._offset + start * self._dtype.itemsize
        descriptor = self._files.descriptor(self.path)
        try:
            raw = os.pread(descriptor, size, begin)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read at byte {begin} ({error.strerror})") from None
        if len(raw) < size:
            left = os.fstat(descriptor).st_size
            raise DataError(f"{self.path}: it has {left} bytes, where {self.num_tokens} tokens need more: it was cut short")
        out[:] = np.frombuffer(raw, dtype=self._dtype)


def open_npy(path: Path, dtype: np.dtype, num_tokens: int, files: OpenFiles) -> TokenFile:
    """A NumPy file that holds exactly this many tokens of this type. Raises DataError naming the file if it does not."""
    try:
        with path.open("rb") as file:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, found = read(file)
            offset = file.tell()
    except OSError as error:
        raise DataError(f"{path}: cannot be opened ({error.strerror})") from None
    except ValueError as error:
        raise DataError(f"{path}: no NumPy array ({error})") from None
    if (shape, found) != ((num_tokens,), dtype):
        raise DataError(f"{path}: it holds {found} of shape {shape}, the index says {num_tokens} of {dtype}")
    return TokenFile(path, dtype, num_tokens, files, offset)
