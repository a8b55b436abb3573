"""Settings of the jobs program, and the stack files that are committed."""

from pathlib import Path

import pytest
import yaml

from tests.unit.workloads.builders import cpu_job, platform
from workloads.errors import JobError
from workloads.plan import plan_job
from workloads.settings import PROJECT, parse

pytestmark = pytest.mark.unit
WORKLOADS = Path(__file__).parents[3] / "workloads"


def values(**changes):
    return {"platform": "organization/trainyard/local", "image": "trainer:1", "jobs": [cpu_job("mpi")]} | changes


def test_settings_are_read():
    settings = parse(values())
    assert (settings.platform, settings.image, len(settings.jobs)) == ("organization/trainyard/local", "trainer:1", 1)
    assert parse(values(jobs=[])).jobs == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"platform": "local"}, 'platform: "local" is refused; allowed: a platform stack written organization/project/stack'),
        ({"platform": None}, "platform: nothing is refused"),
        ({"jobs": None}, "jobs: nothing is refused; allowed: a list of jobs"),
        ({"jobs": {"a": 1}}, "jobs: .* is refused; allowed: a list of jobs"),
        (
            {"jobs": [cpu_job("mpi"), cpu_job("volcano")]},
            r"jobs\[1\].name: \"pretrain\" is refused; allowed: a name of its own; jobs\[0\] has",
        ),
        ({"jobs": [cpu_job("mpi", numWorkers=0)]}, r"jobs\[0\].numWorkers: 0 is refused"),
        ({"job": []}, "job: .* no such key; known keys: platform, image, jobs"),
    ],
)
def test_a_wrong_setting_names_its_path_value_and_what_is_allowed(changes, message):
    with pytest.raises(JobError, match=message):
        parse(values(**changes))


@pytest.mark.parametrize("stack", ["local", "dev"])
def test_the_committed_stack_files_hold_jobs_that_can_be_planned(stack):
    raw = yaml.safe_load((WORKLOADS / f"Pulumi.{stack}.yaml").read_text())["config"]
    settings = parse({key.removeprefix(f"{PROJECT}:"): value for key, value in raw.items()})
    assert settings.jobs
    for spec in settings.jobs:
        plan_job(spec, platform(), image=settings.image)


def test_the_local_stack_runs_one_job_of_each_kind_with_stage_1_and_3_and_room_on_two_cores():
    raw = yaml.safe_load((WORKLOADS / "Pulumi.local.yaml").read_text())["config"][f"{PROJECT}:jobs"]
    assert {(job["kind"], job["train"]["engine"]["zero_stage"]) for job in raw} == {("mpi", 1), ("volcano", 3)}
    plans = [plan_job(spec, platform(), image="x") for spec in parse(values(jobs=raw)).jobs]
    assert sum(plan.resources.cpu_millis * plan.world.workers for plan in plans) <= 1700
    assert {plan.world.size for plan in plans} == {2}
