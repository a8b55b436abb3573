"""One daemon as its supervisor sees it: running or not, ready or not, and when it may be started again."""

import os
import shutil
import signal
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local.node.probe import is_ready
from local.node.spec import DaemonSpec

LOG_LIMIT_BYTES = 32 * 2**20
BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_PROBE_EVERY_SECONDS = 0.15
_STEADY_SECONDS = 60.0
"""A daemon that ran this long starts its next back-off from the shortest pause."""


@dataclass(frozen=True, kw_only=True)
class DaemonStatus:
    """What others see of a daemon."""

    pid: int
    """In the node's pid namespace; 0 where it does not run."""
    ready: bool
    restarts: int
    last_exit: str = ""


@dataclass
class SupervisedDaemon:
    """State of one daemon. Times are of the monotonic clock."""

    spec: DaemonSpec
    log: Path
    pid: int = 0
    ready: bool = False
    was_ready: bool = False
    restarts: int = 0
    last_exit: str = ""
    failures_in_a_row: int = field(default=0)
    _started: float = 0.0
    _may_start: float = 0.0
    _next_probe: float = 0.0

    @property
    def status(self) -> DaemonStatus:
        return DaemonStatus(pid=self.pid, ready=self.ready, restarts=self.restarts, last_exit=self.last_exit)

    def start_if_due(self, now: float) -> None:
        """Start the process unless it runs or is in its back-off pause."""
        if self.pid or now < self._may_start:
            return
        self.pid = _spawn(self.spec, self.log)
        self._started, self._next_probe = now, now

    def probe_if_due(self, now: float) -> None:
        """Look for readiness until it is reached once; from then on an exit alone ends it."""
        if not self.pid or self.ready or now < self._next_probe:
            return
        self.ready = is_ready(self.spec.probe)
        self.was_ready = self.was_ready or self.ready
        self._next_probe = now + _PROBE_EVERY_SECONDS

    def ended(self, wait_status: int, now: float) -> None:
        """Note that the process has ended and choose when to start it again."""
        code = os.waitstatus_to_exitcode(wait_status)
        self.last_exit = f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        self.failures_in_a_row = 1 if now - self._started > _STEADY_SECONDS else self.failures_in_a_row + 1
        pause = BACKOFF_SECONDS[min(self.failures_in_a_row, len(BACKOFF_SECONDS)) - 1]
        self._may_start = now + pause
        self.restarts += 1
        self.pid, self.ready = 0, False

    def trim_log(self) -> None:
        """Keep a log and one older part, each of a bounded size."""
        try:
            if self.log.stat().st_size > LOG_LIMIT_BYTES:
                shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
                # The daemon appends, so it goes on at the new end.
                os.truncate(self.log, 0)
        except FileNotFoundError:
            return

    def as_json(self) -> dict[str, object]:
        return asdict(self.status)


def _spawn(spec: DaemonSpec, log: Path) -> int:
    log.parent.mkdir(parents=True, exist_ok=True)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    # The supervisor blocks the signals it waits for; its children must not.
    return os.posix_spawn(
        spec.argv[0],
        spec.argv,
        {**os.environ, **spec.env},
        file_actions=actions,
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE],
    )
