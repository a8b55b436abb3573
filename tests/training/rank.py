"""Real ranks: one process each in the training environment, forked from a warm one, with signals, exit codes and output of their own.

The tests themselves run without torch. The training environment's interpreter is the one that the local stack made, or the one that
TRAINYARD_TRAINING_PYTHON names.
"""

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.toolchain.environments import training_folder

REPOSITORY = Path(__file__).parents[2]
TIMEOUT_SECONDS = 240.0
_POLL_SECONDS = 0.02
_PYTHON = "TRAINYARD_TRAINING_PYTHON"


def training_python() -> str:
    """The training environment's interpreter; its absence fails the tier, it never skips it."""
    path = os.environ.get(_PYTHON) or str(training_folder() / "bin" / "python")
    if not Path(path).is_file():
        raise AssertionError(f"training tier: {path} does not exist; `make test` makes the training environment, or set {_PYTHON}")
    return path


@dataclass(frozen=True)
class Finished:
    """What a run of all its ranks came to."""

    codes: list[int]
    """Exit codes by rank, or the launcher's alone."""
    logs: list[str]
    """Output by rank, or the launcher's alone."""

    @property
    def log(self) -> str:
        """All output."""
        return "\n".join(self.logs)


def contract(world_size: int) -> list[dict[str, str]]:
    """The launch contract for ranks on this host; nothing at all for a single one."""
    if world_size == 1:
        return [{}]
    shared = {"WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world_size)]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Template:
    """The warm process that ranks are forked from; see template.py."""

    def __init__(self) -> None:
        command = [training_python(), str(Path(__file__).with_name("template.py"))]
        self._process = subprocess.Popen(
            command, env=environment(), cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._answer() == "ready", "the training environment does not import"

    def ask(self, request: dict) -> dict:
        """One request, one answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._answer())

    def close(self) -> None:
        """End it, and with it every rank that still runs."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process that ranks are forked from has ended"
        return line.strip()


def find_damage(checkpoint: Path) -> list[str]:
    """What `training.storage.find_damage` says; digests need a library of the training environment."""
    return template().ask({"damage": str(checkpoint)})["damage"]


@functools.cache
def template() -> Template:
    """One for the whole session, made at its first use."""
    made = Template()
    atexit.register(made.close)
    return made


class Rank:
    """One rank's process."""

    def __init__(self, arguments: Sequence[str], environ: dict[str, str], output: Path, module: str = "training.train") -> None:
        self.output = output
        self.code: int | None = None
        request = {"start": list(arguments), "environ": environ, "output": str(output), "module": module}
        self.pid: int = template().ask(request)["pid"]

    def poll(self) -> int | None:
        """Exit code, once it has ended."""
        if self.code is None:
            self.code = template().ask({"poll": self.pid})["code"]
        return self.code

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def log(self) -> str:
        """Output so far."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""


def environment() -> dict[str, str]:
    """This process's environment, with the repository importable, one thread, no GPU and no launcher's variables."""
    left_out = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**inherited, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu"}


def wait(ranks: Sequence[Rank], seconds: float = TIMEOUT_SECONDS) -> Finished:
    """Wait for all of them; a hang is a failure that shows what they have said."""
    deadline = time.monotonic() + seconds
    while None in [rank.poll() for rank in ranks]:
        if time.monotonic() > deadline:
            end(ranks)
            raise AssertionError(f"still running after {seconds} s:\n" + "\n".join(rank.log() for rank in ranks))
        time.sleep(_POLL_SECONDS)
    return Finished([rank.code if rank.code is not None else -1 for rank in ranks], [rank.log() for rank in ranks])


def end(ranks: Sequence[Rank]) -> None:
    """Kill what still runs, and wait until it is gone."""
    for rank in ranks:
        rank.signal(signal.SIGKILL)
    while None in [rank.poll() for rank in ranks]:
        time.sleep(_POLL_SECONDS)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Process ids of a process's children."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def handles(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    (mask,) = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt")]
    return bool(int(mask, 16) >> (number - 1) & 1)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True
