"""Models whose parameters ZeRO-3 divides while they are made: a rank never holds more than its part and one whole parameter."""

from typing import Any

import torch
from torch import nn

from training.architecture import choose_architecture, names_by_parameter, prepare_blocks, set_parameter
from training.config import TrainConfig
from training.precision import DTYPES


def build_divided(config: TrainConfig, deepspeed_config: dict[str, Any], device: torch.device) -> nn.Module:
    """The model, filled, in the precision that DeepSpeed computes in. Collective."""
    from deepspeed.runtime.zero.partition_parameters import Init

    architecture = choose_architecture(config)
    model = architecture.build()
    prepare_blocks(architecture.blocks(model), config)
    dtype = DTYPES[config.engine.precision]
    # An empty module: it divides those that it is given afterwards alike, but would first send what is not filled yet to all ranks.
    division = Init(module=nn.Module(), config_dict_or_path=deepspeed_config, dtype=dtype)
    for names in names_by_parameter(model):
        parameter = _made(model.get_parameter(names[0]), device, dtype)
        set_parameter(model, names, parameter)
        division._convert_to_deepspeed_param(parameter)
        parameter.partition()
    for buffer in model.buffers():
        buffer.data = buffer.data.to(device)
    architecture.fill(model)
    return model


def _made(parameter: nn.Parameter, device: torch.device, dtype: torch.dtype) -> Any:
    """A parameter with storage: unfilled if it had none, in the model's precision unless it is quantised."""
    wanted = dtype if parameter.is_floating_point() else parameter.dtype
    if parameter.is_meta:
        return nn.Parameter(torch.empty_like(parameter, device=device, dtype=wanted), requires_grad=parameter.requires_grad)
    parameter.data = parameter.data.to(device, wanted)
    return parameter
