"""Saving and resuming, as a transaction around the engine's own writers.

A save: all ranks write into a new folder, each makes its files durable and takes their digests, rank 0 writes the manifest and renames the
folder. A resume: newest first, all ranks check a share of the files each; the first whole checkpoint wins, damage is named, and a run that
has only damaged ones stops. Every rank takes each decision from the same gathered facts, so none is left alone in a collective.
"""

import logging
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from training import storage
from training.config import TrainConfig
from training.distributed import Ranks
from training.engines import Engine
from training.errors import CheckpointError
from training.lease import Lease, read_holder
from training.progress import CheckpointInfo, Progress, layout_change, refuse_other_run
from training.randomness import generators_from_json, generators_to_json, seed_generators

_INFO = "info.json"
_ENGINE = "engine"
# Network file systems may show another client's write only after a while.
_VISIBLE_SECONDS = 10.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SavedCheckpoint:
    """A save that succeeded."""

    directory: Path
    seconds: float
    size_bytes: int


class Checkpointer:
    """The checkpoints of one run. Construction takes the run directory's lease; every method is collective."""

    def __init__(self, config: TrainConfig, ranks: Ranks, corpus: str) -> None:
        self._config, self._ranks, self._corpus = config, ranks, corpus
        self._root = config.run_directory / "checkpoints"
        self._saved_step: int | None = None
        self._lease: Lease | None = None
        ranks.together(self._take_lease, "taking the run directory", CheckpointError)
        self._refuse_private_storage()

    def resume(self, engine: Engine) -> Progress:
        """Restore the newest whole checkpoint as `checkpoint.resume` says. Raises CheckpointError or ConfigError."""
        steps = self._ranks.broadcast(storage.published_steps(self._root))
        mode = self._config.checkpoint.resume
        if mode == "never" and steps:
            raise CheckpointError(f"checkpoint.resume is never, but {self._root} holds step {steps[0]}; choose another name")
        for step in steps:
            directory = storage.step_directory(self._root, step)
            damage = self._find_damage(directory)
            if damage:
                self._say(logging.WARNING, f"checkpoint of step {step} is damaged and passed over: {'; '.join(damage)}")
                continue
            return self._restore(engine, directory)
        if steps:
            raise CheckpointError(
                f"all checkpoints in {self._root} are damaged: steps {', '.join(map(str, steps))}; none can be resumed from"
            )
        if mode == "required":
            raise CheckpointError(f"checkpoint.resume is required, but {self._root} holds no checkpoint")
        seed_generators(self._config.seed, self._ranks.rank)
        return Progress()

    def save(self, engine: Engine, progress: Progress) -> SavedCheckpoint | None:
        """Save this step, durably; None if it is saved already. Raises CheckpointError on every rank if any rank fails."""
        if self._saved_step == progress.step:
            return None
        started = time.monotonic()
        target = storage.step_directory(self._root, progress.step)
        directory = self._open(progress.step)
        records = self._write(engine, progress, directory)
        self._on_main(lambda: self._publish(directory, target, progress.step, records), "publishing the checkpoint")
        self._saved_step = progress.step
        self._retire(target)
        return SavedCheckpoint(target, time.monotonic() - started, sum(record.size for record in records))

    def close(self) -> None:
        """Give the run directory back."""
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

    def _find_damage(self, directory: Path) -> list[str]:
        own = storage.find_damage(directory, part=self._ranks.rank, parts=self._ranks.world_size)
        return sorted({damage for damages in self._ranks.gather(own) for damage in damages})

    def _restore(self, engine: Engine, directory: Path) -> Progress:
        info = CheckpointInfo.from_json((directory / _INFO).read_text(encoding="utf-8"))
        refuse_other_run(info, self._config, self._corpus)
        change = layout_change(info, self._config, self._ranks.world_size)
        if change is None:
            engine.load(directory / _ENGINE)
            generators_from_json(self._random_file(directory).read_text(encoding="utf-8"))
        else:
            self._convert(engine, directory, info, change)
            # Generators belong to ranks; other ranks get fresh ones that no earlier step has used.
            seed_generators(self._config.seed, self._ranks.rank, info.step)
        self._saved_step = info.step
        self._say(logging.INFO, f"resumed from step {info.step} in {directory}")
        return Progress(info.step, info.samples)

    def _convert(self, engine: Engine, directory: Path, info: CheckpointInfo, change: str) -> None:
        if self._config.checkpoint.on_world_change == "refuse":
            raise CheckpointError(f"{change}; start with the former layout, or set checkpoint.on_world_change to convert")
        self._say(logging.INFO, f"{change}: converting")
        scratch = self._root / "conversion.saving-0"
        self._on_main(lambda: (shutil.rmtree(scratch, ignore_errors=True), scratch.mkdir()), "preparing the conversion")
        try:
            engine.convert(directory / _ENGINE, info, scratch)
        except CheckpointError as error:
            raise CheckpointError(f"{change}; {error}") from None
        self._on_main(lambda: shutil.rmtree(scratch), "clearing the conversion")

    def _open(self, step: int) -> Path:
        created: list[Path] = []
        self._on_main(lambda: created.append(storage.saving_directory(self._root, step)), "opening a checkpoint folder")
        return self._ranks.broadcast(created[0] if created else None)

    def _write(self, engine: Engine, progress: Progress, directory: Path) -> list[storage.FileRecord]:
        """Every rank's files, durable and recorded, by the ranks that wrote them."""
        own = engine.save(directory / _ENGINE)

        def finish() -> list[storage.FileRecord]:
            storage.write_durably(self._random_file(directory), generators_to_json())
            own.append(self._random_file(directory))
            if self._ranks.is_main:
                storage.write_durably(directory / _INFO, self._info(progress).to_json())
                own.append(directory / _INFO)
            return [storage.record_file(directory, path) for path in own]

        return [record for records in self._ranks.together(finish, "writing the checkpoint", CheckpointError) for record in records]

    def _publish(self, directory: Path, target: Path, step: int, records: list[storage.FileRecord]) -> None:
        present = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
        unclaimed = present - {record.path for record in records}
        for name in unclaimed:
            storage.sync_path(directory / name)
        storage.write_manifest(directory, step, [*records, *(storage.record_file(directory, directory / name) for name in unclaimed)])
        storage.publish(directory, target)

    def _retire(self, newest: Path) -> None:
        """Delete what is beyond `checkpoint.keep`, but only once the newest has been read back whole."""
        steps = self._ranks.broadcast(storage.published_steps(self._root))
        surplus = steps[self._config.checkpoint.keep :]
        if not surplus:
            return
        damage = self._find_damage(newest)
        if damage:
            raise CheckpointError(f"{newest} was damaged right after it was written: {'; '.join(damage)}; older ones are kept")
        self._on_main(lambda: [storage.remove(storage.step_directory(self._root, step)) for step in surplus], "removing old checkpoints")

    def _info(self, progress: Progress) -> CheckpointInfo:
        return CheckpointInfo(
            step=progress.step,
            samples=progress.samples,
            world_size=self._ranks.world_size,
            config=self._config.to_mapping(),
            corpus=self._corpus,
            versions={"torch": torch.__version__},
        )

    def _random_file(self, directory: Path) -> Path:
        return directory / f"random-{self._ranks.rank:05d}.json"

    def _on_main(self, action, what: str) -> None:  # noqa: ANN001
        """Run the action on rank 0 alone; a failure there is a failure everywhere."""
        self._ranks.together(lambda: (action(), None)[1] if self._ranks.is_main else None, what, CheckpointError)

    def _say(self, level: int, text: str) -> None:
        if self._ranks.is_main:
            _log.log(level, "%s", text)
