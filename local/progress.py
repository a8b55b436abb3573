"""Progress of long work: which step of how many, how long it takes, and the log that holds its output."""

import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from local.errors import LocalStackError


class Progress:
    """Numbered steps on a terminal, one line each; everything that the steps run writes to `log`."""

    def __init__(self, log: Path, *, total: int, console: Console | None = None) -> None:
        self.log = log
        self.total = total
        self.done = 0
        self.console = console or Console(file=sys.stderr, highlight=False)
        log.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def step(self, label: str) -> Generator[None]:
        """Show `label` while its body runs, then the seconds it took. An error of the body passes through."""
        self.done += 1
        self.total = max(self.total, self.done)
        title = f"[{self.done}/{self.total}] {label}"
        start = time.monotonic()
        with self.log.open("a") as log:
            log.write(f"== {title}\n")
        if self.console.is_terminal:
            with self.console.status(title):
                yield
        else:
            self.console.print(f"{title} ...", markup=False)
            yield
        self.console.print(f"{title}: {time.monotonic() - start:.1f} s", markup=False)

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        """Run a command with its output in the log.

        Raises:
            LocalStackError: the command failed; the message holds its last lines and the log's name.
        """
        words = [str(word) for word in argv]
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(words)}\n".encode())
            log.flush()
            begin = log.tell()
            code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=cwd, check=False).returncode
        if code:
            with self.log.open("rb") as log:
                log.seek(begin)
                tail = "\n".join(log.read().decode(errors="replace").splitlines()[-12:])
            raise LocalStackError(f"{words[0]} ended with status {code}:\n{tail}", log=self.log)
