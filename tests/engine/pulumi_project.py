"""A Pulumi project in a folder of its own, run by the real engine on a state folder of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


class Project:
    """A project and its stack `test`. `environment` is that of `local.toolchain.engine.engine_environment`."""

    def __init__(self, folder: Path, environment: dict[str, str], program: str) -> None:
        self.folder = folder
        self.environment = environment
        self.write("Pulumi.yaml", runtime_file("name: tiny\n", virtualenv=sys.prefix))
        self.write("__main__.py", program)
        made = self.pulumi("stack", "init", "test")
        assert made.returncode == 0, made.stdout + made.stderr

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def argv(self, *words: str) -> list[str]:
        return ["pulumi", *words, "--non-interactive", "--color", "never"]

    def pulumi(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*words), cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=240, check=False
        )

    def start(self, *words: str, ignore_interrupt: bool = False) -> subprocess.Popen[str]:
        """Start the engine and go on. With `ignore_interrupt` it is started as `&` in a script starts its commands."""
        return subprocess.Popen(
            self.argv(*words),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=ignore_sigint if ignore_interrupt else None,
        )


def runtime_file(head: str, **options: str) -> str:
    """The text of Pulumi.yaml or PulumiPolicy.yaml with runtime options for Python."""
    return f"{head}runtime:\n  name: python\n  options: {json.dumps(options)}\n"


def ignore_sigint() -> None:
    """What a shell does to a command that it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def until(condition: Callable[[], bool], *, seconds: float) -> bool:
    """Wait for `condition` for at most `seconds`; returns whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def processes_under(folder: Path) -> dict[int, str]:
    """Live processes whose environment names `folder` (its TRAINYARD_STATE lies in it), by pid, with their command lines."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    found.pop(os.getpid(), None)
    return found
