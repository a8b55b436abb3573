"""The live line on a terminal: how far the run is, drawn again in place, with the log scrolling above it."""

import logging
import sys
import time
from collections.abc import Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_REDRAW_SECONDS = 0.1


class LiveLine:
    """Shown from construction to `close`. It has no thread: it is drawn when something is measured, ten times a second at most."""

    def __init__(self, name: str, done: int, total: int, console: Console | None = None) -> None:
        facts = TextColumn("{task.fields[facts]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), facts, TimeRemainingColumn())
        self._progress = Progress(*columns, console=console or Console(file=sys.stdout), auto_refresh=False)
        self._task = self._progress.add_task(name, completed=done, total=total, facts="")
        self._drawn = 0.0
        self._progress.start()
        # Log lines have to go through the console, or they would land in the middle of the line.
        handlers = [handler for handler in logging.getLogger().handlers if isinstance(handler, logging.StreamHandler)]
        self._streams = [(handler, handler.setStream(sys.stdout)) for handler in handlers]

    def update(self, step: int, values: Mapping[str, float]) -> None:
        """Draw a step's values."""
        now = time.monotonic()
        self._progress.update(self._task, completed=step, facts=_facts(values))
        if now - self._drawn >= _REDRAW_SECONDS:
            self._drawn = now
            self._progress.refresh()

    def close(self) -> None:
        """Leave the last state on the terminal."""
        self._progress.refresh()
        self._progress.stop()
        for handler, stream in self._streams:
            if stream is not None:
                handler.setStream(stream)


def _facts(values: Mapping[str, float]) -> str:
    words = [f"loss {values['loss']:.4f}", f"{values['tokens_per_second']:,.0f} tokens/s"]
    if "mfu" in values:
        words.append(f"MFU {values['mfu']:.1%}")
    return "  ".join(words)
