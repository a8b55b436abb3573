"""Samples in a shuffled order that depends on the seed alone, addressed by one number: how many samples the run has taken.

The stream is epoch after epoch, each a permutation of all training samples, with no sample dropped at an epoch's end. So the cursor of a
checkpoint is that one number, whatever the ranks, micro-batches or batch size before and after it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training.batch import BatchPlan
from training.config import TrainConfig
from training.corpus import Corpus
from training.errors import DataError
from training.shuffle import shuffled


@dataclass(frozen=True)
class Samples:
    """Token ids and the ids that follow them, each [batch, sequence] of int64."""

    tokens: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> "Samples":
        """The same samples on a device."""
        return Samples(self.tokens.to(device, non_blocking=True), self.targets.to(device, non_blocking=True))


class Dataset:
    """The corpus cut into samples of `sequence_length` tokens; every nth is held out for evaluation."""

    def __init__(self, config: TrainConfig) -> None:
        self._corpus = Corpus(config.data)
        self._length = config.data.sequence_length
        self._nth = config.data.eval_every_nth
        self._seed = config.seed
        self._vocab_size = config.model.vocab_size
        # One token more than the samples hold: the last target of the last sample.
        total = (self._corpus.num_tokens - 1) // self._length
        self.num_eval = total // self._nth
        self.num_train = total - self.num_eval
        if not self.num_eval:
            raise DataError(
                f"the corpus has {self._corpus.num_tokens} tokens in {len(self._corpus.paths)} files: {max(total, 0)} samples of "
                f"{self._length} tokens, but data.eval_every_nth = {self._nth} needs at least that many"
            )

    @property
    def fingerprint(self) -> str:
        """Digest that tells whether a cursor belongs to this corpus."""
        return self._corpus.fingerprint

    def describe(self) -> str:
        """One line for the log."""
        corpus = self._corpus
        return (
            f"{corpus.num_tokens:,} tokens in {len(corpus.paths)} files ({corpus.paths[0]} ...), "
            f"{self.num_train:,} training and {self.num_eval:,} evaluation samples of {self._length} tokens"
        )

    def epoch(self, taken: int) -> float:
        """Epochs that a run has behind it after `taken` samples."""
        return taken / self.num_train

    def train_index(self, taken: int) -> int:
        """Which training sample the run takes after `taken` others."""
        epoch, position = divmod(taken, self.num_train)
        return shuffled(position, size=self.num_train, seed=self._seed, epoch=epoch)

    def train_batch(self, taken: int, plan: BatchPlan, replica: int, micro_step: int) -> Samples:
        """The micro-batch of one replica: its share of the `global_batch` samples that follow the `taken` ones."""
        first = taken + (micro_step * plan.replicas + replica) * plan.micro
        return self._samples([self._train_window(self.train_index(first + offset)) for offset in range(plan.micro)])

    def eval_batch(self, indices: list[int]) -> Samples:
        """These held-out samples."""
        return self._samples([(index + 1) * self._nth - 1 for index in indices])

    def _train_window(self, index: int) -> int:
        """Position in the corpus of the index-th sample that is not held out (those are the last of each `nth`)."""
        group, offset = divmod(index, self._nth - 1)
        return group * self._nth + offset

    def _samples(self, windows: list[int]) -> Samples:
        rows = np.stack([self._corpus.read(window * self._length, self._length + 1) for window in windows])
        if rows.max() >= self._vocab_size:
            raise DataError(f"the corpus holds token id {rows.max()}, but model.vocab_size is {self._vocab_size}")
        both = torch.from_numpy(rows)
        return Samples(both[:, :-1].contiguous(), both[:, 1:].contiguous())
