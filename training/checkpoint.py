"""Saving, as a transaction around the engine's own writers.

All ranks write into a new folder, each makes its files durable and takes their digests on the way, rank 0 writes the manifest and renames
the folder. An asynchronous save copies the state into host memory and does the rest behind the training. A save that failed on one rank
ends the run on all of them and is never published.
"""

import logging
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from training import storage
from training.behind import WorkBehind
from training.config import TrainConfig
from training.distributed import Ranks
from training.engines import Engine
from training.errors import CheckpointError
from training.lease import Lease, read_holder
from training.progress import CheckpointInfo, Progress
from training.randomness import generators_to_json
from training.restore import ENGINE, INFO, Restorer, random_file
from training.retention import surplus
from training.staging import Staging
from training.stall import Stall
from training.upload import SLOT as UPLOAD
from training.upload import Uploader
from training.writer import CheckpointWriter

if TYPE_CHECKING:
    from training.object_store import ObjectStore

# Network file systems may show another client's write only after a while.
_VISIBLE_SECONDS = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SavedCheckpoint:
    """A save that succeeded. Times in seconds."""

    step: int
    directory: Path
    seconds: float
    """From the call to the published folder."""
    stall_seconds: float
    """Of those, how long training stood still."""
    size_bytes: int


_SAVE = "save"


