"""Exported weights load in one process and give the loss that the run measured, whoever wrote them; what is missing is named."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.training.job import DDP, Job, zero
from tests.training.rank import REPOSITORY, environment, find_damage, training_python

pytestmark = pytest.mark.training


def export(job: Job, output: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [training_python(), "-m", "training.export", str(job.directory), "-o", str(output), *options]
    return subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("engine", [DDP, zero(0), zero(1), zero(3)], ids=["ddp", "zero-0", "zero-1", "zero-3"])
def test_the_exported_weights_give_the_loss_that_the_run_measured(job: Job, tmp_path: Path, engine: dict) -> None:
    job.run(ranks=2, **engine)
    done = export(job, tmp_path / "model", "--loss")
    assert done.returncode == 0, done.stderr
    assert "as the run measured" in done.stdout
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]
    described = json.loads((tmp_path / "model" / "config.json").read_text())
    assert described["dim"] == 32
    assert described["torch_dtype"] == "float32"


def test_a_damaged_checkpoint_is_named_and_passed_over_and_none_left_is_an_error(job: Job, tmp_path: Path) -> None:
    job.run()
    weights = job.checkpoints / "step-000000012" / "engine" / "__0_0.safetensors"
    weights.unlink()
    done = export(job, tmp_path / "model", "--dtype", "bf16")
    assert done.returncode == 0, done.stderr
    assert "passed over step 12: engine/__0_0.safetensors: missing" in done.stderr
    assert "wrote step 8" in done.stdout
    done = export(job, tmp_path / "other", "--step", "12")
    assert done.returncode == 1
    assert "export failed: no whole checkpoint" in done.stderr
    assert "engine/__0_0.safetensors: missing" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "other").exists()


def test_what_the_checkpoint_lacks_is_named(job: Job, tmp_path: Path) -> None:
    """A whole checkpoint whose configuration asks for more than it holds, as one of another program version would."""
    job.run()
    checkpoint = job.checkpoints / "step-000000012"
    rewrite = """
import json, pathlib, sys
from training import storage
directory = pathlib.Path(sys.argv[1])
info = json.loads((directory / "info.json").read_text())
info["config"]["model"]["num_layers"] = 3
(directory / "info.json").write_text(json.dumps(info))
(directory / "manifest.json").unlink()
files = [path for path in directory.rglob("*") if path.is_file()]
storage.write_manifest(directory, 12, [storage.record_file(directory, path) for path in files])
"""
    subprocess.run([training_python(), "-c", rewrite, str(checkpoint)], cwd=REPOSITORY, env=environment(), check=True)
    assert find_damage(checkpoint) == []
    done = export(job, tmp_path / "model", "--step", "12")
    assert done.returncode == 1
    assert "blocks.2.attention.query.weight is missing" in done.stderr
    assert list(tmp_path.glob(".model*")) == []
    assert not (tmp_path / "model").exists()


def test_nothing_is_written_over(job: Job, tmp_path: Path) -> None:
    job.run(steps=5, schedule={"warmup_steps": 2})
    (tmp_path / "model").mkdir()
    done = export(job, tmp_path / "model")
    assert done.returncode == 1
    assert "exists; name a new folder" in done.stderr
