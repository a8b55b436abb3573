"""Names follow content: a changed job is another object, an unchanged one keeps its name, and `attempt` runs it again."""

import pytest

from tests.unit.workloads.builders import cpu_job, gpu_job, rendered
from workloads.kinds import KINDS

pytestmark = [pytest.mark.unit, pytest.mark.parametrize("kind", KINDS)]


def test_the_same_job_has_the_same_name(kind):
    assert rendered(gpu_job(kind)).name == rendered(gpu_job(kind)).name


@pytest.mark.parametrize(
    "change",
    [
        {"image": "other:2"},
        {"attempt": 2},
        {"numWorkers": 3},
        {"maxRestarts": 9},
        {"env": {"NCCL_DEBUG": "INFO"}},
        {"train": {"steps": 101, "batch": {"micro": 2}, "checkpoint": {"directory": "/checkpoints"}}},
    ],
)
def test_any_change_gives_another_name(kind, change):
    before, after = rendered(cpu_job(kind)), rendered(cpu_job(kind, **change))
    assert before.name != after.name, "a started job cannot be changed in place"
    assert after.name.startswith("pretrain-")


def test_the_longest_name_still_makes_a_legal_pod_name(kind):
    name = rendered(cpu_job(kind, name="a" * 40)).name
    assert len(f"{name}-worker-9999") <= 63
