"""Frozen weights in four bits (NF4, their scales quantised too) through bitsandbytes, on a GPU and, without its fast kernels, on a CPU."""

from pathlib import Path
from typing import Any

import torch


def load_quantised(folder: Path, dtype: torch.dtype) -> Any:
    """The folder's model on this rank's device, its linear layers in four bits and computing in `dtype`, the rest in fp32."""
    from bitsandbytes.nn import Linear4bit
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    settings = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )
    device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        quantization_config=settings,
        device_map={"": device},
        dtype=torch.float32,
        attn_implementation="sdpa",
        local_files_only=True,
    )
    for module in model.modules():
        if isinstance(module, Linear4bit):
            # On some processors an evaluation would repack the weights in a form that has no backward pass.
            module.support_avx512bf16_for_cpu = False
    return model
