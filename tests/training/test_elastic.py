"""Another number of ranks or ZeRO stage: converted and the same run, or refused with both sides named; never a silent fresh start."""

import pytest

from tests.training.job import DDP, Job, values, zero

pytestmark = pytest.mark.training


@pytest.mark.parametrize(
    ("engine", "before", "after"),
    [(DDP, 2, 1), (DDP, 1, 4), (zero(0), 2, 1), (zero(1), 2, 4), (zero(1), 2, 1), (zero(2), 2, 1), (zero(3), 2, 4), (zero(3), 2, 1)],
    ids=["ddp-2-1", "ddp-1-4", "zero0-2-1", "zero1-2-4", "zero1-2-1", "zero2-2-1", "zero3-2-4", "zero3-2-1"],
)
def test_other_ranks_go_on_with_the_same_losses(job: Job, engine: dict, before: int, after: int) -> None:
    whole = Job(job.folder / "whole", job.settings)
    whole.run(ranks=before, **engine)
    job.run(ranks=before, expect=75, stop_after=6, **engine)
    finished = job.run(ranks=after, **engine)
    assert f"was written by {before} ranks" in finished.log
    assert "resumed from step 6" in finished.log
    assert values(job.history(), "loss") == pytest.approx(values(whole.history(), "loss"), rel=1e-5)


def test_zero_1_goes_on_as_zero_2(job: Job) -> None:
    whole = Job(job.folder / "whole", job.settings)
    whole.run(ranks=2, **zero(1))
    job.run(ranks=2, expect=75, stop_after=6, **zero(1))
    job.run(ranks=2, **zero(2))
    assert values(job.history(), "loss") == pytest.approx(values(whole.history(), "loss"), rel=1e-5)


def test_bf16_shards_are_converted_too(job: Job) -> None:
    whole = Job(job.folder / "whole", job.settings)
    for stage in (1, 3):
        whole.settings["name"] = job.settings["name"] = f"stage-{stage}"
        whole.run(ranks=2, **zero(stage, "bf16"))
        job.run(ranks=2, expect=75, stop_after=6, **zero(stage, "bf16"))
        job.run(ranks=1, **zero(stage, "bf16"))
        assert values(job.history(), "loss") == pytest.approx(values(whole.history(), "loss"), rel=2e-3)


def test_what_cannot_be_converted_is_refused_with_both_sides_and_the_remedy(job: Job) -> None:
    job.run(expect=75, stop_after=6, **zero(1))
    last = job.run(expect=1, **zero(3)).log.splitlines()[-1]
    assert "the checkpoint of step 6 was written by 1 ranks of deepspeed ZeRO-1, this run has 1 ranks of deepspeed ZeRO-3" in last
    assert "set engine.zero_stage to 1" in last


def test_conversion_can_be_forbidden(job: Job) -> None:
    job.run(expect=75, stop_after=6)
    finished = job.run(ranks=2, expect=1, checkpoint={"on_world_change": "refuse"})
    assert "written by 1 ranks of ddp, this run has 2 ranks of ddp; start with the former layout" in finished.log


def test_another_engine_is_refused(job: Job) -> None:
    job.run(expect=75, stop_after=6)
    finished = job.run(expect=78, **zero(1))
    assert 'engine.kind: "deepspeed" is refused; allowed: ddp, as in the checkpoint of step 6' in finished.log.splitlines()[-1]
