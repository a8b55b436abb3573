"""Micro-batches of one replica in the order of the stream, read ahead by worker processes while the step computes.

Workers are plain forks, made before the run has threads, sockets or a device, which no fork carries over safely. They only read: each fills
slots of memory that it shares with the rank, so nothing depends on the size of /dev/shm. They ignore the signals that ask a rank to stop,
which needs their batches to finish its step, and the kernel ends them with the rank, however that ends.
"""

import time
from collections import deque
from collections.abc import Iterator

import numpy as np

from training.batch import BatchPlan
from training.config import TrainConfig
from training.data import Dataset, Samples
from training.errors import DataError
from training.loader_worker import LoaderWorker


class Loader:
    """Reads with `data.workers` processes, or in this one if that is 0. Close it, so that its workers end at once."""

    def __init__(self, dataset: Dataset, config: TrainConfig) -> None:
        """Fork the workers."""
        self._dataset = dataset
        self._shape = (config.batch.micro, dataset.sequence_length + 1)
        self._timeout = config.data.timeout_seconds
        slots = config.data.prefetch
        self._workers = [LoaderWorker(number, dataset.read_train, slots, self._shape) for number in range(config.data.workers)]
        self._requests: Iterator[int] = iter(())
        self._pending: deque[tuple[LoaderWorker, int]] = deque()
        self._pinned = False
        self._waited = 0.0

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.pid for worker in self._workers]

    def start(self, taken: int, plan: BatchPlan, replica: int, *, pinned: bool) -> None:
        """Begin with the samples that a run takes after `taken` others; `pinned` if a GPU will fetch them. Called once."""
        self._requests, self._pinned = micro_batches(taken, plan, replica), pinned
        for _ in range(len(self._workers) and len(self._workers[0].slots)):
            for worker in self._workers:
                self._ask(worker)

    def next(self) -> Samples:
        """The next micro-batch. Raises DataError naming the file, or the worker that ended and what it was reading."""
        started = time.monotonic()
        if self._workers:
            worker, first = self._pending.popleft()
            samples = Samples.from_rows(self._receive(worker, first), pinned=self._pinned)
            self._ask(worker)
        else:
            rows = np.empty(self._shape, dtype=np.int32)
            self._dataset.read_train(next(self._requests), rows)
            samples = Samples.from_rows(rows, pinned=self._pinned)
        self._waited += time.monotonic() - started
        return samples

    def take_wait(self) -> float:
        """Seconds that the rank has waited for data since the last call."""
        waited, self._waited = self._waited, 0.0
        return waited

    def close(self) -> None:
        """End the workers, and wait until they are gone."""
        for worker in self._workers:
            worker.close()

    def _ask(self, worker: LoaderWorker) -> None:
        first = next(self._requests)
        worker.ask(first)
        self._pending.append((worker, first))

    def _receive(self, worker: LoaderWorker, first: int) -> np.ndarray:
        try:
            return worker.receive(self._timeout)
        except DataError as error:
            # A file that cannot be read is named already; a worker that ended could not say what it was at.
            where = "" if worker.answered else f" while reading {self._dataset.where(first, self._shape[0])}"
            raise DataError(f"{error}{where}") from None


def micro_batches(taken: int, plan: BatchPlan, replica: int) -> Iterator[int]:
    """How many samples come before each micro-batch of a replica, from an optimizer step that `taken` samples precede; without end."""
    while True:
        for micro_step in range(plan.accumulation):
            yield taken + (micro_step * plan.replicas + replica) * plan.micro
        taken += plan.global_batch
