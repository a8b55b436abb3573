"""Progress of long work: which step of how many, how long it takes, and the log that holds its output."""

import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from local.errors import LocalStackError


@dataclass(frozen=True)
class Step:
    """A step that runs. Off a terminal its details are not shown, so that a log has one line for its start and one for its end."""

    title: str
    start: float
    status: Status | None

    def update(self, detail: str) -> None:
        """Show how far the step is."""
        if self.status:
            self.status.update(escape(f"{self.title}: {detail}, {time.monotonic() - self.start:.0f} s"))


class Progress:
    """Numbered steps on a terminal, one line each; everything that the steps run writes to `log`."""

    def __init__(self, log: Path, *, total: int, console: Console | None = None) -> None:
        self.log = log
        self.total = total
        self.done = 0
        self.console = console or Console(file=sys.stderr, highlight=False)
        log.parent.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def step(self, label: str) -> Generator["Step"]:
        """Show `label` while its body runs, then the seconds it took. An error of the body passes through."""
        self.done += 1
        self.total = max(self.total, self.done)
        title = f"[{self.done}/{self.total}] {label}"
        start = time.monotonic()
        with self.log.open("a") as log:
            log.write(f"== {title}\n")
        if self.console.is_terminal:
            with self.console.status(escape(title)) as status:
                yield Step(title, start, status)
        else:
            self.console.print(f"{title} ...", markup=False, soft_wrap=True)
            yield Step(title, start, None)
        self.console.print(f"{title}: {time.monotonic() - start:.1f} s", markup=False, soft_wrap=True)

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
