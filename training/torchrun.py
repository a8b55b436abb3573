"""torchrun with the trainer's exit codes: `python -m training.torchrun <options of torchrun> -m training.train ...`.

torchrun itself ends with 1 and a traceback whatever its ranks said, so that a job's restart policy could not tell "saved, start me again"
from a failure. This runs the same launcher in this process, gives the ranks' own code, and waits longer than 30 s for ranks that save on a
signal (TORCH_ELASTIC_SHUTDOWN_TIMEOUT or --shutdown-timeout change that; a pod's grace period must be longer).
"""

import logging
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

from training.exit_codes import ExitCode, combine, describe

_GRACE_SECONDS = 120


def main(arguments: Sequence[str]) -> int:
    """Launch the ranks of this host and give their exit code."""
    # Until torchrun handles signals itself: process 1 of a container ignores those it has no handler for, so that a pod deleted while it
    # starts would sit out its whole grace period.
    signal.signal(signal.SIGTERM, _leave)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(_GRACE_SECONDS))
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    # Its loggers report a rank's exit code 75 as an error; what matters is printed here and by the ranks themselves.
    logging.disable(logging.ERROR)
    try:
        run.run(run.parse_args(list(arguments)))
    except ChildFailedError as error:
        codes = {rank: failure.exitcode for rank, failure in sorted(error.failures.items())}
        print("exit codes by rank: " + ", ".join(f"{rank}: {code}" for rank, code in codes.items()), file=sys.stderr, flush=True)
        print(_first_failure(error), file=sys.stderr, flush=True)
        return combine(list(codes.values()))
    except SignalException as error:
        print(f"launcher got {error.sigval.name} and passed it on; the ranks have ended", file=sys.stderr, flush=True)
        return ExitCode.RESTART
    return ExitCode.DONE


def _first_failure(error: Any) -> str:
    """The rank that ended first and its reason, which it has left in the file that torchrun named for it."""
    rank, failure = error.get_first_failure()
    reason = failure.message["message"] if isinstance(failure.message, dict) else ""
    return f"first, rank {rank} {describe(failure.exitcode)}" + (f": {reason}" if reason else "")


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """Nothing runs yet that could be saved: leave, to be started again."""
    del number, frame
    sys.exit(ExitCode.RESTART)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
