"""Metrics read back: what a crash left is passed over, and a step made twice counts once."""

import json
from pathlib import Path

import pytest

from training.history import read_history

pytestmark = pytest.mark.unit


def step(number: int, loss: float) -> str:
    return json.dumps(
        {"event": "step", "step": number, "loss": loss, "lr": 0.1, "grad_norm": 1.0, "tokens_per_second": 1.0, "seconds": 1.0}
    )


def test_steps_made_again_count_once_and_torn_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [
        '{"event": "start", "step": 0}',
        step(1, 5.0),
        step(2, 4.0),
        '{"event": "evaluation", "step": 2, "eval_loss": 4.5}',
        step(3, 3.0),
    ]
    lines += [
        '{"event": "st',
        '{"event": "start", "step": 1}',
        step(2, 4.25),
        '{"event": "checkpoint", "step": 2, "seconds": 1, "size_bytes": 7}',
    ]
    path.write_text("\n".join(lines))
    history = read_history(path)
    assert {number: record["loss"] for number, record in history.steps.items()} == {1: 5.0, 2: 4.25}
    assert (history.first_loss, history.last_loss, history.torn_lines, len(history.starts)) == (5.0, 4.25, 1, 2)
    assert history.evaluations == {}
    assert history.checkpoints[2]["size_bytes"] == 7
