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
        model=ModelConfig(vocab_size=32000, dim=768, num_layers=12, num_heads=12, num_kv_heads=4, ffn_dim=2048),
        data=DataConfig(sequence_length=1024),
        batch=BatchConfig(micro=8, global_batch=512),
        optimizer=OptimizerConfig(lr=6e-4),
        schedule=ScheduleConfig(warmup_steps=200),
        engine=EngineConfig(kind="deepspeed", zero_stage=1, precision="bf16"),
        checkpoint=CheckpointConfig(every=250),
        evaluation=EvaluationConfig(every=250, samples=512),
    )


def llama_1b() -> TrainConfig:
    """1.1 billion parameters in bf16, sharded over one host of eight GPUs."""
    return TrainConfig(
        name="llama-1b",
        steps=20_000,
        model=ModelConfig(vocab_size=32000, dim=2048, num_layers=22, num_heads=32, num_kv_heads=4, ffn_dim=5632),
        data=DataConfig(sequence_length=2048),
        batch=BatchConfig(micro=8, global_batch=512),
        optimizer=OptimizerConfig(lr=4e-4),
        schedule=ScheduleConfig(warmup_steps=1000),
        engine=EngineConfig(kind="fsdp", precision="bf16"),
        checkpoint=CheckpointConfig(every=500),
        evaluation=EvaluationConfig(every=500, samples=512),
    )


def llama_8b() -> TrainConfig:
    """8 billion parameters in bf16, sharded over at least sixteen GPUs of 80 GB, with selective recomputation."""
    return TrainConfig(
        name="llama-8b",
        steps=100_000,
        model=ModelConfig(
            vocab_size=128_256,
            dim=4096,
            num_layers=32,
            num_heads=32,
            num_kv_heads=8,
            ffn_dim=14_336,
            rope_theta=500_000.0,
            activation_checkpointing="selective",
        ),
        data=DataConfig(sequence_length=4096),
        batch=BatchConfig(micro=1, global_batch=1024),
        optimizer=OptimizerConfig(lr=3e-4),
        schedule=ScheduleConfig(warmup_steps=2000),
        engine=EngineConfig(kind="fsdp", precision="bf16"),
        checkpoint=CheckpointConfig(every=500),
        evaluation=EvaluationConfig(every=500, samples=512),
    )


_ALL = (tiny, tiny_zero1, tiny_zero3, gpt_125m, llama_1b, llama_8b)
RECIPES: dict[str, Callable[[], TrainConfig]] = {make.__name__.replace("_", "-"): make for make in _ALL}


def recipe(name: str) -> TrainConfig:
    """The recipe of this name. Raises KeyError for another."""
    return RECIPES[name]()
