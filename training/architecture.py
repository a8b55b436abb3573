"""What an engine needs to know about a model, whatever its origin: how it is built, filled, and cut into blocks.

An engine composes them in one order: `build` on the meta device, split tensors, `prepare_blocks`, shard, `place` on the device, `fill`.
Values come from the seed or from files and from each parameter's name, so they do not depend on the layout.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import nn

from training.compilation import compile_blocks
from training.config import TrainConfig
from training.recomputation import recompute_activations


class Architecture(Protocol):
    """A kind of causal language model. Nothing here is collective."""

    def build(self) -> nn.Module:
        """The whole model with its parameters on the meta device: token ids [batch, sequence] to fp32 logits [batch, sequence, vocab]."""
        ...

    def blocks(self, model: nn.Module) -> Sequence[nn.Module]:
        """Its repeated blocks in order: the units of sharding, recomputation and compilation. The rest belongs to the root."""
        ...

    def fill(self, model: nn.Module) -> None:
        """Give every parameter its first value, or what this rank holds of it (see weights.py); the model may be a part of the whole."""
        ...

    def flops_per_token(self, length: int) -> int:
        """Floating point operations of one token's forward and backward pass in a sequence of this length, without recomputation."""
        ...

    def attention_kernel(self, length: int, dtype: torch.dtype, device: torch.device) -> str:
        """Kernel family that attention takes for this length, for the log."""
        ...


def resolve_model(config: TrainConfig) -> TrainConfig:
    """The configuration with what only the model's files know: vocabulary and digest. Raises ConfigError when they do not go with it."""
    if config.model.kind != "huggingface":
        return config
    from training.huggingface.folder import resolve

    return resolve(config)


def choose_architecture(config: TrainConfig) -> Architecture:
    """The architecture that `config.model` describes; the configuration is one that `resolve_model` gave."""
    if config.model.kind == "huggingface":
        from training.huggingface.architecture import HuggingFaceArchitecture

        return HuggingFaceArchitecture(config.model, config.seed, config.engine.precision)
    from training.model import TransformerArchitecture

    return TransformerArchitecture(config.model, config.seed)


def build_model(config: TrainConfig, device: torch.device) -> nn.Module:
    """A whole model on one device, filled: what engines that do not shard parameters themselves start from."""
    architecture = choose_architecture(config)
    model = architecture.build()
    prepare_blocks(architecture.blocks(model), config)
    place(model, device)
    architecture.fill(model)
    return model


def prepare_blocks(blocks: Sequence[nn.Module], config: TrainConfig) -> None:
    """Recompute and compile the blocks as the configuration says, in place; parameter names stay. Before sharding, after tensor splits."""
    recompute_activations(blocks, config.model.activation_checkpointing)
    if config.model.compile:
        compile_blocks(blocks)


def place(model: nn.Module, device: torch.device) -> None:
    """Give parameters on the meta device storage on this one, unfilled; move the rest. Parameters that were one tensor stay one."""
    tied = [names for names in names_by_parameter(model) if len(names) > 1]
    model._apply(lambda tensor: torch.empty_like(tensor, device=device) if tensor.is_meta else tensor.to(device))
    for names in tied:
        set_parameter(model, names, model.get_parameter(names[0]))


def names_by_parameter(model: nn.Module) -> list[list[str]]:
    """Every name of each parameter, several where it is tied to others; the first is the one that iteration gives."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return list(names.values())


def set_parameter(model: nn.Module, names: Sequence[str], parameter: nn.Parameter) -> None:
    """Put a parameter into a model under each of these names."""
    for name in names:
        parent, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(parent), attribute, parameter)
