"""Files that are written once, durably, with their digest: copying, digest and disk all at the same time.

A writer that copies, then takes a digest, then waits for the disk pays for each in turn. Here bytes are gathered in page-aligned buffers;
each full one goes into the digest and then to a few threads that write it past the page cache, to space set aside beforehand, while the
next one is being filled. xxhash, numpy and the system calls all release the interpreter's lock. What a storage does not offer (direct
writes, preallocation) is left out there, and the file is as durable without.
"""

import ctypes
import errno
import fcntl
import functools
import itertools
import mmap
import os
import queue
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import xxhash

_CHUNK_BYTES = 4 << 20
_DISK_THREADS = 4
_BUFFERS = _DISK_THREADS + 2
_READS_AHEAD = 2 * _DISK_THREADS
_PREALLOCATE_BYTES = 256 << 20
# The largest logical block of common storage; direct writes must be multiples of it.
_ALIGNMENT = 4096
# Smaller pieces are quicker through a memoryview than through numpy.
_SMALL_BYTES = 64 << 10

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True)
class Digested:
    """Size in bytes and xxh3_128 of a file's content, in hex."""

    size: int
    digest: str


class DurableFile:
    """A new file, open for writing from start to end; `close` makes it durable.

    Raises OSError from any method: a write that failed in a thread surfaces in the next call.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._hash = xxhash.xxh3_128()
        self._chunk: _Chunk = _buffers().get()
        self._filled = 0
        self._written = 0
        self._allocated = 0
        self._pending: list[Future[None]] = []

    def write(self, data: Bytes) -> int:
        """Append bytes; they are copied before the call returns."""
        view = memoryview(data).cast("B")
        start, size = 0, view.nbytes
        while start < size:
            taken = min(size - start, _CHUNK_BYTES - self._filled)
            self._chunk.fill(self._filled, view[start : start + taken])
            self._filled += taken
            start += taken
            if self._filled == _CHUNK_BYTES:
                self._pass_on()
        return size

    def flush(self) -> None:
        """Nothing: only `close` promises durability. Serialisers call it."""

    def close(self) -> Digested:
        """Wait for the disk, and give the file's size and digest."""
        self._hash.update(self._chunk.view[: self._filled])
        size = self._written + self._filled
        try:
            self._write_rest(size)
            os.fsync(self._descriptor)
        finally:
            self._let_go()
        return Digested(size, self._hash.hexdigest())

    def abandon(self) -> None:
        """Close without a promise, after a failure elsewhere."""
        self._let_go()

    def _pass_on(self) -> None:
        """Hand the full buffer to the writing threads, and go on with another."""
        chunk, offset = self._chunk, self._written
        self._hash.update(chunk.view)
        self._open(direct=True)
        self._allocate(offset + _CHUNK_BYTES)
        self._raise_failures()
        self._pending.append(_disk_threads().submit(_write_chunk, self._descriptor, chunk, _CHUNK_BYTES, offset))
        self._written += _CHUNK_BYTES
        self._filled = 0
        self._chunk = _buffers().get()

    def _write_rest(self, size: int) -> None:
        """The last, partly filled buffer; direct writes need whole blocks, so the file is cut to size afterwards."""
        if not self._pending:
            # A small file: neither threads nor alignment are worth their while.
            self._open(direct=False)
            _write_all(self._descriptor, self._chunk.view[: self._filled], 0)
            return
        padded = -(-self._filled // _ALIGNMENT) * _ALIGNMENT
        self._chunk.view[self._filled : padded] = bytes(padded - self._filled)
        _write_all(self._descriptor, self._chunk.view[:padded], self._written)
        for pending in self._pending:
            pending.result()
        os.ftruncate(self._descriptor, size)

    def _open(self, *, direct: bool) -> None:
        if self._descriptor >= 0:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self._path, flags | (os.O_DIRECT if direct else 0), 0o644)
        except OSError as error:
            if error.errno != errno.EINVAL or not direct:
                raise
            self._descriptor = os.open(self._path, flags, 0o644)

    def _allocate(self, size: int) -> None:
        """Set space aside in large steps: extents stay whole, and a full disk is found before it is half written to."""
        while self._allocated < size:
            _allocate(self._descriptor, self._allocated, _PREALLOCATE_BYTES)
            self._allocated += _PREALLOCATE_BYTES

    def _raise_failures(self) -> None:
        while self._pending and self._pending[0].done():
            self._pending.pop(0).result()
        # `close` tells by it that threads have written.
        self._pending = self._pending or [_DONE]

    def _let_go(self) -> None:
        for pending in self._pending:
            pending.exception()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        if self._chunk is not _NO_CHUNK:
            _buffers().put(self._chunk)
        self._chunk = _NO_CHUNK


def digest_file(path: Path) -> Digested:
    """Size and digest of a file as storage gives it back. Raises OSError."""
    # Plain reads and no memory map: storage that fails under a map kills the process instead of giving an error.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with WholeFile(descriptor) as whole:
            digest = whole.finish()
            return Digested(whole.position, digest)
    finally:
        os.close(descriptor)


