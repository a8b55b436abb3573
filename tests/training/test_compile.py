"""Compiled blocks under the engines compute the same run. Slow: the compiler takes a minute for the first graph."""

import pytest

from tests.training.job import DDP, FSDP, Job, merge, values, zero

pytestmark = [pytest.mark.training, pytest.mark.slow]


@pytest.mark.parametrize(("engine", "ranks"), [(DDP, 1), (DDP, 2), (FSDP, 2), (zero(1), 2)], ids=["one", "ddp", "fsdp", "zero-1"])
def test_compiled_blocks_compute_the_same_run(job: Job, engine: dict, ranks: int) -> None:
    settings = merge(engine, {"steps": 5, "evaluation": {"every": 0}, "checkpoint": {"every": 0}})
    plain = Job(job.folder / "plain", job.settings)
    plain.run(ranks=ranks, **settings)
    job.run(ranks=ranks, **merge(settings, {"model": {"compile": True}}))
    assert values(job.history(), "loss") == pytest.approx(values(plain.history(), "loss"), rel=1e-5)
