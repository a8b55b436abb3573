"""Tiny models of real architectures, made on the spot: one with separate head, two with tied embeddings, one with experts."""

from pathlib import Path
from typing import Any

FAMILIES = ("llama", "qwen3", "gpt2", "mixtral")
_SHAPE = {
    "vocab_size": 256,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
}


def library_config(family: str) -> Any:
    """The library's configuration of a tiny model."""
    from transformers import GPT2Config, LlamaConfig, MixtralConfig, Qwen3Config

    if family == "gpt2":
        dropouts = dict.fromkeys(("attn_pdrop", "resid_pdrop", "embd_pdrop"), 0.0)
        return GPT2Config(vocab_size=256, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None, **dropouts)
    if family == "mixtral":
        return MixtralConfig(**_SHAPE, num_local_experts=4, num_experts_per_tok=2)
    if family == "wide":
        # Rows of at least one block of NF4.
        return LlamaConfig(**{**_SHAPE, "hidden_size": 64, "head_dim": 16})
    return {"llama": LlamaConfig, "qwen3": Qwen3Config}[family](**_SHAPE, tie_word_embeddings=family == "qwen3")


def write_model(folder: Path, family: str, seed: int = 0, max_shard_size: str = "1GB") -> Path:
    """A random model of a family, saved by the library."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(library_config(family))
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            # Norms and biases that differ from their defaults, so that a forgotten one shows.
            torch.nn.init.normal_(parameter, mean=1.0 if "bias" not in name else 0.0, std=0.1)
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    return folder


def write_start(config: Path, target: Path) -> None:
    """What a run begins with, in the library's layout."""
    import torch

    from training.architecture import build_model, resolve_model
    from training.config import TrainConfig
    from training.huggingface.export import write_folder

    settings = resolve_model(TrainConfig.from_json(config.read_text()))
    write_folder(settings, build_model(settings, torch.device("cpu")).state_dict(), target)


def main(arguments: list[str]) -> int:
    """`models FOLDER FAMILY...`: write one model of each family. `start CONFIG FOLDER`: write what a run begins with."""
    what, where, *rest = arguments
    if what == "start":
        write_start(Path(where), Path(rest[0]))
    else:
        for family in rest:
            write_model(Path(where) / family, family)
    return 0
