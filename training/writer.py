"""Where an engine puts the files of one checkpoint: written at once, or staged in host memory and written behind the training."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from training import storage
from training.durable import Bytes, Digested, DurableFile
from training.errors import CheckpointError
from training.staging import StagedFile, Staging, as_bytes, settle


class ByteSink(Protocol):
    """What both a file on disk and one in memory are to a serialiser."""

    def write(self, data: Bytes) -> int: ...
    def flush(self) -> None: ...


class CheckpointWriter:
    """The files of one rank in one checkpoint.

    Without staging each method returns when its file is durable. With staging it returns when a copy of the state is in host memory; the
    files exist once `finish`, which may run in another thread, has returned. Every method raises CheckpointError naming the file and the
    reason; so does `finish`, for files that it writes.
    """

    def __init__(self, directory: Path, staging: Staging | None = None) -> None:
        self.directory = directory
        self._staging = staging
        self._records: list[storage.FileRecord] = []
        self._behind: list[Callable[[], None]] = []

    def write_bytes(self, path: Path, content: bytes) -> None:
        """A small file."""
        self._write(path, lambda file: _put(file, content))

    def write_tensors(self, path: Path, header: bytes, tensors: Sequence[Tensor]) -> None:
        """A header and the raw content of tensors after it, in this order, without gaps."""

        def put(file: ByteSink) -> None:
            file.write(header)
            for tensor in tensors:
                if isinstance(file, StagedFile):
                    file.write_tensor(tensor)
                else:
                    file.write(memoryview(as_bytes(tensor).cpu().numpy()))

        self._write(path, put)

    def write_object(self, path: Path, state: Any) -> None:
        """Whatever torch.save writes. Its own checksums are left out: the digest covers the whole file, at a tenth of their cost."""

        def put(file: ByteSink) -> None:
            wanted = torch.serialization.get_crc32_options()
            torch.serialization.set_crc32_options(False)
            try:
                torch.save(state, file)
            finally:
                torch.serialization.set_crc32_options(wanted)

        self._write(path, put)

    def finish(self) -> list[storage.FileRecord]:
        """Write what is staged; gives the records of all files, in the order of the calls."""
        for write in self._behind:
            write()
        self._behind.clear()
        return self._records

    def _write(self, path: Path, put: Callable[[ByteSink], object]) -> None:
        if self._staging is None:
            self._record(path, _to_disk(path, put))
            return
        staged = StagedFile(self._staging)
        put(staged)
        settle()
        self._behind.append(lambda: self._record(path, _to_disk(path, lambda file: [file.write(piece) for piece in staged.drain()])))

    def _record(self, path: Path, written: Digested) -> None:
        self._records.append(storage.FileRecord(path.relative_to(self.directory).as_posix(), written.size, written.digest))


def _put(file: ByteSink, content: bytes) -> None:
    file.write(content)


def _to_disk(path: Path, put: Callable[[ByteSink], object]) -> Digested:
    try:
        file = DurableFile(path)
        try:
            put(file)
            return file.close()
        except BaseException:
            file.abandon()
            raise
    except (OSError, RuntimeError) as error:
        raise CheckpointError(f"cannot write {path}: {root_cause(error)}") from error


def root_cause(error: BaseException) -> BaseException:
    """The first error of a chain, which others have hidden: torch answers a full disk with a file position in place of the reason."""
    while error.__context__:
        error = error.__context__
    return error
