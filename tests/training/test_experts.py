"""A mixture of experts computes the same run however it is spread: one process is the reference.

Capacity and balance loss are taken per sample, so that not even the micro-batches matter.
"""

from pathlib import Path

import pytest

from tests.training.job import DDP, Job, values, zero
from training.history import History

pytestmark = pytest.mark.training

EXPERTS = {"model": {"num_experts": 4, "experts_per_token": 2, "capacity_factor": 1.0, "balance_weight": 0.02}}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> History:
    job = Job(tmp_path_factory.mktemp("reference"), {"data": {"files": [str(corpus)]}, **EXPERTS})
    job.run()
    return job.history()


@pytest.mark.parametrize(
    ("engine", "ranks", "micro"),
    [(DDP, 1, 8), (DDP, 2, 2), (zero(1), 2, 2), (zero(3), 2, 2)],
    ids=["micro-8", "ddp-2", "zero-1", "zero-3"],
)
def test_losses_and_loads_equal_those_of_a_single_process(job: Job, reference: History, engine: dict, ranks: int, micro: int) -> None:
    job.settings |= EXPERTS
    job.run(ranks=ranks, batch={"micro": micro}, **engine)
    history = job.history()
    assert values(history, "loss") == pytest.approx(values(reference, "loss"), rel=1e-5)
    assert values(history, "grad_norm") == pytest.approx(values(reference, "grad_norm"), rel=1e-4)
    assert history.evaluations == pytest.approx(reference.evaluations, rel=1e-5)
    for measure in ("balance_loss", "dropped_tokens", "expert_load_max"):
        assert values(history, measure) == pytest.approx(values(reference, measure), rel=1e-3)
    assert 0.0 < values(history, "dropped_tokens")[0] < 0.5
