"""What cannot run ends soon, with its own exit code and a last line that names the rank and the reason."""

import os
import random
import socket
from pathlib import Path

import pytest

from tests.training.job import Job
from tests.training.rank import contract, wait, wait_until

pytestmark = pytest.mark.training

ROLL_CALLS = int(os.environ.get("TRAINYARD_ROLL_CALLS", "3"))
# What the last line of some rank must say, of this rank and this world size.
NAMES = {
    "missing": lambda rank, world: [f"ranks {rank};", f"rank {rank} has not come"],
    "twice": lambda rank, world: [f"rank {rank} came twice", f"rank {rank} cannot listen"],
    "other world": lambda rank, world: [f"was started for {world + 1} ranks", f"ranks {world};"],
}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"distributed": {"backend": "nccl"}}, 78, 'distributed.backend: "nccl" is refused; allowed: auto or gloo: nccl needs a GPU'),
        (
            {"batch": {"micro": 3, "global_batch": 8}},
            78,
            "global batch 8 is not a multiple of micro batch 3 x data-parallel replicas 1 = 3",
        ),
        ({"optimizer": {"rate": 1}}, 78, "optimizer.rate: 1 is refused"),
        ({"data": {"files": ["/nowhere/*.txt"]}}, 1, "data.files: '/nowhere/*.txt' matches no file"),
        ({"data": {"sequence_length": 10_000_000}}, 1, "but data.eval_every_nth = 10 needs at least that many"),
        ({"data": {"encoding": "uint16"}}, 1, "the corpus holds token id"),
        ({"checkpoint": {"resume": "required"}}, 1, "checkpoint.resume is required, but"),
        ({"optimizer": {"lr": 1e9, "clip_norm": None}, "schedule": {"warmup_steps": 0}}, 1, "lower optimizer.lr or look at the data"),
    ],
    ids=["nccl", "batch", "key", "files", "short", "vocabulary", "required", "diverged"],
)
def test_the_last_line_names_rank_and_reason(job: Job, changes: dict, code: int, message: str) -> None:
    finished = job.run(expect=code, **changes)
    last = finished.log.strip().splitlines()[-1]
    assert last.startswith(f"rank 0 of 1 ended with exit code {code}")
    assert message in last
    assert "Traceback" not in finished.log


def test_never_resume_refuses_a_directory_with_checkpoints(job: Job) -> None:
    job.run(expect=75, stop_after=2)
    assert "checkpoint.resume is never, but" in job.run(expect=1, checkpoint={"resume": "never"}).log


def test_two_runs_in_one_directory_are_refused(job: Job) -> None:
    with job.started(steps=100_000, schedule={"decay_steps": 100}, checkpoint={"every": 0}, evaluation={"every": 0}) as processes:
        wait_until(lambda: "step 1 " in processes[0].log(), "the first run")
        finished = job.run(expect=1)
        assert f"is in use by process {processes[0].pid} on " in finished.log
        assert processes[0].poll() is None, "the first run must not be disturbed"


def test_a_missing_rank_is_named_by_those_that_came(job: Job) -> None:
    with job.started(environs=contract(3)[:2], batch={"global_batch": 12}, distributed={"init_timeout_seconds": 4}) as processes:
        finished = wait(processes, 60)
    assert finished.codes == [1, 1]
    assert "after 4 s 1 of 3 ranks have not come to 127.0.0.1:" in finished.logs[0]
    assert "ranks 2; look at their logs" in finished.logs[0]
    assert "Traceback" not in finished.log


def test_a_missing_rank_0_is_named(job: Job) -> None:
    with job.started(environs=contract(2)[1:], distributed={"init_timeout_seconds": 3}) as processes:
        finished = wait(processes, 60)
    assert finished.codes == [1]
    assert "rank 0 has not come: nothing answered rank 1 at 127.0.0.1:" in finished.log


