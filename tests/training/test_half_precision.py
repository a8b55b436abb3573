"""fp16 and its loss scale, on the CPU as on a GPU but for the kernels: overflows are skipped, and a resume keeps the scale."""

import pytest

from tests.training.job import DDP, FSDP, Job, merge, values, zero
from training.history import History
from training.schedule import learning_rate

pytestmark = pytest.mark.training

ENGINES = pytest.mark.parametrize("engine", [DDP, FSDP, zero(1), zero(3)], ids=["ddp", "fsdp", "zero-1", "zero-3"])
# Far too large at first, and grown again after two good steps.
STEPS = 30
RESTLESS = {"engine": {"precision": "fp16", "loss_scale_power": 32, "loss_scale_window": 2}, "steps": STEPS}


def skipped(history: History) -> list[int]:
    return [step for step in sorted(history.steps) if history.steps[step]["grad_norm"] is None]


@ENGINES
def test_fp16_stays_near_fp32(job: Job, engine: dict) -> None:
    whole = Job(job.folder / "whole", job.settings)
    whole.run(ranks=2)
    job.run(ranks=2, **merge(engine, {"engine": {"precision": "fp16", "loss_scale_power": 10}}))
    expected = whole.history()
    losses = values(job.history(), "loss")
    assert skipped(job.history()) == []
    assert losses == pytest.approx(values(expected, "loss"), rel=2e-3)
    assert losses != values(expected, "loss")
    assert values(job.history(), "grad_norm") == pytest.approx(values(expected, "grad_norm"), rel=2e-2), (
        "norms are those of the loss itself"
    )


@ENGINES
def test_an_overflow_skips_the_update_and_halves_the_scale(job: Job, engine: dict) -> None:
    job.run(ranks=2, **merge(engine, RESTLESS))
    history = job.history()
    scales = values(history, "loss_scale")
    assert skipped(history)[0] == 1
    assert len(skipped(history)) < STEPS - 5, "the scale must come down to where training goes on"
    for step in range(2, STEPS + 1):
        before, after = scales[step - 2], scales[step - 1]
        assert after == before / 2 if step in skipped(history) else after in (before, before * 2)
    grown = [step for step in range(2, STEPS + 1) if scales[step - 1] > scales[step - 2]]
    assert grown, "good steps double it"
    assert all(step not in skipped(history) for first in grown for step in (first, first - 1))
    rates = [learning_rate(step, peak=3e-3, warmup_steps=4, decay_steps=STEPS, floor=0.1) for step in range(STEPS)]
    assert values(history, "lr") == rates, "the rate goes by steps, skipped or not"


@ENGINES
def test_a_resume_goes_on_with_the_same_scale(job: Job, engine: dict) -> None:
    whole = Job(job.folder / "whole", job.settings)
    settings = merge(engine, RESTLESS)
    whole.run(ranks=2, **settings)
    for expected in (75, 75, 0):
        job.run(ranks=2, expect=expected, stop_after=13, **settings)
    for key in ("loss", "loss_scale", "grad_norm", "lr"):
        assert values(job.history(), key) == values(whole.history(), key), key


# Comes down in seven steps, then moves up and down; where it stops, the count of good steps says when it doubles next.
POWER, WINDOW, STOP = 24, 2, 13
MOVED = {"engine": {"precision": "fp16", "loss_scale_power": POWER, "loss_scale_window": WINDOW}, "steps": 18}
CHANGES = [
    (zero(1), 2, FSDP, 2),
    (zero(3), 2, DDP, 1),
    (zero(1), 2, zero(1), 4),
    (zero(1), 2, zero(3), 2),
    (FSDP, 2, zero(3), 2),
    (DDP, 2, zero(2), 2),
    (FSDP, 2, DDP, 2),
]


def replayed(history: History, lags: list[int]) -> list[float]:
    """The scale after each step, from which ones overflowed; after an overflow DeepSpeed takes one good step more until it doubles."""
    exponent, good = POWER, -lags[0]
    scales: list[float] = []
    for step, lag in zip(sorted(history.steps), lags, strict=True):
        overflowed = history.steps[step]["grad_norm"] is None
        good = -lag if overflowed else good + 1
        exponent += -1 if overflowed else int(good > 0 and good % WINDOW == 0)
        scales.append(2.0**exponent)
    return scales


def lag(engine: dict) -> int:
    return int(engine["engine"]["kind"] == "deepspeed")


@pytest.mark.parametrize(("engine", "ranks", "other", "others"), CHANGES)
def test_others_go_on_with_the_same_scale(job: Job, engine: dict, ranks: int, other: dict, others: int) -> None:
    job.run(ranks=ranks, expect=75, stop_after=STOP, **merge(engine, MOVED))
    finished = job.run(ranks=others, **merge(other, MOVED))
    assert "loss scale" not in finished.log
    history = job.history()
    scales = values(history, "loss_scale")
    assert scales[STOP - 1] <= 2.0**20, "it must have moved"
    assert scales == replayed(history, [lag(engine)] * STOP + [lag(other)] * (len(scales) - STOP))


@pytest.mark.parametrize("before", [zero(1, "bf16"), DDP], ids=["zero-1-bf16", "ddp-fp32"])
def test_a_checkpoint_without_a_scale_starts_afresh_and_says_so(job: Job, before: dict) -> None:
    """Of another precision, or of DeepSpeed as former versions wrote it: its engine's state looks the same."""
    job.run(ranks=2, expect=75, stop_after=STOP, steps=MOVED["steps"], **before)
    finished = job.run(ranks=2, **merge(FSDP, MOVED))
    assert f"the checkpoint of step {STOP} names no loss scale: it starts at 2^{POWER}" in finished.log
    first = job.history().steps[STOP + 1]
    assert (first["loss_scale"], first["grad_norm"]) == (2.0 ** (POWER - 1), None)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_other_precisions_have_no_loss_scale(job: Job, precision: str) -> None:
    job.run(steps=5, engine={"precision": precision})
    assert all("loss_scale" not in step for step in job.history().steps.values())
