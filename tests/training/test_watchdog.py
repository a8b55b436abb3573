"""A hang of one rank ends all of them in time, and a failure of one rank is what every rank names on its last line."""

import time
from pathlib import Path

import pytest

from tests.training.job import Job
from tests.training.rank import Finished, Rank, contract, end, wait

pytestmark = pytest.mark.training
HANG_SECONDS = 2


def run_with_fault(job: Job, fault: str, ranks: int = 2) -> Finished:
    """All ranks run the trainer; rank 1 meets the fault in its third step."""
    config = str(
        job.write_config(
            checkpoint={"every": 0}, evaluation={"every": 0}, batch={"global_batch": 2 * ranks * 2}, watchdog={"hang_seconds": HANG_SECONDS}
        )
    )
    processes = [
        Rank([fault, "--config", config], environ, job.folder / f"{fault}-{index}", module="tests.training.faults")
        for index, environ in enumerate(contract(ranks))
    ]
    try:
        return wait(processes, 90)
    finally:
        end(processes)


def incidents(job: Job) -> Path:
    (directory,) = (job.directory / "incidents").iterdir()
    return directory


def last_line(log: str) -> str:
    return log.strip().splitlines()[-1]


@pytest.mark.parametrize("fault", ["sleep", "sleep-told-late"])
def test_a_rank_that_sleeps_for_ever_ends_all_and_the_stacks_name_the_place(job: Job, fault: str) -> None:
    started = time.monotonic()
    finished = run_with_fault(job, fault, ranks=3)
    assert finished.codes == [76, 76, 76], finished.log
    assert time.monotonic() - started < 60
    for rank, log in enumerate(finished.logs):
        line = last_line(log)
        assert line.startswith(f"rank {rank} of 3 ended with exit code 76 (hung): nothing has moved for {HANG_SECONDS} s since micro-batch")
        assert "; rank 1: training/faults.py:" in line
        assert "in sleep_for_ever" in line
        assert "; ranks 0, 2: " in line
    stacks = {path.name: path.read_text() for path in incidents(job).glob("*.stacks")}
    assert set(stacks) == {f"rank-{rank:05d}.stacks" for rank in range(3)}
    assert "in sleep_for_ever" in stacks["rank-00001.stacks"]
    assert "in all_reduce" in stacks["rank-00000.stacks"] or "in backward" in stacks["rank-00000.stacks"]


def test_ranks_that_learn_of_a_hang_only_from_its_end_end_alike_and_name_its_place(job: Job) -> None:
    finished = run_with_fault(job, "sleep-unseen", ranks=3)
    assert finished.codes == [76, 76, 76], finished.log
    for rank in (0, 2):
        line = last_line(finished.logs[rank])
        hang = f"rank 1 failed first: nothing has moved for {HANG_SECONDS} s since micro-batch"
        assert line.startswith(f"rank {rank} of 3 ended with exit code 76 (hung): lost contact because {hang}")
        assert "(training/faults.py:" in line
        assert "in sleep_for_ever" in line


def test_a_rank_that_holds_the_interpreter_ends_too_with_its_stacks_in_the_log(job: Job) -> None:
    finished = run_with_fault(job, "hold")
    assert finished.codes == [76, 1], finished.log
    assert "rank 1: no stacks: stopped, or without the interpreter's lock" in last_line(finished.logs[0])
    assert "in hold_the_interpreter" in finished.logs[1]


def test_every_rank_names_the_one_that_failed_first(job: Job) -> None:
    finished = run_with_fault(job, "fail")
    assert finished.codes == [1, 1], finished.log
    assert last_line(finished.logs[1]).endswith("OSError: the disk of this host is on fire")
    reason = "TrainingError: lost contact because rank 1 failed first: OSError: the disk of this host is on fire"
    assert last_line(finished.logs[0]) == f"rank 0 of 2 ended with exit code 1 (failed): {reason}"
