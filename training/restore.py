"""Resuming: newest first, all ranks check a share of the files each, and the first whole checkpoint wins.

Damage is named, and the checkpoint passed over; a run that has only damaged ones stops.
"""

import logging
import shutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training import container, storage
from training.config import TrainConfig
from training.distributed import Ranks
from training.engines import Engine
from training.errors import CheckpointError
from training.progress import CheckpointInfo, Progress, layout_change, refuse_other_run
from training.randomness import generators_from_json, seed_generators
from training.read_check import ReadCheck

if TYPE_CHECKING:
    from training.object_store import ObjectStore

INFO = "info.json"
ENGINE = "engine"
_log = logging.getLogger(__name__)


def random_file(directory: Path, rank: int) -> Path:
    """Where a checkpoint keeps the random generators of a rank."""
    return directory / f"random-{rank:05d}.json"


class Restorer:
    """Brings a run back to its newest whole checkpoint. Every method is collective."""

    def __init__(self, config: TrainConfig, ranks: Ranks, corpus: str, root: Path, store: "ObjectStore | None" = None) -> None:
        self._config, self._ranks, self._corpus, self._root, self._store = config, ranks, corpus, root, store
        self.remote_steps: list[int] = []
        """Steps that the bucket holds, once `resume` has looked."""

    def resume(self, engine: Engine) -> Progress:
        """Restore as `checkpoint.resume` says. Raises CheckpointError or ConfigError."""
        local = self._ranks.broadcast(storage.published_steps(self._root))
        self.remote_steps = self._look_in_store(local)
        steps = sorted({*local, *self.remote_steps}, reverse=True)
        mode = self._config.checkpoint.resume
        if mode == "never" and steps:
            raise CheckpointError(f"checkpoint.resume is never, but {self._root} holds step {steps[0]}; choose another name")
        for step in steps:
            directory = storage.step_directory(self._root, step)
            progress = self._attempt(engine, directory) if step in local else None
            if progress is None and self._fetch(directory, step):
                progress = self._attempt(engine, directory)
            if progress:
                return progress
        if steps:
            raise CheckpointError(
                f"all checkpoints in {self._root} are damaged: steps {', '.join(map(str, steps))}; none can be resumed from"
            )
        if mode == "required":
            raise CheckpointError(f"checkpoint.resume is required, but {self._root} holds no checkpoint")
        seed_generators(self._config.seed, self._ranks.rank)
        return Progress()

    def _attempt(self, engine: Engine, directory: Path) -> Progress | None:
        """Restore this checkpoint; None if it is damaged, which is told of. The engine's state is of no use then."""
        damage, progress = self._restore(engine, directory)
        if damage:
            self._say(logging.WARNING, f"checkpoint of step {step_of(directory)} is damaged and passed over: {'; '.join(damage)}")
        return progress

    def _look_in_store(self, local: list[int]) -> list[int]:
        """Steps in the bucket. A bucket that can't be read is an error where nothing else could say that the run is not a new one."""
        found: tuple[list[int], str] = ([], "")
        if self._store and self._ranks.is_main:
            try:
                found = (self._store.steps(), "")
            except CheckpointError as error:
                found = ([], str(error))
        steps, failure = self._ranks.broadcast(found)
        if failure and not local:
            raise CheckpointError(f"{failure}; without it, and with nothing in {self._root}, nobody knows whether this run is a new one")
        if failure:
            self._say(logging.WARNING, f"going on without checkpoint.upload: {failure}")
        return steps

    def _fetch(self, directory: Path, step: int) -> bool:
        """Bring a step from the bucket, whole and checked, every rank a share of the files; False if it is not there or not whole."""
        if not self._store or step not in self.remote_steps:
            return False
        store = self._store
        self._say(logging.INFO, f"fetching the checkpoint of step {step}")
        try:
            opened: list[Path] = []
            self._on_main(lambda: opened.append(storage.saving_directory(self._root, step)), "opening a checkpoint folder")
            aside: Path = self._ranks.broadcast(opened[0] if opened else None)

            def download() -> None:
                text = store.read_manifest(step).decode()
                records = storage.parse_manifest(text, directory.name)
                store.download(aside, step, storage.share(records, self._ranks.rank, self._ranks.world_size))

            self._ranks.together(download, f"fetching the checkpoint of step {step}", CheckpointError)
            self._on_main(lambda: self._publish(store, aside, directory, step), "publishing the checkpoint")
        except CheckpointError as error:
            self._say(logging.WARNING, f"the uploaded checkpoint of step {step} is passed over: {error}")
            return False
        return True

    def _publish(self, store: "ObjectStore", aside: Path, directory: Path, step: int) -> None:
        storage.adopt_manifest(aside, store.read_manifest(step).decode())
        storage.publish(aside, directory)

    def _restore(self, engine: Engine, directory: Path) -> tuple[list[str], Progress | None]:
        """What is wrong with a checkpoint, or else the position of the run after it.

        Whatever is parsed is verified before. Large files of tensors are verified while they are read, which is the only time; the engine
        is not used until all of them are, those included that no rank had to read.
        """
        left = self._ranks.broadcast(_read_later(directory) if self._ranks.is_main else None)
        damage = self._find_damage(directory, leave=left)
        if damage:
            return damage, None
        info = CheckpointInfo.from_json((directory / INFO).read_text(encoding="utf-8"))
        refuse_other_run(info, self._config, self._corpus)
        change = layout_change(info, self._config, self._ranks.world_size)
        damage = self._load(engine, directory, left) if change is None else self._load_changed(engine, directory, info, change)
        if damage:
            return damage, None
        engine.load_extra_state(info.engine_state)
        self._tell_fresh_scale(info, change)
        self._say(logging.INFO, f"resumed from step {info.step} in {directory}")
        return [], Progress(info.step, info.samples, info.data)

    def _tell_fresh_scale(self, info: CheckpointInfo, change: str | None) -> None:
        """A run in fp16 whose checkpoint is of another precision, or of a version that left the scale to DeepSpeed's own files."""
        has_own_file = _is_deepspeed(info) and change is None
        if self._config.engine.precision == "fp16" and "loss_scale" not in info.engine_state and not has_own_file:
            power = self._config.engine.loss_scale_power
            self._say(logging.WARNING, f"the checkpoint of step {info.step} names no loss scale: it starts at 2^{power}")

    def _load(self, engine: Engine, directory: Path, left: list[str]) -> list[str]:
        """The state as the same ranks wrote it; gives what turned out to be damaged."""
        records = [record for record in storage.read_manifest(directory) if record.path in left]
        check = ReadCheck(directory, records)
        try:
            engine.load(directory / ENGINE, check)
        except CheckpointError:
            if damage := self._gathered(check.damage):
                return damage
            raise
        confirmed = self._gathered(check.confirmed)
        verified = {record.path for record in storage.read_manifest(directory)} - (set(left) - set(confirmed))
        damage = self._find_damage(directory, leave=verified)
        if not damage:
            generators_from_json(random_file(directory, self._ranks.rank).read_text(encoding="utf-8"))
        return damage

    def _load_changed(self, engine: Engine, directory: Path, info: CheckpointInfo, change: str) -> list[str]:
        """The state as other ranks wrote it, who may read any part of any file; gives what is damaged."""
        damage = self._find_damage(directory)
        if not damage:
            self._convert(engine, directory, info, change)
            # Generators belong to ranks; other ranks get fresh ones that no earlier step has used.
            seed_generators(self._config.seed, self._ranks.rank, info.step)
        return damage

    def _find_damage(self, directory: Path, leave: Collection[str] = ()) -> list[str]:
        return self._gathered(storage.find_damage(directory, part=self._ranks.rank, parts=self._ranks.world_size, leave=leave))

    def _gathered(self, own: Iterable[str]) -> list[str]:
        return sorted({line for lines in self._ranks.gather(list(own)) for line in lines})

    def _convert(self, engine: Engine, directory: Path, info: CheckpointInfo, change: str) -> None:
        if self._config.checkpoint.on_world_change == "refuse":
            raise CheckpointError(f"{change}; start with the former layout, or set checkpoint.on_world_change to convert")
        self._say(logging.INFO, f"{change}: converting")
        scratch = self._root / "conversion.saving-0"
        source = directory / ENGINE
        try:
            if _is_deepspeed(info):
                self._on_main(lambda: self._rewrite(source, info, scratch), "joining DeepSpeed's shards")
                source = scratch
            engine.load_full(source)
            # Ranks read on their own, and what they read from is about to go.
            self._ranks.barrier()
        except CheckpointError as error:
            raise CheckpointError(f"{change}; {error}") from None
        self._on_main(lambda: shutil.rmtree(scratch, ignore_errors=True), "clearing the conversion")

    def _rewrite(self, source: Path, info: CheckpointInfo, scratch: Path) -> None:
        """What DeepSpeed wrote, as whole tensors."""
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        try:
            from training.engines.zero_files import write_full
        except ImportError as error:
            raise CheckpointError(f"reading what DeepSpeed wrote needs DeepSpeed ({error}); install it, or resume where it is") from None
        names = info.engine_state.get("optimizer_names", [])
        write_full(source, scratch, stage=info.config["engine"]["zero_stage"], names=names, step=info.step)

    def _on_main(self, action: Callable[[], Any], what: str) -> None:
        """Run the action on rank 0 alone; a failure there is a failure everywhere."""
        self._ranks.together(lambda: (action(), None)[1] if self._ranks.is_main else None, what, CheckpointError)

    def _say(self, level: int, text: str) -> None:
        if self._ranks.is_main:
            _log.log(level, "%s", text)


def _read_later(directory: Path) -> list[str]:
    """Files of tensors, which are verified while they are read; none if the manifest is damaged, which is told of elsewhere."""
    try:
        return [record.path for record in storage.read_manifest(directory) if record.path.endswith(container.SUFFIX)]
    except ValueError:
        return []


def _is_deepspeed(info: CheckpointInfo) -> bool:
    """Whether DeepSpeed wrote the engine's files."""
    return info.config["engine"]["kind"] == "deepspeed"


def step_of(directory: Path) -> int:
    """The step that a published folder is named for."""
    return int(directory.name.removeprefix("step-"))
