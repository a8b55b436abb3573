"""Batch arithmetic: the one function that preview, trainer and DeepSpeed share."""

import pytest

from training.batch import BatchError, plan_batch

pytestmark = pytest.mark.unit


def test_the_deepspeed_triple_is_derived_from_the_replicas() -> None:
    triple = plan_batch(replicas=3, micro=1, accumulation=3).deepspeed()
    assert triple == {"train_batch_size": 9, "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 3}


def test_accumulation_follows_from_the_global_batch() -> None:
    plan = plan_batch(replicas=4, micro=2, global_batch=32)
    assert plan.accumulation == 4
    assert str(plan) == "32 = micro 2 x accumulation 4 x data-parallel replicas 4"


def test_one_micro_batch_per_step_unless_said_otherwise() -> None:
    assert plan_batch(replicas=2, micro=4).accumulation == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        # batch 256, micro 2 on 7 ranks: the case that otherwise fails on the accelerator
        (
            {"replicas": 7, "micro": 2, "global_batch": 256},
            "256 is not a multiple of micro batch 2 x data-parallel replicas 7 = 14; use a global batch of 252 or 266",
        ),
        (
            {"replicas": 3, "micro": 1, "global_batch": 9, "accumulation": 2},
            "9 is not micro batch 1 x accumulation 2 x data-parallel replicas 3 = 6",
        ),
        ({"replicas": 8, "micro": 4, "global_batch": 16}, "use a global batch of 32"),
        ({"replicas": 2, "micro": 0}, "micro batch is 0"),
        ({"replicas": 2, "micro": 1, "accumulation": -1}, "accumulation is -1"),
        ({"replicas": 2, "micro": 1, "global_batch": True}, "global batch is True"),
    ],
)
def test_numbers_that_do_not_fit_are_refused_by_name(arguments: dict, message: str) -> None:
    with pytest.raises(BatchError) as caught:
        plan_batch(**arguments)
    assert message in str(caught.value)
