"""Configuration files: JSON and YAML give the same run, and a refusal says in which file and line."""

import json
from pathlib import Path

import pytest

from training.config_file import read_config
from training.schema import ConfigError

pytestmark = pytest.mark.unit

YAML = """\
name: run
steps: 20
optimizer:
  lr: 1e-3          # a number in YAML 1.2, a text to PyYAML
  betas: [0.9, 0.95]
checkpoint:
  directory: off    # a folder, not a truth value
"""


def write(folder: Path, text: str, name: str = "run.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refusal(file: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(file, overrides)
    return str(caught.value)


def test_json_and_yaml_describe_the_same_run(tmp_path: Path) -> None:
    settings = {"name": "run", "steps": 20, "optimizer": {"lr": 1e-3, "betas": [0.9, 0.95]}, "checkpoint": {"directory": "off"}}
    assert read_config(write(tmp_path, YAML)) == read_config(write(tmp_path, json.dumps(settings), "run.json"))


def test_overrides_count_over_the_file(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, YAML), ["optimizer.lr=1e-4", "checkpoint.keep=7"])
    assert (config.optimizer.lr, config.checkpoint.keep) == (1e-4, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (YAML.replace("lr:", "rate:"), "run.yaml:4: optimizer.rate: 0.001 is refused; allowed: no such key; "),
        (YAML.replace("1e-3", "fast"), 'run.yaml:4: optimizer.lr: "fast" is refused; allowed: a finite number'),
        (YAML.replace("0.95]", "1.5]"), "run.yaml:5: optimizer.betas"),
        (YAML.replace("steps: 20", "steps: 0"), "run.yaml:2: steps: 0 is refused; allowed: a number >= 1"),
        (YAML.replace("steps: 20", ""), "run.yaml: steps: nothing is refused; allowed: a value: this key is required"),
        (YAML + "steps: 30\n", 'run.yaml:8: steps: "30" is refused; allowed: each key once; line 2 has it too'),
        (YAML + "schedule: {warmup_steps: 20}\n", "run.yaml:8: schedule.warmup_steps: 20 is refused; allowed: fewer than steps = 20"),
        (YAML + "  keep: [\n", "run.yaml:"),
        (YAML + "model: !!python/object:os.system {}\n", "run.yaml:8: (the whole file)"),
        ("- steps\n", "a mapping of settings"),
        ("1: 2\n", "a mapping of settings"),
        ("", "a mapping of settings"),
    ],
    ids=["key", "type", "bound", "low", "missing", "twice", "combination", "syntax", "object", "list", "number", "empty"],
)
def test_a_refusal_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(write(tmp_path, text))


def test_a_refused_override_is_named_and_not_the_file(tmp_path: Path) -> None:
    assert refusal(write(tmp_path, YAML), "optimizer.lr=-1").startswith("--set optimizer.lr=-1: optimizer.lr: -1")


@pytest.mark.parametrize(
    ("text", "message"),
    [('{\n"name": }', "run.json:2: (the whole file)"), ('{"steps": 1, "steps": 2}', "steps: 2 is refused; allowed: each key once")],
)
def test_json_is_held_to_the_same(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(write(tmp_path, text, "run.json"))


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    assert "a file whose name ends in .json, .yaml, .yml" in refusal(write(tmp_path, YAML, "run.toml"))
