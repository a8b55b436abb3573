"""The sample stream: each sample once per epoch, held-out ones never, the same for every layout of ranks; and the corpus under it."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from training.batch import BatchPlan
from training.config import DataConfig, TrainConfig
from training.corpus import FileCorpus, standard_library
from training.data import Dataset, Samples
from training.errors import DataError
from training.loader import micro_batches

pytestmark = pytest.mark.training

LENGTH, WINDOWS, NTH = 4, 50, 5


def dataset(tmp_path: Path, **data: object) -> Dataset:
    """50 samples of 4 tokens; the first token of each is its own number."""
    path = tmp_path / "text"
    path.write_bytes(bytes(window if offset == 0 else 200 for window in range(WINDOWS) for offset in range(LENGTH)) + b"x")
    settings = {"files": [str(path)], "sequence_length": LENGTH, "eval_every_nth": NTH, **data}
    return Dataset(TrainConfig.from_mapping({"name": "x", "steps": 20, "data": settings}))


def batch(data: Dataset, first: int, count: int) -> Samples:
    """The samples that a run takes after `first` others."""
    rows = np.empty((count, data.sequence_length + 1), dtype=np.int32)
    data.read_train(first, rows)
    return Samples.from_rows(rows)


def taken(data: Dataset, plan: BatchPlan, steps: int) -> list[list[int]]:
    """Sample numbers of each optimizer step, over all replicas and micro-batches."""
    batches: list[list[int]] = [[] for _ in range(steps)]
    for replica in range(plan.replicas):
        firsts = micro_batches(0, plan, replica)
        for numbers in batches:
            for _ in range(plan.accumulation):
                numbers += batch(data, next(firsts), plan.micro).tokens[:, 0].tolist()
    return batches


def test_every_sample_comes_once_per_epoch_and_held_out_ones_never(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    assert (data.num_train, data.num_eval) == (40, 10)
    counts = Counter(number for step in taken(data, BatchPlan(micro=2, accumulation=2, replicas=2), 15) for number in step)
    held_out = {window for window in range(WINDOWS) if window % NTH == NTH - 1}
    assert set(counts) == set(range(WINDOWS)) - held_out
    assert set(counts.values()) == {3}, "15 steps of 8 samples are three epochs of 40"
    assert set(data.eval_batch(list(range(10))).tokens[:, 0].tolist()) == held_out


@pytest.mark.parametrize(("micro", "accumulation", "replicas"), [(8, 1, 1), (1, 8, 1), (1, 1, 8), (2, 2, 2), (4, 1, 2)])
def test_each_step_takes_the_same_samples_in_every_layout(tmp_path: Path, micro: int, accumulation: int, replicas: int) -> None:
    data = dataset(tmp_path)
    plan = BatchPlan(micro=micro, accumulation=accumulation, replicas=replicas)
    reference = taken(data, BatchPlan(micro=8, accumulation=1, replicas=1), 6)
    assert [sorted(step) for step in taken(data, plan, 6)] == [sorted(step) for step in reference]


def test_targets_are_the_tokens_that_follow(tmp_path: Path) -> None:
    samples = batch(dataset(tmp_path), 0, 4)
    assert samples.tokens.shape == samples.targets.shape == (4, LENGTH)
    assert (samples.tokens[:, 1:] == samples.targets[:, :-1]).all()


def test_a_corpus_that_is_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the corpus has 201 tokens in 1 files .*: 2 samples of 100 tokens, but data.eval_every_nth = 5"):
        dataset(tmp_path, sequence_length=100)


def test_token_ids_beyond_the_vocabulary_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ids"
    np.arange(400, dtype="<u2").tofile(path)
    config = {"files": [str(path)], "encoding": "uint16", "sequence_length": 8, "eval_every_nth": 2}
    data = Dataset(TrainConfig.from_mapping({"name": "x", "steps": 20, "data": config}))
    with pytest.raises(DataError, match=r"ids, token \d+: the corpus holds token id \d+, but model.vocab_size is 256"):
        batch(data, 0, data.num_train)


def test_reads_go_across_files_in_sorted_order(tmp_path: Path) -> None:
    for name, content in (("b", b"456"), ("a", b"0123"), ("c", b""), ("d", b"789")):
        (tmp_path / name).write_bytes(content)
    corpus = FileCorpus(DataConfig(files=(str(tmp_path),)))
    assert [path.name for path in corpus.paths] == ["a", "b", "d"]
    for start, text in ((0, b"0123456789"), (3, b"34567"), (9, b"9")):
        read = np.empty(len(text), dtype="u1")
        corpus.read_into(0, start, read)
        assert bytes(read) == text
    with pytest.raises(IndexError):
        corpus.read_into(0, 8, np.empty(3, dtype="u1"))


def test_half_a_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ids").write_bytes(b"123")
    with pytest.raises(DataError, match="3 bytes do not hold whole uint16 tokens of 2 bytes"):
        FileCorpus(DataConfig(files=(str(tmp_path / "ids"),), encoding="uint16"))


@pytest.mark.parametrize("change", [b"x" + bytes(999), bytes(999) + b"x", bytes(1001)])
def test_another_corpus_has_another_fingerprint(tmp_path: Path, change: bytes) -> None:
    (tmp_path / "one").write_bytes(bytes(1000))
    (tmp_path / "other").write_bytes(change)
    prints = {FileCorpus(DataConfig(files=(str(tmp_path / name),))).fingerprint for name in ("one", "other")}
    assert len(prints) == 2


def test_the_default_corpus_is_there_and_large_enough_to_learn_from() -> None:
    assert FileCorpus(DataConfig()).part_sizes[0] > 4_000_000
    files = standard_library()
    assert files == standard_library()
    assert not [path for path in files if "site-packages" in path.parts or "dist-packages" in path.parts]


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"x"), lambda path: path.unlink()], ids=["cut", "gone"])
def test_a_file_that_changes_under_the_run_is_named(tmp_path: Path, damage) -> None:
    data = dataset(tmp_path)
    damage(tmp_path / "text")
    with pytest.raises(DataError, match=r"/text: (it has 1 bytes, where 201 tokens need more|cannot be opened \(No such file)"):
        batch(data, 0, data.num_train)


def test_the_cursor_says_where_it_is_and_refuses_to_lead_elsewhere(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    state = data.state(87)
    assert (state["samples"], state["epoch"], state["position"], state["shard"]) == (87, 2, 7, 0)
    assert state["offset"] == batch(data, 87, 1).tokens[0, 0] * LENGTH
    assert json.loads(json.dumps(state)) == state
    assert data.restore(state) == 87
    with pytest.raises(DataError, match=r"no longer fits the data: offset 3 is now \d+"):
        data.restore({**state, "offset": 3})
