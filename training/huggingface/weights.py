"""Weights of a folder by the names that they have in the model, read part by part: a rank reads what it holds of them and no more."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from training.errors import TrainingError
from training.huggingface.folder import weight_files

_log = logging.getLogger(__name__)


class PretrainedWeights:
    """Gives each parameter's tensor as something that can be sliced.

    Most models have the same names and shapes on disk. Those that do not, such as mixtures of experts whose experts are stored one by one,
    are read by transformers, which holds the whole model in host memory for it.
    """

    def __init__(self, folder: Path, prefix: str, names: Iterable[str]) -> None:
        from safetensors import safe_open

        self._folder, self._files = folder, {}
        for file in weight_files(folder):
            opened = safe_open(file, framework="pt")
            self._files |= dict.fromkeys(opened.keys(), opened)
        on_disk = {name: self._on_disk(name, prefix) for name in names}
        self._names = {name: found for name, found in on_disk.items() if found is not None}
        self._converted = self._convert() if len(self._names) < len(on_disk) else None

    def __getitem__(self, name: str) -> Any:
        """The tensor of this name, or a view of the file that slicing reads."""
        if self._converted is not None:
            return self._converted[name]
        stored = self._names.get(name, name)
        return self._files[stored].get_slice(stored)

    def __contains__(self, name: str) -> bool:
        return name in (self._converted if self._converted is not None else self._files)

    def get_shape(self, name: str) -> tuple[int, ...]:
        """Shape of the tensor of this name."""
        tensor = self[name]
        return tuple(tensor.shape if self._converted is not None else tensor.get_shape())

    def _on_disk(self, name: str, prefix: str) -> str | None:
        """A name in the files: models are stored with or without the name of the part that holds all but the head."""
        return next((stored for stored in (name, name.removeprefix(f"{prefix}.")) if stored in self._files), None)

    def _convert(self) -> dict[str, torch.Tensor]:
        from transformers import AutoModelForCausalLM

        _log.info("weights in %s have other names or shapes than the model; reading all of them into host memory", self._folder)
        model, report = AutoModelForCausalLM.from_pretrained(
            self._folder, dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
        if missing := sorted(report["missing_keys"]):
            raise TrainingError(f"{self._folder} lacks weights that its model has: {', '.join(missing[:5])} ({len(missing)} in all)")
        return model.state_dict()
