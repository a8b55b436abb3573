"""A run in pieces is the unbroken run, bit for bit: losses, norms, rates, held-out losses, whatever the step it was stopped at."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.training.job import DDP, FSDP, TENSOR, Job, values, zero
from training.history import History

pytestmark = pytest.mark.training

RESUMES = int(os.environ.get("TRAINYARD_RESUMES", "5"))
STEPS_PER_EPOCH, BATCH, NTH, LENGTH = 8, 8, 9, 32


def assert_same(pieces: History, whole: History) -> None:
    for key in ("loss", "grad_norm", "lr"):
        assert values(pieces, key) == values(whole, key), key
    assert pieces.evaluations == whole.evaluations


@pytest.mark.parametrize("engine", [DDP, FSDP, TENSOR, zero(1), zero(3)], ids=["ddp", "fsdp", "tensor", "zero-1", "zero-3"])
def test_two_ranks_stopped_at_several_steps_equal_the_unbroken_run(job: Job, engine: dict) -> None:
    whole = Job(job.folder / "whole", job.settings)
    whole.run(ranks=2, **engine)
    for expected in (75, 75, 0):
        job.run(ranks=2, expect=expected, stop_after=5, **engine)
    assert [start["step"] for start in job.history().starts] == [0, 5, 10]
    assert_same(job.history(), whole.history())


def test_dropout_goes_on_from_the_saved_generators(job: Job) -> None:
    whole = Job(job.folder / "whole", job.settings)
    dropout = {"dropout": 0.2}
    whole.run(model=dropout)
    job.run(expect=75, stop_after=7, model=dropout)
    job.run(model=dropout)
    assert_same(job.history(), whole.history())


ENGINES = {"ddp": DDP, "fsdp": FSDP, "zero-1": zero(1), "zero-2": zero(2), "zero-3": zero(3)}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_from_any_step_losses_and_weights_are_the_unbroken_runs_bit_for_bit(job: Job, engine: dict) -> None:
    """The full proof, 100 steps drawn for each engine: TRAINYARD_RESUMES=500 pytest tests/training/test_resume.py -k any_step"""
    steps = 24
    settings = {"steps": steps, "model": {"dropout": 0.1}, "evaluation": {"every": 5}}
    whole = Job(job.folder / "whole", {**job.settings, **settings, "checkpoint": {"every": 1, "keep": steps + 1}})
    whole.run(ranks=2, **engine)
    chance = random.Random(20261130)
    for number in range(max(1, RESUMES // len(ENGINES))):
        step = chance.randrange(1, steps)
        pieces = Job(job.folder / f"pieces-{number}", {**job.settings, **settings, "checkpoint": {"every": 0}})
        name = f"step-{step:09d}"
        shutil.copytree(whole.checkpoints / name, pieces.checkpoints / name)
        assert f"resumed from step {step}" in pieces.run(ranks=2, **engine).log
        for key in ("loss", "grad_norm", "lr"):
            assert values(pieces.history(), key) == values(whole.history(), key)[step:], f"{key} after step {step}"
        ended = f"step-{steps:09d}"
        assert state_of(pieces.checkpoints / ended) == state_of(whole.checkpoints / ended), f"state after a resume at step {step}"
        shutil.rmtree(pieces.folder)


def state_of(checkpoint: Path) -> dict[str, str]:
    """Digests of the files that hold tensors and generators, by name."""
    files = json.loads((checkpoint / "manifest.json").read_text())["files"]
    held = {
        name: entry["digest"] for name, entry in files.items() if name.endswith((".safetensors", "optim_states.pt")) or "random" in name
    }
    assert len(held) >= 3, "a file of state per rank, and its generators"
    return held


@pytest.mark.parametrize("stop", [7, 8, 9])
def test_a_stop_at_an_epochs_end_skips_nothing(tmp_path: Path, stop: int) -> None:
    """8 steps per epoch, 2 epochs: 16 optimizer steps in all, wherever the run was stopped."""
    text = tmp_path / "text"
    windows = STEPS_PER_EPOCH * BATCH * NTH // (NTH - 1)
    text.write_bytes(bytes(65 + (index * index) % 58 for index in range(windows * LENGTH + 1)))
    settings = {"steps": 16, "data": {"files": [str(text)], "eval_every_nth": NTH}, "checkpoint": {"every": 8}}
    whole, job = Job(tmp_path / "whole", settings), Job(tmp_path / "pieces", settings)
    assert "2.00 epochs" in whole.run().log
    job.run(expect=75, stop_after=stop)
    assert "2.00 epochs" in job.run().log
    assert len(job.history().steps) == 16
    assert_same(job.history(), whole.history())


def test_the_cursor_and_the_whole_configuration_are_in_the_checkpoint(job: Job) -> None:
    job.run(expect=75, stop_after=5)
    info = json.loads((job.checkpoints / "step-000000005" / "info.json").read_text())
    assert (info["step"], info["samples"], info["world_size"]) == (5, 40, 1)
    assert info["config"]["model"]["dim"] == 32
    assert info["versions"]["torch"]


def test_old_checkpoints_go_and_the_newest_stay(job: Job) -> None:
    job.run(checkpoint={"every": 2, "keep": 3})
    assert sorted(path.name for path in job.checkpoints.iterdir()) == [f"step-{step:09d}" for step in (8, 10, 12)]
