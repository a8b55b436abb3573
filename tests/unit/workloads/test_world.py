"""World size is derived once, and whoever states a number against it gets the sum (slots against devices, gang against workers)."""

import pytest

from tests.unit.workloads.builders import cpu_job, gpu_job, plan
from workloads.errors import JobError
from workloads.kinds import KINDS

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "workers", "processes", "size"),
    [
        (gpu_job("mpi"), 4, 8, 32),
        (gpu_job("mpi", accelerators=4), 4, 4, 16),
        (gpu_job("mpi", pool="trn", numWorkers=2), 2, 32, 64),  # 16 devices of 2 cores: one process for each core
        (gpu_job("mpi", pool=None, instanceType="g6.12xlarge", numWorkers=1), 1, 4, 4),
        (gpu_job("mpi", worldSize=32, processesPerWorker=8, minAvailable=4), 4, 8, 32),
        (cpu_job("mpi"), 2, 1, 2),
        (cpu_job("mpi", cpu="4", processesPerWorker=4), 2, 4, 8),
    ],
)
def test_ranks_are_workers_times_processes(kind, values, workers, processes, size):
    world = plan(values | {"kind": kind}).world
    assert (world.workers, world.processes, world.size) == (workers, processes, size)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "path", "sum_"),
    [
        (gpu_job("mpi", worldSize=4), "worldSize", "numWorkers 4 x processesPerWorker 8 = 32"),
        (gpu_job("mpi", processesPerWorker=1), "processesPerWorker", "8 accelerators x 1 per accelerator = 8"),
        (gpu_job("mpi", pool="trn", processesPerWorker=16), "processesPerWorker", "16 accelerators x 2 per accelerator = 32"),
        (gpu_job("mpi", minAvailable=5), "minAvailable", "numWorkers = 4"),
        (gpu_job("mpi", minAvailable=3), "minAvailable", "numWorkers = 4"),
        (gpu_job("mpi", accelerators=16), "accelerators", "at most 8"),
        (gpu_job("mpi", numWorkers=9), "numWorkers", "at most 8"),  # the pool's limit
        (cpu_job("mpi", cpu="2", processesPerWorker=4), "processesPerWorker", "each whole core of cpu 2"),
        (cpu_job("mpi", processesPerWorker=None), "processesPerWorker", "has to state it"),
    ],
)
def test_a_number_against_the_rest_is_refused_with_the_sum(kind, values, path, sum_):
    with pytest.raises(JobError) as refused:
        plan(values | {"kind": kind})
    assert refused.value.path == path
    assert sum_ in refused.value.allowed


def test_a_gang_that_counts_the_launcher_is_told_why_it_would_wait_for_ever():
    with pytest.raises(JobError, match="the launcher is made only when all workers are ready"):
        plan(gpu_job("mpi", minAvailable=5))
