"""Model and optimizer of plain PyTorch as one state dict, by parameter name, and back; wrappers and shards do not show in it."""

from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.optim import Optimizer

from training import container
from training.read_check import ReadCheck

# What is frozen comes from the base model at each start. That nothing else is missing is for the reader of checkpoints to see.
_OPTIONS = StateDictOptions(strict=False, ignore_frozen_params=True)


def state_of(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """The live tensors, under `model` and `optimizer`. Collective where they are sharded."""
    own, optimizer_state = get_state_dict(model, optimizer, options=_OPTIONS)
    # Modules may add more, such as the scales of quantised weights, which are frozen too.
    known = {name for name, _ in (*model.named_parameters(), *model.named_buffers())}
    own = {name: tensor for name, tensor in own.items() if name in known}
    return {"model": own, "optimizer": optimizer_state}


def load_state(
    model: nn.Module, optimizer: Optimizer, directory: Path, group: dist.ProcessGroup | None, check: ReadCheck | None = None
) -> None:
    """Fill them from a folder that `container.save` wrote, on any ranks and by any engine. Collective. Raises CheckpointError."""
    state = state_of(model, optimizer)
    # Groups say what the optimizer does, which is the configuration's to decide and not an old checkpoint's.
    groups = state["optimizer"].pop("param_groups")
    container.load(state, directory, group, check=check)
    optimizer_state = {**state["optimizer"], "param_groups": groups}
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=optimizer_state, options=_OPTIONS)
