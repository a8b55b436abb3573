"""Export a run's weights: `python -m training.export runs/tiny -o model` writes safetensors and config.json that one process can load.

The newest whole checkpoint is taken (or `--step`), checked file by file, and gathered whatever the ranks, shards and engine that wrote it.
What is written is read back and compared; `--loss` also computes the held-out loss from it and holds it to what the run measured. The
folder appears whole or not at all. Anything missing or damaged is named, and the exit code is 1.
"""

import argparse
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from training import storage
from training.architecture import choose_architecture
from training.config import TrainConfig
from training.container import FullState
from training.data import Dataset
from training.errors import TrainingError
from training.history import read_history
from training.model import sample_losses
from training.progress import CheckpointInfo
from training.restore import ENGINE, INFO
from training.schema import ConfigError
from training.staging import as_bytes

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
_KEY = "trainyard"
_SHARD_BYTES = 5 << 30
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# What another order of sums may do to a loss; weights rounded to 16 bits are allowed what they lose.
_TOLERANCE = {"fp32": 1e-5, "bf16": 1e-2, "fp16": 1e-2}


class ExportError(TrainingError):
    """The weights can't be exported whole; says what is missing or damaged."""


@dataclass(frozen=True)
class Source:
    """A checkpoint to export from."""

    directory: Path
    info: CheckpointInfo
    config: TrainConfig


def main(arguments: list[str] | None = None) -> int:
    """Run the command and give its exit code."""
    parser = argparse.ArgumentParser(prog="python -m training.export", description="Export a run's weights as safetensors and config.json.")
    parser.add_argument("run", type=Path, help="the run's folder")
    parser.add_argument("-o", "--output", type=Path, required=True, help="new folder to write")
    parser.add_argument("--step", type=int, help="checkpoint to take; the newest whole one if not given")
    parser.add_argument("--dtype", choices=sorted(_DTYPES), default="fp32", help="type of the weights (default: fp32, nothing lost)")
    parser.add_argument("--loss", action="store_true", help="compute the held-out loss from what was written, and compare")
    options = parser.parse_args(arguments)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    try:
        source = find_source(options.run, options.step)
        files = export(source, options.output, options.dtype)
        print(f"wrote step {source.info.step} of {options.run} to {options.output}: {', '.join(files)}")
        if options.loss:
            print(compare_loss(source, options.run, options.output, _TOLERANCE[options.dtype]))
    except (TrainingError, ConfigError, OSError) as error:
        print(f"export failed: {error}", file=sys.stderr)
        return 1
    return 0


def find_source(run: Path, step: int | None) -> Source:
    """The newest whole checkpoint of a run, or that of a step. Raises ExportError naming every damage met on the way."""
    root = run / "checkpoints"
    steps = storage.published_steps(root)
    if step is not None and step not in steps:
        raise ExportError(f"{root} holds no step {step}; it holds {', '.join(map(str, steps)) or 'none'}")
    met = []
    for candidate in [step] if step is not None else steps:
        directory = storage.step_directory(root, candidate)
        damage = storage.find_damage(directory)
        if not damage:
            info = CheckpointInfo.from_json((directory / INFO).read_text(encoding="utf-8"))
            return Source(directory, info, TrainConfig.from_mapping(info.config))
        met.append(f"step {candidate}: {'; '.join(damage)}")
        print(f"passed over {met[-1]}", file=sys.stderr)
    raise ExportError(f"no whole checkpoint in {root}: {'. '.join(met) or 'it is empty'}")


