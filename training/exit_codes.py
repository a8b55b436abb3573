"""The exit codes of the trainer: the part of the launch contract that a job's restart policy reads."""

import signal
from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Why the trainer ended."""

    DONE = 0
    """All the optimizer steps that were asked for have been made and saved."""

    FAILED = 1
    """An error; the last lines of the log name the rank and the reason. A restart resumes from the newest valid checkpoint."""

    RESTART = 75
    """Stopped on request (signal or time slice) after a save that succeeded: start me again and I go on (EX_TEMPFAIL)."""

    HUNG = 76
    """No progress for `watchdog.hang_seconds`: the stacks of all ranks are in the run's folder. A restart resumes as after a failure."""

    CONFIG = 78
    """The configuration was refused: the same command fails again, so a restart is of no use (EX_CONFIG)."""


def combine(codes: Sequence[int]) -> ExitCode:
    """One code for all ranks. A refused configuration is everyone's; a failure outweighs the wish to be restarted.

    Ranks that the launcher ended because another had ended say nothing of their own.
    """
    own = {code for code in codes if code != -signal.SIGTERM}
    if ExitCode.CONFIG in own:
        return ExitCode.CONFIG
    alike = len(own) == 1 and own <= {*ExitCode}
    return ExitCode(own.pop()) if alike else ExitCode.FAILED


def describe(code: int) -> str:
    """An exit code or the signal that ended a process, in words."""
    if code >= 0:
        known = f" ({ExitCode(code).name.lower()})" if code in {*ExitCode} else ""
        return f"ended with exit code {code}{known}"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory, or by hand)" if -code == signal.SIGKILL else "")
