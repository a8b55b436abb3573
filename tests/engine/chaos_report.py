"""The table of a chaos run: one row a kill."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.engine.chaos_kill import Kill, Killed
from trainyard.recovery.deployment import Deployment


@dataclass(kw_only=True)
class Cycle:
    """One kill and what followed."""

    kill: Kill
    killed: Killed
    resources: int
    """In the state when the run had ended."""
    begun: int
    """Creations that the state knew to have begun."""
    said: str = ""
    """What `recover` printed."""
    seconds: dict[str, float] = field(default_factory=dict)
    done: int = 0
    """Resources in the state after the recovery's `up`."""
    clean: bool = False

    @classmethod
    def of(cls, kill: Kill, killed: Killed, exported: str) -> "Cycle":
        """With what the state knows after the kill."""
        state = Deployment(exported)
        return cls(kill=kill, killed=killed, resources=len(state.resources), begun=len(state.begun()))

    @contextmanager
    def timed(self, step: str) -> Generator[None]:
        """Note how long a step of the recovery takes."""
        started = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - started

    def row(self, number: int) -> str:
        """As a row of Markdown."""
        took = " / ".join(f"{self.seconds[step]:.0f}" if step in self.seconds else "-" for step in ("recover", "up", "destroy"))
        counts = [self.said.count(word) for word in (": adopted:", ": not made, will be:", ": removed, half made:")]
        moment = f"{self.killed.seconds:.1f} s ({self.kill.part:.0%})"
        cells = [number, self.kill.target, moment, self.killed.status, self.resources, self.begun, *counts, self.done, took]
        return "| " + " | ".join(str(cell) for cell in cells) + f" | {'clean' if self.clean else 'FAILED'} |"


@dataclass(kw_only=True)
class Report:
    """All kills of one run."""

    seed: int
    cycles: list[Cycle] = field(default_factory=list)

    def table(self) -> str:
        """As Markdown."""
        head = "| # | killed | at | exit | in state | begun | adopted | not made | removed | after up | recover / up / destroy, s | end |"
        rows = [cycle.row(number) for number, cycle in enumerate(self.cycles, 1)]
        clean = sum(cycle.clean for cycle in self.cycles)
        return "\n".join([f"Seed {self.seed}: {clean} of {len(self.cycles)} kills ended clean", "", head, "|---" * 12 + "|", *rows])

    def write(self, path: Path) -> None:
        """Keep it."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(self.table() + "\n")
