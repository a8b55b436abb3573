"""A model's folder in the Hugging Face layout: config.json beside safetensors files. Standard library only, but for downloads."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from training.config import HuggingFaceConfig, ModelConfig, TrainConfig
from training.schema import ConfigError

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
_SOURCE = "model.huggingface.source"
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_HUB_FILES = ("*.json", "*.safetensors")
_PROBED_BYTES = 1 << 16


def resolve(config: TrainConfig) -> TrainConfig:
    """The configuration with what only the folder knows: its vocabulary and its digest.

    Raises ConfigError when there is no such folder, when it holds no causal language model, or when it is another one than asked for.
    """
    source = config.model.huggingface
    folder = locate(source)
    facts = read_config(folder)
    vocab_size = _fact(facts, "vocab_size")
    if not isinstance(vocab_size, int):
        raise ConfigError(_SOURCE, source.source, f"a language model; {folder / CONFIG_FILE} has no vocab_size")
    if config.model.vocab_size not in (vocab_size, ModelConfig.vocab_size):
        raise ConfigError("model.vocab_size", config.model.vocab_size, f"nothing, or {vocab_size} as in {folder / CONFIG_FILE}")
    positions = _fact(facts, "max_position_embeddings") or _fact(facts, "n_positions")
    if positions is not None and config.data.sequence_length > positions:
        raise ConfigError(
            "data.sequence_length", config.data.sequence_length, f"at most {positions}: the positions that {folder / CONFIG_FILE} has"
        )
    digest = take_digest(folder, with_weights=source.weights == "pretrained")
    if source.digest not in (None, digest):
        raise ConfigError("model.huggingface.digest", source.digest, f"{digest}, which is what {folder} has")
    return replace(config, model=replace(config.model, vocab_size=vocab_size, huggingface=replace(source, digest=digest)))


def locate(config: HuggingFaceConfig) -> Path:
    """The model's folder on this host: the one given, or the hub's copy, which is downloaded once. Raises ConfigError."""
    assert config.source is not None
    path = Path(config.source)
    if path.is_dir():
        return path
    if not _HUB_NAME.fullmatch(config.source):
        raise ConfigError(_SOURCE, config.source, "a folder that exists on every host, or a hub's name of a model, such as team/model")
    return _download(config.source, config.revision)


def read_config(folder: Path) -> dict[str, Any]:
    """What the folder says about its model. Raises ConfigError."""
    file = folder / CONFIG_FILE
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(_SOURCE, str(folder), f"a folder with a readable {CONFIG_FILE}; {type(error).__name__}: {error}") from None
    if not isinstance(facts, dict):
        raise ConfigError(_SOURCE, str(folder), f"a folder whose {CONFIG_FILE} is a JSON object")
    return facts


def weight_files(folder: Path) -> list[Path]:
    """The folder's safetensors files, all of which exist. Raises ConfigError naming the ones that do not."""
    index = folder / INDEX_FILE
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()) if index.is_file() else {WEIGHTS_FILE}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(_SOURCE, str(folder), f"a folder with a readable {INDEX_FILE}; {type(error).__name__}: {error}") from None
    if missing := sorted(name for name in names if not (folder / name).is_file()):
        pickled = " (its pickled weights are not read: convert them to safetensors)" if [*folder.glob("*.bin")] else ""
        raise ConfigError(_SOURCE, str(folder), f"a folder that holds {', '.join(missing)}{pickled}")
    return sorted(folder / name for name in names)


def take_digest(folder: Path, *, with_weights: bool) -> str:
    """Identity of a model: its configuration, and the size, beginning and end of each file of weights.

    It tells models apart without reading gigabytes; a flipped bit inside of a file is for checksums of the storage to find.
    """
    digest = hashlib.sha256(json.dumps(read_config(folder), sort_keys=True).encode())
    for file in weight_files(folder) if with_weights else []:
        size = file.stat().st_size
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as weights:
            digest.update(weights.read(_PROBED_BYTES))
            weights.seek(max(size - _PROBED_BYTES, 0))
            digest.update(weights.read())
    return digest.hexdigest()[:32]


def _fact(facts: dict[str, Any], key: str) -> Any:
    """A value of a configuration, or of its text part where a model has several parts."""
    value = facts.get(key)
    nested = facts.get("text_config")
    return nested.get(key) if value is None and isinstance(nested, dict) else value


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(_HUB_FILES)))
    except Exception as error:
        # The client raises its own errors, those of its HTTP library and of the system; all come to the same for the run.
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        allowed = "a folder that exists on every host, or a model that the hub gives to this host"
        raise ConfigError(_SOURCE, name, f"{allowed}; it is no folder, and the hub says {reason}") from None
