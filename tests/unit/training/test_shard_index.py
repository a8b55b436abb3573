"""The index of token shards: text and back, one fingerprint wherever it lies, and whatever is not whole is refused by name."""

import json
from dataclasses import replace

import pytest

from training.errors import DataError
from training.shard_index import ShardFile, ShardIndex, ShardRecord, TokenizerIdentity, shard_names

pytestmark = pytest.mark.unit


def index(num_shards: int = 2) -> ShardIndex:
    """A valid index."""
    tokenizer = TokenizerIdentity(kind="bytes", name="bytes", digest=None, vocab_size=257, end_of_document=256)
    names = [shard_names(number) for number in range(num_shards)]
    shards = tuple(
        ShardRecord(
            num_tokens=10,
            num_documents=2,
            tokens=ShardFile(path=tokens, size=148, digest="a"),
            documents=ShardFile(path=ends, size=144, digest="b"),
        )
        for tokens, ends in names
    )
    return ShardIndex(dtype="uint16", tokenizer=tokenizer, shards=shards)


def test_the_text_gives_back_an_equal_index_with_its_totals() -> None:
    text = index().to_json()
    assert ShardIndex.from_json(text, "index.json") == index()
    assert (json.loads(text)["num_tokens"], json.loads(text)["num_documents"]) == (20, 4)


def test_another_content_has_another_fingerprint() -> None:
    one = index()
    other_tokens = replace(one.shards[0], tokens=replace(one.shards[0].tokens, digest="c"))
    others = [
        replace(one, dtype="uint32"),
        replace(one, shards=one.shards[:1]),
        replace(one, shards=(other_tokens, one.shards[1])),
        replace(one, tokenizer=replace(one.tokenizer, digest="d")),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "unreadable (JSONDecodeError"),
        (lambda text: "[]", "unreadable (TypeError"),
        (lambda text: "{}", "unreadable (KeyError: 'format')"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "format 2 with xxh3-128 is not 1 with xxh3-128; tokenize again"),
        (lambda text: text.replace('"num_tokens": 10', '"num_tokens": 11'), "does not match its own digest; copy or tokenize"),
        (lambda text: index(0).to_json(), "0 shards of uint16 tokens; a dataset has at least one"),
        (
            lambda text: replace(index(), dtype="uint8").to_json(),
            "2 shards of uint8 tokens; a dataset has at least one of uint16",
        ),
    ],
    ids=["cut", "list", "empty", "format", "count", "shards", "type"],
)
def test_what_is_not_a_whole_index_is_refused_by_name(change, message: str) -> None:
    with pytest.raises(DataError) as caught:
        ShardIndex.from_json(change(index().to_json()), "s3://bucket/index.json")
    assert str(caught.value).startswith("s3://bucket/index.json: ")
    assert message in str(caught.value)
