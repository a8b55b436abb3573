"""Writes a dataset of token shards aside, shard by shard and each durable, and publishes it by one rename.

While it is being made, <name>.making holds the finished shards and journal.json, which says how far the input has been read. The same
command goes on from there; the result is the same to the byte as without the interruption.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from training import storage
from training.errors import DataError
from training.lease import Lease, LeaseError
from training.shard_index import INDEX, TOKENIZER_FILE, ShardFile, ShardIndex, ShardRecord, record_from_mapping, shard_names
from training.tokenizer import Tokenizer

_JOURNAL = "journal.json"
_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, order=True)
class InputPosition:
    """How far the input has been read."""

    file: int = 0
    """Number of the file, in the order of the command."""
    document: int = 0
    """Number of the next document in it, empty ones not counted."""


class ShardWriter:
    """One dataset in the making. Construction takes a lease on it, so that two commands cannot make the same one."""

    def __init__(self, target: Path, tokenizer: Tokenizer, *, shard_tokens: int, source: dict[str, Any]) -> None:
        """Start, or go on with, the dataset `target`; `source` is what decides its content beside the tokenizer.

        Raises DataError if the target exists, if another command is making it, or if what is half made came from another source.
        """
        if target.exists():
            raise DataError(f"-o {target}: it exists already; choose another folder, or delete this one first")
        self._target, self._tokenizer, self._shard_tokens = target, tokenizer, shard_tokens
        self._making = target.with_name(f"{target.name}.making")
        self._dtype = np.dtype("<u2" if tokenizer.identity.vocab_size <= 2**16 else "<u4")
        self._identity = {"tokenizer": asdict(tokenizer.identity), "shard_tokens": shard_tokens, **source}
        self._records: list[ShardRecord] = []
        self._documents: list[np.ndarray] = []
        self._open_tokens = 0
        self.position = InputPosition()
        """Where the input goes on."""
        try:
            self._lease = Lease(self._making, patience_seconds=0)
        except LeaseError as error:
            raise DataError(f"-o {target}: another command is making it ({str(error).partition(';')[0]}); wait or end it") from None
        self._take_up()

    @property
    def num_shards(self) -> int:
        """Finished so far."""
        return len(self._records)

    def add(self, ids: np.ndarray, position: InputPosition) -> ShardRecord | None:
        """Append the document at this position of the input; gives the record of a shard that this has completed.

        A document without a single id is left out.
        """
        if not len(ids):
            return None
        end = self._tokenizer.identity.end_of_document
        tokens = ids.astype(self._dtype) if end is None else np.append(ids, end).astype(self._dtype)
        finished = None
        if self._open_tokens and self._open_tokens + len(tokens) > self._shard_tokens:
            finished = self._finish(position)
        self._documents.append(tokens)
        self._open_tokens += len(tokens)
        return finished

    def publish(self) -> ShardIndex:
        """Write what is left and the index, and give the folder its name. Raises DataError if there is not a single token."""
        if self._open_tokens:
            self._finish(self.position)
        if not self._records:
            raise DataError("the files hold no text at all; nothing was made")
        if self._tokenizer.file:
            storage.write_durably(self._making / TOKENIZER_FILE, self._tokenizer.file.read_text(encoding="utf-8"))
        index = ShardIndex(dtype=self._dtype.name, tokenizer=self._tokenizer.identity, shards=tuple(self._records))
        storage.write_durably(self._making / INDEX, index.to_json())
        kept = {INDEX, TOKENIZER_FILE} | {file.path for shard in self._records for file in (shard.tokens, shard.documents)}
        for path in self._making.iterdir():
            if path.name not in kept:
                path.unlink()
        storage.publish(self._making, self._target)
        self._lease.release()
        return index

    def _take_up(self) -> None:
        journal = self._making / _JOURNAL
        if not journal.is_file():
            return
        try:
            state = json.loads(journal.read_text(encoding="utf-8"))
            identity, records = state["identity"], [record_from_mapping(shard) for shard in state["shards"]]
            position = InputPosition(**state["position"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{journal}: unreadable ({type(error).__name__}: {error}); delete {self._making} and start again") from None
        mine = json.loads(json.dumps(self._identity))
        changed = [key for key in mine if mine[key] != identity.get(key)]
        if changed:
            raise DataError(
                f"{self._making} is half made from another {' and '.join(changed)}; "
                "repeat the command that started it, or delete the folder"
            )
        for file in (file for shard in records for file in (shard.tokens, shard.documents)):
            if file_record(self._making / file.path) != file:
                raise DataError(f"{self._making / file.path}: damaged since it was written; delete {self._making} and start again")
        self._records, self.position = records, position

    def _finish(self, position: InputPosition) -> ShardRecord:
        """Make the open shard durable, then note that the input goes on at this position."""
        tokens_name, documents_name = shard_names(len(self._records))
        ends = np.cumsum([len(document) for document in self._documents], dtype="<u8")
        record = ShardRecord(
            num_tokens=self._open_tokens,
            num_documents=len(self._documents),
            tokens=_save(self._making / tokens_name, np.concatenate(self._documents)),
            documents=_save(self._making / documents_name, ends),
        )
        self._records.append(record)
        self._documents, self._open_tokens, self.position = [], 0, position
        journal = {"identity": self._identity, "position": asdict(position), "shards": [asdict(shard) for shard in self._records]}
        storage.write_durably(self._making / _JOURNAL, json.dumps(journal, indent=1) + "\n")
        return record


def file_record(path: Path) -> ShardFile:
    """Name, size and checksum of a file as storage gives it back. Raises DataError naming the file if that is impossible."""
    digest, size = xxhash.xxh3_128(), 0
    try:
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise DataError(f"{path}: unreadable ({error})") from None
    return ShardFile(path=path.name, size=size, digest=digest.hexdigest())


def _save(path: Path, array: np.ndarray) -> ShardFile:
    np.save(path, array)
    storage.sync_path(path)
    return file_record(path)
