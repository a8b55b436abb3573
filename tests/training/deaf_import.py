"""A program whose import is interrupted by SIGTERM, and goes on whatever that raises, as some libraries' imports do."""

import os
import signal


def main(arguments: list[str]) -> int:
    """What would run had the signal been lost."""
    del arguments
    return 0


try:
    os.kill(os.getpid(), signal.SIGTERM)
except:  # noqa: E722
    print("the signal was lost", flush=True)
