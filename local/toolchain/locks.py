"""Writes the lock files from what they are made of: `python -m local.toolchain.locks`. Needs the network."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from local.errors import LocalStackError
from local.paths import state_dir
from local.progress import Progress
from local.toolchain.environments import BOOTSTRAP_LOCK, INFRA_LOCK, TRAINING_LOCK, ensure_uv

# With hashes, and without a word on where packages were found: that is the user's own choice.
_COMPILE = [
    "pip",
    "compile",
    "--quiet",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-header",
    "--no-annotate",
    "--python-version",
    "3.11",
]
# Wheels of torch and of what it needs differ by platform; the trainer image is this one.
_TRAINER = ["--python-platform", "x86_64-manylinux_2_28"]


def write_locks(progress: Progress, upgrade: Sequence[str]) -> None:
    """Write all three locks. What is locked stays as it is unless its requirement changed or `upgrade` names it.

    Raises:
        LocalStackError: the requirements can't be met; the message holds uv's reason.
    """
    uv = ensure_uv(progress)
    chosen = [word for name in upgrade for word in ("--upgrade-package", name)]
    for lock, platform in ((INFRA_LOCK, ["--universal"]), (TRAINING_LOCK, _TRAINER)):
        with progress.step(f"lock {lock.parent.name}/{lock.name}"):
            progress.run([uv, *_COMPILE, *platform, *chosen, "-o", lock, lock.with_suffix(".in")])
    with progress.step(f"lock {BOOTSTRAP_LOCK.name}"), tempfile.NamedTemporaryFile("w", suffix=".in") as requirement:
        requirement.write("uv\n")
        requirement.flush()
        progress.run([uv, *_COMPILE, "--universal", *chosen, "-o", BOOTSTRAP_LOCK, Path(requirement.name)])


if __name__ == "__main__":
    try:
        write_locks(Progress(state_dir() / "logs" / "lock.log", total=3), sys.argv[1:])
    except LocalStackError as error:
        sys.exit(f"error: {error}")
