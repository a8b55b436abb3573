"""Saves behind the training: the same files, the same run, none of the time, and never published before they are whole."""

import pytest

from tests.training.job import DDP, Job, values, zero
from tests.training.rank import find_damage
from training import storage

pytestmark = pytest.mark.training


@pytest.mark.parametrize("engine", [DDP, zero(1), zero(3)], ids=["ddp", "zero-1", "zero-3"])
def test_a_run_resumed_from_saves_behind_it_is_the_unbroken_run(job: Job, engine: dict) -> None:
    whole = Job(job.folder / "whole", job.settings)
    whole.run(ranks=2, **engine)
    behind = {"checkpoint": {"mode": "async", "every": 1, "keep": 12}}
    job.run(ranks=2, expect=75, stop_after=7, **engine, **behind)
    assert storage.published_steps(job.checkpoints) == [7, 6, 5, 4, 3, 2, 1]
    for step in range(1, 8):
        assert find_damage(storage.step_directory(job.checkpoints, step)) == []
    # Resume from a save that was written while its tensors were already being changed by later steps.
    for step in (7, 6):
        storage.step_directory(job.checkpoints, step).rename(job.folder / f"aside-{step}")
    assert "resumed from step 5" in job.run(ranks=2, **engine, **behind).log
    assert values(job.history(), "loss") == values(whole.history(), "loss")


def test_the_stall_is_measured_and_shorter_than_the_save(job: Job) -> None:
    job.run(checkpoint={"mode": "async", "every": 4})
    saves = job.history().checkpoints
    assert sorted(saves) == [4, 8, 12]
    assert all(0 < save["checkpoint_stall_seconds"] <= save["seconds"] + 0.01 for save in saves.values())


def test_steps_kept_for_good_stay_beside_the_newest(job: Job) -> None:
    job.run(checkpoint={"mode": "async", "every": 1, "keep": 2, "keep_every": 5})
    assert storage.published_steps(job.checkpoints) == [12, 11, 10, 5]
    assert sorted(path.name for path in job.checkpoints.iterdir()) == [f"step-{step:09d}" for step in (5, 10, 11, 12)]
