"""Have mpirun ask all ranks to save and stop, and wait for it to end: `stop_mpirun.py SECONDS`.

Runs as the preStop hook of an MPI launcher, whose process 1 is mpirun. On the pod's own signal mpirun would end the ranks itself: each a
second (or the configured time) after it was asked, one after the other. It forwards SIGUSR1 to all of them at once and goes on waiting, and
the trainer takes it as it takes SIGTERM. Standard library only: it runs from a mounted file in whatever image the job has.
"""

import contextlib
import os
import signal
import sys
import time

LAUNCHER = 1
POLL_SECONDS = 0.5


def runs(pid: int) -> bool:
    """Whether a process with this id exists."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def main(seconds: float, pid: int = LAUNCHER) -> int:
    """Stop; returns 0 when the process has ended (in a pod this hook ends with it), 1 when it still runs after `seconds`."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR1)
    while runs(pid):
        if time.monotonic() > deadline:
            print(f"stop: mpirun still runs after {seconds:g} s", file=sys.stderr)
            return 1
        time.sleep(POLL_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
