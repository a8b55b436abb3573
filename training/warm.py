"""Imports that a run would make by and by, made at once in a process that ranks are forked from. Nothing here computes."""

import importlib
import os
import sys

from training.config import TrainConfig

_PLAIN = ("training.loop", "torch._dynamo", "training.engines.pytorch")
_DEEPSPEED = ("deepspeed", "training.engines.deepspeed")


def import_everything(config: TrainConfig) -> None:
    """Import what the loop and this configuration's engine use, those modules included that torch imports at a first use."""
    for module in _PLAIN:
        importlib.import_module(module)
    if config.engine.kind == "deepspeed":
        torch = sys.modules["torch"]
        os.environ.setdefault("DS_ACCELERATOR", "cuda" if torch.cuda.is_available() else "cpu")
        for module in _DEEPSPEED:
            importlib.import_module(module)
