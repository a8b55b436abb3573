"""What other parts rely on: exit codes, recipes, and that the modules a preview imports need nothing but the standard library."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from training import last_words
from training.config import TrainConfig
from training.exit_codes import ExitCode, combine
from training.recipes import RECIPES, recipe
from training.torchrun import _first_failure

pytestmark = pytest.mark.unit

PURE = [
    "batch",
    "config",
    "config_file",
    "documents",
    "errors",
    "exit_codes",
    "last_words",
    "history",
    "launch",
    "layout",
    "lease",
    "order",
    "plot",
    "progress",
    "recipes",
    "reference",
    "schedule",
    "schema",
    "shard_index",
    "shuffle",
]
PURE += ["signals", "storage", "supervise.__main__", "torchrun", "train", "warm"]


def test_modules_that_others_import_need_only_the_standard_library() -> None:
    program = "import sys; " + "; ".join(f"import training.{name}" for name in PURE)
    program += (
        "; print([name for name in sys.modules if name.split('.')[0] in ('torch', 'numpy', 'deepspeed', 'matplotlib', 'pulumi', 'infra')])"
    )
    # -I -S: no site packages at all, so that an import of anything else fails.
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r}); {program}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_recipes_are_valid_and_named_after_themselves(name: str) -> None:
    config = recipe(name)
    assert config.name == name
    assert TrainConfig.from_json(config.to_json()) == config
    assert config.plan_batch(2).global_batch == config.batch.global_batch


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([75, 75], ExitCode.RESTART),
        ([78], ExitCode.CONFIG),
        ([75, 1], ExitCode.FAILED),
        ([-9, 75], ExitCode.FAILED),
        # What one rank refuses, a restart would refuse again.
        ([78, 1], ExitCode.CONFIG),
        # The launcher ends the others once one has ended, at whatever they were.
        ([78, -15], ExitCode.CONFIG),
        ([75, -15], ExitCode.RESTART),
        ([1, -15], ExitCode.FAILED),
        ([-15], ExitCode.FAILED),
    ],
)
def test_one_code_speaks_for_several_ranks(codes: list[int], expected: ExitCode) -> None:
    assert combine(codes) == expected


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ({"message": "DataError: no file", "extraInfo": {}}, "first, rank 3 ended with exit code 1 (failed): DataError: no file"),
        ("no error file", "first, rank 3 ended with exit code 1 (failed)"),
    ],
)
def test_torchrun_s_last_line_names_the_first_rank_and_the_reason_it_left(message: object, line: str) -> None:
    error = SimpleNamespace(get_first_failure=lambda: (3, SimpleNamespace(exitcode=1, message=message)))
    assert _first_failure(error) == line


def test_a_rank_leaves_its_reason_where_its_launcher_looks(tmp_path: Path) -> None:
    files = {"TRAINYARD_LAST_WORDS": str(tmp_path / "ours"), "TORCHELASTIC_ERROR_FILE": str(tmp_path / "torchrun")}
    last_words.leave("no disk", files)
    assert (tmp_path / "ours").read_text() == "no disk"
    assert json.loads((tmp_path / "torchrun").read_text())["message"]["message"] == "no disk"
    last_words.leave("no disk", {"TRAINYARD_LAST_WORDS": "/nowhere/at/all"})
    last_words.leave("no disk", {})
