"""The exit codes of the trainer: the part of the launch contract that a job's restart policy reads."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Why the trainer ended."""

    DONE = 0
    """All the optimizer steps that were asked for have been made and saved."""

    FAILED = 1
    """An error; the last lines of the log name the rank and the reason. A restart resumes from the newest valid checkpoint."""

    RESTART = 75
    """Stopped on request (signal or time slice) after a save that succeeded: start me again and I go on (EX_TEMPFAIL)."""

    CONFIG = 78
    """The configuration was refused: the same command fails again, so a restart is of no use (EX_CONFIG)."""
