"""Run the Pulumi CLI: one process group, one interrupt, everything it prints in a log, everything it does as events."""

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.errors import LocalStackError
from trainyard.events import Summary, read_events

_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_POLL_SECONDS = 0.1
_INTERRUPT_PATIENCE_SECONDS = 90
# Preview writes each step's snapshot and throws it away; an update must keep every one, so this is for preview alone.
_PREVIEW_ENVIRONMENT = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"}


class EngineError(LocalStackError):
    """The engine refused or failed; `summary` tells what it got done and why it stopped."""

    def __init__(self, message: str, *, summary: Summary, log: Path) -> None:
        super().__init__(message, log=log)
        self.summary = summary


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The Pulumi CLI in a fixed environment. Its output is appended to `log`."""

    environment: Mapping[str, str]
    log: Path

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        on_progress: Callable[[Summary], None] | None = None,
        output: Path | None = None,
    ) -> Summary:
        """Run `pulumi ARGUMENTS` to its end and return what it did. Standard output goes to `output` where that is given.

        Raises:
            EngineError: the CLI ended with another status than 0.
            KeyboardInterrupt: after the CLI, told to stop, has ended.
        """
        with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
            events = Path(folder) / "events.json"
            code, summary = self._follow(_with_events(arguments, events), cwd, events, on_progress, output)
        if code:
            raise EngineError(f"pulumi {arguments[0]} ended with status {code}", summary=summary, log=self.log)
        return summary

    def text(self, arguments: Sequence[str], *, cwd: Path) -> str:
        """Standard output of a quick query such as `stack output`. Raises LocalStackError where it fails."""
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive"], cwd=cwd, env=dict(self.environment), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalStackError(f"pulumi {' '.join(arguments)} ended with status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def _follow(
        self,
        arguments: Sequence[str],
        cwd: Path,
        events: Path,
        on_progress: Callable[[Summary], None] | None,
        output: Path | None,
    ) -> tuple[int, Summary]:
        environment = {**self.environment, "PULUMI_DEBUG_COMMANDS": "true"}
        if arguments[0] == "preview":
            environment |= _PREVIEW_ENVIRONMENT
        summary, position = Summary(), 0
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log, (output or Path(os.devnull)).open("wb") as out:
            log.write(f"$ pulumi {' '.join(arguments)}\n".encode())
            log.flush()
            process = subprocess.Popen(
                ["pulumi", *arguments],
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out if output else log,
                stderr=log,
                # A group of its own: the terminal's Ctrl-C reaches us alone, and we pass on exactly one (a second one kills the engine).
                start_new_session=True,
                preexec_fn=_prepare_child,
            )
            try:
                while process.poll() is None:
                    position = _take(events, position, summary, on_progress)
                    time.sleep(_POLL_SECONDS)
            except BaseException:
                _interrupt(process)
                raise
        _take(events, position, summary, None)
        return process.returncode, summary


def _with_events(arguments: Sequence[str], events: Path) -> list[str]:
    quiet = ["--non-interactive"]
    return [*arguments, *quiet, "--event-log", str(events)]


def _take(events: Path, position: int, summary: Summary, on_progress: Callable[[Summary], None] | None) -> int:
    fresh, position = read_events(events, position)
    for event in fresh:
        summary.add(event)
    if fresh and on_progress:
        on_progress(summary)
    return position


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Ask the engine to stop where it is, wait for it, and end what does not end."""
    try:
        process.send_signal(signal.SIGINT)
        process.wait(_INTERRUPT_PATIENCE_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _prepare_child() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # If this process is killed, the engine is told to stop too, and nothing goes on unseen.
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGINT)
