"""A hang becomes an exit: a thread beside the main one sees that nothing moves, writes all stacks and ends the process with HUNG.

Every rank has its own, so no rank has to reach another to end. The thread works while the main one is blocked in a collective or a system
call. For code that blocks with the interpreter's lock held, faulthandler's own thread, which needs no lock, writes the stacks to the log
and ends the process with FAILED a little later.
"""

import faulthandler
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from training import last_words
from training.exit_codes import ExitCode
from training.incident import Incident

_POLLS = 20
_LONGEST_POLL_SECONDS = 5.0
# For the other ranks to write their stacks too, before the first one to end makes the rest fail.
_GATHER_SECONDS = 10.0
# Beyond the gathering, so that it only ends processes in which the watching thread cannot run.
_BACKSTOP_SECONDS = 15.0
# How long a rank may sit in a collective after another has left its reason; NCCL, unlike gloo, does not notice by itself.
_PEER_SECONDS = 30.0
_PACKAGE = Path(__file__).parent
_MANY = 4


class Watchdog:
    """Watches one rank from `start` to `stop`."""

    def __init__(self, hang_seconds: float, incident: Incident, where: str, world_size: int) -> None:
        """`where` names the rank on the log's last line; 0 seconds mean that no hang is looked for."""
        self._hang_seconds, self._incident, self._where, self._world_size = hang_seconds, incident, where, world_size
        self._main = threading.get_ident()
        self._moved = time.monotonic()
        self._doing = "the start"
        self._ended = threading.Event()
        self._giving_up = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch, from the thread that is to be watched."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer."""
        self._ended.set()
        faulthandler.cancel_dump_traceback_later()
        self._thread.join()

    def finish_report(self) -> None:
        """Where a hang has been found already, wait until it is told of, which ends the process; else return at once.

        For a rank that loses contact with others: those that have told of the same hang sooner.
        """
        if self._giving_up.is_set():
            self._thread.join()

    def tick(self, doing: str) -> None:
        """Something has moved: a micro-batch, a step, an evaluation's batch, a save. `doing` names it for the message."""
        self._moved, self._doing = time.monotonic(), doing

    def _watch(self) -> None:
        poll = min(_LONGEST_POLL_SECONDS, self._hang_seconds / _POLLS) if self._hang_seconds else _LONGEST_POLL_SECONDS
        told = None
        while not self._ended.wait(poll):
            if self._hang_seconds:
                # Pushed forward for as long as this thread gets to run.
                faulthandler.dump_traceback_later(self._hang_seconds + _BACKSTOP_SECONDS, exit=True, file=sys.stderr)
                if time.monotonic() - self._moved > self._hang_seconds:
                    self._give_up(f"nothing has moved for {self._hang_seconds:g} s since {self._doing}")
            told = told or (time.monotonic() if self._peer_has_failed() else None)
            if told and time.monotonic() - told > _PEER_SECONDS:
                self._give_up(f"still waiting in a collective {_PEER_SECONDS:g} s after another rank's end")

    def _peer_has_failed(self) -> bool:
        """Storage that does not answer is no reason to stop watching."""
        try:
            return self._world_size > 1 and self._incident.directory.is_dir() and self._incident.cause() is not None
        except OSError:
            return False

    def _give_up(self, reason: str) -> None:
        self._giving_up.set()
        cause = self._incident.cause()
        self._write_stacks()
        self._incident.note("hung", reason, describe_place(sys._current_frames()[self._main]))
        deadline = time.monotonic() + _GATHER_SECONDS
        while len(self._incident.notes()) < self._world_size and time.monotonic() < deadline:
            time.sleep(0.1)
        if self._ended.is_set():
            return
        failed_first = f"; rank {cause.rank} failed first: {cause.reason}" if cause and cause.kind == "failed" else ""
        report = f"{reason}{failed_first}; {self._places()}; stacks in {self._incident.directory}"
        print(f"{self._where} ended with exit code {int(ExitCode.HUNG)} (hung): {report}", file=sys.stderr, flush=True)
        last_words.leave(report)
        os._exit(ExitCode.HUNG)

    def _write_stacks(self) -> None:
        try:
            with self._incident.stacks_file().open("w", encoding="utf-8") as file:
                faulthandler.dump_traceback(file, all_threads=True)
        except OSError:
            faulthandler.dump_traceback(sys.stderr, all_threads=True)

    def _places(self) -> str:
        """Which ranks are where, the fewest first: the odd one out is the one that the others wait for."""
        places: dict[str, list[int]] = defaultdict(list)
        notes = self._incident.notes()
        for rank in range(self._world_size):
            place = notes[rank].place or notes[rank].reason if rank in notes else "no stacks: stopped, or without the interpreter's lock"
            places[place].append(rank)
        ordered = sorted(places.items(), key=lambda item: len(item[1]))
        shown = [f"{_ranks(ranks)}: {place}" for place, ranks in ordered[:_MANY]]
        return "; ".join(shown + ([f"{len(ordered) - _MANY} more places"] if len(ordered) > _MANY else []))


@contextmanager
def watching(watchdog: Watchdog) -> Generator[Watchdog]:
    """Watch during the block."""
    watchdog.start()
    try:
        yield watchdog
    finally:
        watchdog.stop()


def describe_place(frame: FrameType) -> str:
    """Innermost call, and the innermost one of this package if that is another."""
    inner, ours = frame, frame
    while ours.f_back and _PACKAGE not in Path(ours.f_code.co_filename).parents:
        ours = ours.f_back
    place = _call(inner)
    return place if ours is inner or _PACKAGE not in Path(ours.f_code.co_filename).parents else f"{place}, called from {_call(ours)}"


def _call(frame: FrameType) -> str:
    file = Path(frame.f_code.co_filename)
    return f"{file.parent.name}/{file.name}:{frame.f_lineno} in {frame.f_code.co_name}"


def _ranks(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:_MANY])) + (f" and {len(ranks) - _MANY} more" if len(ranks) > _MANY else "")
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}"
