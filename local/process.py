"""Background processes that outlive the command which started them, and can be found and ended by the next one."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """One started process. `started` is its start time in clock ticks since boot, so a reused pid is never mistaken for it."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Daemon":
        """The process that has `pid` now."""
        return cls(pid=pid, started=_start_ticks(pid) or 0)

    @property
    def alive(self) -> bool:
        return _start_ticks(self.pid) == self.started

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """End the process group: SIGTERM, then SIGKILL once `timeout_seconds` have passed."""
        for sig, patience in ((signal.SIGTERM, timeout_seconds), (signal.SIGKILL, 5.0)):
            if not self.alive:
                return
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sig)
            deadline = time.monotonic() + patience
            while self.alive and time.monotonic() < deadline:
                time.sleep(0.05)


def start_daemon(
    argv: Sequence[str | Path],
    *,
    log: Path,
    pid_file: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Daemon:
    """Start `argv` in a session of its own with default signal handlers; its output goes to `log`, its identity to `pid_file`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    pid_file.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            start_new_session=True,
            # A shell's `&` leaves SIGINT ignored; that would be inherited by everything started from here.
            preexec_fn=_default_signals,
        )
    daemon = Daemon.of(process.pid)
    pid_file.write_text(json.dumps(asdict(daemon)))
    return daemon


def find_daemon(pid_file: Path) -> Daemon | None:
    """The live process recorded in `pid_file`, or None where there is no such file or the process has ended."""
    try:
        daemon = Daemon(**json.loads(pid_file.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return daemon if daemon.alive else None


def _default_signals() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _start_ticks(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # A zombie has ended: it only waits to be reaped by its parent.
    return None if fields[0] == "Z" else int(fields[19])
