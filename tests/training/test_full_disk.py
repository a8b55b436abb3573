"""A save that storage refuses half way: the run says which rank and why, and what was saved before stays whole."""

import shlex
import subprocess

import pytest

from tests.training.job import DDP, Job, zero
from tests.training.rank import REPOSITORY, contract, environment, find_damage, training_python
from training import storage

pytestmark = pytest.mark.training


def start(command: list[str], environ: dict[str, str], limit_kib: int | None) -> "subprocess.Popen[str]":
    """A rank that may write no file larger than the limit: what a full disk does, without filling one."""
    limited = command if limit_kib is None else ["bash", "-c", f"ulimit -f {limit_kib}; exec {shlex.join(command)}"]
    return subprocess.Popen(
        limited, cwd=REPOSITORY, env={**environment(), **environ}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("engine", [DDP, zero(1)], ids=["ddp", "zero-1"])
def test_a_refused_write_on_one_rank_ends_the_run_and_spares_what_is_saved(job: Job, engine: dict, mode: str) -> None:
    job.run(ranks=2, expect=75, stop_after=4, **engine)
    assert storage.published_steps(job.checkpoints) == [4]
    command = [training_python(), "-m", "training.train", "--config", str(job.write_config(checkpoint={"mode": mode}, **engine))]
    processes = [start(command, environ, limit) for environ, limit in zip(contract(2), (None, 20), strict=True)]
    logs = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [1, 1], logs
    assert "File too large" in logs[1].strip().splitlines()[-1]
    if mode == "async":
        assert "writing the checkpoint of step 8 failed on rank 1" in logs[0].strip().splitlines()[-1], "rank 0 must learn of it too"
    assert storage.published_steps(job.checkpoints) == [4]
    assert find_damage(storage.step_directory(job.checkpoints, 4)) == []
    assert "resumed from step 4" in job.run(ranks=2, **engine).log