class WholeFile:
    """An open file that is read once from start to end, in part into memory of the caller's, and its digest taken.

    A few threads read ahead of the digest, since one stream is slower than most storage. So the caller's memory is filled once `finish`
    has returned, and is left alone once the block has ended. Methods raise OSError for a read that failed, or that met the file's end.
    """

    def __init__(self, descriptor: int) -> None:
        self.position = 0
        """Bytes asked for so far."""
        self._descriptor = descriptor
        self._hash = xxhash.xxh3_128()
        self._reads: deque[tuple[memoryview, Future[None]]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while self._reads:
            self._reads.popleft()[1].exception()

    def read_into(self, view: memoryview) -> None:
        """Fill this memory with the bytes that follow."""
        for start in range(0, len(view), _CHUNK_BYTES):
            self._read(view[start : start + _CHUNK_BYTES])

    def skip_to(self, position: int) -> None:
        """Read up to there, for the digest alone."""
        gap = position - self.position
        buffers = [memoryview(bytearray(min(_CHUNK_BYTES, gap))) for _ in range(min(_READS_AHEAD + 1, -(-gap // _CHUNK_BYTES)))]
        for turn in itertools.cycle(buffers):
            if self.position == position:
                break
            self._read(turn[: position - self.position])

    def finish(self) -> str:
        """Read what is left; gives the digest of the whole file."""
        self.skip_to(os.fstat(self._descriptor).st_size)
        self._digest(0)
        return self._hash.hexdigest()

    def _read(self, piece: memoryview) -> None:
        self._reads.append((piece, _disk_threads().submit(read_at, self._descriptor, piece, self.position)))
        self.position += len(piece)
        self._digest(_READS_AHEAD)

    def _digest(self, left: int) -> None:
        """Take pieces into the digest, in their order, until so many are left."""
        while len(self._reads) > left:
            piece, read = self._reads[0]
            read.result()
            self._hash.update(piece)
            self._reads.popleft()


def read_at(descriptor: int, view: memoryview, offset: int) -> None:
    """Fill this memory with the bytes of an open file from `offset` on. Raises OSError, also where the file ends early."""
    while view:
        count = os.preadv(descriptor, [view], offset)
        if not count:
            raise OSError(f"the file ends {len(view)} bytes early")
        view = view[count:]
        offset += count


def write_file(path: Path, content: bytes) -> Digested:
    """Write a whole small file durably. Raises OSError."""
    file = DurableFile(path)
    file.write(content)
    return file.close()


class _Chunk:
    """One page-aligned buffer."""

    def __init__(self, size: int) -> None:
        self.view = memoryview(mmap.mmap(-1, size)) if size else memoryview(b"")
        self._array = np.frombuffer(self.view, dtype=np.uint8)

    def fill(self, start: int, data: memoryview) -> None:
        """Copy bytes in; large pieces through numpy, which lets other threads run meanwhile."""
        if data.nbytes < _SMALL_BYTES:
            self.view[start : start + data.nbytes] = data
        else:
            self._array[start : start + data.nbytes] = np.frombuffer(data, dtype=np.uint8)


_NO_CHUNK = _Chunk(0)
_DONE: Future[None] = Future()
_DONE.set_result(None)


@functools.cache
def _buffers() -> "queue.SimpleQueue[_Chunk]":
    """Shared by all files of this process, so that memory stays small and warm."""
    buffers: queue.SimpleQueue[_Chunk] = queue.SimpleQueue()
    for _ in range(_BUFFERS):
        buffers.put(_Chunk(_CHUNK_BYTES))
    return buffers


@functools.cache
def _disk_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_DISK_THREADS, thread_name_prefix="disk")


def _write_chunk(descriptor: int, chunk: _Chunk, size: int, offset: int) -> None:
    try:
        _write_all(descriptor, chunk.view[:size], offset)
    finally:
        _buffers().put(chunk)


def _write_all(descriptor: int, view: memoryview, offset: int) -> None:
    while view:
        try:
            count = os.pwrite(descriptor, view, offset)
        except OSError as error:
            if error.errno != errno.EINVAL or not _leave_direct(descriptor):
                raise
            continue
        view = view[count:]
        offset += count


def _leave_direct(descriptor: int) -> bool:
    """Go on through the page cache: this storage takes the flag but not the write. False if it does already."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_DIRECT)
    return bool(flags & os.O_DIRECT)


_libc = ctypes.CDLL(None, use_errno=True)


def _allocate(descriptor: int, offset: int, size: int) -> None:
    """Reserve blocks; the C library's own posix_fallocate would write zeros where the storage can't."""
    if not hasattr(_libc, "fallocate"):
        return
    # The size grows with it: direct writes within a file go on side by side, those beyond its end one by one.
    if _libc.fallocate(descriptor, 0, ctypes.c_int64(offset), ctypes.c_int64(size)):
        number = ctypes.get_errno()
        # Nothing is lost when a large step does not fit: the write itself will say so if its own part does not.
        if number not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EINVAL, errno.ENODEV):
            raise OSError(number, os.strerror(number))
