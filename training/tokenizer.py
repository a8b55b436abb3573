"""Text to token ids: bytes, or a tokenizer.json through the tokenizers library."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from training.documents import Document, decode
from training.errors import DataError
from training.shard_index import TOKENIZER_FILE, TokenizerIdentity

_BYTES = 256
_NO_END = "none"
_SETTINGS_FILE = "tokenizer_config.json"


class Tokenizer(Protocol):
    """Gives token ids, without any that the text does not hold: no beginning-of-text, no padding, no truncation."""

    identity: TokenizerIdentity
    file: Path | None
    """Its tokenizer.json, to keep with the dataset."""

    def encode(self, documents: Sequence[Document]) -> list[np.ndarray]:
        """Ids of each document, without its end-of-document token. Raises DataError."""
        ...


class ByteTokenizer:
    """Each byte is a token; 256 ends a document."""

    file: Path | None = None

    def __init__(self, end: str | None) -> None:
        """`end` may be none or nothing. Raises DataError for anything else."""
        if end not in (None, _NO_END):
            raise DataError(f"--end-of-document {end}: bytes have no such token; allowed: {_NO_END}, or leave it out for id {_BYTES}")
        ends = end is None
        self.identity = TokenizerIdentity(
            kind="bytes", name="bytes", digest=None, vocab_size=_BYTES + ends, end_of_document=_BYTES if ends else None
        )

    def encode(self, documents: Sequence[Document]) -> list[np.ndarray]:
        """See Tokenizer."""
        return [np.frombuffer(document.content, dtype=np.uint8) for document in documents]


class LibraryTokenizer:
    """A tokenizer.json file, or a Hugging Face folder with one."""

    def __init__(self, source: str, end: str | None) -> None:
        """Load it. Raises DataError naming the file and what is wrong with it."""
        # Imported here: bytes, the default, do not need it.
        import tokenizers

        self.file: Path | None = Path(source) / TOKENIZER_FILE if Path(source).is_dir() else Path(source)
        try:
            content = self.file.read_bytes()
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        # The library raises plain Exception for a file that it cannot read.
        except Exception as error:
            raise DataError(
                f"--tokenizer {source}: {self.file} cannot be loaded ({error}); give bytes, a tokenizer.json or a folder with one"
            ) from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        self.identity = TokenizerIdentity(
            kind="tokenizers",
            name=Path(source).name,
            digest=hashlib.sha256(content).hexdigest(),
            vocab_size=max(vocabulary.values()) + 1,
            end_of_document=self._end(source, end, vocabulary),
        )

    def encode(self, documents: Sequence[Document]) -> list[np.ndarray]:
        """See Tokenizer. Runs on as many threads as RAYON_NUM_THREADS says."""
        texts = [decode(document) for document in documents]
        return [np.array(found.ids, dtype=np.uint32) for found in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def _end(self, source: str, end: str | None, vocabulary: dict[str, int]) -> int | None:
        if end == _NO_END:
            return None
        token = end or _end_token(Path(source))
        if token is None:
            raise DataError(f"--tokenizer {source}: it does not say which token ends a text; name it with --end-of-document TOKEN, or none")
        if token not in vocabulary:
            raise DataError(f"--end-of-document {token}: {self.file} has no such token; allowed: one of its tokens, or {_NO_END}")
        return vocabulary[token]


def open_tokenizer(source: str, end: str | None) -> Tokenizer:
    """The tokenizer called `source` on a command line, with its end-of-document token. Raises DataError."""
    return ByteTokenizer(end) if source == "bytes" else LibraryTokenizer(source, end)


def _end_token(source: Path) -> str | None:
    """The end-of-text token that a Hugging Face folder names."""
    file = source / _SETTINGS_FILE
    if not source.is_dir() or not file.is_file():
        return None
    try:
        token = json.loads(file.read_text(encoding="utf-8")).get("eos_token")
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{file}: unreadable ({type(error).__name__}: {error})") from None
    return token.get("content") if isinstance(token, dict) else token
