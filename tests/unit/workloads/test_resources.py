"""Requests come from the catalogue: they fit a node, device requests equal limits, and EFA is asked for wherever it is there."""

import pytest

from infra import catalogue, labels
from tests.unit.workloads.builders import cpu_job, gpu_job, plan, worker
from workloads.errors import JobError
from workloads.kinds import KINDS

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "devices"),
    [
        (gpu_job("mpi"), {labels.GPU_RESOURCE: "8", labels.EFA_RESOURCE: "32"}),
        (gpu_job("mpi", efa=True), {labels.GPU_RESOURCE: "8", labels.EFA_RESOURCE: "32"}),
        (gpu_job("mpi", efa=False), {labels.GPU_RESOURCE: "8"}),
        (gpu_job("mpi", pool="p5-tcp"), {labels.GPU_RESOURCE: "8"}),
        (gpu_job("mpi", accelerators=4), {labels.GPU_RESOURCE: "4", labels.EFA_RESOURCE: "16"}),
        (gpu_job("mpi", pool="trn", numWorkers=2), {labels.NEURON_RESOURCE: "16", labels.EFA_RESOURCE: "8"}),
        (gpu_job("mpi", pool="g6", accelerators=2, numWorkers=1), {labels.GPU_RESOURCE: "2"}),
        (cpu_job("mpi"), {}),
    ],
)
def test_devices_are_requested_with_equal_limits(kind, values, devices):
    resources = worker(values | {"kind": kind})["resources"]
    for part in ("requests", "limits"):
        asked = {name: count for name, count in resources[part].items() if name not in ("cpu", "memory")}
        assert asked == devices, f"{part} of {kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_node_job_fits_its_node_beside_the_agents(kind):
    resources = plan(gpu_job(kind)).resources
    node = catalogue.require("p5.48xlarge")
    assert resources.cpu_millis == node.allocatable_cpu_millis - catalogue.AGENTS_CPU_MILLIS
    assert resources.memory_mib == node.allocatable_memory_mib - catalogue.AGENTS_MEMORY_MIB


def test_half_of_a_node_gets_half_of_its_cpu_and_memory():
    whole, half = plan(gpu_job("mpi")).resources, plan(gpu_job("mpi", accelerators=4)).resources
    assert (half.cpu_millis, half.memory_mib) == (whole.cpu_millis // 2, whole.memory_mib // 2)


def test_a_gpu_worker_is_guaranteed_and_a_cpu_worker_may_use_spare_cores():
    gpu, cpu = worker(gpu_job("mpi"))["resources"], worker(cpu_job("mpi"))["resources"]
    assert gpu["requests"] == gpu["limits"]
    assert cpu == {"requests": {"cpu": "500m", "memory": "2048Mi"}, "limits": {"memory": "2048Mi"}}


@pytest.mark.parametrize(
    ("values", "path", "allowed"),
    [
        (gpu_job("mpi", cpu="192"), "cpu", "at most 190450m"),
        (gpu_job("mpi", memory="2Ti"), "memory", "at most"),
        (gpu_job("mpi", memory="64Gi", sharedMemory="64Gi"), "sharedMemory", "less than memory = 65536Mi"),
        (cpu_job("mpi", cpu=None), "cpu", "has to state it"),
        (cpu_job("mpi", memory=None), "memory", "has to state it"),
        (cpu_job("mpi", efa=True), "efa", "a m7i.2xlarge has none"),
        (gpu_job("mpi", pool="p5-tcp", efa=True), "efa", "its pool attaches none"),
        (gpu_job("mpi", pool="g6", accelerators=2), "efa", "2 of 4 accelerators get no whole share of 1 interfaces"),
        (gpu_job("mpi", pool="p5-tcp", env={"FI_PROVIDER": "efa"}), "env.FI_PROVIDER", "only with EFA interfaces"),
        (gpu_job("mpi", efa=False, env={"NCCL_NET_PLUGIN": "ofi"}), "env.NCCL_NET_PLUGIN", "only with EFA interfaces"),
    ],
)
def test_what_no_node_can_give_is_refused(values, path, allowed):
    with pytest.raises(JobError) as refused:
        plan(values)
    assert refused.value.path == path
    assert allowed in refused.value.allowed


def test_shared_memory_defaults_to_half_of_the_memory_and_never_above_64_gib():
    assert plan(cpu_job("mpi")).resources.shared_mib == 1024
    assert plan(gpu_job("mpi")).resources.shared_mib == 65536
