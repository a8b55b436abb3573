"""One run at a time in a run directory.

The kernel's file lock is the lease: it ends with the process that holds it, however that ends, so a restart never waits for a stale one.
On shared storage that takes a mount with locks (Lustre with `flock`; NFS 4, and so EFS, has them). Standard library only.
"""

import errno
import fcntl
import json
import os
import socket
import time
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

_FILE = "lease.lock"
# A predecessor on this host may still be ending; one on another host may be dead without the file server knowing: NFS 4 servers give the
# locks of a client that has gone silent away only after a minute or two.
_PATIENCE_SECONDS = 10.0
_REMOTE_PATIENCE_SECONDS = 150.0
_POLL_SECONDS = 0.2


class LeaseError(RuntimeError):
    """The directory is in use by another run, or its storage has no locks."""


class Lease:
    """Held from construction to `release`, or to the end of the process."""

    def __init__(self, directory: Path, *, patience_seconds: float | None = None) -> None:
        """Take the lease, waiting for a predecessor that is still ending, or dead on another host. Raises LeaseError naming the holder."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._file: TextIOWrapper = (directory / _FILE).open("a+", encoding="utf-8")
        started = time.monotonic()
        while not self._try_lock(directory):
            if time.monotonic() - started > (self._patience() if patience_seconds is None else patience_seconds):
                holder = self._holder()
                self._file.close()
                raise LeaseError(f"{directory} is in use by {holder}; end that run or choose another checkpoint.directory or name")
            time.sleep(_POLL_SECONDS)
        self._file.truncate(0)
        holder = {"host": socket.gethostname(), "pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="microseconds")}
        self._text = json.dumps(holder)
        self._file.write(self._text)
        self._file.flush()

    def check(self) -> None:
        """Refuse to go on if another run has taken the directory: a file server may give away the lock of a host that it has lost sight of.

        Raises LeaseError naming the other run.
        """
        if read_holder(self._directory) != self._text:
            raise LeaseError(f"{self._directory} has been taken over by {self._holder()}; nothing more is written there")

    def release(self) -> None:
        """Let the next run in."""
        self._file.close()

    def _try_lock(self, directory: Path) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise LeaseError(f"{directory}: its storage has no file locks ({error}); mount Lustre with the flock option") from None
        return True

    def _patience(self) -> float:
        """How long the present holder is waited for; looked at anew, since another may come in between."""
        return _PATIENCE_SECONDS if socket.gethostname() in self._holder() else _REMOTE_PATIENCE_SECONDS

    def _holder(self) -> str:
        self._file.seek(0)
        try:
            holder = json.loads(self._file.read())
            return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
        except (json.JSONDecodeError, KeyError, TypeError):
            return "another run"


def read_holder(directory: Path) -> str:
    """What the lease file says, to compare with what another host reads; empty where there is none."""
    try:
        return (directory / _FILE).read_text(encoding="utf-8")
    except OSError:
        return ""
