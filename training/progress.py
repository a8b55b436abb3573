"""How far a run is, what a checkpoint says about itself, and whether a configuration may go on from it. Standard library only."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from training.config import TrainConfig
from training.errors import CheckpointError
from training.schema import ConfigError

# These change how the same numbers are computed, not what the run is.
_FREE_DATA_KEYS = {"files", "shards", "cache_directory", "cache_gb", "verify", "workers", "prefetch", "timeout_seconds"}
_FREE_MODEL_KEYS = {"attention", "activation_checkpointing", "compile", "huggingface"}


@dataclass
class Progress:
    """Position of the run; the same on every rank."""

    step: int = 0
    """Optimizer steps made."""
    samples: int = 0
    """Samples taken, over all ranks: the data cursor."""
    data: dict[str, Any] = field(default_factory=dict)
    """What the dataset wants to find again beside that number; only it knows the meaning."""


@dataclass(frozen=True, kw_only=True)
class CheckpointInfo:
    """What a checkpoint says about itself, beside the engine's own files."""

    step: int
    samples: int
    world_size: int
    config: dict[str, Any]
    """The whole TrainConfig that wrote it."""
    corpus: str
    """Fingerprint of the corpus that the cursor belongs to."""
    versions: dict[str, str]
    """Of the libraries that wrote it."""
    data: dict[str, Any] = field(default_factory=dict)
    """See Progress."""
    engine_state: dict[str, Any] = field(default_factory=dict)
    """What the engine's files do not hold; see Engine.extra_state."""

    def to_json(self) -> str:
        """As text, for the checkpoint."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "CheckpointInfo":
        """Back from text. Raises CheckpointError if another version of this program wrote other keys."""
        try:
            return cls(**json.loads(text))
        except TypeError as error:
            raise CheckpointError(
                f"the checkpoint was written by another version of this program ({error}); resume with that one"
            ) from None


def refuse_other_run(info: CheckpointInfo, config: TrainConfig, corpus: str) -> None:
    """Raise ConfigError if the configuration describes another run than the one that the checkpoint belongs to."""
    now, then = config.to_mapping(), info.config
    for section, free in (("model", _FREE_MODEL_KEYS), ("data", _FREE_DATA_KEYS)):
        for key, value in now[section].items():
            if key not in free and then[section].get(key) != value:
                raise ConfigError(
                    f"{section}.{key}", value, f"{json.dumps(then[section].get(key))}, as in the checkpoint of step {info.step}"
                )
    _refuse_other_source(now["model"], then["model"], info.step)
    if now["seed"] != then["seed"]:
        raise ConfigError("seed", now["seed"], f"{then['seed']}, as in the checkpoint of step {info.step}: it fixes the order of samples")
    if info.corpus != corpus:
        setting, value = ("data.files", list(config.data.files)) if config.data.shards is None else ("data.shards", config.data.shards)
        raise ConfigError(setting, value, f"the corpus that step {info.step} was trained on; these files differ from it")
    if info.step > config.steps:
        raise ConfigError("steps", config.steps, f"at least {info.step}: the newest checkpoint has made that many")


def _refuse_other_source(now: dict[str, Any], then: dict[str, Any], step: int) -> None:
    """A Hugging Face model may lie elsewhere by now, but it must be the same: adapters go with the weights they were trained on."""
    digests = [model.get("huggingface", {}).get("digest") for model in (now, then)]
    if digests[0] != digests[1]:
        raise ConfigError(
            "model.huggingface.source",
            now["huggingface"]["source"],
            f"the model of the checkpoint of step {step}; this one differs from it",
        )


def layout_change(info: CheckpointInfo, config: TrainConfig, world_size: int) -> str | None:
    """How ranks or sharding differ from the checkpoint's, naming both; None if they do not."""
    before = _layout(info.world_size, info.config)
    now = _layout(world_size, config.to_mapping())
    return None if before == now else f"the checkpoint of step {info.step} was written by {before}, this run has {now}"


def _layout(world_size: int, config: dict[str, Any]) -> str:
    """Ranks, engine and mesh, in words."""
    engine, parallel = config["engine"], config.get("parallel", {})
    words = [engine["kind"]]
    if engine["zero_stage"] is not None:
        # DeepSpeed keeps the weights themselves in this precision, and its files with them.
        words += [f"ZeRO-{engine['zero_stage']}", engine["precision"]]
    words += [f"{axis} {size}" for axis, size in parallel.items() if isinstance(size, int) and not isinstance(size, bool) and size > 1]
    return f"{world_size} ranks of {' '.join(words)}"
