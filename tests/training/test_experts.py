"""A mixture of experts computes the same run however it is spread, over experts and pipeline stages too: one process is the reference.

Capacity and balance loss are taken per sample, so that not even the micro-batches matter. These run the whole trainer, with evaluations and
checkpoints; the parity table has more layouts.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.training.job import DDP, Job, values, zero
from training.history import History

pytestmark = pytest.mark.training

FSDP: dict[str, Any] = {"engine": {"kind": "fsdp"}}
EXPERTS: dict[str, Any] = {"model": {"num_experts": 4, "experts_per_token": 2, "capacity_factor": 1.0, "balance_weight": 0.02}}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> History:
    job = Job(tmp_path_factory.mktemp("reference"), {"data": {"files": [str(corpus)]}, **EXPERTS})
    job.run()
    return job.history()


SHARED: dict[str, Any] = {**FSDP, "parallel": {"expert": 2}}
STAGES: dict[str, Any] = {"parallel": {"pipeline": 2}}
INTERLEAVED: dict[str, Any] = {"parallel": {"pipeline": 2, "stages_per_rank": 2}, "model": {**EXPERTS["model"], "num_layers": 4}}


@pytest.mark.parametrize(
    ("settings", "ranks", "micro"),
    [
        (DDP, 1, 8),
        (DDP, 2, 2),
        (zero(1), 2, 2),
        (zero(3), 2, 2),
        (SHARED, 2, 2),
        ({**DDP, "parallel": {"expert": 2}}, 4, 2),
        (STAGES, 2, 2),
    ],
    ids=["micro-8", "ddp-2", "zero-1", "zero-3", "fsdp-expert-2", "ddp-4-expert-2", "pipeline-2"],
)
def test_losses_and_loads_equal_those_of_a_single_process(job: Job, reference: History, settings: dict, ranks: int, micro: int) -> None:
    job.settings |= EXPERTS
    job.run(ranks=ranks, batch={"micro": micro}, **settings)
    assert_equal(job.history(), reference)
    assert 0.0 < values(job.history(), "dropped_tokens")[0] < 0.5


def test_interleaved_stages_equal_a_single_process(job: Job, tmp_path: Path) -> None:
    alone = Job(tmp_path / "alone", {**job.settings, "model": INTERLEAVED["model"]})
    alone.run()
    job.run(ranks=2, **INTERLEAVED)
    assert_equal(job.history(), alone.history())


def test_a_run_goes_on_in_any_layout(job: Job, reference: History) -> None:
    """From stages to experts divided over shards, to ZeRO, to a single process, to stages again."""
    job.settings |= EXPERTS
    single: dict[str, Any] = DDP
    for settings, ranks in ((STAGES, 2), (SHARED, 2), (zero(2), 2), (single, 1)):
        job.run(ranks=ranks, expect=75, stop_after=2, **settings)
    job.run(ranks=2, **STAGES)
    assert_equal(job.history(), reference)


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_in_stages_stays_near_fp32(job: Job, tmp_path: Path, kind: str, precision: str) -> None:
    """What goes from stage to stage is fp32 under autocast, and half as wide under FSDP2."""
    alone = Job(tmp_path / "alone", job.settings)
    alone.run()
    job.run(ranks=2, engine={"kind": kind, "precision": precision}, **STAGES)
    assert values(job.history(), "loss") == pytest.approx(values(alone.history(), "loss"), rel=2e-3)
    assert values(job.history(), "loss") != values(alone.history(), "loss")


def assert_equal(history: History, reference: History) -> None:
    """Losses, gradient norms, evaluations and what the routers did."""
    assert values(history, "loss") == pytest.approx(values(reference, "loss"), rel=1e-5)
    assert values(history, "grad_norm") == pytest.approx(values(reference, "grad_norm"), rel=1e-4)
    assert history.evaluations == pytest.approx(reference.evaluations, rel=1e-5)
    for measure in ("balance_loss", "dropped_tokens", "expert_load_max"):
        assert values(history, measure) == pytest.approx(values(reference, measure), rel=1e-3)
