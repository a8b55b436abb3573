"""kill -9 at any moment of a run that saves at every step: there is always a whole checkpoint, and what is lost is made again exactly.

The full proof, which can be cut by -k into the cases of one engine, rank count or mode:

    TRAINYARD_KILLS=1000 pytest tests/training/test_interrupted_save.py
"""

import os
import random
import signal
import time

import pytest

from tests.training.job import DDP, Job, values, zero
from tests.training.rank import find_damage, wait
from training import storage

pytestmark = pytest.mark.training

KILLS = int(os.environ.get("TRAINYARD_KILLS", "12"))
# Steps and saves of these runs take about 0.03 s each; the window covers several of both.
WINDOW_SECONDS = 0.4


# Share of the kills; a start of four ranks costs ten of one.
CASES = [
    ("ddp", DDP, 1, "sync", 0.25),
    ("ddp", DDP, 1, "async", 0.25),
    ("zero-1", zero(1), 1, "sync", 0.1),
    ("zero-3", zero(3), 1, "async", 0.1),
    ("ddp", DDP, 4, "sync", 0.075),
    ("ddp", DDP, 4, "async", 0.075),
    ("zero-1", zero(1), 4, "sync", 0.05),
    ("zero-1", zero(1), 4, "async", 0.05),
    ("zero-3", zero(3), 4, "sync", 0.05),
]


@pytest.mark.parametrize(
    ("engine", "ranks", "mode", "share"), [case[1:] for case in CASES], ids=["{0}-{2}-{3}".format(*case) for case in CASES]
)
def test_a_killed_run_always_resumes_from_its_newest_save(job: Job, engine: dict, ranks: int, mode: str, share: float) -> None:
    kills = max(1, round(KILLS * share))
    chance = random.Random(20261129)
    job.settings.update(
        steps=100_000,
        checkpoint={"every": 1, "keep": 2, "mode": mode},
        evaluation={"every": 0},
        schedule={"decay_steps": 200},
        log_every=1000,
    )
    newest = 0
    for kill in range(kills):
        with job.started(ranks=ranks, **engine) as processes:
            deadline = time.monotonic() + 120
            # Wait for a save of this process's own, then strike anywhere in the steps and saves that follow.
            while not (job.checkpoints.is_dir() and storage.published_steps(job.checkpoints)[:1] > [newest]):
                assert all(process.poll() is None for process in processes), processes[0].log()
                assert time.monotonic() < deadline, processes[0].log()
                time.sleep(0.005)
            time.sleep(chance.random() * WINDOW_SECONDS)
            victims = processes if chance.random() < 0.5 else [chance.choice(processes)]
            for victim in victims:
                victim.signal(signal.SIGKILL)
            wait(processes)
        steps = storage.published_steps(job.checkpoints)
        assert steps[0] > newest, f"kill {kill}: nothing new was saved"
        newest = steps[0]
        assert find_damage(storage.step_directory(job.checkpoints, newest)) == [], f"kill {kill}"
    made = max(job.history().steps)
    # An asynchronous save is published once the next one has been asked for, at the latest.
    in_flight = 2 if mode == "async" else 1
    assert made - newest <= in_flight, "more than one interval, and what was in flight, was lost"
    finished = job.run(ranks=ranks, expect=75, stop_after=2, **engine)
    assert f"resumed from step {newest}" in finished.log
    assert not list(job.checkpoints.glob("*.saving-*")), "leftovers of killed saves must be cleared"


def test_the_chain_of_killed_runs_computes_the_unbroken_run(job: Job) -> None:
    whole = Job(job.folder / "whole", job.settings)
    changes: dict = {"steps": 40, "checkpoint": {"every": 3, "keep": 2}}
    whole.run(**changes)
    chance = random.Random(7)
    for _ in range(3):
        before = max(storage.published_steps(job.checkpoints), default=0)
        with job.started(**changes) as (process,):
            while max(storage.published_steps(job.checkpoints), default=0) <= before and process.poll() is None:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.05)
            process.signal(signal.SIGKILL)
            wait([process])
    job.run(**changes)
    assert len(job.history().starts) >= 3
    assert values(job.history(), "loss") == values(whole.history(), "loss")
    assert job.history().evaluations == whole.history().evaluations
