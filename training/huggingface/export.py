"""Trained weights back in the library's own layout: a folder for transformers, or an adapter's for peft."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from training.config import TrainConfig
from training.errors import TrainingError
from training.huggingface.adapter import is_adapter
from training.huggingface.architecture import PREFIX, HuggingFaceArchitecture
from training.huggingface.folder import locate

# What a tokenizer needs, and what a generation starts from; the rest is written anew.
_CARRIED = ("tokenizer*", "vocab.*", "merges.txt", "special_tokens_map.json", "added_tokens.json", "*.jinja", "generation_config.json")


def write_folder(config: TrainConfig, state: Mapping[str, Tensor], target: Path) -> None:
    """Write whole tensors, named as the trainer names parameters, as a folder that the library loads.

    Without adapters that is a model; with them, the adapter alone, which names the folder of its base. Raises TrainingError naming what is
    missing.
    """
    model = HuggingFaceArchitecture(config.model, config.seed, config.engine.precision).build()
    adapted = config.model.adapter.kind != "none"
    wanted = [name for name, _ in model.named_parameters() if is_adapter(name) or not adapted]
    if missing := [name for name in wanted if name not in state]:
        raise TrainingError(f"cannot export: no values for {', '.join(missing[:5])} ({len(missing)} in all)")
    values = {name.removeprefix(PREFIX): tensor for name, tensor in state.items() if is_adapter(name) or not adapted}
    model.model.save_pretrained(target, state_dict=values)
    source = locate(config.model.huggingface)
    for pattern in () if adapted else _CARRIED:
        for file in source.glob(pattern):
            if not (target / file.name).exists():
                shutil.copyfile(file, target / file.name)
