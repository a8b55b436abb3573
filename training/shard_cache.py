"""A folder on a local disk for shards that lie far away: bounded, shared by all processes of a host, and never trusted unread.

Entries are named by their checksum, so several datasets can share it. Whoever needs an entry that is not there fetches it while the others
wait for it; room is made by dropping the entries that were used longest ago. Whoever has one open keeps reading it.
"""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from training.errors import DataError
from training.shard_index import ShardFile
from training.shard_writer import file_record

_ENTRY, _PART, _LOCK = ".entry", ".part", ".lock"


class ShardCache:
    """Every method can be called in several processes and threads at once."""

    def __init__(self, folder: Path, at_most: int) -> None:
        """Keep at most this many bytes in the folder. Raises DataError naming data.cache_directory if it cannot be made."""
        self._folder, self._at_most = folder, at_most
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"data.cache_directory: {folder} cannot be made ({error.strerror})") from None

    def get(self, file: ShardFile, fetch: Callable[[Path], None]) -> Path:
        """The entry with this content, which `fetch` writes to a path if it is not there yet. Raises DataError."""
        # Without the lock: entries only appear whole, and all processes of a host check them at the same time.
        if (entry := self._usable(file)) is not None:
            return entry
        with self._locked(file.digest):
            return self._usable(file) or self._get(file, fetch)

    def prepare(self, file: ShardFile, fetch: Callable[[Path], None]) -> None:
        """The same ahead of need: what another process is fetching already is left to it."""
        with self._locked(file.digest, wait=False) as mine:
            if mine and self._usable(file) is None:
                self._get(file, fetch)

    def _usable(self, file: ShardFile) -> Path | None:
        """The entry, marked as used, if its content is right: a damaged disk or a power cut may have changed it since it was fetched."""
        entry = self._folder / f"{file.digest}{_ENTRY}"
        with suppress(FileNotFoundError, DataError):
            os.utime(entry)
            found = file_record(entry)
            if (found.size, found.digest) == (file.size, file.digest):
                return entry
        return None

    def _get(self, file: ShardFile, fetch: Callable[[Path], None]) -> Path:
        part = self._reserve(file)
        try:
            fetch(part)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return part.rename(self._folder / f"{file.digest}{_ENTRY}")

    def _reserve(self, file: ShardFile) -> Path:
        """A file of the right size to be filled; entries are dropped until it fits."""
        part = self._folder / f"{file.digest}{_PART}"
        with self._locked("cache"):
            part.unlink(missing_ok=True)
            self._drop_abandoned()
            self._make_room(file)
            try:
                with part.open("wb") as opened:
                    os.posix_fallocate(opened.fileno(), 0, file.size)
            except OSError as error:
                part.unlink(missing_ok=True)
                raise DataError(f"data.cache_directory: no room for {file.size} bytes in {self._folder} ({error.strerror})") from None
        return part

    def _make_room(self, file: ShardFile) -> None:
        held = {path: path.stat() for path in self._folder.iterdir() if path.suffix in (_ENTRY, _PART)}
        total = sum(status.st_size for status in held.values()) + file.size
        for path in sorted((path for path in held if path.suffix == _ENTRY), key=lambda path: held[path].st_mtime_ns):
            if total <= self._at_most:
                return
            path.unlink(missing_ok=True)
            total -= held[path].st_size

    def _drop_abandoned(self) -> None:
        """Remove what processes that died in the middle have left."""
        for part in self._folder.glob(f"*{_PART}"):
            with self._locked(part.stem, wait=False) as mine:
                if mine:
                    part.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, name: str, *, wait: bool = True) -> Generator[bool]:
        """Hold the lock of this name; gives whether it could be had. The kernel frees it when its holder ends, however that ends."""
        with (self._folder / f"{name}{_LOCK}").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True
