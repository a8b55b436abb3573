"""Tensor parallelism with sequence parallelism: which matrix is cut along which dimension, as DTensor's styles.

Between the blocks each rank holds its part of the sequence. Attention and feed-forward gather the sequence, work on their share of heads or
inner features, and scatter their sums back along the sequence. The logits stay cut along the vocabulary, and so does the loss.
"""

from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.distributed.tensor.parallel.style import ParallelStyle

from training.model import Transformer

_SEQUENCE = Shard(1)


def shard_tensors(model: Transformer, mesh: DeviceMesh) -> None:
    """Cut the model's matrices over the tensor axis, in place. Parameters become DTensors on that axis, norms whole ones."""
    plan: dict[str, ParallelStyle] = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=_SEQUENCE),
        "norm": SequenceParallel(use_local_output=True),
        "head": ColwiseParallel(input_layouts=_SEQUENCE, output_layouts=Shard(-1), use_local_output=False),
    }
    # A pipeline stage may have none of them.
    parallelize_module(model, mesh, {name: style for name, style in plan.items() if getattr(model, name) is not None})
    for block in model.blocks.values():
        parallelize_module(block, mesh, _block_plan() | (_dense_plan() if model.config.num_experts is None else _expert_plan()))


def _block_plan() -> dict[str, ParallelStyle]:
    return {
        "attention_norm": SequenceParallel(use_local_output=True),
        "attention": PrepareModuleInput(input_layouts=(_SEQUENCE, None), desired_input_layouts=(Replicate(), None)),
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=_SEQUENCE),
        "feed_forward_norm": SequenceParallel(use_local_output=True),
    }


def _dense_plan() -> dict[str, ParallelStyle]:
    """The feed-forward part of a block without experts."""
    return {
        "feed_forward": PrepareModuleInput(input_layouts=(_SEQUENCE,), desired_input_layouts=(Replicate(),)),
        "feed_forward.gate": ColwiseParallel(),
        "feed_forward.up": ColwiseParallel(),
        "feed_forward.down": RowwiseParallel(output_layouts=_SEQUENCE),
    }


def _expert_plan() -> dict[str, ParallelStyle]:
    """The mixture of a block with experts, which `training.expert_parallel` cuts: every rank routes all tokens."""
    return {
        "feed_forward": PrepareModuleInput(input_layouts=(_SEQUENCE,), desired_input_layouts=(Replicate(),), use_local_output=True),
    }
