"""Another number of ranks, another ZeRO stage, another engine: converted and the same run, or refused with both sides named.

By default a selection; TRAINYARD_ELASTIC=all runs every ordered pair of rank counts in {1, 2, 4, 8} for every engine, and
every ordered pair of engines:

    TRAINYARD_ELASTIC=all pytest tests/training/test_elastic.py
"""

import itertools
import os
from pathlib import Path

import pytest

from tests.training.job import DDP, FSDP, TENSOR, Job, values, zero
from training.history import History

pytestmark = pytest.mark.training

ENGINES: dict[str, dict] = {"ddp": DDP, "fsdp": FSDP, "tensor": TENSOR, **{f"zero{stage}": zero(stage) for stage in range(4)}}
STEPS, STOP = 20, 8
# One replica per rank, one sample each: all rank counts make the same global batch.
SETTINGS: dict = {
    "steps": STEPS,
    "batch": {"micro": 1, "global_batch": 8},
    "evaluation": {"every": 0},
    "checkpoint": {"every": 0, "keep": 4},
}
RANKS = (1, 2, 4, 8)
SELECTION = [
    ("ddp", 2, "ddp", 1),
    ("ddp", 1, "ddp", 4),
    ("zero0", 2, "zero0", 1),
    ("zero1", 2, "zero1", 4),
    ("zero2", 2, "zero2", 1),
    ("zero3", 2, "zero3", 4),
    ("zero3", 2, "zero3", 1),
    ("zero1", 2, "zero3", 2),
    ("zero3", 1, "zero2", 2),
    ("zero0", 1, "zero1", 1),
    ("ddp", 2, "zero3", 2),
    ("fsdp", 2, "fsdp", 4),
    ("fsdp", 4, "tensor", 4),
    ("tensor", 2, "zero3", 2),
    ("zero1", 2, "fsdp", 2),
    ("zero2", 2, "ddp", 1),
    ("zero3", 2, "zero0", 1),
]
CASES = (
    [
        (name, before, name, after)
        for name in ENGINES
        for before, after in itertools.permutations(RANKS, 2)
        if name != "tensor" or min(before, after) > 1
    ]
    + [(before, 2, after, 2) for before, after in itertools.permutations(ENGINES, 2)]
    if os.environ.get("TRAINYARD_ELASTIC") == "all"
    else SELECTION
)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> History:
    """One process, unbroken: every engine computes these losses (test_parity)."""
    job = Job(tmp_path_factory.mktemp("reference"), {"data": {"files": [str(corpus)]}})
    job.run(**SETTINGS)
    return job.history()


@pytest.mark.parametrize(("engine", "ranks", "other", "others"), CASES, ids=["-".join(map(str, case)) for case in CASES])
def test_others_go_on_with_the_same_losses(job: Job, reference: History, engine: str, ranks: int, other: str, others: int) -> None:
    job.settings.update(SETTINGS)
    job.run(ranks=ranks, expect=75, stop_after=STOP, **ENGINES[engine])
    finished = job.run(ranks=others, **ENGINES[other])
    assert f"was written by {ranks} ranks" in finished.log
    assert f"resumed from step {STOP}" in finished.log
    assert values(job.history(), "loss") == pytest.approx(values(reference, "loss"), rel=1e-6)
    assert values(job.history(), "lr") == values(reference, "lr")


@pytest.mark.parametrize(
    ("before", "after"),
    [(zero(1, "bf16"), zero(3, "bf16")), (zero(3, "bf16"), zero(1, "bf16")), (zero(2, "bf16"), zero(2))],
    ids=["zero1-zero3", "zero3-zero1", "bf16-fp32"],
)
def test_master_weights_survive_a_change_of_bf16_shards(job: Job, before: dict, after: dict) -> None:
    """Weights in bf16 lose bits, master weights must not: 2e-4 from the unbroken run was measured, lost ones would be 8e-3 off."""
    whole = Job(job.folder / "whole", {**job.settings, **SETTINGS})
    whole.run(ranks=2, **before)
    job.settings.update(SETTINGS)
    job.run(ranks=2, expect=75, stop_after=STOP, **before)
    job.run(ranks=1, **after)
    assert values(job.history(), "loss") == pytest.approx(values(whole.history(), "loss"), rel=2e-3)


def test_conversion_can_be_forbidden(job: Job) -> None:
    job.run(expect=75, stop_after=6)
    finished = job.run(ranks=2, expect=1, checkpoint={"on_world_change": "refuse"})
    assert "written by 1 ranks of ddp, this run has 2 ranks of ddp; start with the former layout" in finished.log


def test_another_shape_is_refused_naming_both(job: Job) -> None:
    job.run(expect=75, stop_after=6)
    finished = job.run(expect=78, model={"ffn_dim": 128})
    assert "model.ffn_dim: 128 is refused; allowed: 64, as in the checkpoint of step 6" in finished.log.splitlines()[-1]
