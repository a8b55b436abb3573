"""The pre-flight on real ranks: alone under a launcher, and in front of a run that must not start."""

import pytest

from tests.training.job import Job
from tests.training.rank import Finished, Rank, contract, end, wait

pytestmark = pytest.mark.training


def preflight(job: Job, *overrides: str, ranks: int = 2) -> Finished:
    job.folder.mkdir(parents=True, exist_ok=True)
    arguments = [word for override in overrides for word in ("--set", override)]
    processes = [
        Rank(arguments, environ, job.folder / f"preflight-{index}", module="training.preflight.command")
        for index, environ in enumerate(contract(ranks))
    ]
    try:
        return wait(processes, 60)
    finally:
        end(processes)


def test_it_runs_alone_and_says_what_it_found(job: Job) -> None:
    finished = preflight(job, "preflight.collective_mib=4")
    assert finished.codes == [0, 0], finished.log
    assert "pre-flight: 1 host, clocks within" in finished.logs[0]
    assert "MiB free at least, all-reduce of 4 MiB at" in finished.logs[0]
    assert "GB/s bus bandwidth" in finished.logs[0]
    assert "pre-flight passed on 2 ranks" in finished.logs[0]


def test_one_process_has_no_links_to_measure(job: Job) -> None:
    finished = preflight(job, ranks=1)
    assert finished.codes == [0], finished.log
    assert "bus bandwidth" not in finished.log


@pytest.mark.parametrize(
    ("override", "code", "message"),
    [
        ("preflight.min_bandwidth_gb_per_second=1e6", 1, "PreflightError: bus bandwidth is"),
        ("preflight.transport=efa", 78, "only nccl uses EFA"),
        ("model.dim=65536", 1, "MiB for its state, as do all 2 ranks there"),
        ("preflight.min_shared_memory_mib=100000000", 1, "100000000 MiB are needed"),
    ],
    ids=["bandwidth", "efa", "memory", "shared-memory"],
)
def test_what_a_run_demands_and_the_host_has_not_ends_all_ranks(job: Job, override: str, code: int, message: str) -> None:
    finished = preflight(job, override)
    assert finished.codes == [code, code], finished.log
    assert all(message in log.strip().splitlines()[-1] for log in finished.logs), finished.log


def test_a_run_starts_with_it_and_can_leave_it_out(job: Job) -> None:
    job.ranks = 2
    assert "PreflightError: " in job.run(expect=1, preflight={"min_shared_memory_mib": 100_000_000}).log
    finished = job.run(expect=75, stop_after=1, preflight={"enabled": False, "min_shared_memory_mib": 100_000_000})
    assert "pre-flight" not in finished.log
