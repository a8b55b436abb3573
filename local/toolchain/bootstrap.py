"""Makes `.venv` on a bare machine; everything after that can use its packages. Standard library only.

python3 local/toolchain/bootstrap.py
"""

import contextlib
import subprocess
import sys
import time

if sys.version_info < (3, 11):  # noqa: UP036 - this is the one file that an older Python gets to read
    found = sys.executable + " is " + sys.version.split()[0]
    sys.exit("trainyard needs Python 3.11 or newer; " + found + ". Name another one: make PYTHON=python3.12 ...")

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

# Run as a file, Python puts this file's folder first on the path; the packages are two folders up.
sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from local.errors import LocalStackError  # noqa: E402
from local.paths import state_dir  # noqa: E402
from local.toolchain.environments import infra_environment  # noqa: E402


class PlainSteps:
    """`local.progress.Progress` without rich: one line when a step starts, one when it ends; commands write to `log`."""

    def __init__(self, log: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def step(self, label: str) -> Generator[None]:
        """Show `label` while the body runs, then the seconds it took."""
        print(f"{label} ...", file=sys.stderr, flush=True)
        start = time.monotonic()
        yield
        print(f"{label}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)

    def run(self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        """Run a command with its output in the log.

        Raises:
            LocalStackError: the command failed; the message holds its last lines.
        """
        words = [str(word) for word in argv]
        answer = subprocess.run(
            words, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(words)}\n{answer.stdout}")
        if answer.returncode:
            tail = "\n".join(answer.stdout.splitlines()[-12:])
            raise LocalStackError(f"{words[0]} ended with status {answer.returncode}:\n{tail}", log=self.log)


def main() -> int:
    """Make the environment; returns the exit status."""
    try:
        infra_environment(PlainSteps(state_dir() / "logs" / "bootstrap.log"))
    except LocalStackError as error:
        print(f"error: {error}" + (f"\nlog: {error.log}" if error.log else ""), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
