"""What a run writes and shows of itself."""

import io
import json
import logging
from pathlib import Path

import pytest
import torch
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from training.batch import plan_batch
from training.config import TrainConfig
from training.history import read_history
from training.live import LiveLine
from training.meter import Meter, find_peak
from training.metrics import Metrics, has_terminal

VALUES = {"loss": 5.0, "lr": 1e-3, "grad_norm": 1.0, "tokens_per_second": 1000.0, "seconds": 0.5, "data_wait_seconds": 0.1}


def config(folder: Path, **metrics: object) -> TrainConfig:
    settings = {"name": "run", "steps": 100, "checkpoint": {"directory": str(folder)}, "metrics": metrics, "schedule": {"warmup_steps": 4}}
    return TrainConfig.from_mapping(settings)


def write(folder: Path, first: int, last: int, loss: float) -> None:
    """One start of the run, which makes these steps."""
    metrics = Metrics(config(folder, tensorboard=True), enabled=True, step=first)
    metrics.start(first, plan_batch(replicas=1, micro=2))
    for step in range(first + 1, last + 1):
        metrics.step(step, **VALUES | {"loss": loss})
    metrics.close()


def test_a_resumed_run_goes_on_in_the_same_files_and_replaces_the_steps_it_makes_again(tmp_path: Path) -> None:
    write(tmp_path, 0, 5, loss=5.0)
    write(tmp_path, 3, 6, loss=4.0)
    history = read_history(tmp_path / "run" / "metrics.jsonl")
    assert [history.steps[step]["loss"] for step in range(1, 7)] == [5.0, 5.0, 5.0, 4.0, 4.0, 4.0]
    assert history.series("data_wait_seconds") == ([1, 2, 3, 4, 5, 6], [0.1] * 6)
    board = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    board.Reload()
    assert {"train/loss", "train/tokens_per_second", "train/grad_norm"} <= set(board.Tags()["scalars"])
    assert [(event.step, event.value) for event in board.Scalars("train/loss")] == [
        *((step, 5.0) for step in (1, 2, 3)),
        *((step, 4.0) for step in (4, 5, 6)),
    ]


def test_other_ranks_write_nothing(tmp_path: Path) -> None:
    metrics = Metrics(config(tmp_path, tensorboard=True, progress="live"), enabled=False, step=0)
    metrics.step(1, **VALUES)
    metrics.close()
    assert list(tmp_path.iterdir()) == []


def test_the_live_line_is_drawn_in_place_and_log_lines_scroll_above_it() -> None:
    screen = io.StringIO()
    handler = logging.StreamHandler(screen)
    logging.getLogger().addHandler(handler)
    try:
        line = LiveLine("run", 3, 100, Console(file=screen, force_terminal=True, width=120))
        line.update(4, VALUES | {"mfu": 0.423})
        logging.getLogger("training.any").warning("a log line")
        line.close()
    finally:
        logging.getLogger().removeHandler(handler)
    shown = screen.getvalue()
    assert "4/100" in shown
    assert "loss 5.0000  1,000 tokens/s  MFU 42.3%" in shown
    assert "a log line" in shown
    assert "\x1b[2K" in shown, "the line is erased and drawn again in place"
    assert handler.stream is screen, "the log has its own stream again"


def test_without_a_terminal_there_are_plain_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="training")
    metrics = Metrics(config(tmp_path), enabled=True, step=0)
    metrics.step(1, **VALUES)
    metrics.close()
    assert caplog.messages == ["step 1  loss 5.0000  lr 1.000e-03  grad norm 1.000  1000 tokens/s"]


def test_utilisation_is_the_model_s_operations_over_the_peak_and_is_not_made_up() -> None:
    cpu = torch.device("cpu")
    known = Meter(tokens_per_step=1000, flops_per_token=6_000_000, peak_flops=find_peak(cpu, "fp32", 4, 0.25), device=cpu)
    assert known.measure(0.5)["mfu"] == pytest.approx(2000 * 6e6 / 1e12)
    assert known.measure(0.5)["tokens_per_second"] == 2000
    unknown = Meter(tokens_per_step=1000, flops_per_token=6_000_000, peak_flops=find_peak(cpu, "fp32", 4, None), device=cpu)
    assert "mfu" not in unknown.measure(0.5)


def test_memory_of_a_cpu_rank_is_what_its_process_holds() -> None:
    meter = Meter(tokens_per_step=1, flops_per_token=1, peak_flops=None, device=torch.device("cpu"))
    before = meter.memory_mib()
    block = torch.ones(64 << 18)
    assert 60 < meter.memory_mib() - before < 80
    del block


def test_every_line_is_one_json_object(tmp_path: Path) -> None:
    write(tmp_path, 0, 2, loss=5.0)
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [record["event"] for record in records] == ["start", "step", "step"]


@pytest.mark.parametrize(("environ", "watched"), [({}, True), ({"TERM": "xterm"}, True), ({"OMPI_COMM_WORLD_RANK": "0"}, False)])
def test_a_rank_s_own_terminal_of_open_mpi_is_nobody_s(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], watched: bool) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    assert has_terminal(environ) is watched
