"""Benchmarks of the trainer run in the training environment, which has torch; this finds its interpreter."""

import importlib.util
import os
import sys

from local.paths import REPOSITORY
from local.toolchain.environments import training_folder


def training_python() -> str:
    """The interpreter that has torch: this one, the one that TRAINYARD_TRAINING_PYTHON names, or the local stack's. Exits without one."""
    if importlib.util.find_spec("torch"):
        return sys.executable
    path = os.environ.get("TRAINYARD_TRAINING_PYTHON") or str(training_folder() / "bin" / "python")
    if not os.access(path, os.X_OK):
        sys.exit(f"no training environment: {path} does not exist; `make setup` makes it, or set TRAINYARD_TRAINING_PYTHON")
    return path


def environment() -> dict[str, str]:
    """This process's environment with the repository importable and one thread a rank."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}


def rerun_there(module: str) -> None:
    """Continue this command in the training environment, unless it is there already."""
    python = training_python()
    if python != sys.executable:
        os.execve(python, [python, "-m", module, *sys.argv[1:]], environment())
