"""The list of settings: complete, documented, and the same in the docs as in the code."""

from pathlib import Path

import pytest

from training.config import TrainConfig
from training.reference import field_docs, help_text, markdown, sections
from training.schema import Section
from training.train import main

pytestmark = pytest.mark.unit
DOCUMENT = Path(__file__).parents[3] / "docs" / "training-config.md"


def leaves(values: dict, path: str = "") -> list[str]:
    return [
        leaf for key, value in values.items() for leaf in (leaves(value, f"{path}{key}.") if isinstance(value, dict) else [f"{path}{key}"])
    ]


def test_every_setting_is_listed() -> None:
    listed = {setting.path for _, _, settings in sections() for setting in settings}
    assert set(leaves(TrainConfig(name="run", steps=20).to_mapping())) <= listed


def test_the_document_is_what_the_code_says() -> None:
    assert DOCUMENT.read_text() == markdown(), "run: python -m training.reference docs/training-config.md"


def test_help_lists_every_setting_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "optimizer.lr  (number > 0; 0.003)" in shown
    assert "78  config" in shown
    assert all(setting.path in help_text() for _, _, settings in sections() for setting in settings)


def test_a_setting_without_a_text_is_an_error() -> None:
    class Bare(Section):
        silent: int = 1

    with pytest.raises(ValueError, match=r"Bare\.silent has no text"):
        field_docs(Bare)


@pytest.mark.parametrize("arguments", [[], ["--recipe", "huge"], ["--config"], ["--recipe", "tiny", "--fast"]])
def test_a_wrong_command_line_is_refused_as_a_configuration_is(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 78
    assert "ended with exit code 78 (config): (the command line)" in capsys.readouterr().err


def test_check_prints_the_whole_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--recipe", "tiny", "--set", "steps=7", "--check", "--set", "schedule.warmup_steps=2"]) == 0
    assert TrainConfig.from_json(capsys.readouterr().out).steps == 7
