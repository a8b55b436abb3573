"""What a job's author may write, and how a mistake is told: path, value, what is allowed."""

import pytest

from tests.unit.workloads.builders import cpu_job, gpu_job
from workloads.errors import JobError
from workloads.kinds import KINDS
from workloads.quantity import cpu_millis, memory_mib
from workloads.spec import JobSpec

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("kind", KINDS)
def test_a_valid_job_of_each_kind_is_read(kind):
    spec = JobSpec.parse(gpu_job(kind), "jobs[0]")
    assert (spec.name, spec.kind, spec.num_workers) == ("pretrain", kind, 4)


@pytest.mark.parametrize(
    ("changes", "path", "value", "allowed"),
    [
        ({"name": "Pretrain"}, "jobs[0].name", "Pretrain", "lower-case letters"),
        ({"name": "4b"}, "jobs[0].name", "4b", "starting with a letter"),  # pods' names must be DNS-1035 labels
        ({"name": "a" * 41}, "jobs[0].name", "aaa", "1 to 40"),
        ({"kind": "slurm"}, "jobs[0].kind", "slurm", "mpi"),
        ({"workers": 2}, "jobs[0].workers", 2, "numWorkers"),
        ({"num_workers_typo": 2}, "jobs[0].num_workers_typo", 2, "no such key"),
        ({"numWorkers": 0}, "jobs[0].numWorkers", 0, "greater than or equal to 1"),
        ({"numWorkers": "4"}, "jobs[0].numWorkers", "4", "valid integer"),
        ({"numWorkers": None}, "jobs[0].numWorkers", None, "required"),
        ({"instanceType": "p5.48xlarge"}, "jobs[0]", None, "exactly one of pool and instanceType"),
        ({"pool": None}, "jobs[0]", None, "exactly one of pool and instanceType"),
        ({"pool": None, "instanceType": "p5.48xlage"}, "jobs[0].instanceType", "p5.48xlage", "p5.48xlarge"),
        ({"cpu": "lots"}, "jobs[0].cpu", "lots", "500m"),
        ({"cpu": "0"}, "jobs[0].cpu", "0", "above 0"),
        ({"memory": "64GB"}, "jobs[0].memory", "64GB", "Gi"),
        ({"mounts": [{"claim": "checkpoints", "path": "ckpt"}]}, "jobs[0].mounts[0].path", "ckpt", "absolute path"),
        ({"mounts": [{"claim": "checkpoints", "path": "/dev/shm"}]}, "jobs[0].mounts[0].path", "/dev/shm", "/dev/shm"),
        ({"mounts": [{"claim": "checkpoints", "path": "/etc"}]}, "jobs[0].mounts[0].path", "/etc", "/etc/trainyard"),
        ({"mounts": [{"claim": "a", "path": "/a"}, {"claim": "b", "path": "/a/b"}]}, "jobs[0].mounts", "/a/b", "do not lie in each other"),
        ({"env": {"WORLD_SIZE": "8"}}, "jobs[0].env", "WORLD_SIZE", "the launcher gives it"),
        ({"env": {"MASTER_ADDR": "localhost"}}, "jobs[0].env", "MASTER_ADDR", "the launcher gives it"),
        ({"env": {"A B": "x"}}, "jobs[0].env", "A B", "underscores"),
        ({"env": {"A": "x;y"}}, "jobs[0].env", "x;y", "without semicolons"),
        ({"env": {"NCCL_SOCKET_IFNAME": "^lo,docker"}}, "jobs[0].env", "^lo,docker", "pod-id-link0"),
        ({"terminationGraceSeconds": 5}, "jobs[0].terminationGraceSeconds", 5, "greater than or equal to 30"),
        ({"maxRestarts": -1}, "jobs[0].maxRestarts", -1, "greater than or equal to 0"),
    ],
)
def test_a_mistake_is_told_with_its_path_value_and_what_is_allowed(changes, path, value, allowed):
    with pytest.raises(JobError) as refused:
        JobSpec.parse({key: text for key, text in (gpu_job("volcano") | changes).items() if text is not None}, "jobs[0]")
    assert refused.value.path == path
    assert value is None or str(value) in str(refused.value)
    assert allowed in refused.value.allowed


def test_a_job_that_is_no_mapping_is_refused():
    with pytest.raises(JobError, match=r"jobs\[2\]: \"pretrain\" is refused; allowed: a mapping"):
        JobSpec.parse("pretrain", "jobs[2]")


def test_a_variable_that_excludes_the_pod_identity_link_is_accepted():
    spec = JobSpec.parse(cpu_job("mpi", env={"NCCL_SOCKET_IFNAME": "^lo,pod-id-link0"}), "job")
    assert spec.env["NCCL_SOCKET_IFNAME"] == "^lo,pod-id-link0"


@pytest.mark.parametrize(("text", "millis"), [("2", 2000), ("0.5", 500), ("500m", 500), ("1.25", 1250)])
def test_cpu_quantities(text, millis):
    assert cpu_millis(text) == millis


@pytest.mark.parametrize(("text", "mib"), [("512Mi", 512), ("2Gi", 2048), ("1Ti", 1048576)])
def test_memory_quantities(text, mib):
    assert memory_mib(text) == mib


@pytest.mark.parametrize("text", ["", "-1", "1e3", "0m", "1.2345", "2 cores"])
def test_other_texts_are_no_cpu_quantity(text):
    with pytest.raises(ValueError, match="CPU cores"):
        cpu_millis(text)
