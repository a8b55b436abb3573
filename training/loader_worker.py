"""One process that reads samples for a rank, and the rank's end of it."""

import ctypes
import itertools
import mmap
import os
import signal
import traceback
import weakref
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe

import numpy as np

from training.errors import DataError
from training.signals import STOP_SIGNALS

_PR_SET_PDEATHSIG = 1
_GONE = (EOFError, ConnectionResetError, BrokenPipeError)


class LoaderWorker:
    """Asked for batches one after the other, it answers in the same order; at most as many at a time as there are slots."""

    def __init__(self, number: int, read: Callable[[int, np.ndarray], None], num_slots: int, shape: tuple[int, ...]) -> None:
        """Fork it. `read` fills an array of this shape with the batch that it is given the number of."""
        self._name = f"loader worker {number}"
        size = num_slots * int(np.prod(shape)) * np.dtype(np.int32).itemsize
        # Anonymous memory shared by the fork: it has no name, no file and no limit of its own.
        self.slots = np.frombuffer(mmap.mmap(-1, size), dtype=np.int32).reshape(num_slots, *shape)
        self.answered = True
        """Whether the last answer said itself what was wrong."""
        self._turns = itertools.cycle(range(num_slots))
        self._connection, theirs = Pipe()
        parent = os.getpid()
        # A signal that comes before the worker ignores it must neither end it nor run the rank's handler in it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            self.pid = os.fork()
            if not self.pid:
                self._connection.close()
                _serve(parent, theirs, read, self.slots, before)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        # Also where nobody calls `close`, as at the end of an interpreter.
        self._end = weakref.finalize(self, _end, self.pid)

    def ask(self, first: int) -> None:
        """Request a batch. A worker that has ended is noticed when its answer is awaited."""
        try:
            self._connection.send(first)
        except _GONE:
            return

    def receive(self, timeout: float) -> np.ndarray:
        """The oldest batch asked for, in a slot that stays as it is until the next request. Raises DataError."""
        self.answered = False
        if not self._connection.poll(timeout):
            raise DataError(f"{self._name} (process {self.pid}) has not answered for {timeout:g} s (data.timeout_seconds)")
        try:
            problem = self._connection.recv()
        except _GONE:
            raise DataError(f"{self._name} (process {self.pid}) {self._how_it_ended()}") from None
        self.answered = True
        if problem is not None:
            raise DataError(f"{self._name}: {problem}")
        return self.slots[next(self._turns)]

    def close(self) -> None:
        """End it, and wait until it is gone. It holds nothing that would have to be finished."""
        self._end()
        self._connection.close()

    def _how_it_ended(self) -> str:
        self._end.detach()
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return f"ended with exit code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"


def _end(pid: int) -> None:
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _serve(
    parent: int, connection: Connection, read: Callable[[int, np.ndarray], None], slots: np.ndarray, mask: set[signal.Signals | int]
) -> None:
    """The worker's life; it ends with the process, not with a return. `mask` is restored once signals are ignored."""
    code = 1
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have ended before the kernel was told.
        if os.getppid() == parent:
            _answer(connection, read, slots)
        code = 0
    except _GONE:
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _answer(connection: Connection, read: Callable[[int, np.ndarray], None], slots: np.ndarray) -> None:
    for slot in itertools.cycle(slots):
        first = connection.recv()
        try:
            read(first, slot)
            problem = None
        except (DataError, OSError) as error:
            problem = str(error)
        connection.send(problem)
