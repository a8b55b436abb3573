"""Checkpoints against the disk and the memory of the same run.

    python -m benchmarks.checkpoint --directory DIR [--size-mb 500] [--rounds 3]         (with the training environment's Python)

Ratios of times, each the best of several rounds in which every way takes its turn, raw writing first and last. A save counts until it is
durable, with its digests; a load from a cold cache, with every digest checked. Saving behind the training is compared with copying the
state in memory, and its effect on steps that go on meanwhile with the same steps left alone.
"""

import argparse
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor

from training import container, storage
from training.background import BackgroundWork
from training.read_check import ReadCheck
from training.staging import Staging
from training.writer import CheckpointWriter

_TENSORS = 100
_CHUNK_BYTES = 8 << 20
_STEPS = 200
_RAW = "raw write + fsync"
_RAW_READ = "raw read"
State = dict[str, Tensor]


def main() -> None:
    """Run and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--directory", type=Path, required=True, help="folder on the storage to measure; what is made in it is removed")
    parser.add_argument("--size-mb", type=int, default=500, help="size of the state (default: 500)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the best counts (default: 3)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = options.directory / "benchmark"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    state = {f"tensor.{index}": torch.randn(options.size_mb * 10**6 // 4 // _TENSORS) for index in range(_TENSORS)}
    try:
        saves = measure(SAVES, state, folder, options.rounds, before=lambda path: shutil.rmtree(path, ignore_errors=True))
        show(f"Save of {options.size_mb} MB, durable", saves, _RAW, options.size_mb)
        loads = measure(LOADS, state, folder, options.rounds, before=forget)
        show(f"Load of {options.size_mb} MB, cold", loads, _RAW_READ, options.size_mb)
        show_behind(state, folder, options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def raw_write(state: State, path: Path) -> None:
    """The bytes of the state in one file, as fast as one thread writes."""
    path.mkdir()
    with (path / "raw").open("wb", buffering=0) as file:
        for tensor in state.values():
            view = memoryview(tensor.numpy()).cast("B")
            for start in range(0, len(view), _CHUNK_BYTES):
                file.write(view[start : start + _CHUNK_BYTES])
        os.fsync(file.fileno())


def ours(state: State, path: Path) -> None:
    """What a run does: DCP's plan, our container, digests, manifest."""
    (path / "engine").mkdir(parents=True)
    writer = CheckpointWriter(path)
    container.save(dict(state), path / "engine", writer, None, alone=True)
    storage.write_manifest(path, 1, writer.finish())


def ours_as_object(state: State, path: Path) -> None:
    """What a run does with the files that DeepSpeed makes."""
    path.mkdir()
    writer = CheckpointWriter(path)
    writer.write_object(path / "state.pt", state)
    storage.write_manifest(path, 1, writer.finish())


def torch_save(state: State, path: Path) -> None:
    """torch.save and fsync, with its CRC32."""
    path.mkdir()
    with (path / "state.pt").open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())


def dcp_save(state: State, path: Path) -> None:
    """DCP's own file writer with fsync, no digest."""
    dcp.save(dict(state), storage_writer=dcp.FileSystemWriter(path, sync_files=True, thread_count=2), no_dist=True)


def raw_read(state: State, path: Path) -> None:
    """Into the memory of the state, as fast as one thread reads."""
    with (path.with_name(_RAW) / "raw").open("rb", buffering=0) as file:
        for tensor in state.values():
            view = memoryview(tensor.numpy()).cast("B")
            while view:
                view = view[file.readinto(view[:_CHUNK_BYTES]) :]


def ours_read(state: State, path: Path) -> None:
    """Every digest checked, then into the memory of the state."""
    directory = path.with_name("trainer")
    records = storage.read_manifest(renamed(directory))
    left = [record for record in records if record.path.endswith(container.SUFFIX)]
    assert not storage.find_damage(renamed(directory), leave=[record.path for record in left])
    check = ReadCheck(directory, left)
    container.load(dict(state), directory / "engine", None, alone=True, check=check)
    assert check.confirmed == {record.path for record in left}


def torch_load(state: State, path: Path) -> None:
    """torch.load, which checks nothing, into the memory of the state."""
    loaded = torch.load(path.with_name("torch.save") / "state.pt", weights_only=True)
    for name, tensor in loaded.items():
        state[name].copy_(tensor)


def dcp_load(state: State, path: Path) -> None:
    """DCP's own file reader, which checks nothing."""
    dcp.load(dict(state), storage_reader=dcp.FileSystemReader(path.with_name("DCP")), no_dist=True)


