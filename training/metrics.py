"""What a run measures: one JSON object per line in metrics.jsonl, and the same as readable log lines. Only rank 0 writes."""

import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.batch import BatchPlan

if TYPE_CHECKING:
    from training.checkpoint import SavedCheckpoint

_log = logging.getLogger(__name__)


class Metrics:
    """Appends to the run's metrics file; a resumed run goes on in the same file."""

    def __init__(self, path: Path, *, enabled: bool, log_every: int) -> None:
        self._log_every = log_every
        self._file = None
        if enabled:
            path.parent.mkdir(parents=True, exist_ok=True)
            torn = path.exists() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
            self._file = path.open("a", encoding="utf-8")
            if torn:
                # A run that was killed in the middle of a line must not spoil the next one.
                self._file.write("\n")

    def start(self, step: int, plan: BatchPlan, **facts: Any) -> None:
        """The beginning of this process's part of the run."""
        self._write("start", step=step, global_batch=plan.global_batch, **facts)

    def step(self, step: int, **values: float) -> None:
        """One optimizer step: loss, lr, grad_norm, tokens_per_second, seconds, data_wait_seconds (mean over ranks)."""
        self._write("step", step=step, **values)
        if step % self._log_every == 0 and self._file:
            _log.info(
                "step %d  loss %.4f  lr %.3e  grad norm %.3f  %.0f tokens/s",
                step,
                values["loss"],
                values["lr"],
                values["grad_norm"],
                values["tokens_per_second"],
            )

    def evaluation(self, step: int, loss: float, seconds: float) -> None:
        """Held-out loss after a step."""
        self._write("evaluation", step=step, eval_loss=loss, seconds=seconds)
        if self._file:
            _log.info("step %d  eval loss %.4f  (%.2f s)", step, loss, seconds)

    def checkpoint(self, saved: "SavedCheckpoint") -> None:
        """A published checkpoint, how long it took, and how long training stood still for it."""
        stall = saved.stall_seconds
        self._write("checkpoint", step=saved.step, seconds=saved.seconds, checkpoint_stall_seconds=stall, size_bytes=saved.size_bytes)
        if self._file:
            what = f"{saved.size_bytes / 1e6:.1f} MB in {saved.seconds:.2f} s, training stood still for {stall:.2f} s"
            _log.info("step %d  saved %s  (%s)", saved.step, saved.directory, what)

    def end(self, step: int, outcome: str) -> None:
        """The end of this process's part of the run."""
        self._write("end", step=step, outcome=outcome)

    def close(self) -> None:
        """Flush and close the file."""
        if self._file:
            self._file.close()

    def _write(self, event: str, **values: Any) -> None:
        if self._file:
            self._file.write(json.dumps({"event": event, "time": round(time.time(), 3), **values}) + "\n")
            self._file.flush()
