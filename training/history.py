"""Reading a run's metrics.jsonl back. Standard library only, so that a launcher can report on a run without torch."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class History:
    """What a run has measured over all its restarts. A step that was made again after a crash counts once: the last time."""

    steps: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By optimizer step, from 1: loss, lr, grad_norm, tokens_per_second, seconds, data_wait_seconds, memory_mib, mfu where it is known,
    and skipped: 1 for an update that fp16's scaler left out."""
    evaluations: dict[int, float] = field(default_factory=dict)
    """Held-out loss by optimizer step."""
    starts: list[dict[str, Any]] = field(default_factory=list)
    """One record per process start: step (0, or where it resumed), world_size, global_batch, engine."""
    checkpoints: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By optimizer step: seconds and size_bytes of a save."""
    torn_lines: int = 0
    """Lines that a killed run left half written."""

    def series(self, key: str) -> tuple[list[int], list[float]]:
        """Steps and values of one measurement, in order, of the steps that have it."""
        steps = [step for step in sorted(self.steps) if key in self.steps[step]]
        return steps, [self.steps[step][key] for step in steps]

    @property
    def first_loss(self) -> float:
        """Loss of the earliest step. Raises ValueError if there is none."""
        return self.steps[min(self.steps)]["loss"]

    @property
    def last_loss(self) -> float:
        """Loss of the latest step. Raises ValueError if there is none."""
        return self.steps[max(self.steps)]["loss"]


def read_history(path: Path) -> History:
    """The history in one metrics file. Raises FileNotFoundError."""
    history, torn = History(), 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
            event, step = record["event"], record["step"]
        except (json.JSONDecodeError, KeyError, TypeError):
            torn += bool(line.strip())
            continue
        if event == "start":
            history.starts.append(record)
            for table in (history.steps, history.evaluations):
                for later in [known for known in table if known > step]:
                    del table[later]
        elif event == "step":
            history.steps[step] = record
        elif event == "evaluation":
            history.evaluations[step] = record["eval_loss"]
        elif event == "checkpoint":
            history.checkpoints[step] = record
    return History(history.steps, history.evaluations, history.starts, history.checkpoints, torn)
