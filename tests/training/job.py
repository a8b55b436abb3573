"""A run under test: its settings, its directory, and how it is started again and again."""

import json
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.training.rank import Finished, Rank, contract, end, wait
from training.history import History, read_history

# The smallest run that has everything: two blocks, grouped heads, accumulation, evaluation, saves.
BASE = {
    "name": "run",
    "steps": 12,
    "model": {"dim": 32, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "ffn_dim": 64},
    "data": {"sequence_length": 32, "eval_every_nth": 10},
    "batch": {"micro": 2, "global_batch": 8},
    "schedule": {"warmup_steps": 4},
    "evaluation": {"every": 6, "samples": 10},
    "checkpoint": {"every": 4, "keep": 4},
    "distributed": {"init_timeout_seconds": 120},
}
DDP = {"engine": {"kind": "ddp"}}
FSDP = {"engine": {"kind": "fsdp"}}


FSDP = {"engine": {"kind": "fsdp"}}
TENSOR = {"parallel": {"tensor": 2}}
CONTEXT = {"engine": {"kind": "fsdp"}, "parallel": {"context": 2}}


def zero(stage: int, precision: str = "fp32") -> dict:
    """Settings of a ZeRO stage."""
    return {"engine": {"kind": "deepspeed", "zero_stage": stage, "precision": precision}}


@dataclass
class Job:
    """One run directory, and how it is started again and again."""

    folder: Path
    settings: dict = field(default_factory=dict)
    ranks: int = 1
    base: dict = field(default_factory=lambda: BASE)

    @property
    def directory(self) -> Path:
        """The run's own folder."""
        return self.folder / str(self.config()["name"])

    @property
    def checkpoints(self) -> Path:
        """Its checkpoints."""
        return self.directory / "checkpoints"

    def config(self, **changes: Any) -> dict:
        """The configuration as the trainer reads it."""
        merged = merge(merge(self.base, self.settings), changes)
        return merge(merged, {"checkpoint": {"directory": str(self.folder)}})

    def history(self) -> History:
        """What it has measured so far."""
        return read_history(self.directory / "metrics.jsonl")

    def run(
        self, *, expect: int | None = 0, ranks: int | None = None, environs: Sequence[dict[str, str]] | None = None, **changes: Any
    ) -> Finished:
        """Start all ranks, wait for them, and hold their exit codes to `expect`."""
        with self.started(ranks=ranks, environs=environs, **changes) as processes:
            finished = wait(processes)
        if expect is not None:
            assert set(finished.codes) == {expect}, f"exit codes {finished.codes}, expected {expect}:\n{finished.log}"
        return finished

    @contextmanager
    def started(
        self, *, ranks: int | None = None, environs: Sequence[dict[str, str]] | None = None, **changes: Any
    ) -> Generator[list[Rank]]:
        """The ranks' processes, ended at the latest when the block is left."""
        arguments = ["--config", str(self.write_config(**changes))]
        stamp = time.monotonic_ns()
        processes = [
            Rank(arguments, environ, self.folder / f"log-{stamp}-{index}")
            for index, environ in enumerate(environs or contract(ranks or self.ranks))
        ]
        try:
            yield processes
        finally:
            end(processes)

    def write_config(self, **changes: Any) -> Path:
        """A configuration file for the trainer."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"config-{time.monotonic_ns()}.json"
        file.write_text(json.dumps(self.config(**changes)))
        return file


def merge(base: dict, changes: dict) -> dict:
    """Nested settings with changes on top."""
    merged = dict(base)
    for key, value in changes.items():
        merged[key] = merge(merged[key], value) if isinstance(value, dict) and isinstance(merged.get(key), dict) else value
    return merged


def values(history: History, key: str) -> list[float]:
    """One measured value of every step, in order."""
    return [history.steps[step][key] for step in sorted(history.steps)]