def export(source: Source, output: Path, dtype: str) -> list[str]:
    """Write the weights into a new folder; gives the names of its files. Raises ExportError."""
    if output.exists():
        raise ExportError(f"{output} exists; name a new folder")
    output.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        files = _write(source, aside, _DTYPES[dtype])
        for path in aside.iterdir():
            storage.sync_path(path)
        storage.sync_path(aside)
        aside.chmod(0o755)
        aside.rename(output)
        storage.sync_path(output.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return files


def load(directory: Path) -> nn.Module:
    """The exported model, on the CPU, in one process. Raises OSError."""
    described = json.loads((directory / CONFIG).read_text(encoding="utf-8"))
    if _KEY not in described:
        return _load_from_library(directory)
    model = choose_architecture(TrainConfig.from_mapping(described[_KEY])).build()
    state: dict[str, Tensor] = {}
    for path in sorted(directory.glob("*.safetensors")):
        state |= load_file(path)
    for first, *others in _names(model):
        state |= dict.fromkeys(others, state[first])
    model.load_state_dict(state, assign=True)
    return model


def compare_loss(source: Source, run: Path, output: Path, tolerance: float) -> str:
    """Held-out loss of the exported weights, as a sentence. Raises ExportError if the run measured another at that step."""
    loss = held_out_loss(load(output).float(), source.config)
    measured = read_history(run / "metrics.jsonl").evaluations.get(source.info.step)
    if measured is None:
        return f"held-out loss {loss:.6f}; the run measured none at step {source.info.step}"
    if abs(loss - measured) > tolerance * measured:
        raise ExportError(f"the exported weights give a held-out loss of {loss:.6f}, the run measured {measured:.6f}")
    return f"held-out loss {loss:.6f}, as the run measured ({measured:.6f})"


@torch.no_grad()
def held_out_loss(model: nn.Module, config: TrainConfig) -> float:
    """Mean loss of the samples that the run evaluates on."""
    dataset = Dataset(config)
    count = min(config.evaluation.samples, dataset.num_eval)
    model.eval()
    total = 0.0
    for first in range(0, count, config.batch.micro):
        samples = dataset.eval_batch(range(first, min(first + config.batch.micro, count)))
        total += float(sample_losses(model(samples.tokens), samples.targets)[0].double().sum())
    return total / count


def _write(source: Source, target: Path, dtype: torch.dtype) -> list[str]:
    with tempfile.TemporaryDirectory(prefix=".joined.", dir=target.parent) as scratch:
        state = _gathered(source, Path(scratch))
        if source.config.model.kind == "huggingface":
            return _write_for_library(source.config, state, target, dtype)
        wanted = _wanted(source.config, state)
        shards = list(_shards(wanted, dtype))
        index: dict[str, str] = {}
        for number, names in enumerate(shards, start=1):
            name = "model.safetensors" if len(shards) == 1 else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
            _write_shard(target / name, state, names, dtype)
            index |= dict.fromkeys(names, name)
    total = sum(shape.numel() for shape in wanted.values()) * dtype.itemsize
    described = {"model_type": _KEY, "torch_dtype": str(dtype).removeprefix("torch."), **source.config.model.to_mapping()}
    _write_json(target / CONFIG, {**described, _KEY: source.config.to_mapping()})
    if len(shards) > 1:
        _write_json(target / INDEX, {"metadata": {"total_size": total}, "weight_map": index})
    return sorted(path.name for path in target.iterdir())


def _write_for_library(config: TrainConfig, state: FullState, target: Path, dtype: torch.dtype) -> list[str]:
    """A folder that transformers loads by itself, or peft where only an adapter was trained."""
    from training.huggingface.export import write_folder

    names = [name for name in state.entries if name.startswith("model.")]
    tensors = {name.removeprefix("model."): tensor.to(dtype) for name, tensor in state.read(names).items()}
    write_folder(config, tensors, target)
    return sorted(path.name for path in target.iterdir())


def _load_from_library(directory: Path) -> nn.Module:
    from transformers import AutoModelForCausalLM

    from training.huggingface.architecture import HuggingFaceModel

    return HuggingFaceModel(AutoModelForCausalLM.from_pretrained(directory, local_files_only=True, attn_implementation="sdpa"), "auto")


def _gathered(source: Source, scratch: Path) -> FullState:
    engine = source.info.config["engine"]
    if engine["kind"] != "deepspeed":
        return FullState(source.directory / ENGINE)
    from training.engines.zero_files import write_full

    names = source.info.engine_state.get("optimizer_names", [])
    write_full(source.directory / ENGINE, scratch, stage=engine["zero_stage"], names=names, step=source.info.step)
    return FullState(scratch)


def _wanted(config: TrainConfig, state: FullState) -> dict[str, torch.Size]:
    """Names and shapes of what the model needs. Raises ExportError naming all that the checkpoint lacks or has in another shape."""
    model = choose_architecture(config).build()
    shapes = {first: model.state_dict()[first].shape for first, *_ in _names(model)}
    faults = []
    for name, shape in shapes.items():
        entry = state.entries.get(f"model.{name}")
        if entry is None:
            faults.append(f"{name} is missing")
        elif entry.size != shape:
            faults.append(f"{name} is {list(entry.size)} in place of {list(shape)}")
    if faults:
        raise ExportError(f"the checkpoint does not hold the whole model: {'; '.join(faults)}")
    return shapes


def _names(model: nn.Module) -> list[list[str]]:
    """Names in the model's state, those of one tensor together."""
    groups: dict[int, list[str]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        groups.setdefault(id(tensor), []).append(name)
    return list(groups.values())


def _shards(shapes: dict[str, torch.Size], dtype: torch.dtype) -> Iterator[list[str]]:
    names: list[str] = []
    size = 0
    for name, shape in shapes.items():
        own = shape.numel() * dtype.itemsize
        if names and size + own > _SHARD_BYTES:
            yield names
            names, size = [], 0
        names.append(name)
        size += own
    yield names


def _write_shard(path: Path, state: FullState, names: list[str], dtype: torch.dtype) -> None:
    read = state.read(f"model.{name}" for name in names)
    tensors = {name: read[f"model.{name}"].to(dtype) for name in names}
    save_file(tensors, path, metadata={"format": "pt"})
    for name, tensor in load_file(path).items():
        if not torch.equal(as_bytes(tensor), as_bytes(tensors[name])):
            raise ExportError(f"{path.name}: {name} was damaged while it was written")


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
