"""A program that ranks run in place of the trainer: the trainer, but for one fault when it asks for its fifth micro-batch."""

import ctypes
import os
import time

from training import train
from training.loader import Loader
from training.watchdog import Watchdog

_NEXT = Loader.next
_FAULTY_CALL = 5
_FAULTY_RANK = "1"
_FOR_EVER = 100_000


def sleep_for_ever(*arguments: object) -> None:
    """As a read from storage that never answers."""
    del arguments
    time.sleep(_FOR_EVER)


def hold_the_interpreter(*arguments: object) -> None:
    """As an extension that waits without giving up the interpreter's lock: no Python thread of this process runs any more."""
    del arguments
    ctypes.PyDLL(None).sleep(_FOR_EVER)


def fail(*arguments: object) -> None:
    """A reason of this rank's own."""
    del arguments
    raise OSError("the disk of this host is on fire")


FAULTS = {
    "sleep": sleep_for_ever,
    "sleep-unseen": sleep_for_ever,
    "sleep-told-late": sleep_for_ever,
    "hold": hold_the_interpreter,
    "fail": fail,
}


def main(arguments: list[str]) -> int:
    """`FAULT <the trainer's arguments>`: rank 1 meets the fault, the others run as they are."""
    name, *rest = arguments

    def draw(loader: Loader) -> object:
        calls.append(None)
        if os.environ["RANK"] == _FAULTY_RANK and len(calls) == _FAULTY_CALL:
            FAULTS[name]()
        return _NEXT(loader)

    if name == "sleep-unseen" and os.environ["RANK"] != _FAULTY_RANK:
        # As on a host so busy that the faulty rank has ended before the others' own watch ran out.
        Watchdog._give_up = lambda self, reason: None
    if name == "sleep-told-late" and os.environ["RANK"] == "0":
        # The others have told of the hang and ended before this rank has put its own report together.
        places = Watchdog._places
        Watchdog._places = lambda self: time.sleep(2) or places(self)
    calls: list[None] = []
    Loader.next = draw  # ty: ignore[invalid-assignment]
    return train.main(rest)
