"""Run a module as process 1 of a pod, as `python3 -m` would: `run_agent.py -m torch.distributed.run ARGUMENTS`.

It adds two things that torchrun lacks. A signal that comes before torchrun has installed its handlers ends the pod at once: process 1
ignores signals it has no handler for, so that a job deleted while it starts would sit out its whole grace period. And the pod ends with the
failed rank's own exit code, which the job's restart policy reads, where torchrun ends with 1 whatever happened.
"""

import runpy
import signal
import sys
from types import FrameType

SIGNAL_BASE = 128


def end(number: int, _frame: FrameType | None) -> None:
    """Leave with the exit code that a shell gives to a process ended by this signal."""
    sys.exit(SIGNAL_BASE + number)


def exit_code(error: BaseException) -> int | None:
    """Return the exit code that an error of torchrun carries: the first failed rank's, or its own signal's; None for other errors.

    The classes are known by their attributes, so that this file needs no torch.
    """
    if isinstance(number := getattr(error, "sigval", None), signal.Signals):
        return SIGNAL_BASE + number
    first = getattr(error, "get_first_failure", None)
    if first is None:
        return None
    code = first()[1].exitcode
    # A rank ended by a signal has the negative of its number.
    return code if code > 0 else SIGNAL_BASE - code


def main(argv: list[str]) -> None:
    """Run the module named after `-m` with the rest of the arguments."""
    if len(argv) < 2 or argv[0] != "-m":
        sys.exit("usage: run_agent.py -m MODULE ARGUMENTS...")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    sys.argv = argv[1:]
    try:
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    except Exception as error:
        code = exit_code(error)
        if code is None:
            raise
        print(error, file=sys.stderr, flush=True)
        sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