class Checkpointer:
    """The checkpoints of one run. Construction takes the run directory's lease; every method but `votes` and `close` is collective."""

    def __init__(self, config: TrainConfig, ranks: Ranks, corpus: str) -> None:
        self._config, self._ranks, self._corpus = config, ranks, corpus
        self._root = config.run_directory / "checkpoints"
        self._saved_step: int | None = None
        self._lease: Lease | None = None
        self._staging = Staging()
        self._behind = WorkBehind(ranks, (_SAVE, UPLOAD))
        self._uploader: Uploader | None = None
        self._stall = Stall()
        self._saved: list[SavedCheckpoint] = []
        ranks.together(self._take_lease, "taking the run directory", CheckpointError)
        self._refuse_private_storage()

    def resume(self, engine: Engine) -> Progress:
        """Restore the newest whole checkpoint as `checkpoint.resume` says. Raises CheckpointError or ConfigError."""
        store = self._open_store()
        restorer = Restorer(self._config, self._ranks, self._corpus, self._root, store)
        progress = restorer.resume(engine)
        self._saved_step = progress.step or None
        if store:
            self._uploader = Uploader(self._ranks, self._root, store, self._behind)
            if progress.step and progress.step not in restorer.remote_steps:
                # An upload that the end of the former process cut short goes on.
                self._uploader.offer(progress.step)
        return progress

    def save(self, engine: Engine, progress: Progress, *, at_once: bool = False) -> None:
        """Save this step, unless it is already: durably on return if `at_once` is set or `checkpoint.mode` is sync, else behind training.

        Waits for the save before it. Raises CheckpointError on every rank if any rank fails, in this save or the one before.
        """
        if self._saved_step == progress.step:
            return
        with self._stall.waiting():
            self._behind.finish(_SAVE)
            behind = self._config.checkpoint.mode == "async" and not at_once
            self._save(engine, progress, self._staging if behind else None)
            if not behind:
                self._behind.finish_stage(_SAVE)

    def votes(self) -> list[float]:
        """What this rank has to say of work behind the training, to be summed over all ranks and given to `settle`."""
        return self._behind.votes()

    def settle(self, votes: Sequence[float]) -> list[SavedCheckpoint]:
        """Go on with work behind the training as all ranks' votes say; gives the saves completed since the last call.

        Raises CheckpointError on every rank if that work failed on any.
        """
        with self._stall.waiting():
            self._behind.settle(votes)
        return self.completed()

    def drain(self) -> list[SavedCheckpoint]:
        """Wait for all work behind the training; gives the saves completed since the last call. Raises CheckpointError as `settle` does."""
        self._behind.finish(_SAVE)
        if self._uploader:
            self._uploader.finish()
        return self.completed()

    def completed(self) -> list[SavedCheckpoint]:
        """The saves completed since the last call of this, `settle` or `drain`."""
        saved, self._saved = self._saved, []
        return saved

    def close(self) -> None:
        """Give the run directory back, once nothing of this rank writes to it any more."""
        self._behind.wait_here()
        if self._lease:
            self._lease.release()

    def _take_lease(self) -> None:
        if self._ranks.is_main:
            self._lease = Lease(self._config.run_directory)
            removed = storage.clear_leftovers(self._root)
            if removed:
                _log.info("removed what an interrupted save left behind: %s", ", ".join(removed))

    def _refuse_private_storage(self) -> None:
        """Ranks that write to different disks would publish a checkpoint with holes."""
        path = self._config.run_directory.resolve()
        holder = self._ranks.broadcast(read_holder(path) if self._ranks.is_main else None)
        deadline = time.monotonic() + _VISIBLE_SECONDS
        while read_holder(path) != holder and time.monotonic() < deadline:
            time.sleep(0.1)
        seen = self._ranks.gather(read_holder(path) == holder)
        if blind := [str(rank) for rank, sees in enumerate(seen) if not sees]:
            raise CheckpointError(
                f"{path} of rank 0 is not what ranks {', '.join(blind)} see there; checkpoint.directory must be shared storage"
            )

    def _save(self, engine: Engine, progress: Progress, staging: Staging | None) -> None:
        # A number of its own: the loop moves `progress` on while the rest happens behind it.
        step, started = progress.step, time.monotonic()
        writer = CheckpointWriter(self._open(step), staging)
        self._write(engine, progress, writer)
        self._saved_step = step
        self._behind.start(
            _SAVE,
            f"writing the checkpoint of step {step}",
            writer.finish,
            lambda records: self._publish(writer.directory, step, records, started),
        )

    def _open_store(self) -> "ObjectStore | None":
        settings = self._config.checkpoint
        if settings.upload is None:
            return None
        # Only here: the SDK takes a second to import.
        from training.object_store import ObjectStore

        return ObjectStore(settings.upload, self._config.name, settings.upload_checksum)

    def _open(self, step: int) -> Path:
        created: list[Path] = []
        self._on_main(lambda: created.append(storage.saving_directory(self._root, step)), "opening a checkpoint folder")
        return self._ranks.broadcast(created[0] if created else None)

    def _write(self, engine: Engine, progress: Progress, writer: CheckpointWriter) -> None:
        """This rank's files, on disk or in memory as the writer does it."""
        engine.save(writer.directory / ENGINE, writer)
        extra = engine.extra_state()

        def rest() -> None:
            writer.write_bytes(random_file(writer.directory, self._ranks.rank), generators_to_json().encode())
            if self._ranks.is_main:
                writer.write_bytes(writer.directory / INFO, self._info(progress, extra).to_json().encode())

        self._ranks.together(rest, "writing the checkpoint", CheckpointError)

    def _publish(self, directory: Path, step: int, records: list[list[storage.FileRecord]], started: float) -> None:
        """Every rank's files are durable: write the manifest and give the folder its name."""
        claimed = [record for own in records for record in own]
        target = storage.step_directory(self._root, step)
        self._on_main(lambda: self._publish_here(directory, target, step, claimed), "publishing the checkpoint")
        size, seconds = sum(record.size for record in claimed), time.monotonic() - started
        self._saved.append(SavedCheckpoint(step, target, seconds, self._stall.take(), size))
        if self._uploader:
            self._uploader.offer(step)
        self._retire(target)

    def _publish_here(self, directory: Path, target: Path, step: int, records: list[storage.FileRecord]) -> None:
        if self._lease:
            self._lease.check()
        present = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
        unclaimed = present - {record.path for record in records}
        for name in unclaimed:
            storage.sync_path(directory / name)
        storage.write_manifest(directory, step, [*records, *(storage.record_file(directory, directory / name) for name in unclaimed)])
        storage.publish(directory, target)

    def _retire(self, newest: Path) -> None:
        """Start to delete what `checkpoint.keep` does not spare, but only once the newest has been read back whole."""
        settings = self._config.checkpoint
        steps = self._ranks.broadcast(storage.published_steps(self._root))
        doomed = surplus(
            steps, keep=settings.keep, keep_every=settings.keep_every, in_use=self._uploader.in_use() if self._uploader else ()
        )
        if doomed:
            rank, ranks = self._ranks.rank, self._ranks.world_size
            self._behind.start(
                _SAVE,
                f"reading back {newest.name}",
                lambda: storage.find_damage(newest, part=rank, parts=ranks),
                lambda damages: self._delete(newest, doomed, sorted({damage for own in damages for damage in own})),
            )

    def _delete(self, newest: Path, doomed: list[int], damage: list[str]) -> None:
        if damage:
            raise CheckpointError(f"{newest} was damaged right after it was written: {'; '.join(damage)}; older ones are kept")
        self._behind.start(
            _SAVE, "removing old checkpoints", lambda: self._delete_here(doomed) if self._ranks.is_main else None, lambda _: None
        )

    def _delete_here(self, doomed: list[int]) -> None:
        for step in doomed:
            shutil.rmtree(storage.condemn(storage.step_directory(self._root, step)))

    def _info(self, progress: Progress, extra: dict[str, Any]) -> CheckpointInfo:
        return CheckpointInfo(
            step=progress.step,
            samples=progress.samples,
            data=progress.data,
            world_size=self._ranks.world_size,
            config=self._config.to_mapping(),
            corpus=self._corpus,
            engine_state=extra,
            versions={"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        )

    def _on_main(self, action: Callable[[], Any], what: str) -> None:
        """Run the action on rank 0 alone; a failure there is a failure everywhere."""
        self._ranks.together(lambda: (action(), None)[1] if self._ranks.is_main else None, what, CheckpointError)
