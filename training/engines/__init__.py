"""Engines: how the training state is spread over the ranks. Each is imported only when a run uses it."""

from training.config import TrainConfig
from training.distributed import Ranks
from training.engines.base import Engine
from training.layout import Layout

__all__ = ["Engine", "build_engine"]


def build_engine(config: TrainConfig, ranks: Ranks, layout: Layout) -> Engine:
    """The engine that `config.engine.kind` names, with a freshly initialised model."""
    if config.engine.kind == "deepspeed":
        from training.engines.deepspeed import DeepSpeedEngine

        return DeepSpeedEngine(config, ranks, layout)
    if layout.pipeline > 1:
        from training.engines.pipeline import PipelineEngine

        return PipelineEngine(config, ranks, layout)
    from training.engines.pytorch import TorchEngine

    return TorchEngine(config, ranks, layout)
