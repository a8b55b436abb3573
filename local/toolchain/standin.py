"""Runs a stand-in plug-in as the engine expects of one: it ends on SIGINT, and when the engine is gone.

python -m local.toolchain.standin local.plugins.aws <engine address>
"""

import os
import runpy
import signal
import sys
import threading
import time
from types import FrameType

PARENT_POLL_SECONDS = 0.5


def main() -> None:
    """Run the module named by the first argument with the rest as its own."""
    module = sys.argv[1]
    sys.argv = sys.argv[1:]
    # An engine started with `&` hands down an ignored SIGINT, which is the signal it later ends its plug-ins with.
    signal.signal(signal.SIGINT, _end)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: gRPC's worker threads would be waited for, and the engine has closed the connection already.
    os._exit(0)


def _end_with_parent(parent: int) -> None:
    # A killed engine can't ask anyone to stop. PR_SET_PDEATHSIG won't do: it follows the thread that forked, and Go ends threads.
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
