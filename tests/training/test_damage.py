"""Storage that lies: a damaged newest checkpoint is named and passed over, and a run with none left stops and says so."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.job import Job, values, zero

pytestmark = pytest.mark.training


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
