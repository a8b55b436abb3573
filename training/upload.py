"""Copying each published checkpoint into a bucket behind the training; every rank sends a share of the files, the manifest goes last."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from training import storage
from training.behind import WorkBehind
from training.distributed import Ranks
from training.errors import CheckpointError

if TYPE_CHECKING:
    from training.object_store import ObjectStore

SLOT = "upload"
_log = logging.getLogger(__name__)


class Uploader:
    """One upload at a time; of checkpoints published meanwhile the newest is next. Every method but `in_use` is collective.

    A failed upload is told of and does not end the run, which has its checkpoint on disk; the last one's does.
    """

    def __init__(self, ranks: Ranks, root: Path, store: "ObjectStore", behind: WorkBehind) -> None:
        self._ranks, self._root, self._store, self._behind = ranks, root, store, behind
        self._running: int | None = None
        self._next: int | None = None
        self._failed: int | None = None

    def in_use(self) -> list[int]:
        """Steps that must not be deleted yet; the same on every rank."""
        return [step for step in (self._running, self._next) if step is not None]

    def offer(self, step: int) -> None:
        """Upload this step, now or after the one under way."""
        if self._running is None:
            self._start(step)
        else:
            self._next = step

    def finish(self) -> None:
        """Wait for the uploads; try the last one again if it failed. Raises CheckpointError if it fails again."""
        self._behind.finish(SLOT)
        if self._failed is not None:
            failed, self._failed = self._failed, None
            self._start(failed)
            self._behind.finish(SLOT)
        if self._failed is not None:
            raise CheckpointError(f"the checkpoint of step {self._failed} could not be uploaded; it is whole in {self._root}")

    def _start(self, step: int) -> None:
        self._running = step
        directory = storage.step_directory(self._root, step)
        rank, ranks = self._ranks.rank, self._ranks.world_size

        def send() -> None:
            self._store.upload(directory, step, storage.share(storage.read_manifest(directory), rank, ranks))

        self._stage(step, send, lambda: self._publish(step, directory))

    def _publish(self, step: int, directory: Path) -> None:
        def send() -> None:
            if self._ranks.is_main:
                self._store.publish(directory, step)

        self._stage(step, send, lambda: self._done(step))

    def _stage(self, step: int, send: Callable[[], None], then: Callable[[], None]) -> None:
        """Send in the background; failures are results here, since they do not end the run."""

        def attempt() -> str | None:
            try:
                return send()
            except (CheckpointError, OSError, ValueError) as error:
                return f"rank {self._ranks.rank}: {error}"

        def conclude(failures: list[str | None]) -> None:
            told = [failure for failure in failures if failure]
            if told:
                self._fail(step, "; ".join(told))
            else:
                then()

        self._behind.start(SLOT, f"uploading the checkpoint of step {step}", attempt, conclude)

    def _done(self, step: int) -> None:
        if self._ranks.is_main:
            _log.info("step %d  uploaded", step)
        self._failed = None
        self._go_on()

    def _fail(self, step: int, reason: str) -> None:
        if self._ranks.is_main:
            _log.warning("the checkpoint of step %d was not uploaded: %s", step, reason)
        self._failed = step
        self._go_on()

    def _go_on(self) -> None:
        self._running, following = None, self._next
        self._next = None
        if following is not None:
            self._start(following)
