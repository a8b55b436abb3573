"""What the loader costs beside raw memory-mapped reads of the same shuffled samples: tokens per second of each, in turn in one process.

    python -m benchmarks.data [--rounds 3] [--batches 400] [--micro 8] [--length 2048] [--shards 8] [--shard-tokens 8388608]

The raw side is the least that any loader must do: slice a NumPy map at the same places, and copy the slices into tensors of int64. The
loader reads in the rank itself and with one and two workers; its fastest round counts, as does the raw one's. Pages are in memory for both.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.training_python import rerun_there

EVERY_NTH = 50


def main(arguments: list[str]) -> int:
    """Measure and print."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="trainyard-data-") as folder:
        shards = make(Path(folder) / "shards", options)
        kinds: dict[str, Callable[[], float]] = {"raw": lambda: raw(shards, options)}
        for workers in (0, 1, 2):
            kinds[f"workers-{workers}"] = lambda workers=workers: loader(shards, options, workers)
        rates: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(options.rounds):
            for name, measure in kinds.items():
                rates[name].append(measure())
    best = {name: max(found) for name, found in rates.items()}
    tokens = options.batches * options.micro * options.length
    for name, rate in best.items():
        batch = 1e6 * tokens / rate / options.batches
        print(f"{name}: {rate / 1e6:.0f} M tokens/s, {rate / best['raw']:.2f} of raw, {batch:.0f} us a batch")
    print(json.dumps({name: {"tokens_per_second": round(rate), "ratio": round(rate / best["raw"], 3)} for name, rate in best.items()}))
    return 0


def make(folder: Path, options: argparse.Namespace) -> Path:
    """Shards of random ids."""
    import numpy as np

    from training.shard_writer import InputPosition, ShardWriter
    from training.tokenizer import ByteTokenizer

    generator = np.random.default_rng(0)
    writer = ShardWriter(folder, ByteTokenizer("none"), shard_tokens=options.shard_tokens, source={})
    for number in range(options.shards):
        writer.add(generator.integers(0, 256, options.shard_tokens, dtype=np.uint8), InputPosition(0, number))
    writer.publish()
    return folder


def configuration(shards: Path, options: argparse.Namespace, workers: int) -> Any:
    """A run on these shards."""
    from training.config import TrainConfig

    data = {"shards": str(shards), "sequence_length": options.length, "eval_every_nth": EVERY_NTH, "workers": workers, "prefetch": 4}
    return TrainConfig.from_mapping({"name": "x", "steps": 20, "batch": {"micro": options.micro}, "data": data})


def raw(shards: Path, options: argparse.Namespace) -> float:
    """Tokens per second of plain slices at the places that the loader reads."""
    import numpy as np
    import torch

    from training.data import Dataset

    dataset = Dataset(configuration(shards, options, 0))
    places = [dataset.place(taken) for taken in range(options.batches * options.micro)]
    maps = [np.load(path, mmap_mode="r") for path in sorted(shards.glob("shard-?????.npy"))]
    started = time.perf_counter()
    for first in range(0, len(places), options.micro):
        rows = np.stack([maps[part][start : start + options.length + 1] for part, start in places[first : first + options.micro]])
        both = torch.from_numpy(rows.astype(np.int64))
        _ = both[:, :-1].contiguous(), both[:, 1:].contiguous()
    return len(places) * options.length / (time.perf_counter() - started)


def loader(shards: Path, options: argparse.Namespace, workers: int) -> float:
    """Tokens per second that the loader gives to a rank that does nothing else."""
    from training.batch import BatchPlan
    from training.data import Dataset
    from training.loader import Loader

    settings = configuration(shards, options, workers)
    dataset = Dataset(settings)
    with closing(Loader(dataset, settings)) as batches:
        batches.start(0, BatchPlan(micro=options.micro, accumulation=1, replicas=1), 0, pinned=False)
        batches.next()
        started = time.perf_counter()
        for _ in range(options.batches):
            batches.next()
        return options.batches * options.micro * options.length / (time.perf_counter() - started)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data", description="The loader beside raw memory-mapped reads.")
    for name, default in (("rounds", 3), ("batches", 400), ("micro", 8), ("length", 2048), ("shards", 8), ("shard-tokens", 1 << 23)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    rerun_there("benchmarks.data")
    sys.exit(main(sys.argv[1:]))
