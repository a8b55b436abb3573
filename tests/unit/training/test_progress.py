"""Which configuration may go on from which checkpoint: the same run, and nothing else, with both values named."""

import json

import pytest

from training.config import TrainConfig
from training.progress import CheckpointInfo, layout_change, refuse_other_run
from training.schema import ConfigError

pytestmark = pytest.mark.unit

SAVED = {"name": "run", "steps": 100, "engine": {"kind": "deepspeed", "zero_stage": 1}}


def checkpoint(step: int = 40) -> CheckpointInfo:
    config = TrainConfig.from_mapping(SAVED).to_mapping()
    return CheckpointInfo(step=step, samples=step * 8, world_size=2, config=config, corpus="c0ffee", versions={})


def changed(override: str) -> TrainConfig:
    return TrainConfig.from_json(json.dumps(SAVED), [override])


def test_info_survives_the_disk() -> None:
    assert CheckpointInfo.from_json(checkpoint().to_json()) == checkpoint()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.num_layers=5", "model.num_layers: 5 is refused; allowed: 4, as in the checkpoint of step 40"),
        ("data.sequence_length=512", "data.sequence_length: 512 is refused; allowed: 256"),
        ("seed=1", "seed: 1 is refused; allowed: 0"),
        ("steps=30", "steps: 30 is refused; allowed: at least 40"),
    ],
)
def test_another_run_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_other_run(checkpoint(), changed(override), "c0ffee")
    assert message in str(caught.value)


def test_another_corpus_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"data.files: .* the corpus that step 40 was trained on"):
        refuse_other_run(checkpoint(), changed("seed=0"), "decaf")


@pytest.mark.parametrize(
    "override",
    [
        "optimizer.lr=1e-4",
        "steps=400",
        "batch.micro=2",
        "model.attention=math",
        "checkpoint.every=7",
        'engine={"kind":"ddp"}',
        "engine.precision=bf16",
        'data.files=["x"]',
    ],
)
def test_what_does_not_change_the_run_may_change(override: str) -> None:
    refuse_other_run(checkpoint(), changed(override), "c0ffee")


def test_another_layout_is_named_with_both_sides() -> None:
    assert layout_change(checkpoint(), changed("seed=0"), 2) is None
    assert layout_change(checkpoint(), changed("seed=0"), 4) == (
        "the checkpoint of step 40 was written by 2 ranks of deepspeed ZeRO-1 fp32, this run has 4 ranks of deepspeed ZeRO-1 fp32"
    )
    assert "this run has 2 ranks of deepspeed ZeRO-3" in (layout_change(checkpoint(), changed("engine.zero_stage=3"), 2) or "")
    assert "this run has 2 ranks of ddp" in (layout_change(checkpoint(), changed('engine={"kind":"ddp"}'), 2) or "")
    assert "this run has 2 ranks of deepspeed ZeRO-1 bf16" in (layout_change(checkpoint(), changed("engine.precision=bf16"), 2) or "")
