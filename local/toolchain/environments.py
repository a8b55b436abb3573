"""The two Python environments, each made from a lock with hashes. Standard library only, since the bootstrap uses it."""

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from local.errors import LocalStackError
from local.paths import REPOSITORY, cache_dir, state_dir
from local.toolchain.system import COMPILER_PACKAGES, TRAINING_PYTHON, ensure_packages, python_with_pip, training_python

INFRA_LOCK = REPOSITORY / "requirements.lock"
TRAINING_LOCK = REPOSITORY / "training" / "requirements.lock"
BOOTSTRAP_LOCK = REPOSITORY / "local" / "toolchain" / "bootstrap.lock"

# Compiled into the package itself: pods have no compiler, and mount the environment read-only, so nothing can be compiled at first use.
DEEPSPEED_OPERATORS = {"DS_ACCELERATOR": "cpu", "DS_BUILD_CPU_ADAM": "1", "DS_BUILD_SHM_COMM": "1"}


class Steps(Protocol):
    """How long work is reported: `local.progress.Progress`, or the bootstrap's plain form of it before rich is installed."""

    def step(self, label: str) -> AbstractContextManager[object]:
        """Show `label` while the body runs."""

    def run(self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        """Run a command with its output in a log; a failure is a LocalStackError."""


def infra_environment(steps: Steps) -> Path:
    """The folder `.venv` of this copy: infrastructure, policy, local stack and checks. Returns its Python.

    Raises:
        LocalStackError: pip, an index or a package can't be had, or a package does not match its hash.
    """
    folder = REPOSITORY / ".venv"
    python = folder / "bin" / "python"
    key = _key([INFRA_LOCK, BOOTSTRAP_LOCK, REPOSITORY / "pyproject.toml"], sys.version_info[:2])
    with _locked(state_dir() / "venv.lock"):
        if _is_ready(folder, key):
            return python
        uv = ensure_uv(steps)
        with steps.step("Python environment: infrastructure and checks"):
            _forget(folder)
            if not python.exists():
                steps.run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, folder])
            steps.run([uv, "pip", "sync", "--quiet", "--python", python, "--require-hashes", INFRA_LOCK])
            # No build isolation: setuptools comes from the lock, and nothing unpinned is fetched.
            steps.run([uv, "pip", "install", "--quiet", "--python", python, "--no-deps", "--no-build-isolation", "--editable", REPOSITORY])
            _remember(folder, key)
    return python


def training_environment(steps: Steps) -> Path:
    """The folder of the training environment, shared by all copies of the repository and mounted into pods. 5 GB, some minutes once.

    Raises:
        LocalStackError: no Python 3.11 with headers, no compiler, or a package that can't be had or built.
    """
    folder = training_folder()
    with _locked(cache_dir() / "training" / ".lock"):
        if _is_ready(folder, folder.name):
            return folder
        base = training_python()
        ensure_packages(COMPILER_PACKAGES)
        uv = ensure_uv(steps)
        # What a cut-short attempt left can't be told from a whole environment with a fault, so it goes.
        shutil.rmtree(folder, ignore_errors=True)
        python = folder / "bin" / "python"
        locks = _split_lock(TRAINING_LOCK, "deepspeed")
        with tempfile.TemporaryDirectory(prefix="trainyard-training-") as scratch:
            first, second = Path(scratch) / "requirements.txt", Path(scratch) / "deepspeed.txt"
            first.write_text(locks[0])
            second.write_text(locks[1])
            install = [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "--no-deps"]
            with steps.step("Python environment: training (torch and what it needs, 5 GB)"):
                steps.run([uv, "venv", "--quiet", "--python", base, folder])
                steps.run([*install, "-r", first])
            with steps.step("Python environment: DeepSpeed and its CPU operators"):
                # Its build imports torch, so it comes second; a cache of its own, since a wheel cached without operators is no use.
                environment = os.environ | DEEPSPEED_OPERATORS | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
                steps.run([*install, "--no-build-isolation", "--cache-dir", Path(scratch) / "cache", "-r", second], env=environment)
                steps.run([python, "-c", _CHECK_OPERATORS], env=environment)
        _remember(folder, folder.name)
    return folder


def training_folder() -> Path:
    """Where `training_environment` keeps the environment of this lock, whether it is made yet or not."""
    return cache_dir() / "training" / _key([TRAINING_LOCK], TRAINING_PYTHON, extra=repr(sorted(DEEPSPEED_OPERATORS.items())))


def ensure_uv(steps: Steps) -> Path:
    """The pinned uv, installed by pip from its lock into the cache."""
    version = _locked_version(BOOTSTRAP_LOCK, "uv")
    folder = cache_dir() / f"uv-{version}-{platform.machine()}"
    uv = folder / "bin" / "uv"
    if uv.exists():
        return uv
    python = python_with_pip()
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}")
    with steps.step(f"install uv {version}"):
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--require-hashes"]
        steps.run([*pip, "--target", scratch, "-r", BOOTSTRAP_LOCK])
        try:
            scratch.rename(folder)
        except OSError:
            # Another process was quicker; its copy is as good.
            shutil.rmtree(scratch)
    if not uv.exists():
        raise LocalStackError(f"pip installed uv {version}, but {uv} is missing")
    return uv


_CHECK_OPERATORS = """
from deepspeed.git_version_info import installed_ops
from deepspeed.ops.op_builder.cpu import CPUAdamBuilder, ShareMemCommBuilder
for builder in (CPUAdamBuilder(), ShareMemCommBuilder()):
    assert installed_ops[builder.NAME], f"DeepSpeed was built without {builder.NAME}"
    builder.load()
"""


def _key(files: Sequence[Path], python: tuple[int, int], extra: str = "") -> str:
    """Eight hex digits over the locks and the interpreter's version: another Python can't load what was installed for this one."""
    digest = hashlib.sha256(f"{python} {platform.machine()} {extra}".encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def _split_lock(lock: Path, name: str) -> tuple[str, str]:
    """The lock without one package, and with that package alone."""
    # A requirement starts in the first column; its hashes are on indented lines after it.
    entries = re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE)
    chosen = [entry for entry in entries if entry.startswith(f"{name}==")]
    if not chosen:
        raise LocalStackError(f"{lock} pins no {name}")
    return "".join(entry for entry in entries if entry not in chosen), "".join(chosen)


def _locked_version(lock: Path, name: str) -> str:
    match = re.search(rf"^{name}==(\S+)", lock.read_text(), re.MULTILINE)
    if match is None:
        raise LocalStackError(f"{lock} pins no {name}")
    return match[1]


def _is_ready(folder: Path, key: str) -> bool:
    stamp = folder / ".trainyard-key"
    return stamp.exists() and stamp.read_text() == key and (folder / "bin" / "python").exists()


def _remember(folder: Path, key: str) -> None:
    (folder / ".trainyard-key").write_text(key)


def _forget(folder: Path) -> None:
    (folder / ".trainyard-key").unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    """One process at a time makes an environment; the others find it made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
