"""Named configurations: functions that return a whole TrainConfig. Standard library only."""

from collections.abc import Callable
from dataclasses import replace

from training.config import (
    BatchConfig,
    CheckpointConfig,
    DataConfig,
    EngineConfig,
    EvaluationConfig,
    ModelConfig,
    OptimizerConfig,
    ScheduleConfig,
    TrainConfig,
)


def tiny() -> TrainConfig:
    """0.9 million parameters on the text of the Python installation: learns within a minute on two CPU cores."""
    return TrainConfig(
        name="tiny",
        steps=60,
        batch=BatchConfig(micro=4, global_batch=16),
        data=DataConfig(sequence_length=128),
        schedule=ScheduleConfig(warmup_steps=6),
        checkpoint=CheckpointConfig(every=20),
        evaluation=EvaluationConfig(every=20, samples=32),
    )


def tiny_zero1() -> TrainConfig:
    """`tiny` with the optimizer state sharded by DeepSpeed."""
    return replace(tiny(), name="tiny-zero1", engine=EngineConfig(kind="deepspeed", zero_stage=1))


def tiny_zero3() -> TrainConfig:
    """`tiny` with optimizer state, gradients and parameters sharded by DeepSpeed."""
    return replace(tiny(), name="tiny-zero3", engine=EngineConfig(kind="deepspeed", zero_stage=3))


def gpt_125m() -> TrainConfig:
    """125 million parameters in bf16, for one host of eight GPUs."""
    return TrainConfig(
        name="gpt-125m",
        steps=5000,
        model=ModelConfig(
            dim=768, num_layers=12, num_heads=12, num_kv_heads=4, ffn_dim=2304, vocab_size=50304, activation_checkpointing="none"
        ),
        data=DataConfig(sequence_length=1024),
        batch=BatchConfig(micro=8, global_batch=512),
        optimizer=OptimizerConfig(lr=6e-4),
        schedule=ScheduleConfig(warmup_steps=200),
        engine=EngineConfig(kind="deepspeed", zero_stage=1, precision="bf16"),
        checkpoint=CheckpointConfig(every=250),
        evaluation=EvaluationConfig(every=250, samples=512),
    )


RECIPES: dict[str, Callable[[], TrainConfig]] = {"tiny": tiny, "tiny-zero1": tiny_zero1, "tiny-zero3": tiny_zero3, "gpt-125m": gpt_125m}


def recipe(name: str) -> TrainConfig:
    """The recipe of this name. Raises KeyError for another."""
    return RECIPES[name]()
