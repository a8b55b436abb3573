"""The configuration handed to DeepSpeed: ours alone, nothing automatic, and no key that DeepSpeed does not know."""

import json

import pytest
from deepspeed.runtime import config as deepspeed_settings
from deepspeed.runtime import constants
from deepspeed.runtime.zero import config as zero_settings

from training.config import TrainConfig
from training.engines.deepspeed import deepspeed_config

pytestmark = pytest.mark.training

EVERY = [(stage, precision) for stage in (0, 1, 2, 3) for precision in ("fp32", "bf16")]


def built(stage: int, precision: str) -> dict:
    engine = {"kind": "deepspeed", "zero_stage": stage, "precision": precision}
    config = TrainConfig.from_mapping({"name": "x", "steps": 20, "batch": {"micro": 2, "global_batch": 24}, "engine": engine})
    return deepspeed_config(config, config.plan_batch(3), pin_memory=False)


@pytest.mark.parametrize(("stage", "precision"), EVERY)
def test_nothing_is_left_to_auto(stage: int, precision: str) -> None:
    assert '"auto"' not in json.dumps(built(stage, precision))


@pytest.mark.parametrize(("stage", "precision"), EVERY)
def test_every_key_is_one_that_deepspeed_knows(stage: int, precision: str) -> None:
    modules = (constants, deepspeed_settings, zero_settings)
    known = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    config = built(stage, precision)
    assert set(config) <= known, set(config) - known
    assert set(config["zero_optimization"]) <= set(zero_settings.DeepSpeedZeroConfig.model_fields)


def test_the_batch_identity_is_derived_from_the_ranks() -> None:
    config = built(1, "fp32")
    triple = [config[key] for key in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")]
    assert triple == [24, 2, 4]


def test_no_precision_uses_a_loss_scaler() -> None:
    for stage, precision in EVERY:
        config = built(stage, precision)
        assert not config.get("fp16", {}).get("enabled", False)
        assert config["bf16"]["enabled"] == (precision == "bf16" and stage > 0)
