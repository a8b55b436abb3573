"""Real ranks: starts the trainer as one process per rank with the training environment's Python, and reads back what it leaves.

The tests themselves run without torch. The training environment's interpreter comes from TRAINYARD_TRAINING_PYTHON, which `make test` sets.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from training.history import History, read_history

REPOSITORY = Path(__file__).parents[2]
TIMEOUT_SECONDS = 240

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


def zero(stage: int, precision: str = "fp32") -> dict:
    """Settings of a ZeRO stage."""
    return {"engine": {"kind": "deepspeed", "zero_stage": stage, "precision": precision}}


def training_python() -> str:
    """The training environment's interpreter; its absence fails the tier, it never skips it."""
    path = os.environ.get("TRAINYARD_TRAINING_PYTHON")
    if not path:
        raise AssertionError(
            "training tier: TRAINYARD_TRAINING_PYTHON does not name the training environment's python; `make test` sets it"
        )
    if not Path(path).is_file():
        raise AssertionError(f"training tier: TRAINYARD_TRAINING_PYTHON={path} does not exist; `make setup` makes the training environment")
    return path


@dataclass(frozen=True)
class Finished:
    """What a run of all its ranks came to."""

    codes: list[int]
    """Exit codes by rank, or the launcher's alone."""
    logs: list[str]
    """Output by rank, or the launcher's alone."""

    @property
    def log(self) -> str:
        """All output."""
        return "\n".join(self.logs)


@dataclass
class Job:
    """One run directory, and how it is started again and again."""

    folder: Path
    settings: dict = field(default_factory=dict)
    ranks: int = 1

    @property
    def directory(self) -> Path:
        """The run's own folder."""
        return self.folder / str(self.config()["name"])

    @property
    def checkpoints(self) -> Path:
        """Its checkpoints."""
        return self.directory / "checkpoints"

    def config(self, **changes: object) -> dict:
        """The configuration as the trainer reads it."""
        merged = merge(merge(BASE, self.settings), changes)
        return merge(merged, {"checkpoint": {"directory": str(self.folder)}})

    def history(self) -> History:
        """What it has measured so far."""
        return read_history(self.directory / "metrics.jsonl")

    def run(self, *, expect: int | None = 0, ranks: int | None = None, **changes: object) -> Finished:
        """Start all ranks, wait for them, and hold their exit codes to `expect`."""
        with self.started(ranks=ranks, **changes) as processes:
            finished = wait(processes)
        if expect is not None:
            assert set(finished.codes) == {expect}, f"exit codes {finished.codes}, expected {expect}:\n{finished.log}"
        return finished

    @contextmanager
    def started(
        self, *, ranks: int | None = None, environs: Sequence[dict[str, str]] | None = None, **changes: object
    ) -> Iterator[list[subprocess.Popen[str]]]:
        """The ranks' processes, ended at the latest when the block is left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"config-{time.monotonic_ns()}.json"
        file.write_text(json.dumps(self.config(**changes)))
        command = [training_python(), "-m", "training.train", "--config", str(file)]
        processes = [start(command, environ) for environ in (environs or contract(ranks or self.ranks))]
        try:
            yield processes
        finally:
            end(processes)


def merge(base: dict, changes: dict) -> dict:
    """Nested settings with changes on top."""
    merged = dict(base)
    for key, value in changes.items():
        merged[key] = merge(merged[key], value) if isinstance(value, dict) and isinstance(merged.get(key), dict) else value
    return merged


def contract(world_size: int) -> list[dict[str, str]]:
    """The launch contract for ranks on this host; nothing at all for a single one."""
    if world_size == 1:
        return [{}]
    shared = {"WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world_size)]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(command: Sequence[str], environ: dict[str, str]) -> subprocess.Popen[str]:
    """A process with the repository importable and one thread, whose output is kept."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    }
    full = {**inherited, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", **environ}
    return subprocess.Popen(command, env=full, cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def wait(processes: Sequence[subprocess.Popen[str]]) -> Finished:
    """Wait for all of them; a hang is a failure that shows what they have said."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    logs = []
    for process in processes:
        try:
            logs.append(process.communicate(timeout=max(1.0, deadline - time.monotonic()))[0])
        except subprocess.TimeoutExpired:
            end(processes)
            raise AssertionError(f"still running after {TIMEOUT_SECONDS} s:\n{process.communicate()[0]}") from None
    return Finished([process.returncode for process in processes], logs)


def end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Kill what still runs."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
    for process in processes:
        process.wait()


def wait_until(condition, what: str, seconds: float = 120.0) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def values(history: History, key: str) -> list[float]:
    """One measured value of every step, in order."""
    return [history.steps[step][key] for step in sorted(history.steps)]
