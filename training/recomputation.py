"""Activation checkpointing: blocks that give up memory for a second forward pass, always in the non-reentrant form."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

# Results that cost more to compute again than to keep: matrix products and attention, and what came over the network.
_KEPT = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_grouped_mm", "aten::_scaled_mm", "aten::_scaled_dot_product")
_KEPT_NAMESPACES = ("_c10d_functional::",)


def recompute_activations(blocks: Sequence[nn.Module], mode: str) -> None:
    """Make the blocks drop what their backward pass needs, and compute it again then; in place, so names and hooks stay.

    full: keep a block's inputs alone. selective: also keep the results of matrix products, attention and collectives, and compute
    only norms, rotations, activations and residuals again.
    """
    if mode == "none":
        return
    contexts = {} if mode == "full" else {"context_fn": partial(create_selective_checkpoint_contexts, _policy)}
    for block in blocks:
        block.forward = _recomputed(block, block.forward, contexts)


def _recomputed(block: nn.Module, forward: Callable, contexts: dict[str, Any]) -> Callable:
    def run(*args: Any, **kwargs: Any) -> Any:
        if block.training and torch.is_grad_enabled():
            return checkpoint(forward, *args, use_reentrant=False, **contexts, **kwargs)
        return forward(*args, **kwargs)

    return run


def _policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    del context, args, kwargs
    name = operator.name() if hasattr(operator, "name") else str(operator)
    kept = name.split(".")[0] in _KEPT or name.startswith((_KEPT[-1], *_KEPT_NAMESPACES))
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE
