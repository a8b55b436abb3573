"""LoRA through peft: low-rank additions to a frozen model, which alone are trained, saved and handed on."""

import math
import zlib
from typing import Any

import torch
from torch import Tensor, nn

from training.config import AdapterConfig
from training.schema import ConfigError
from training.weights import copy_whole, whole_shape

_NAME = "default"
_DOWN, _UP = f".lora_A.{_NAME}.weight", f".lora_B.{_NAME}.weight"


def add_adapter(model: Any, config: AdapterConfig) -> Any:
    """The model with adapters in its layers, everything else frozen. Raises ConfigError when the targets are not in it."""
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        task_type="CAUSAL_LM",
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=list(config.targets) or "all-linear",
    )
    try:
        return get_peft_model(model, settings, adapter_name=_NAME)
    except ValueError as error:
        allowed = f"names of linear layers of this model, or none for all of them; peft says: {error}"
        raise ConfigError("model.adapter.targets", list(config.targets), allowed) from None


def is_adapter(name: str) -> bool:
    """Whether a parameter belongs to an adapter."""
    return ".lora_" in name


def base_name(name: str) -> str:
    """Name that a parameter of a model with adapters has in the model without them."""
    return name.removeprefix("base_model.model.").replace(".base_layer", "")


def fill_adapter(name: str, parameter: Tensor, seed: int) -> None:
    """First values, from the seed and the name: uniform downwards, zero upwards, so that an untrained adapter changes nothing."""
    assert name.endswith((_DOWN, _UP)), name
    whole = torch.zeros(whole_shape(parameter))
    if name.endswith(_DOWN):
        generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))
        nn.init.kaiming_uniform_(whole, a=math.sqrt(5), generator=generator)
    copy_whole(parameter, whole)
