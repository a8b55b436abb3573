"""Errors that reach a user of the local stack as a message, never as a traceback."""

from pathlib import Path


class LocalStackError(Exception):
    """Something a user can act on: what failed, what was found, and what to do.

    `log` names the file that holds the failed command's output, if there is one.
    """

    def __init__(self, message: str, *, log: Path | None = None) -> None:
        super().__init__(message)
        self.log = log