def test_a_rank_that_comes_twice_is_named(job: Job) -> None:
    first, second = contract(2)
    with job.started(environs=[first, {**second, "RANK": "0", "LOCAL_RANK": "0"}], distributed={"init_timeout_seconds": 4}) as processes:
        finished = wait(processes, 60)
    assert 1 in finished.codes
    assert any(reason in finished.log for reason in ("rank 0 came twice", "rank 0 cannot listen on 127.0.0.1:"))


@pytest.mark.parametrize("number", range(ROLL_CALLS))
def test_wrong_ranks_end_in_time_and_are_named(job: Job, number: int) -> None:
    """One rank is missing, comes twice, or counts another world. The full proof: TRAINYARD_ROLL_CALLS=100 pytest -k wrong_ranks"""
    chance = random.Random(number)
    world = chance.choice([2, 3, 4])
    environs = contract(world)
    victim = chance.randrange(world)
    fault = ("missing", "twice", "other world")[number % 3]
    if fault == "missing":
        del environs[victim]
    elif fault == "twice":
        environs.append(dict(environs[victim]))
    else:
        environs[victim]["WORLD_SIZE"] = str(world + 1)
    # Every world divides it, so that nothing but the ranks is wrong.
    with job.started(environs=environs, batch={"micro": 1, "global_batch": 60}, distributed={"init_timeout_seconds": 4}) as processes:
        finished = wait(processes, 60)
    if fault == "twice":
        # The first of the two may go on with the others.
        assert 1 in finished.codes, finished.log
    else:
        assert 0 not in finished.codes, finished.log
    assert "Traceback" not in finished.log
    said = [log.strip().splitlines()[-1] for log, code in zip(finished.logs, finished.codes, strict=True) if code > 0]
    assert any(any(word in line for word in NAMES[fault](victim, world)) for line in said), f"{fault} {victim} of {world}: {said}"


def test_a_name_that_never_resolves_is_named(job: Job) -> None:
    environ = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "pod-0.job.invalid"}
    with job.started(environs=[environ], distributed={"init_timeout_seconds": 2}) as processes:
        finished = wait(processes, 60)
    assert "MASTER_ADDR=pod-0.job.invalid does not resolve" in finished.log.splitlines()[-1]


def test_a_broken_launch_environment_is_refused(job: Job) -> None:
    with job.started(environs=[{"RANK": "0"}]) as processes:
        finished = wait(processes, 60)
    assert finished.codes == [78]
    assert "RANK=0 is set but WORLD_SIZE is not" in finished.log


def test_ranks_with_other_data_are_refused(job: Job, tmp_path: Path) -> None:
    """A stale mount on one host: each rank sees another file under the same path."""
    shared, other = tmp_path / "a" / "text", tmp_path / "b" / "text"
    for path, letter in ((shared, b"a"), (other, b"b")):
        path.parent.mkdir()
        path.write_bytes(letter * 4000)
    one, two = contract(2)
    with (
        job.started(environs=[one], data={"files": [str(shared)]}) as first,
        job.started(environs=[two], data={"files": [str(other)]}) as second,
    ):
        finished = wait([*first, *second], 60)
    assert 1 in finished.codes
    assert "has another configuration than rank" in finished.log


def test_a_rank_that_dies_takes_the_others_down_with_a_reason(job: Job) -> None:
    job.ranks = 2
    with job.started(steps=100_000, schedule={"decay_steps": 100}, checkpoint={"every": 0}, evaluation={"every": 0}) as processes:
        wait_until(lambda: "step 1 " in processes[0].log(), "the first step")
        os.kill(processes[1].pid, 9)
        finished = wait(processes, 60)
    assert finished.codes == [1, -9]
    last = finished.logs[0].strip().splitlines()[-1]
    assert "rank 0 of 2 ended with exit code 1" in last
    assert f"lost contact with rank 1 ({socket.gethostname()}, process {processes[1].pid}), which left no reason: killed" in last
