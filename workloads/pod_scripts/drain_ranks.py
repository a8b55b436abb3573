"""Ask the ranks in this container to save and stop, and wait until they have: `drain_ranks.py SECONDS`.

Runs as the preStop hook of an MPI worker, whose ranks are children of ssh sessions: the signal that ends a pod reaches only sshd, and when
sshd ends, the ranks are killed with it. Standard library only: it runs from a mounted file in whatever image the job has.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

TRAINER = b"training.train"
POLL_SECONDS = 0.5


def trainers(proc: Path) -> dict[int, int]:
    """Return the processes that run the trainer: process id to parent's id. Zombies have no command line and are not among them."""
    found = {}
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            # `python3 -m training.train`: orted names the module too, but not behind its own -m.
            if b"-m" in words[:-1] and words[words.index(b"-m") + 1] == TRAINER:
                # The second field, the program's name in parentheses, may itself hold spaces.
                found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def ranks(processes: Mapping[int, int]) -> list[int]:
    """Return those trainers that are no child of another: a rank's data loaders must outlive the signal, or the rank fails."""
    return [pid for pid, parent in processes.items() if parent not in processes]


def main(seconds: float, proc: Path = Path("/proc")) -> int:
    """Drain; returns 0 when no rank is left, 1 when some still run after `seconds`."""
    deadline = time.monotonic() + seconds
    for pid in ranks(trainers(proc)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    while left := trainers(proc):
        if time.monotonic() > deadline:
            print(f"drain: {len(left)} trainer processes still run after {seconds:g} s", file=sys.stderr)
            return 1
        time.sleep(POLL_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
