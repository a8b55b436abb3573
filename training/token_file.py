"""A file of token ids, read in parts. Reads are `pread` calls and no memory map: what a damaged file or failing storage does to a map is
kill the process with a bus error, without a word."""

import os
from collections import OrderedDict
from collections.abc import Callable
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

    def __init__(self, name: str, dtype: np.dtype, num_tokens: int, descriptor: Callable[[], int], offset: int = 0) -> None:
        """`name` is for messages."""
        self.name, self.num_tokens = name, num_tokens
        self._dtype, self._descriptor, self._offset = dtype, descriptor, offset

    def read_into(self, start: int, out: np.ndarray) -> None:
        """Fill `out`, of any integer type that holds the ids, with the tokens from `start` on. Raises DataError naming the file."""
        size = len(out) * self._dtype.itemsize
        begin = self._offset + start * self._dtype.itemsize
        descriptor = self._descriptor()
        try:
            raw = os.pread(descriptor, size, begin)
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read at byte {begin} ({error.strerror})") from None
        if len(raw) < size:
            left = os.fstat(descriptor).st_size
            raise DataError(f"{self.name}: it has {left} bytes, where {self.num_tokens} tokens need more: it was cut short")
        out[:] = np.frombuffer(raw, dtype=self._dtype)


def open_npy(path: Path, name: str, dtype: np.dtype, num_tokens: int) -> TokenFile:
    """A NumPy file, called `name` in messages, that holds exactly this many values of this type; open as long as the result is in use.

    Raises DataError if it does not, FileNotFoundError if there is none.
    """
    try:
        file = path.open("rb")
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, found = read(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"{name}: cannot be opened ({error.strerror})") from None
    except ValueError as error:
        raise DataError(f"{name}: no NumPy array ({error})") from None
    if (shape, found) != ((num_tokens,), dtype):
        raise DataError(f"{name}: it holds {found} of shape {shape}, the index says {num_tokens} of {dtype}")
    return TokenFile(name, dtype, num_tokens, file.fileno, file.tell())
