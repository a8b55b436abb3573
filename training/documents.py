"""Documents in text and JSON lines files, plain or gzipped; whatever is wrong with one is said with its file and line."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from training.errors import DataError

_JSON_LINES = {".jsonl", ".ndjson"}
_OTHER_FORMATS = {".parquet", ".arrow", ".feather", ".zst", ".bz2", ".xz", ".zip", ".tar", ".tgz", ".npy", ".npz", ".bin", ".pt", ".json"}


@dataclass(frozen=True)
class Document:
    """One text, as UTF-8 if its file is."""

    content: bytes
    path: Path
    line: int
    """Line of the file on which it starts, from 1."""


def read_documents(path: Path, field: str) -> Iterator[Document]:
    """The documents of one file that are not empty: each JSON line's `field`, or a text file as a whole. Raises DataError."""
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if kind in _OTHER_FORMATS:
        raise DataError(f"{path}: {kind} files are not read; give text (any other ending) or .jsonl, plain or .gz")
    try:
        with _open(path) as file:
            yield from _json_lines(path, file, field) if kind in _JSON_LINES else _whole(path, file)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: unreadable ({type(error).__name__}: {error})") from None


def decode(document: Document) -> str:
    """The document as text. Raises DataError naming the line with the first byte that is no UTF-8."""
    try:
        return document.content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = document.line + document.content.count(b"\n", 0, error.start)
        raise DataError(
            f"{document.path}, line {line}: byte 0x{document.content[error.start]:02x} is no UTF-8; convert the file, or tokenize as bytes"
        ) from None


def _open(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _whole(path: Path, file: BinaryIO) -> Iterator[Document]:
    content = file.read()
    if content:
        yield Document(content, path, 1)


def _json_lines(path: Path, file: BinaryIO, field: str) -> Iterator[Document]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        content = _field(line, field, f"{path}, line {number}")
        if content:
            yield Document(content, path, number)


def _field(line: bytes, field: str, where: str) -> bytes:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{where}: no valid JSON ({error})") from None
    if not isinstance(record, dict) or field not in record:
        known = ", ".join(map(str, record)) if isinstance(record, dict) else f"a {type(record).__name__}, no object"
        raise DataError(f"{where}: no field {field!r} (it has {known}); name the text's field with --field")
    text = record[field]
    if not isinstance(text, str):
        raise DataError(f"{where}: field {field!r} is a {type(text).__name__}; it must be a text")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: field {field!r} holds half a character (a lone surrogate) at position {error.start}") from None
