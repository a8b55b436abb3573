"""Loader workers: the same samples whatever their number, each once across every kind of resume, and a reason when one of them fails."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.training.inside.shards import all_trained, config, make_shards, numbers
from training.batch import BatchPlan
from training.data import Dataset
from training.errors import DataError
from training.loader import Loader

pytestmark = pytest.mark.training

SEED, CASES = int(os.environ.get("TRAINYARD_SEED", "0")), int(os.environ.get("TRAINYARD_DATA_RESUMES", "12"))
SIZES = [20, 31, 4, 25, 28]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """108 samples in five shards, 96 of them for training."""
    return make_shards(tmp_path_factory.mktemp("data") / "shards", SIZES)


def steps(shards: Path, taken: int, plan: BatchPlan, count: int, **data: object) -> list[list[int]]:
    """Samples of each of `count` optimizer steps over all replicas, each with a loader of its own; in the order of the stream."""
    settings = config(shards, micro=plan.micro, **data)
    found: list[dict[int, list[int]]] = [{} for _ in range(count)]
    for replica in range(plan.replicas):
        with closing(Loader(Dataset(settings), settings)) as loader:
            loader.start(taken, plan, replica, pinned=False)
            for step in found:
                for micro_step in range(plan.accumulation):
                    step[micro_step * plan.replicas + replica] = numbers(loader.next().tokens.numpy())
    return [[number for place in sorted(step) for number in step[place]] for step in found]


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_changes_nothing(shards: Path, workers: int, window: int | None) -> None:
    plan = BatchPlan(micro=3, accumulation=2, replicas=2)
    alone = steps(shards, 12, plan, 17, shuffle_shards=window)
    assert steps(shards, 12, plan, 17, workers=workers, prefetch=workers, shuffle_shards=window) == alone


def slices(generator: random.Random, total: int) -> Iterator[tuple[int, BatchPlan, int, int]]:
    """A run of `total` samples in pieces: taken before, layout, optimizer steps and workers of each piece."""
    taken = 0
    while taken < total:
        # All of them divide 96: steps end exactly at an epoch's end, and in some pieces just before and after it.
        plan = BatchPlan(micro=generator.choice([1, 2, 3]), accumulation=generator.choice([1, 2]), replicas=generator.choice([1, 2, 4]))
        left = (total - taken) // plan.global_batch
        if left:
            count = min(left, generator.choice([1, 2, 5, 96 // plan.global_batch]))
            yield taken, plan, count, generator.choice([0, 0, 1, 2])
            taken += count * plan.global_batch


@pytest.mark.parametrize("case", range(CASES))
def test_no_sample_is_lost_or_seen_twice_however_the_run_is_cut(shards: Path, case: int) -> None:
    generator = random.Random(SEED * 1000 + case)
    window = generator.choice([None, 1, 2, 4])
    dataset = Dataset(config(shards, shuffle_shards=window))
    seen: list[int] = []
    for taken, plan, count, workers in slices(generator, 3 * 96):
        cursor = dataset.restore(dataset.state(taken))
        seen += [number for step in steps(shards, cursor, plan, count, workers=workers, shuffle_shards=window) for number in step]
    epochs = [seen[first : first + 96] for first in (0, 96, 192)]
    assert all(Counter(epoch) == Counter(all_trained(dataset)) for epoch in epochs)


def waiting(shards: Path, **data: object) -> Loader:
    """A loader that has begun."""
    settings = config(shards, workers=2, **data)
    loader = Loader(Dataset(settings), settings)
    loader.start(0, BatchPlan(micro=2, accumulation=1, replicas=1), 0, pinned=False)
    return loader


def read_on(loader: Loader) -> None:
    for _ in range(20):
        loader.next()


def until_error(loader: Loader) -> str:
    """What the loader raises, soon."""
    started = time.monotonic()
    with closing(loader), pytest.raises(DataError) as caught:
        read_on(loader)
    assert time.monotonic() - started < 10
    return str(caught.value)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text()


def test_a_worker_that_is_killed_is_named_with_what_it_was_reading(shards: Path) -> None:
    loader = waiting(shards)
    os.kill(loader.worker_pids[1], signal.SIGKILL)
    message = until_error(loader)
    assert f"loader worker 1 (process {loader.worker_pids[1]}) was killed by SIGKILL while reading " in message
    assert ".npy, token " in message
    assert all(gone(pid) for pid in loader.worker_pids)


def test_a_worker_that_hangs_is_named_after_the_timeout(shards: Path) -> None:
    loader = waiting(shards, timeout_seconds=1)
    os.kill(loader.worker_pids[0], signal.SIGSTOP)
    assert f"loader worker 0 (process {loader.worker_pids[0]}) has not answered for 1 s (data.timeout_seconds)" in until_error(loader)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: os.truncate(path, 300), "shard-00001.npy: it has 300 bytes, where 249 tokens need more: it was cut short"),
        (lambda path: path.unlink(), "shard-00001.npy: cannot be opened (No such file or directory)"),
        (lambda path: path.write_bytes(b"x" * path.stat().st_size), "shard-00001.npy: no NumPy array"),
        (lambda path: path.write_bytes(path.with_name("shard-00000.npy").read_bytes()), "of shape (161,), the index says 249 of uint16"),
        (lambda path: path.write_bytes(path.read_bytes()[:-300] + b"\xff" * 300), "shard-00001.npy, token"),
    ],
    ids=["cut", "gone", "garbled", "swapped", "ids"],
)
@pytest.mark.parametrize("workers", [0, 1])
def test_a_shard_that_is_damaged_under_the_run_is_named(tmp_path: Path, workers: int, damage, message: str) -> None:
    folder = make_shards(tmp_path / "shards", SIZES)
    settings = config(folder, workers=workers)
    damage(folder / "shard-00001.npy")
    loader = Loader(Dataset(settings), settings)
    loader.start(0, BatchPlan(micro=2, accumulation=1, replicas=1), 0, pinned=False)
    found = until_error(loader)
    assert message in found
    assert found.startswith("loader worker 0: " if workers else str(tmp_path))


@pytest.mark.parametrize("attempt", range(8))
def test_workers_go_on_through_signals_that_stop_a_rank(shards: Path, attempt: int) -> None:
    """From their first moment on, which a single attempt may miss."""
    del attempt
    with closing(waiting(shards)) as loader:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            for pid in loader.worker_pids:
                os.kill(pid, number)
        for _ in range(10):
            loader.next()
    assert all(gone(pid) for pid in loader.worker_pids)


def test_workers_end_with_a_rank_that_is_killed(shards: Path) -> None:
    reader, writer = os.pipe()
    rank = os.fork()
    if not rank:
        loader = waiting(shards)
        loader.next()
        os.write(writer, " ".join(map(str, loader.worker_pids)).encode())
        signal.pause()
        os._exit(1)
    pids = [int(pid) for pid in os.read(reader, 100).split()]
    assert len(pids) == 2
    assert not any(gone(pid) for pid in pids)
    os.kill(rank, signal.SIGKILL)
    os.waitpid(rank, 0)
    time.sleep(0.2)
    assert all(gone(pid) for pid in pids)


def test_batches_are_read_while_the_step_computes(shards: Path) -> None:
    """With a reader that takes 50 ms and a step that takes 60, a rank with a worker hardly waits, one without waits every time."""
    settings = config(shards)
    waits = []
    for workers in (0, 1):
        settings = config(shards, workers=workers)
        dataset = Dataset(settings)
        read = dataset.read_train
        dataset.read_train = lambda first, rows, read=read: (time.sleep(0.05), read(first, rows))[1]  # type: ignore[method-assign]
        with closing(Loader(dataset, settings)) as loader:
            loader.start(0, BatchPlan(micro=2, accumulation=1, replicas=1), 0, pinned=False)
            loader.next()
            loader.take_wait()
            for _ in range(5):
                time.sleep(0.06)
                loader.next()
            waits.append(loader.take_wait())
    assert waits[0] >= 0.25
    assert waits[1] < 0.1
