"""Checks that need torch itself (model, data stream, engine configuration): run by pytest inside the training environment."""

import subprocess
import sys

import pytest

from tests.training.object_store import PYTHON
from tests.training.rank import REPOSITORY, environment, training_python

pytestmark = pytest.mark.training


def test_the_checks_inside_the_training_environment_pass() -> None:
    command = [training_python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "python_files=check_*.py", "tests/training/inside"]
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**environment(), PYTHON: sys.executable}, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
