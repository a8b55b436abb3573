"""A TrainConfig from a file of JSON or YAML, with `path.to.key=value` overrides on top; a refusal names the file and the line.

JSON needs the standard library only. YAML needs PyYAML and is read as YAML 1.2 reads it: `1e-3` is a number and `off` is a text.
"""

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from training.config import TrainConfig
from training.schema import ConfigError, apply_override

SUFFIXES = (".json", ".yaml", ".yml")
_WHOLE = "(the whole file)"
_YAML_TYPES = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}


class ConfigFileError(ConfigError):
    """A refused setting, with where it was written."""

    def __init__(self, error: ConfigError, place: str) -> None:
        super().__init__(error.path, error.value, error.allowed)
        self.args = (f"{place}: {error}",)


def read_config(file: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Read a file with overrides on top. Raises ConfigError naming the place, OSError when the file can't be read."""
    if file.suffix not in SUFFIXES:
        raise ConfigError("--config", str(file), f"a file whose name ends in {', '.join(SUFFIXES)}")
    text = file.read_text(encoding="utf-8")
    values, lines = _parse_json(file, text) if file.suffix == ".json" else _parse_yaml(file, text)
    return build_config(values, overrides, file=file, lines=lines)


def build_config(
    values: dict[str, Any], overrides: Sequence[str], *, file: Path | None = None, lines: Mapping[str, int] | None = None
) -> TrainConfig:
    """Build from plain values; `lines` tells by dotted path where each was written. Raises ConfigError."""
    for override in overrides:
        apply_override(values, override)
    try:
        return TrainConfig.from_mapping(values)
    except ConfigError as error:
        place = _place(error.path, overrides, file, lines or {})
        raise (ConfigFileError(error, place) if place else error) from None


def _place(path: str, overrides: Sequence[str], file: Path | None, lines: Mapping[str, int]) -> str:
    """Where the refused setting, or the nearest section that holds it, was written; the last override of it counts."""
    for override in reversed(overrides):
        key = override.partition("=")[0]
        if key == path or path.startswith((f"{key}.", f"{key}[")):
            return f"--set {override}"
    if file is None:
        return ""
    inner = path.replace("[", ".").replace("]", "")
    while inner and inner not in lines:
        inner = inner.rpartition(".")[0]
    return f"{file}:{lines[inner]}" if inner else str(file)


def _parse_json(file: Path, text: str) -> tuple[dict[str, Any], dict[str, int]]:
    try:
        values = json.loads(text, object_pairs_hook=_refuse_repeated_keys)
    except json.JSONDecodeError as error:
        raise ConfigFileError(
            ConfigError(_WHOLE, _excerpt(text, error.lineno), f"valid JSON; {error.msg}"), f"{file}:{error.lineno}"
        ) from None
    except ConfigError as error:
        raise ConfigFileError(error, str(file)) from None
    return _require_mapping(file, values, text), {}


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ConfigError(key, value, "each key once; an earlier line has it too")
        values[key] = value
    return values


def _parse_yaml(file: Path, text: str) -> tuple[dict[str, Any], dict[str, int]]:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise ConfigError("--config", str(file), "a .json file: PyYAML, which reads YAML, is not installed here") from None
    loader = _yaml_loader(yaml)(text)
    try:
        node = loader.get_single_node()
        lines: dict[str, int] = {}
        if node is not None:
            _note_lines(file, yaml, node, "", lines)
        values = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigFileError(ConfigError(_WHOLE, _excerpt(text, line), f"valid YAML; {problem}"), f"{file}:{line}") from None
    finally:
        loader.dispose()
    return _require_mapping(file, values, text), lines


def _yaml_loader(yaml: Any) -> Any:
    """The safe loader with the types of YAML 1.2: PyYAML's own takes `1e-3` for a text and `off` for false."""

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    # Integers first: each is a valid float too.
    for name, pattern in _YAML_TYPES.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(f"^(?:{pattern})$"), None)
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node).replace(".inf", "inf")))
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
    return Loader


def _note_lines(file: Path, yaml: Any, node: Any, path: str, lines: dict[str, int]) -> None:
    """Fill in the line of every key below the node, by dotted path; refuse a key that comes twice."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            inner = f"{path}.{index}"
            lines[inner] = item.start_mark.line + 1
            _note_lines(file, yaml, item, inner, lines)
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        inner = f"{path}.{key.value}".lstrip(".")
        line = key.start_mark.line + 1
        if inner in lines:
            raise ConfigFileError(ConfigError(inner, str(value.value), f"each key once; line {lines[inner]} has it too"), f"{file}:{line}")
        lines[inner] = line
        _note_lines(file, yaml, value, inner, lines)


def _require_mapping(file: Path, values: object, text: str) -> dict[str, Any]:
    if isinstance(values, dict) and all(isinstance(key, str) for key in values):
        return values
    raise ConfigFileError(ConfigError(_WHOLE, _excerpt(text, 1), "a mapping of settings"), str(file))


def _excerpt(text: str, line: int) -> str:
    rows = text.splitlines()
    return rows[line - 1].strip()[:60] if 0 < line <= len(rows) else ""
