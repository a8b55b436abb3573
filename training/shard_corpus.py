"""Token shards as a corpus: each shard is a part, cut into samples on its own, so that one shard at hand is enough to read its samples."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from training.config import DataConfig
from training.shard_index import ShardFile, ShardIndex
from training.shard_store import ShardStore, open_store
from training.token_file import OpenFiles, TokenFile, open_npy

_OPEN_SHARDS = 128


class ShardCorpus:
    """See Corpus."""

    def __init__(self, config: DataConfig) -> None:
        """Read the index; shards are opened when they are read from. Raises DataError."""
        self._store: ShardStore = open_store(config)
        self._index: ShardIndex = self._store.read_index()
        self._contents = config.verify == "contents"
        self._files = OpenFiles(_OPEN_SHARDS)
        self._opened: OrderedDict[str, TokenFile] = OrderedDict()
        self.part_sizes = _at_most([shard.num_tokens for shard in self._index.shards], config.max_tokens)
        self.fingerprint = f"{self._index.fingerprint} {sum(self.part_sizes)}"
        self.vocab_size: int | None = self._index.tokenizer.vocab_size

    def describe(self) -> str:
        """See Corpus."""
        tokenizer = self._index.tokenizer.name
        return f"{sum(self.part_sizes):,} tokens ({tokenizer}) in {len(self.part_sizes)} shards of {self._store.where}"

    def read_into(self, part: int, start: int, out: np.ndarray) -> None:
        """See Corpus."""
        shard = self._index.shards[part]
        self._open(shard.tokens, np.dtype(self._index.dtype).newbyteorder("<"), shard.num_tokens).read_into(start, out)

    def where(self, part: int, start: int) -> str:
        """See Corpus."""
        return f"{self._store.where}, {self._index.shards[part].tokens.path}, token {start}"

    def prepare(self, parts: Sequence[int]) -> None:
        """See Corpus."""
        self._store.prepare([self._index.shards[part].tokens for part in parts])

    def find_damage(self, part: int, parts: int) -> list[str]:
        """See Corpus."""
        files = [file for shard in self._index.shards[part::parts] for file in (shard.tokens, shard.documents)]
        return self._store.find_damage(files, contents=self._contents)

    def _open(self, file: ShardFile, dtype: np.dtype, count: int) -> TokenFile:
        if file.path in self._opened:
            self._opened.move_to_end(file.path)
            return self._opened[file.path]
        opened = open_npy(self._store.path(file), dtype, count, self._files)
        self._opened[file.path] = opened
        if len(self._opened) > _OPEN_SHARDS:
            self._opened.popitem(last=False)
        return opened


def _at_most(sizes: list[int], limit: int | None) -> list[int]:
    """The sizes, cut so that they sum up to the limit."""
    if limit is None:
        return sizes
    cut = []
    for size in sizes:
        cut.append(min(size, limit))
        limit -= cut[-1]
    return cut
