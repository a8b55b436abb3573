"""Token shards as a corpus: each shard is a part, cut into samples on its own, so that one shard at hand is enough to read its samples."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from training.config import S3_SCHEME, DataConfig
from training.errors import DataError
from training.shard_index import ShardFile, ShardIndex
from training.shard_store import ShardStore, open_store
from training.token_file import TokenFile, open_npy

_OPEN_SHARDS = 128
_OPEN_ATTEMPTS = 3


class ShardCorpus:
    """See Corpus."""

    def __init__(self, config: DataConfig) -> None:
        """Read the index; shards are opened when they are read from. Raises DataError."""
        self._store: ShardStore = open_store(config)
        self._index: ShardIndex = self._store.read_index()
        self._contents = config.verify == "contents"
        _require_room(config, self._index)
        # An open shard holds its room on the disk, also when the cache has dropped it.
        self._max_open = 2 * config.shuffle_shards if config.shuffle_shards else _OPEN_SHARDS
        self._opened: OrderedDict[str, TokenFile] = OrderedDict()
        self._prepared: Sequence[int] = []
        self.part_sizes = _at_most([shard.num_tokens for shard in self._index.shards], config.max_tokens)
        self.fingerprint = f"{self._index.fingerprint} {sum(self.part_sizes)}"
        self.vocab_size: int | None = self._index.tokenizer.vocab_size
        self.document_end: int | None = self._index.tokenizer.end_of_document

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
        return f"{self._store.where}/{self._index.shards[part].tokens.path}, token {start}"

    def prepare(self, parts: Sequence[int]) -> None:
        """See Corpus."""
        if parts != self._prepared:
            self._prepared = parts
            self._store.prepare([self._index.shards[part].tokens for part in parts])

    def find_damage(self, part: int, parts: int) -> list[str]:
        """See Corpus."""
        files = [file for shard in self._index.shards[part::parts] for file in (shard.tokens, shard.documents)]
        return self._store.find_damage(files, contents=self._contents)

    def _open(self, file: ShardFile, dtype: np.dtype, count: int) -> TokenFile:
        if file.path in self._opened:
            self._opened.move_to_end(file.path)
            return self._opened[file.path]
        name = f"{self._store.where}/{file.path}"
        for _ in range(_OPEN_ATTEMPTS):
            try:
                opened = open_npy(self._store.path(file), name, dtype, count)
                break
            except FileNotFoundError as error:
                # A cache may drop an entry between the answer and the opening.
                reason = error.strerror
        else:
            raise DataError(f"{name}: cannot be opened ({reason})")
        self._opened[file.path] = opened
        if len(self._opened) > self._max_open:
            self._opened.popitem(last=False)
        return opened


def _require_room(config: DataConfig, index: ShardIndex) -> None:
    """Refuse a cache that cannot hold what is read at one time: it would fetch the same shards over and over."""
    assert config.shards is not None
    if not config.shards.startswith(S3_SCHEME):
        return
    sizes = sorted((shard.tokens.size + shard.documents.size for shard in index.shards), reverse=True)
    # The window that is read and the next one, which is fetched meanwhile.
    needed = sum(sizes[: 2 * config.shuffle_shards] if config.shuffle_shards else sizes) / 1e9
    if needed > config.cache_gb:
        what = f"two windows of data.shuffle_shards = {config.shuffle_shards}" if config.shuffle_shards else "all shards, which are mixed"
        raise DataError(
            f"data.cache_gb: {config.cache_gb:g} is too small for {what}: {needed:.3g} are needed; raise it, or mix fewer shards"
        )


def _at_most(sizes: list[int], limit: int | None) -> list[int]:
    """The sizes, cut so that they sum up to the limit."""
    if limit is None:
        return sizes
    cut = []
    for size in sizes:
        cut.append(min(size, limit))
        limit -= cut[-1]
    return cut
