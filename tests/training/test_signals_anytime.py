"""A stop signal at any moment of a run with loader workers: a save within half of the grace, no optimizer step lost, no worker left.

The full proof: TRAINYARD_SIGNALS=150 pytest tests/training/test_signals_anytime.py
"""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.training.job import DDP, Job, merge, values, zero
from tests.training.rank import Rank, children, is_gone, wait, wait_until
from training import storage

pytestmark = pytest.mark.training

SIGNALS, SEED = int(os.environ.get("TRAINYARD_SIGNALS", "6")), int(os.environ.get("TRAINYARD_SEED", "20261130"))
# What Kubernetes gives a pod unless told otherwise.
GRACE_SECONDS = 30.0
RANKS, WORKERS = 2, 2
# Evaluations and saves are as frequent as steps, so that a random moment is often within one of them.
ENDLESS = {
    "steps": 100_000,
    "schedule": {"decay_steps": 200},
    "evaluation": {"every": 2, "samples": 40},
    "checkpoint": {"every": 3, "keep": 2},
    "data": {"workers": WORKERS, "prefetch": 2},
}


def holders(output: Path) -> list[int]:
    """Processes that write to this file: a rank and whatever it has started."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            mine = process.name.isdigit() and (process / "fd" / "1").readlink() == output
            if mine and not is_gone(int(process.name)):
                found.append(int(process.name))
    return found


def strike(chance: random.Random, ranks: list[Rank], first: int) -> None:
    """Wait for a random moment and signal: some ranks once steps are made, all of them before, and at times the workers too."""
    if early := chance.random() < 0.25:
        time.sleep(chance.random() * 1.5)
    else:
        goal = first + chance.randint(1, 9)
        wait_until(lambda: f"step {goal} " in ranks[0].log() or ranks[0].poll() is not None, f"step {goal}")
        time.sleep(chance.random() * 0.1)
    number = chance.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
    victims = ranks if early or chance.random() < 0.5 else [chance.choice(ranks)]
    # A launcher that signals the whole process group reaches the workers as well.
    workers = [pid for rank in victims for pid in _children(rank)] if chance.random() < 0.5 else []
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    for victim in victims:
        victim.signal(number)


def steps_made(job: Job) -> int:
    """Optimizer steps that the run's metrics know of."""
    return max(job.history().steps, default=0) if (job.directory / "metrics.jsonl").exists() else 0


def _children(rank: Rank) -> list[int]:
    with suppress(OSError):
        return children(rank.pid)
    return []


@pytest.mark.parametrize(
    ("engine", "mode", "share"),
    [(DDP, "sync", 0.4), (DDP, "async", 0.3), (zero(2), "sync", 0.3)],
    ids=["ddp", "ddp-async", "zero-2"],
)
def test_a_signal_at_any_moment_loses_no_step_and_leaves_no_worker(job: Job, engine: dict, mode: str, share: float) -> None:
    chance = random.Random(f"{SEED} {mode} {engine}")
    job.ranks = RANKS
    job.settings = merge(job.settings, merge(ENDLESS, {**engine, "checkpoint": {"mode": mode}}))
    with job.started(stop_after=60) as ranks:
        wait_until(lambda: "step 1 " in ranks[0].log(), "the first step")
        assert [len(holders(rank.output)) for rank in ranks] == [1 + WORKERS] * RANKS, "what is looked for afterwards must be seen before"
        wait(ranks)
    saved, slowest = steps_made(job), 0.0
    for number in range(max(1, round(SIGNALS * share))):
        with job.started() as ranks:
            strike(chance, ranks, saved)
            struck = time.monotonic()
            finished = wait(ranks, GRACE_SECONDS / 2)
            slowest = max(slowest, time.monotonic() - struck)
            left = [pid for rank in ranks for pid in holders(rank.output)]
        # A process that has not come as far as its handlers has said nothing, and has nothing to save.
        codes = {code for code, log in zip(finished.codes, finished.logs, strict=True) if code >= 0 or log}
        assert codes <= {75}, f"signal {number}: {finished.codes}:\n{finished.log}"
        assert left == [], f"signal {number}: processes outlive their ranks:\n{finished.log}"
        made = steps_made(job)
        saved = max(storage.published_steps(job.checkpoints), default=0) if job.checkpoints.exists() else 0
        assert saved == made, f"signal {number}: {made} steps made, {saved} saved:\n{finished.log}"
    assert sorted(job.history().steps) == list(range(1, saved + 1))
    print(f"slowest stop: {slowest:.2f} s of {GRACE_SECONDS:g}")


def test_the_stopped_runs_are_the_unbroken_run(job: Job) -> None:
    """Bit for bit, wherever the signals came."""
    chance = random.Random(SEED)
    whole = Job(job.folder / "whole", job.settings)
    for run in (whole, job):
        run.ranks = RANKS
        run.settings = merge(run.settings, merge(ENDLESS, {"steps": 40}))
    whole.run()
    for _ in range(5):
        with job.started() as ranks:
            strike(chance, ranks, steps_made(job))
            codes = set(wait(ranks).codes)
        assert codes == {0} or codes <= {75, -signal.SIGTERM, -signal.SIGUSR1, -signal.SIGINT}
    if codes != {0}:
        job.run()
    assert len(job.history().steps) == 40
    for key in ("loss", "grad_norm"):
        assert values(job.history(), key) == values(whole.history(), key)
