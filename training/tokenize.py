"""Make token shards: `python -m training.tokenize FILES... -o FOLDER [--tokenizer bytes|tokenizer.json|folder]`.

FILES are text files (a document each) and JSON lines (.jsonl, a document per line, its text in --field), plain or .gz; folders and glob
patterns stand for the files in them. The folder appears whole or not at all. An interrupted command goes on where it was when it is given
again. `training.shard_index` documents the format; point `data.shards` at the folder, or at the S3 prefix that it was copied to.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from training.corpus import corpus_files
from training.documents import Document, read_documents
from training.errors import DataError
from training.shard_index import ShardIndex
from training.shard_writer import InputPosition, ShardWriter
from training.tokenizer import Tokenizer, open_tokenizer

_BATCH_BYTES = 8 << 20
_BATCH_DOCUMENTS = 4096
_INTERRUPTED = 130
# The tokenizers library takes its number of threads from here.
_THREADS = "RAYON_NUM_THREADS"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and give its exit code: 0, 1 for bad input, 130 when interrupted."""
    options = _parser().parse_args(arguments)
    if options.workers:
        os.environ[_THREADS] = str(options.workers)
    try:
        index = make(options)
    except (DataError, OSError) as error:
        print(f"tokenize: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tokenize: interrupted; the same command goes on from the last finished shard", file=sys.stderr)
        return _INTERRUPTED
    print(
        f"{options.output}: {index.num_tokens:,} {index.dtype} tokens in {index.num_documents:,} documents and {len(index.shards)} shards; "
        f"model.vocab_size must be at least {index.tokenizer.vocab_size}"
    )
    return 0


def make(options: argparse.Namespace) -> ShardIndex:
    """Make the dataset. Raises DataError."""
    tokenizer = open_tokenizer(options.tokenizer, options.end_of_document)
    files = corpus_files(tuple(options.files), setting="FILES")
    described = [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in files]
    source = {"files": described, "field": options.field}
    writer = ShardWriter(options.output, tokenizer, shard_tokens=options.shard_tokens, source=source)
    if writer.num_shards:
        print(f"going on after {writer.num_shards} finished shards")
    started, made = time.monotonic(), 0
    for position, ids in _encoded(files, options.field, tokenizer, writer.position):
        record = writer.add(ids, position)
        made += len(ids)
        if record:
            rate = made / (time.monotonic() - started)
            print(
                f"{record.tokens.path}: {record.num_tokens:,} tokens, {record.num_documents:,} documents ({rate:,.0f} tokens/s)", flush=True
            )
    return writer.publish()


def _encoded(files: list[Path], field: str, tokenizer: Tokenizer, start: InputPosition) -> Iterator[tuple[InputPosition, np.ndarray]]:
    """Every document from `start` on, with its position, in the order of the files; encoded in batches, so that threads have work."""
    batch: list[tuple[InputPosition, Document]] = []
    size = 0
    for position, document in _documents(files, field, start):
        batch.append((position, document))
        size += len(document.content)
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_DOCUMENTS:
            yield from _encode(batch, tokenizer)
            batch, size = [], 0
    yield from _encode(batch, tokenizer)


def _encode(batch: list[tuple[InputPosition, Document]], tokenizer: Tokenizer) -> Iterator[tuple[InputPosition, np.ndarray]]:
    ids = tokenizer.encode([document for _, document in batch])
    return zip((position for position, _ in batch), ids, strict=True)


def _documents(files: list[Path], field: str, start: InputPosition) -> Iterator[tuple[InputPosition, Document]]:
    for number, path in enumerate(files[start.file :], start=start.file):
        first = start.document if number == start.file else 0
        for position, document in enumerate(islice(read_documents(path, field), first, None), start=first):
            yield InputPosition(number, position), document


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.tokenize", description="Turn text into token shards for data.shards.")
    parser.add_argument("files", nargs="+", metavar="FILES", help="text or .jsonl files, plain or .gz; folders; glob patterns")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="the dataset; must not exist yet")
    parser.add_argument("--tokenizer", default="bytes", help="bytes (the default), a tokenizer.json, or a Hugging Face folder with one")
    parser.add_argument("--end-of-document", metavar="TOKEN", help="token after each document, or none; default: what the tokenizer says")
    parser.add_argument("--field", default="text", help="field of a JSON line that holds the text (default: text)")
    parser.add_argument("--shard-tokens", type=_positive, default=1 << 26, help="tokens per shard at most, long documents excepted (2^26)")
    parser.add_argument("--workers", type=_positive, help="threads of the tokenizer (default: one per core)")
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
