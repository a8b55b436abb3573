"""Requests to stop. A handler only notes the signal; the ranks agree on a step in the loop, so that all of them save the same one."""

import signal
import threading
from types import FrameType

from training.errors import StopRequestedError

STOP_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class StopRequest:
    """Which signal, if any, has asked this rank to stop."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None

    def install(self) -> None:
        """Handle the stop signals; explicit, because process 1 of a container gets none that it does not handle.

        Only a main thread can: where a launcher such as Ray runs the trainer in another, the signals stay the launcher's.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in STOP_SIGNALS:
            signal.signal(number, self._note)

    def raise_if_received(self) -> None:
        """Give up where there is nothing to save yet. Raises StopRequestedError."""
        if self.received:
            raise StopRequestedError(f"{self.received.name} came before the first step")

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.received = self.received or signal.Signals(number)
