"""What DeepSpeed wrote on any number of ranks, as whole tensors by parameter name, in the form that every engine reads.

DeepSpeed's own converter joins the shards (its universal form, one file per parameter and state); replicated checkpoints hold whole tensors
already. Runs on one rank, for the others to read what it wrote.
"""

import shutil
from argparse import Namespace
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from training import container
from training.errors import CheckpointError
from training.writer import CheckpointWriter

TAG = "zero"
_MOMENTS = ("exp_avg", "exp_avg_sq")


def write_full(source: Path, target: Path, *, stage: int, names: list[str], step: int) -> None:
    """Rewrite the engine's folder `source` of a ZeRO stage into the empty folder `target`.

    `names` are the optimizer's parameters in its own order, which replicated state is numbered by; `step` is the optimizer steps made.
    Raises CheckpointError.
    """
    try:
        tensors = _replicated(source / TAG, names) if stage == 0 else _joined(source / TAG, target / "universal", step)
        container.save(tensors, target, CheckpointWriter(target), None, alone=True)
        shutil.rmtree(target / "universal", ignore_errors=True)
    except (OSError, RuntimeError, KeyError, AssertionError) as error:
        raise CheckpointError(f"DeepSpeed's files in {source} cannot be converted: {type(error).__name__}: {error}") from error


def _replicated(source: Path, names: list[str]) -> dict[str, Tensor]:
    state = _read(source / "mp_rank_00_model_states.pt")
    tensors = {f"model.{name}": tensor for name, tensor in state["module"].items()}
    for index, moments in state["optimizer"]["state"].items():
        tensors |= {f"optimizer.state.{names[index]}.{key}": torch.as_tensor(value) for key, value in moments.items()}
    return tensors


def _joined(source: Path, universal: Path, step: int) -> dict[str, Tensor]:
    """Master weights and moments of every parameter. The files are mapped, so they take no memory until they are written again."""
    _make_universal(source, universal)
    shapes = _shapes(source)
    tensors: dict[str, Tensor] = {}
    for folder in sorted(path for path in (universal / "zero").iterdir() if path.is_dir()):
        shape = shapes[folder.name]
        tensors[f"model.{folder.name}"] = _parameter(folder / "fp32.pt", shape)
        if not (folder / f"{_MOMENTS[0]}.pt").exists():
            # A frozen parameter.
            continue
        own = f"optimizer.state.{folder.name}"
        tensors |= {f"{own}.{key}": _parameter(folder / f"{key}.pt", shape) for key in _MOMENTS}
        counted = folder / "step.pt"
        tensors[f"{own}.step"] = torch.tensor(float(_read(counted)) if counted.exists() else float(step))
    return tensors


def _make_universal(source: Path, target: Path) -> None:
    from deepspeed.checkpoint.ds_to_universal import main

    target.mkdir(parents=True)
    options = {"num_extract_workers": 1, "num_merge_workers": 1, "keep_temp_folder": False, "strict": True, "inject_missing_state": True}
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        main(Namespace(input_folder=str(source), output_folder=str(target), **options))


def _shapes(source: Path) -> dict[str, torch.Size]:
    """Shapes by parameter name; what stage 3 joins is flat, and padded for the ranks that it was cut for."""
    state = _read(min(source.glob("*model_states.pt")))
    frozen = state.get("frozen_param_shapes") or {}
    return {name: shape for group in (*state["param_shapes"], frozen) for name, shape in group.items()}


def _parameter(path: Path, shape: torch.Size) -> Tensor:
    content = _read(path)
    tensor = content["param"] if isinstance(content, dict) else content
    return tensor.reshape(-1)[: shape.numel()].reshape(shape)


def _read(path: Path) -> Any:
    # Its files hold objects of its own classes; they were checked against their digests before.
    return torch.load(path, map_location="cpu", weights_only=False, mmap=True)
