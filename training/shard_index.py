"""Token shards on disk: what `training.tokenize` writes and `data.shards` reads. Standard library only.

A dataset is one folder (or one S3 prefix) with

    index.json                   written last: a folder without one is no dataset
    shard-00000.npy              token ids, a one-dimensional little-endian array of uint16 or uint32
    shard-00000.documents.npy    where each document of the shard ends, as uint64 positions after its last token, ascending
    tokenizer.json               the tokenizer that made the ids, unless they are bytes

The arrays are NumPy's own format, so `numpy.load(path, mmap_mode="r")` reads them. A document lies in one shard as a whole, its
end-of-document token with it. The index holds sizes, counts and a checksum of every file, and a digest of itself.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from training.errors import DataError

INDEX = "index.json"
TOKENIZER_FILE = "tokenizer.json"
ALGORITHM = "xxh3-128"
FORMAT = 1
TOKEN_TYPES = {"uint16": 2, "uint32": 4}
"""Types of token ids, by their size in bytes."""


@dataclass(frozen=True, kw_only=True)
class TokenizerIdentity:
    """Which tokenizer made the ids; two datasets can be mixed or exchanged only if theirs are equal."""

    kind: str
    """bytes, or tokenizers for a tokenizer.json file."""
    name: str
    """What the user called it: bytes, or the name of the file or folder."""
    digest: str | None
    """SHA-256 of its tokenizer.json."""
    vocab_size: int
    """One more than the largest id that it can give, end of document included."""
    end_of_document: int | None
    """Id that ends every document; None if there is none."""


@dataclass(frozen=True, kw_only=True)
class ShardFile:
    """One file of a dataset."""

    path: str
    """Its name in the folder."""
    size: int
    """In bytes."""
    digest: str
    """Checksum of its content by the index's algorithm."""


@dataclass(frozen=True, kw_only=True)
class ShardRecord:
    """One shard: its tokens and where its documents end."""

    num_tokens: int
    num_documents: int
    tokens: ShardFile
    documents: ShardFile


@dataclass(frozen=True, kw_only=True)
class ShardIndex:
    """Everything about a dataset but the tokens."""

    dtype: str
    """uint16 or uint32."""
    tokenizer: TokenizerIdentity
    shards: tuple[ShardRecord, ...]

    @property
    def num_tokens(self) -> int:
        """Over all shards."""
        return sum(shard.num_tokens for shard in self.shards)

    @property
    def num_documents(self) -> int:
        """Over all shards."""
        return sum(shard.num_documents for shard in self.shards)

    @property
    def fingerprint(self) -> str:
        """Digest of everything that decides the tokens and their order, wherever the dataset lies."""
        return hashlib.sha256(_text(self._body()).encode()).hexdigest()

    def to_json(self) -> str:
        """The index as the text of index.json."""
        body = self._body()
        return json.dumps({**body, "digest": self.fingerprint}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str) -> "ShardIndex":
        """Back from text. Raises DataError naming `where` if the text is not a whole index of this format."""
        try:
            body = json.loads(text)
            if (body["format"], body["algorithm"]) != (FORMAT, ALGORITHM):
                raise DataError(
                    f"{where}: format {body['format']} with {body['algorithm']} is not {FORMAT} with {ALGORITHM}; "
                    "tokenize again with this version"
                )
            digest = body.pop("digest")
            if digest != hashlib.sha256(_text(body).encode()).hexdigest():
                raise DataError(f"{where}: its content does not match its own digest; copy or tokenize the dataset again")
            index = cls(
                dtype=body["dtype"],
                tokenizer=TokenizerIdentity(**body["tokenizer"]),
                shards=tuple(record_from_mapping(shard) for shard in body["shards"]),
            )
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{where}: unreadable ({type(error).__name__}: {error}); copy or tokenize the dataset again") from None
        if index.dtype not in TOKEN_TYPES or not index.shards:
            raise DataError(f"{where}: {len(index.shards)} shards of {index.dtype} tokens; a dataset has at least one of uint16 or uint32")
        return index

    def _body(self) -> dict[str, Any]:
        # The totals are there for people who look into the file.
        totals = {"num_tokens": self.num_tokens, "num_documents": self.num_documents}
        described = json.loads(json.dumps(asdict(self)))
        return {"format": FORMAT, "algorithm": ALGORITHM, **totals, **described}


def record_from_mapping(values: dict[str, Any]) -> ShardRecord:
    """A shard's record from what `dataclasses.asdict` gave. Raises KeyError or TypeError."""
    counts = {name: value for name, value in values.items() if name not in ("tokens", "documents")}
    return ShardRecord(tokens=ShardFile(**values["tokens"]), documents=ShardFile(**values["documents"]), **counts)


def shard_names(number: int) -> tuple[str, str]:
    """File names of a shard's tokens and of its document ends."""
    return f"shard-{number:05d}.npy", f"shard-{number:05d}.documents.npy"


def _text(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)
