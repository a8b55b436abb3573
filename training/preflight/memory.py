"""A lower bound of what a rank needs: weights, gradients and optimizer state, without activations. Standard library only."""

from training.config import EngineConfig
from training.layout import Layout

# Bytes per parameter: fp32 weights, their gradients, and AdamW's two moments.
_WEIGHTS, _GRADIENTS, _MOMENTS = 4, 4, 8


def state_bytes(parameters: int, engine: EngineConfig, layout: Layout) -> int:
    """Bytes of training state on one rank. What a ZeRO stage does not divide is whole on each rank of a model copy."""
    stage = engine.zero_stage or 0 if engine.kind == "deepspeed" else (3 if layout.shard > 1 else 0)
    shards = layout.replicas if engine.kind == "deepspeed" else layout.shard
    own = parameters // (layout.tensor * layout.pipeline)
    per_parameter = sum(size / (shards if stage >= least else 1) for size, least in ((_MOMENTS, 1), (_GRADIENTS, 2), (_WEIGHTS, 3)))
    return int(own * per_parameter)
