"""The emulator's process: `python -m local.aws.server --state DIR --port N --bind ADDRESS ...`."""

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from local.aws.node_image import write_catalogue

# sysexits.h: the state on disk is not usable. Reported by the emulator's `start`.
EX_DATA = 65


def main(argv: list[str] | None = None) -> int:
    """Load the state, serve until SIGTERM or SIGINT. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bind", action="append", required=True)
    parser.add_argument("--region", required=True)
    options = parser.parse_args(argv)
    _configure_moto(options.state)
    # moto reads its settings when it is imported.
    from local.aws.serving import serve
    from local.aws.snapshot import StateError

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        serve(options.state, options.port, options.bind, options.region, stop)
    except StateError as error:
        (options.state / "refused.txt").write_text(str(error))
        return EX_DATA
    return 0


def _configure_moto(state: Path) -> None:
    state.mkdir(parents=True, exist_ok=True)
    catalogue = state / "images.json"
    write_catalogue(catalogue)
    os.environ["MOTO_AMIS_PATH"] = str(catalogue)
    os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "true"
    # Else a request on an address that is not known as one of AWS could be sent on.
    os.environ["MOTO_EVENTS_INVOKE_HTTP"] = "false"
    os.environ.pop("MOTO_ACCOUNT_ID", None)


if __name__ == "__main__":
    sys.exit(main())
