"""Token shards as the command makes them: what is in them, that an interruption changes nothing, and what is refused in which words."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from training.shard_index import ShardIndex
from training.tokenize import main

pytestmark = pytest.mark.training

TEXTS = ["to be or not to be", "that is the question", "ünïcode ✓", "x"]


def command(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert command(*arguments) == 1
    message = capsys.readouterr().err.strip()
    assert message.startswith("tokenize: ")
    assert "\n" not in message
    return message


def index_of(folder: Path) -> ShardIndex:
    return ShardIndex.from_json((folder / "index.json").read_text(), "index.json")


def documents_of(folder: Path) -> list[list[int]]:
    """All documents of a dataset, read with NumPy alone."""
    found = []
    for shard in index_of(folder).shards:
        tokens, ends = (np.load(folder / file.path, mmap_mode="r") for file in (shard.tokens, shard.documents))
        assert (len(tokens), len(ends)) == (shard.num_tokens, shard.num_documents)
        found += [part.tolist() for part in np.split(tokens, ends[:-1].astype(int))]
    return found


def json_lines(path: Path, texts: list[str], field: str = "text") -> Path:
    lines = "".join(json.dumps({"id": 1, field: text}) + "\n" for text in texts)
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    return path


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as Hugging Face keeps one, with a small tokenizer trained on the spot."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXTS * 4, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer.enable_truncation(3)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
    return folder


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.ndjson"])
def test_bytes_are_the_default_and_every_document_ends_with_its_own_id(tmp_path: Path, name: str) -> None:
    assert command(json_lines(tmp_path / name, TEXTS), "-o", tmp_path / "out") == 0
    assert documents_of(tmp_path / "out") == [[*text.encode(), 256] for text in TEXTS]
    identity = index_of(tmp_path / "out").tokenizer
    assert (identity.kind, identity.vocab_size, identity.end_of_document) == ("bytes", 257, 256)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.json", "shard-00000.documents.npy", "shard-00000.npy"]


def test_text_files_are_a_document_each_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, content in (("b.txt", b"second"), ("a", b"first \xff"), ("c.txt", b"")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(b"third"))
    assert command(tmp_path / "*", "-o", tmp_path / "out", "--end-of-document", "none") == 0
    assert [bytes(ids) for ids in documents_of(tmp_path / "out")] == [b"first \xff", b"second", b"third"]


def test_a_library_tokenizer_gives_whole_texts_and_goes_with_the_dataset(tmp_path: Path, vocabulary: Path) -> None:
    assert command(json_lines(tmp_path / "a.jsonl", TEXTS), "-o", tmp_path / "out", "--tokenizer", vocabulary, "--workers", 2) == 0
    reference = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    reference.no_truncation()
    end = reference.token_to_id("</s>")
    assert documents_of(tmp_path / "out") == [[*reference.encode(text).ids, end] for text in TEXTS]
    identity = index_of(tmp_path / "out").tokenizer
    assert (identity.vocab_size, identity.end_of_document, identity.name) == (reference.get_vocab_size(), end, vocabulary.name)


def test_a_document_stays_in_one_shard(tmp_path: Path) -> None:
    texts = [letter * length for letter, length in zip("abcdef", (4, 5, 30, 1, 9, 2), strict=True)]
    assert command(json_lines(tmp_path / "a.jsonl", texts), "-o", tmp_path / "out", "--shard-tokens", 12) == 0
    assert [shard.num_documents for shard in index_of(tmp_path / "out").shards] == [2, 1, 2, 1]
    assert documents_of(tmp_path / "out") == [[*text.encode(), 256] for text in texts]


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_command_goes_on_and_gives_the_same_bytes(tmp_path: Path, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for name in ("a.jsonl", "b.jsonl.gz"):
        json_lines(tmp_path / name, ["y" * int(length) for length in generator.integers(0, 4000, 900)])
    arguments = [tmp_path / "*.jsonl*", "-o", tmp_path / "out", "--shard-tokens", 200_000]
    process = subprocess.Popen([sys.executable, "-m", "training.tokenize", *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(1 + seed * 6):
        assert process.stdout.readline().startswith("shard-")
    process.kill()
    process.wait()
    assert not (tmp_path / "out").exists()
    assert command(*arguments) == 0
    assert not (tmp_path / "out.making").exists()
    arguments[2] = tmp_path / "whole"
    assert command(*arguments) == 0
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert all((tmp_path / "whole" / name).read_bytes() == (tmp_path / "out" / name).read_bytes() for name in names)


def half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A command cut off after its first shards; gives its arguments."""
    arguments = [json_lines(tmp_path / "a.jsonl", ["z" * 50] * 9), "-o", tmp_path / "out", "--shard-tokens", 102]
    with monkeypatch.context() as patch:
        patch.setattr("training.shard_writer.ShardWriter.publish", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        assert command(*arguments) == 130
    return arguments


def test_half_made_output_is_refused_to_another_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    arguments = half_made(tmp_path, monkeypatch)
    capsys.readouterr()
    assert "half made from another field; repeat the command" in refused(capsys, *arguments, "--field", "id")
    assert "half made from another tokenizer" in refused(capsys, *arguments, "--end-of-document", "none")
    os.utime(tmp_path / "a.jsonl", (1, 1))
    assert "half made from another files" in refused(capsys, *arguments)


def test_a_damaged_half_is_not_built_upon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    arguments = half_made(tmp_path, monkeypatch)
    capsys.readouterr()
    victim = tmp_path / "out.making" / "shard-00001.npy"
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    assert "shard-00001.npy: damaged since it was written" in refused(capsys, *arguments)
    (tmp_path / "out.making" / "journal.json").write_text("{")
    assert "journal.json: unreadable" in refused(capsys, *arguments)


def test_two_commands_cannot_make_one_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    arguments = half_made(tmp_path, monkeypatch)
    holder = subprocess.Popen(
        [sys.executable, "-c", f"from training.lease import Lease; from pathlib import Path; import time; "
         f"held = Lease(Path({str(tmp_path / 'out.making')!r})); print(); time.sleep(60)"],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    holder.stdout.readline()
    capsys.readouterr()
    assert f"is in use by process {holder.pid}" in refused(capsys, *arguments)
    holder.kill()
    holder.wait()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "a.jsonl, line 2: no valid JSON"),
        ("a.jsonl", b'{"text": "a"}\n\n{"body": "b"}\n', "a.jsonl, line 3: no field 'text' (it has body); name the text's field with"),
        ("a.jsonl", b"[1]\n", "a.jsonl, line 1: no field 'text' (it has a list, no object)"),
        ("a.jsonl", b'{"text": 7}\n', "a.jsonl, line 1: field 'text' is a int; it must be a text"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl, line 1: field 'text' holds half a character"),
        ("a.jsonl", b'{"text": "\xff"}\n', "a.jsonl, line 1: no valid JSON"),
        ("a.jsonl.gz", b"not gzip", "a.jsonl.gz: unreadable (BadGzipFile: "),
        ("a.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 99)[:-9], "a.jsonl.gz: unreadable (EOFError: "),
        ("a.txt.gz", gzip.compress(os.urandom(500))[:60] + bytes(60), "a.txt.gz: unreadable ("),
        ("a.parquet", b"PAR1", "a.parquet: .parquet files are not read; give text (any other ending) or .jsonl"),
        ("a.json.gz", b"x", "a.json.gz: .json files are not read"),
        ("a.jsonl", b'{"text": ""}\n\n', "the files hold no text at all; nothing was made"),
    ],
    ids=["json", "field", "list", "number", "surrogate", "utf8", "no-gzip", "cut", "garbled", "parquet", "json-gz", "empty"],
)  # fmt: skip
def test_bad_input_is_named_with_its_file_and_line(tmp_path: Path, capsys, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert message in refused(capsys, tmp_path / name, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_text_that_is_no_utf8_is_named_with_its_line(tmp_path: Path, vocabulary: Path, capsys) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\nalso\nbad \xe4 byte\n")
    message = refused(capsys, tmp_path / "a.txt", "-o", tmp_path / "out", "--tokenizer", vocabulary)
    assert "a.txt, line 3: byte 0xe4 is no UTF-8; convert the file, or tokenize as bytes" in message


def test_settings_that_cannot_work_are_refused(tmp_path: Path, vocabulary: Path, capsys) -> None:
    text = json_lines(tmp_path / "a.jsonl", TEXTS)
    out = ["-o", tmp_path / "out"]
    assert "FILES: '/nowhere/*' matches no file" in refused(capsys, "/nowhere/*", *out)
    assert "--tokenizer /nowhere: /nowhere cannot be loaded (" in refused(capsys, text, *out, "--tokenizer", "/nowhere")
    (tmp_path / "broken.json").write_text("{}")
    assert "broken.json cannot be loaded (" in refused(capsys, text, *out, "--tokenizer", tmp_path / "broken.json")
    assert "name it with --end-of-document" in refused(capsys, text, *out, "--tokenizer", vocabulary / "tokenizer.json")
    assert "has no such token; allowed: one of its tokens, or none" in refused(
        capsys, text, *out, "--tokenizer", vocabulary, "--end-of-document", "<end>"
    )
    assert "--end-of-document </s>: bytes have no such token" in refused(capsys, text, *out, "--end-of-document", "</s>")
    (tmp_path / "out").mkdir()
    assert "it exists already; choose another folder" in refused(capsys, text, *out)
    with pytest.raises(SystemExit):
        command(text, *out, "--shard-tokens", 0)
    assert "'0' is not a whole number of at least 1" in capsys.readouterr().err


def test_the_number_of_threads_changes_nothing(tmp_path: Path, vocabulary: Path) -> None:
    text = json_lines(tmp_path / "a.jsonl", [" ".join(TEXTS) * 40] * 300)
    for workers in (1, 2):
        arguments = [text, "-o", tmp_path / f"out-{workers}", "--tokenizer", vocabulary, "--workers", workers]
        subprocess.run([sys.executable, "-m", "training.tokenize", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
    first, second = (index_of(tmp_path / f"out-{workers}") for workers in (1, 2))
    assert first == second
