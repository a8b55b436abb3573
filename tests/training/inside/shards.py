"""Datasets of token shards for tests: every sample starts with ids that name it."""

from pathlib import Path

import numpy as np

from training.config import TrainConfig
from training.data import Dataset
from training.shard_writer import InputPosition, ShardWriter
from training.tokenizer import ByteTokenizer

LENGTH = 8


def make_shards(folder: Path, sizes: list[int], length: int = LENGTH) -> Path:
    """One shard per size, with that many samples of `length` tokens; the first two tokens of each sample are its number."""
    writer = ShardWriter(folder, ByteTokenizer("none"), shard_tokens=1, source={})
    number = 0
    for shard, size in enumerate(sizes):
        rows = np.full((size, length), 200, dtype=np.uint8)
        rows[:, 0], rows[:, 1] = np.divmod(np.arange(number, number + size), 256)
        writer.add(np.append(rows.reshape(-1), 0), InputPosition(0, shard))
        number += size
    writer.publish()
    return folder


def config(folder: Path, **changes: object) -> TrainConfig:
    """A run on these shards, one sample in nine held out."""
    batch = {"micro": changes.pop("micro", 2)}
    data = {"shards": str(folder), "sequence_length": LENGTH, "eval_every_nth": 9, **changes}
    return TrainConfig.from_mapping({"name": "x", "steps": 20, "batch": batch, "data": data})


def numbers(rows: np.ndarray) -> list[int]:
    """Which samples these rows are."""
    return [int(row[0]) * 256 + int(row[1]) for row in rows]


def all_trained(dataset: Dataset) -> set[int]:
    """Every training sample's number."""
    total = dataset.num_train + dataset.num_eval
    return {number for number in range(total) if number % 9 != 8}
