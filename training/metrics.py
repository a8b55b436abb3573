"""What a run measures: JSON lines in metrics.jsonl, TensorBoard if asked for, and log lines or a live line. Only rank 0 writes."""

import json
import logging
import math
import os
import sys
import time
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.batch import BatchPlan
from training.config import TrainConfig

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

    from training.checkpoint import SavedCheckpoint
    from training.live import LiveLine

_log = logging.getLogger(__name__)


class Metrics:
    """Appends to the run's metrics; a resumed run goes on in the same files."""

    def __init__(self, config: TrainConfig, *, enabled: bool, step: int) -> None:
        """`step` is where this process takes up the run."""
        self._log_every = config.log_every
        self._file: TextIOWrapper | None = None
        self._board: SummaryWriter | None = None
        self._live: LiveLine | None = None
        if not enabled:
            return
        self._file = _open(config.run_directory / "metrics.jsonl")
        if config.metrics.tensorboard:
            self._board = _open_board(config.run_directory / "tensorboard", step)
        if config.metrics.progress == "live" or (config.metrics.progress == "auto" and has_terminal(os.environ)):
            self._live = _open_line(config, step)

    def start(self, step: int, plan: BatchPlan, **facts: Any) -> None:
        """The beginning of this process's part of the run."""
        self._write("start", step=step, global_batch=plan.global_batch, **facts)

    def step(self, step: int, **values: float) -> None:
        """One optimizer step: loss, lr, grad_norm, what `Meter.measure` gives, data_wait_seconds (mean over ranks) and the engine's own."""
        self._write("step", step=step, **values)
        self._draw("train", step, values)
        if self._live:
            self._live.update(step, values)
        elif step % self._log_every == 0 and self._file:
            _log.info("step %d  %s", step, describe_step(values))

    def evaluation(self, step: int, loss: float, seconds: float) -> None:
        """Held-out loss after a step."""
        self._write("evaluation", step=step, eval_loss=loss, seconds=seconds)
        self._draw("evaluation", step, {"loss": loss})
        if self._file:
            _log.info("step %d  eval loss %.4f  (%.2f s)", step, loss, seconds)

    def checkpoint(self, saved: "SavedCheckpoint") -> None:
        """A published checkpoint, how long it took, and how long training stood still for it."""
        stall = saved.stall_seconds
        self._write("checkpoint", step=saved.step, seconds=saved.seconds, checkpoint_stall_seconds=stall, size_bytes=saved.size_bytes)
        self._draw("checkpoint", saved.step, {"seconds": saved.seconds, "stall_seconds": stall, "size_bytes": saved.size_bytes})
        if self._file:
            what = f"{saved.size_bytes / 1e6:.1f} MB in {saved.seconds:.2f} s, training stood still for {stall:.2f} s"
            _log.info("step %d  saved %s  (%s)", saved.step, saved.directory, what)

    def end(self, step: int, outcome: str) -> None:
        """The end of this process's part of the run."""
        self._write("end", step=step, outcome=outcome)

    def close(self) -> None:
        """Flush and close everything."""
        for sink in (self._live, self._board, self._file):
            if sink:
                sink.close()
        self._live = self._board = self._file = None

    def _write(self, event: str, **values: Any) -> None:
        if self._file:
            # JSON has no word for infinity, which is the norm of an update that fp16 skipped.
            known = {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()}
            self._file.write(json.dumps({"event": event, "time": round(time.time(), 3), **known}) + "\n")
            self._file.flush()

    def _draw(self, group: str, step: int, values: dict[str, float]) -> None:
        if self._board:
            for name, value in values.items():
                self._board.add_scalar(f"{group}/{name}", value, step)
            self._board.flush()


def describe_step(values: dict[str, float]) -> str:
    """A step's values as the log has them."""
    words = [f"loss {values['loss']:.4f}", f"lr {values['lr']:.3e}", f"grad norm {values['grad_norm']:.3f}"]
    words.append(f"{values['tokens_per_second']:.0f} tokens/s")
    if "mfu" in values:
        words.append(f"MFU {values['mfu']:.1%}")
    return "  ".join(words)


def _open_board(directory: Path, step: int) -> "SummaryWriter":
    from torch.utils.tensorboard import SummaryWriter

    # Steps that a crash has undone are made, and written, again.
    return SummaryWriter(str(directory), purge_step=step + 1)


def _open_line(config: TrainConfig, step: int) -> "LiveLine":
    from training.live import LiveLine

    return LiveLine(config.name, step, config.steps)


def has_terminal(environ: Mapping[str, str]) -> bool:
    """Whether somebody watches this process's output on a terminal.

    Open MPI gives each rank a terminal of its own and copies what it writes to wherever mpirun's output goes: a pod's log, mostly.
    """
    return sys.stdout.isatty() and not any(name.startswith("OMPI_COMM_WORLD_") for name in environ)


def _open(path: Path) -> TextIOWrapper:
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.exists() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    file = path.open("a", encoding="utf-8")
    if torn:
        # A run that was killed in the middle of a line must not spoil the next one.
        file.write("\n")
    return file
