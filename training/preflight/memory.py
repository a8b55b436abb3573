"""A lower bound of what a rank needs: weights, gradients and optimizer state, without activations. Standard library only."""

from training.config import EngineConfig
from training.layout import Layout

# Bytes per parameter: fp32 weights, their gradients, and AdamW's two moments.
_WEIGHTS, _GRADIENTS, _MOMENTS = 4, 4, 8


def state_bytes(trained: int, engine: EngineConfig, layout: Layout, *, on_host: bool, frozen_bytes: int = 0) -> int:
    """Bytes of training state on one rank: in its host's memory if the rank computes there, else on its device.

    `trained` parameters have gradients and moments; what is frozen, as under an adapter, is there as weights alone.

    What a ZeRO stage does not divide is whole on each rank of a model copy; what is offloaded takes none of the device.
    """
    stage = engine.zero_stage or 0 if engine.kind == "deepspeed" else (3 if layout.shard > 1 else 0)
    shards = layout.replicas if engine.kind == "deepspeed" else layout.shard
    weights = 0 if not on_host and engine.offload_parameters == "cpu" else _WEIGHTS
    moments = 0 if not on_host and engine.offload_optimizer == "cpu" else _MOMENTS
    weight_shards = shards if stage >= 3 else 1
    per_parameter = weights / weight_shards + sum(
        size / (shards if stage >= least else 1) for size, least in ((moments, 1), (_GRADIENTS, 2))
    )
    frozen = frozen_bytes / weight_shards if weights else 0
    return int((trained * per_parameter + frozen) / (layout.tensor * layout.pipeline))
