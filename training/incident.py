"""What ranks leave in the run's folder when they end badly, so that each can name the one that failed first. Standard library only.

Storage that all ranks see is the one channel that works whoever has died: `<run>/incidents/<start>/rank-00001.json` holds a rank's reason,
`rank-00001.stacks` what its threads were doing. Nothing is written while all is well.
"""

import json
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from training.errors import HungPeerError, TrainingError

# How long ranks that lost a peer wait for its reason; network file systems show another client's file only after a while.
_PATIENCE_SECONDS = 3.0
_POLL_SECONDS = 0.05
_MANY = 8


@dataclass(frozen=True, kw_only=True)
class Note:
    """What one rank has left."""

    rank: int
    kind: str
    """failed: by a reason of its own; hung: it saw no progress; lost: another rank did not answer it."""
    reason: str
    time: float
    place: str = ""
    """Where its main thread was."""


class Incident:
    """The trouble of one start of a run, should there be any, seen from one rank."""

    def __init__(self, directory: Path, rank: int, processes: Sequence[str]) -> None:
        """`processes` says by rank on which host and as which process it runs."""
        self.directory = directory
        self._rank, self._processes = rank, processes

    def note(self, kind: str, reason: str, place: str = "") -> None:
        """Leave this rank's reason, once. Storage that takes no file must not hide the reason itself, so its errors pass."""
        note = Note(rank=self._rank, kind=kind, reason=reason, time=time.time(), place=place)
        target = self._file("json")
        try:
            if target.exists():
                return
            self.directory.mkdir(parents=True, exist_ok=True)
            draft = target.with_suffix(".draft")
            draft.write_text(json.dumps(asdict(note)), encoding="utf-8")
            draft.rename(target)
        except OSError:
            return

    def notes(self) -> dict[int, Note]:
        """What all ranks have left so far, by rank."""
        found = {}
        for file in self.directory.glob("rank-*.json"):
            try:
                note = Note(**json.loads(file.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                continue
            found[note.rank] = note
        return found

    def cause(self) -> Note | None:
        """The first note that is not the consequence of another rank's end."""
        own = [note for note in self.notes().values() if note.kind != "lost"]
        return min(own, key=lambda note: note.time) if own else None

    def explain_lost_peer(self, error: str) -> TrainingError:
        """Why a collective failed here: the first failure of another rank, or the ranks that have ended without a word.

        A HungPeerError where that failure is a hang: it is the whole run's, whoever of the ranks saw it first.
        """
        self.note("lost", error)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            cause = self.cause()
            if cause:
                kind = HungPeerError if cause.kind == "hung" else TrainingError
                place = f" ({cause.place})" if cause.place else ""
                return kind(f"lost contact because rank {cause.rank} failed first: {cause.reason}{place}")
            time.sleep(_POLL_SECONDS)
        silent = [rank for rank in range(len(self._processes)) if rank not in self.notes()]
        if not silent:
            return TrainingError(f"all ranks lost contact with each other, as when a network fails ({error})")
        named = "; ".join(f"rank {rank} ({self._processes[rank]})" for rank in silent[:_MANY])
        more = f" and {len(silent) - _MANY} more" if len(silent) > _MANY else ""
        return TrainingError(f"lost contact with {named}{more}, which left no reason: killed, or its host is gone ({error})")

    def stacks_file(self) -> Path:
        """Where this rank's stacks go."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return self._file("stacks")

    def _file(self, suffix: str) -> Path:
        return self.directory / f"rank-{self._rank:05d}.{suffix}"


def describe_process() -> str:
    """Host and process id of this rank, for the others' messages."""
    return f"{socket.gethostname()}, process {os.getpid()}"
