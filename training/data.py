"""Samples in a shuffled order that depends on the seed alone, addressed by one number: how many samples the run has taken.

The stream is epoch after epoch, each a permutation of all training samples, with no sample dropped at an epoch's end. So the cursor of a
checkpoint is that one number, whatever the ranks, loader workers, micro-batches or batch size before and after it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from training.config import DataConfig, TrainConfig
from training.corpus import Corpus, FileCorpus
from training.errors import DataError
from training.order import SampleOrder
from training.shard_corpus import ShardCorpus


@dataclass(frozen=True)
class Samples:
    """Token ids and the ids that follow them, each [batch, sequence] of int64."""

    tokens: Tensor
    targets: Tensor

    @classmethod
    def from_rows(cls, rows: np.ndarray, *, pinned: bool = False) -> "Samples":
        """Copy rows of ids, [batch, sequence + 1] of any integer type; into pinned memory where a GPU is to fetch them."""
        both = torch.from_numpy(rows)
        shape = (len(rows), rows.shape[1] - 1)
        tokens, targets = (torch.empty(shape, dtype=torch.int64, pin_memory=pinned) for _ in range(2))
        return cls(tokens.copy_(both[:, :-1]), targets.copy_(both[:, 1:]))

    def to(self, device: torch.device) -> "Samples":
        """The same samples on a device."""
        return Samples(self.tokens.to(device, non_blocking=True), self.targets.to(device, non_blocking=True))


class Dataset:
    """The corpus cut into samples of `sequence_length` tokens; every nth is held out for evaluation."""

    def __init__(self, config: TrainConfig) -> None:
        """Find the corpus and count its samples. Raises DataError."""
        data = config.data
        self._corpus = _open_corpus(data)
        self.sequence_length = data.sequence_length
        self._nth = data.eval_every_nth
        self._vocab_size = config.model.vocab_size
        # One token more than the samples hold: the last target of the last sample.
        self._ends = list(accumulate(max(0, size - 1) // data.sequence_length for size in self._corpus.part_sizes))
        total = self._ends[-1]
        self.num_eval = total // self._nth
        self.num_train = total - self.num_eval
        if not self.num_eval:
            raise DataError(
                f"the corpus has {self._corpus.describe()}: {total} samples of {data.sequence_length} tokens, "
                f"but data.eval_every_nth = {self._nth} needs at least that many"
            )
        needed = self._corpus.vocab_size or 0
        if needed > self._vocab_size:
            limit = f"model.vocab_size is {self._vocab_size}; set it to at least {needed}"
            raise DataError(f"data.shards has ids up to {needed - 1}, but {limit}")
        if config.model.document_end is not None and data.shards and config.model.document_end != self._corpus.document_end:
            found = "nothing" if self._corpus.document_end is None else f"id {self._corpus.document_end}"
            raise DataError(f"documents in data.shards end with {found}, but model.document_end is {config.model.document_end}")
        trained = [end - end // self._nth for end in (0, *self._ends)]
        sizes = [end - start for start, end in pairwise(trained)]
        self._order = SampleOrder(sizes, seed=config.seed, window=data.shuffle_shards)
        self._shuffle = {"seed": config.seed, "window": data.shuffle_shards}

    @property
    def fingerprint(self) -> str:
        """Digest that tells whether a cursor belongs to this corpus."""
        return self._corpus.fingerprint

    def describe(self) -> str:
        """One line for the log."""
        return (
            f"{self._corpus.describe()}, {self.num_train:,} training and {self.num_eval:,} evaluation samples "
            f"of {self.sequence_length} tokens"
        )

    def epoch(self, taken: int) -> float:
        """Epochs that a run has behind it after `taken` samples."""
        return taken / self.num_train

    def state(self, taken: int) -> dict[str, Any]:
        """The cursor after `taken` samples, for a checkpoint: the number itself, and where that is in this corpus."""
        epoch, position = divmod(taken, self.num_train)
        part, start = self.place(taken)
        return {"samples": taken, "epoch": epoch, "position": position, "shard": part, "offset": start, "shuffle": self._shuffle}

    def restore(self, state: dict[str, Any]) -> int:
        """The number of samples taken, from `state`'s answer. Raises DataError if the same number now leads to another place."""
        now = self.state(state["samples"])
        changed = [f"{key} {state.get(key)} is now {now[key]}" for key in now if state.get(key) != now[key]]
        if changed:
            raise DataError(f"the data cursor of the checkpoint no longer fits the data: {', '.join(changed)}")
        return now["samples"]

    def train_index(self, taken: int) -> int:
        """Which training sample the run takes after `taken` others."""
        epoch, position = divmod(taken, self.num_train)
        return self._order.sample(epoch, position)

    def place(self, taken: int) -> tuple[int, int]:
        """Part of the corpus, and first token there, of the sample that the run takes after `taken` others."""
        return self._place(self._train_window(self.train_index(taken)))

    def read_train(self, first: int, rows: np.ndarray) -> None:
        """Fill the rows, [count, sequence + 1], with the samples that the run takes after `first` others. Raises DataError."""
        epoch, position = divmod(first, self.num_train)
        self._corpus.prepare(self._order.parts_from(epoch, position))
        self._read([self._train_window(self.train_index(first + offset)) for offset in range(len(rows))], rows)

    def where(self, first: int, count: int) -> str:
        """Files of the samples that the run takes after `first` others, for messages."""
        return "; ".join(self._corpus.where(*self.place(first + offset)) for offset in range(count))

    def find_damage(self, part: int, parts: int) -> list[str]:
        """What is wrong with the corpus, one line per file; reader `part` of `parts` checks its share of it."""
        return self._corpus.find_damage(part, parts)

    def eval_batch(self, indices: Sequence[int]) -> Samples:
        """These held-out samples."""
        rows = np.empty((len(indices), self.sequence_length + 1), dtype=np.int32)
        self._read([(index + 1) * self._nth - 1 for index in indices], rows)
        return Samples.from_rows(rows)

    def _train_window(self, index: int) -> int:
        """Number among all samples of the index-th one that is not held out (those are the last of each `nth`)."""
        group, offset = divmod(index, self._nth - 1)
        return group * self._nth + offset

    def _place(self, window: int) -> tuple[int, int]:
        """Part of the corpus that a sample lies in, and its first token there."""
        part = bisect_right(self._ends, window)
        return part, (window - (self._ends[part - 1] if part else 0)) * self.sequence_length

    def _read(self, windows: list[int], rows: np.ndarray) -> None:
        for window, row in zip(windows, rows, strict=True):
            self._corpus.read_into(*self._place(window), row)
        if rows.max() >= self._vocab_size:
            row = int(rows.max(axis=1).argmax())
            place = self._corpus.where(*self._place(windows[row]))
            raise DataError(f"{place}: the corpus holds token id {rows.max()}, but model.vocab_size is {self._vocab_size}")


def _open_corpus(config: DataConfig) -> Corpus:
    return FileCorpus(config) if config.shards is None else ShardCorpus(config)
