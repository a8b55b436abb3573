"""Storage that lies: a damaged newest checkpoint is named and passed over, and a run with none left stops and says so.

The full proof: TRAINYARD_MUTATIONS=2000 TRAINYARD_FALLBACKS=100 pytest tests/training/test_damage.py
"""

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.job import DDP, Job, values, zero
from tests.training.rank import REPOSITORY, environment, training_python

pytestmark = pytest.mark.training

MUTATIONS = int(os.environ.get("TRAINYARD_MUTATIONS", "200"))
FALLBACKS = int(os.environ.get("TRAINYARD_FALLBACKS", "4"))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def zero_out(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def files_of(checkpoint: Path) -> list[Path]:
    return sorted(path for path in checkpoint.rglob("*") if path.is_file())


@pytest.mark.parametrize("damage", [truncate, flip, zero_out, Path.unlink], ids=["truncate", "flip", "zero", "delete"])
def test_the_run_falls_back_to_the_previous_good_one_and_names_the_file(job: Job, damage: Callable[[Path], None]) -> None:
    job.run()
    whole = job.history()
    newest = job.checkpoints / "step-000000012"
    victim = max(files_of(newest), key=lambda path: path.stat().st_size)
    damage(victim)
    finished = job.run()
    assert f"checkpoint of step 12 is damaged and passed over: {victim.relative_to(newest).as_posix()}: " in finished.log
    assert "resumed from step 8" in finished.log
    assert values(job.history(), "loss") == values(whole, "loss")
    assert list(job.checkpoints.glob("step-000000012.damaged-*")), "the damaged one is kept aside for a look"


def test_two_ranks_of_zero_fall_back_together(job: Job) -> None:
    job.run(ranks=2, **zero(1))
    shards = [path for path in files_of(job.checkpoints / "step-000000012") if "optim_states" in path.name]
    assert len(shards) == 2, "each rank has written its own shard"
    shutil.copy(shards[0], shards[1])
    finished = job.run(ranks=2, **zero(1))
    assert "damaged and passed over: engine/zero/" in finished.log
    assert "resumed from step 8" in finished.log


def test_nothing_but_damage_is_an_error_and_never_a_fresh_start(job: Job) -> None:
    job.run()
    for checkpoint in job.checkpoints.iterdir():
        (checkpoint / "manifest.json").unlink()
    finished = job.run(expect=1)
    assert "all checkpoints in" in finished.log
    assert "are damaged: steps 12, 8, 4; none can be resumed from" in finished.log.splitlines()[-1]


@pytest.mark.parametrize("engine", [DDP, zero(1), zero(3)], ids=["ddp", "zero-1", "zero-3"])
def test_every_mutation_of_every_file_is_named(job: Job, engine: dict) -> None:
    job.run(ranks=2, **engine)
    command = [
        training_python(),
        str(REPOSITORY / "tests/training/inside/mutations.py"),
        str(job.checkpoints),
        str(-(-MUTATIONS // 3)),
        "7",
    ]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert sum(made.values()) >= MUTATIONS // 3
    assert sorted(made) == ["delete", "flip", "swap", "truncate", "zero"]


def test_a_run_falls_back_from_random_damage_to_any_number_of_checkpoints(job: Job) -> None:
    """Damage in the newest one, two or three of four checkpoints: the newest whole one is resumed from, never another."""
    job.run(steps=16)
    chance = random.Random(20261130)
    for number in range(FALLBACKS):
        copy = Job(job.folder / f"copy-{number}", job.settings)
        shutil.copytree(job.directory, copy.directory)
        damaged = [16, 12, 8][: chance.randint(1, 3)]
        for step in damaged:
            chance.choice([truncate, flip, zero_out, Path.unlink])(chance.choice(files_of(copy.checkpoints / f"step-{step:09d}")))
        finished = copy.run(steps=16)
        assert f"resumed from step {16 - 4 * len(damaged)}" in finished.log
        assert all(f"checkpoint of step {step} is damaged and passed over" in finished.log for step in damaged)
        assert values(copy.history(), "loss") == values(job.history(), "loss")
        shutil.rmtree(copy.folder)