SAVES: dict[str, Callable[[State, Path], None]] = {
    _RAW: raw_write,
    "trainer": ours,
    "trainer, DeepSpeed's files": ours_as_object,
    "torch.save": torch_save,
    "DCP": dcp_save,
    f"{_RAW}, again": raw_write,
}
LOADS: dict[str, Callable[[State, Path], None]] = {
    _RAW_READ: raw_read,
    "trainer": ours_read,
    "torch.load": torch_load,
    "DCP": dcp_load,
    f"{_RAW_READ}, again": raw_read,
}


def renamed(directory: Path) -> Path:
    """The folder under the name that its manifest belongs to."""
    link = directory.parent / storage.step_directory(directory.parent, 1).name
    if not link.exists():
        link.symlink_to(directory)
    return link


def measure(
    ways: dict[str, Callable[[State, Path], None]], state: State, folder: Path, rounds: int, before: Callable[[Path], None]
) -> dict[str, list[float]]:
    """Seconds of each way in each round."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            before(folder / name)
            os.sync()
            started = time.perf_counter()
            way(state, folder / name)
            taken[name].append(time.perf_counter() - started)
    return taken


def forget(path: Path) -> None:
    """Drop the files of all ways from the page cache."""
    for file in path.parent.rglob("*"):
        if file.is_file() and not file.is_symlink():
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def show(title: str, taken: dict[str, list[float]], base: str, size_mb: int) -> None:
    """One table; the base is the better of its two turns."""
    best = {name: min(seconds) for name, seconds in taken.items()}
    raw = min(best[base], best[f"{base}, again"])
    print(f"\n{title}\n{'way':32} {'best s':>8} {'MB/s':>8} {'ratio':>6}")
    for name, seconds in best.items():
        print(f"{name:32} {seconds:8.3f} {size_mb / seconds:8.0f} {raw / seconds:6.2f}")


def show_behind(state: State, folder: Path, rounds: int) -> None:
    """How long a save behind the training blocks, and what it does to the steps meanwhile, beside a thread that only writes the bytes."""
    copy = {name: torch.empty_like(tensor) for name, tensor in state.items()}
    staging, copying, blocked = Staging(), [], []
    steps: dict[str, list[tuple[float, float]]] = {"alone": [], "with a save": [], "with a raw write": []}
    for number in range(rounds + 1):
        copying.append(timed(lambda: [copy[name].copy_(tensor) for name, tensor in state.items()]))
        path = folder / f"behind-{number}"
        (path / "engine").mkdir(parents=True)
        writer = CheckpointWriter(path, staging)
        blocked.append(timed(lambda writer=writer, path=path: container.save(dict(state), path / "engine", writer, None, alone=True)))
        # The first round makes the buffers that the others use again.
        for name, beside in (
            ("alone", lambda: None),
            ("with a save", writer.finish),
            ("with a raw write", lambda path=path: raw_write(copy, path / "raw")),
        ):
            os.sync()
            if number:
                steps[name].append(mean_steps(beside))
        if not number:
            writer.finish()
        shutil.rmtree(path)
    memory, stall = min(copying[1:]), min(blocked[1:])
    print(
        f"\nSave behind the training\n{'copy in memory':32} {memory:8.3f} s\n{'training blocked':32} {stall:8.3f} s {stall / memory:6.2f}"
    )
    base = min(whole for whole, _ in steps.pop("alone"))
    print(f"{f'{_STEPS} steps alone':32} {base * _STEPS:8.3f} s")
    for name, means in steps.items():
        whole, during = (min(kind) for kind in zip(*means, strict=True))
        print(f"{f'{_STEPS} steps {name}':32} {whole * _STEPS:8.3f} s {whole / base:6.2f}, while it lasts {during / base:.2f}")


def mean_steps(beside: Callable[[], object]) -> tuple[float, float]:
    """Mean seconds of the steps from the start of another thread's work on: of all, and of those before it ended."""
    work = BackgroundWork("the write beside the steps", beside)
    steps, during = [], 0
    for _ in range(_STEPS):
        steps.append(timed(step))
        during += work.running
    work.wait()
    if work.failure:
        raise SystemExit(f"error: {work.what}: {work.failure}")
    meanwhile = steps[: during + 1]
    return sum(steps) / _STEPS, sum(meanwhile) / len(meanwhile)


_FACTOR = torch.randn(512, 512)


def step() -> None:
    """Work of one core for some milliseconds."""
    for _ in range(4):
        _FACTOR @ _FACTOR


def timed(action: Callable[[], object]) -> float:
    """Seconds that the action takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
