"""One run of the engine that is killed: which of its processes dies, when, and whether the others follow."""

import contextlib
import os
import random
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# What dies -> words of its command line. The CLI is the process we started ourselves.
CLI = "cli"
TARGETS: Mapping[str, tuple[str, ...]] = {
    CLI: (),
    "aws plug-in": ("local.plugins.aws",),
    "eks plug-in": ("local.plugins.eks",),
    "kubernetes plug-in": ("pulumi-resource-kubernetes",),
    "language host": ("pulumi-language-python", "!pulumi-language-python-exec"),
    "program": ("pulumi-language-python-exec",),
}
_MARK = "TRAINYARD_CHAOS_RUN"
_POLL_SECONDS = 0.02
_END_SECONDS = 180.0
LINGER_SECONDS = 2.0
"""How long processes of a run may outlive the one that was killed or, where the engine itself goes on, the engine."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A plan: who, and after which part of a clean run's time."""

    target: str
    part: float

    def __str__(self) -> str:
        return f"{self.target} at {self.part:.0%}"


@dataclass(kw_only=True)
class Killed:
    """What came of it."""

    happened: bool
    """False where the run had ended before its target appeared or its time came."""
    seconds: float
    """From the start of the run to the kill, or to its end."""
    status: int
    lingering: dict[int, str] = field(default_factory=dict)
    """Processes of the run that live on after `LINGER_SECONDS`: pid, command line."""


def draw(seed: int, count: int, targets: Sequence[str]) -> list[Kill]:
    """A plan for `count` kills: every target in turn, moments uniform over a run."""
    chance = random.Random(seed)
    order = [targets[index % len(targets)] for index in range(count)]
    chance.shuffle(order)
    return [Kill(target=target, part=chance.uniform(0.0, 0.97)) for target in order]


def run_and_kill(
    argv: Sequence[str], target: str, is_time: Callable[[float], bool], *, cwd: Path, env: Mapping[str, str], log: Path
) -> Killed:
    """Start `argv`, kill the target with SIGKILL once `is_time(seconds since the start)`, and wait for the end of the run."""
    run = uuid.uuid4().hex
    started = time.monotonic()
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(argv), cwd=cwd, env={**env, _MARK: run}, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    happened = _strike(process, target, lambda: is_time(time.monotonic() - started), run)
    seconds = time.monotonic() - started
    status = process.wait(_END_SECONDS)
    time.sleep(LINGER_SECONDS)
    return Killed(happened=happened, seconds=seconds, status=status, lingering=_processes(run))


def _strike(process: subprocess.Popen[bytes], target: str, is_time: Callable[[], bool], run: str) -> bool:
    while process.poll() is None:
        if is_time():
            victims = _victims(process, target, run)
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if victims:
                return True
        time.sleep(_POLL_SECONDS)
    return False


def _victims(process: subprocess.Popen[bytes], target: str, run: str) -> list[int]:
    """Every process of the kind: a plug-in runs once for each of its providers."""
    if target == CLI:
        return [process.pid]
    words = TARGETS[target]
    found = []
    for pid, line in _processes(run).items():
        if all((word[1:] not in line) if word.startswith("!") else (word in line) for word in words):
            found.append(pid)
    return sorted(found)


def _processes(run: str) -> dict[int, str]:
    """Live processes of a run, with their command lines: they inherit its mark."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{_MARK}={run}".encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return {pid: line for pid, line in found.items() if line}
