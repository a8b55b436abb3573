"""A run from its first line to its last: it learns, and says what it is and does. Only a real run can prove either."""

import pytest

from tests.training.job import Job, values

pytestmark = pytest.mark.training


def test_the_loss_falls_clearly_and_the_log_says_what_runs(job: Job) -> None:
    """Bytes start near ln 256 = 5.55; 60 steps of a small model bring them below 3.6 on text, held-out text too."""
    job.settings.update(steps=60, model={"dim": 64, "num_layers": 2, "ffn_dim": 128}, batch={"micro": 8, "global_batch": 32})
    job.settings["evaluation"] = {"every": 30, "samples": 32}
    job.settings["checkpoint"] = {"every": 0}
    finished = job.run()
    history = job.history()
    assert 5.3 < history.first_loss < 6.0
    assert history.last_loss < 3.6, values(history, "loss")
    assert history.evaluations[60] < history.evaluations[30] < 5.0
    assert history.evaluations[60] < 3.7
    assert sorted(history.checkpoints) == [60], "the end is saved even when no interval asks for it"
    for line in (
        "world size 1 (launched by none",
        "backend gloo (no GPU visible), device cpu",
        "global batch 32 = micro 8 x accumulation 4 x data-parallel replicas 1; 1024 tokens per step",
        "engine ddp fp32",
        "attention kernel",
        "done: 60 optimizer steps",
    ):
        assert line in finished.log
    assert all(record["tokens_per_second"] > 0 and record["grad_norm"] > 0 for record in history.steps.values())


def test_a_finished_run_started_again_is_done_at_once_and_unchanged(job: Job) -> None:
    job.run(steps=6)
    before = job.history().steps
    finished = job.run(steps=6)
    assert "resumed from step 6" in finished.log
    assert job.history().steps == before


def test_recomputed_activations_change_nothing_but_memory(job: Job) -> None:
    other = Job(job.folder / "other", job.settings)
    job.run(steps=6)
    other.run(steps=6, model={"activation_checkpointing": "full"})
    assert values(other.history(), "loss") == values(job.history(), "loss")


def test_bf16_follows_fp32_within_its_precision(job: Job) -> None:
    other = Job(job.folder / "other", job.settings)
    job.run()
    other.run(engine={"precision": "bf16"})
    assert values(other.history(), "loss") == pytest.approx(values(job.history(), "loss"), rel=2e-2)
    assert values(other.history(), "loss") != values(job.history(), "loss")
