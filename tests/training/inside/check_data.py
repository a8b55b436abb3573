"""The sample stream: each sample once per epoch, held-out ones never, the same for every layout of ranks; and the corpus under it."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from training.batch import BatchPlan
from training.config import DataConfig, TrainConfig
from training.corpus import Corpus, standard_library
from training.data import Dataset
from training.errors import DataError

pytestmark = pytest.mark.training

LENGTH, WINDOWS, NTH = 4, 50, 5


def dataset(tmp_path: Path, **data: object) -> Dataset:
    """50 samples of 4 tokens; the first token of each is its own number."""
    path = tmp_path / "text"
    path.write_bytes(bytes(window if offset == 0 else 200 for window in range(WINDOWS) for offset in range(LENGTH)) + b"x")
    settings = {"files": [str(path)], "sequence_length": LENGTH, "eval_every_nth": NTH, **data}
    return Dataset(TrainConfig.from_mapping({"name": "x", "steps": 20, "data": settings}))


def taken(data: Dataset, plan: BatchPlan, steps: int) -> list[list[int]]:
    """Sample numbers of each optimizer step, over all replicas and micro-batches."""
    batches = []
    for step in range(steps):
        numbers: list[int] = []
        for micro_step in range(plan.accumulation):
            for replica in range(plan.replicas):
                numbers += data.train_batch(step * plan.global_batch, plan, replica, micro_step).tokens[:, 0].tolist()
        batches.append(numbers)
    return batches


def test_every_sample_comes_once_per_epoch_and_held_out_ones_never(tmp_path: Path) -> None:
    data = dataset(tmp_path)
    assert (data.num_train, data.num_eval) == (40, 10)
    counts = Counter(number for batch in taken(data, BatchPlan(micro=2, accumulation=2, replicas=2), 15) for number in batch)
    held_out = {window for window in range(WINDOWS) if window % NTH == NTH - 1}
    assert set(counts) == set(range(WINDOWS)) - held_out
    assert set(counts.values()) == {3}, "15 steps of 8 samples are three epochs of 40"
    assert set(data.eval_batch(list(range(10))).tokens[:, 0].tolist()) == held_out


@pytest.mark.parametrize(("micro", "accumulation", "replicas"), [(8, 1, 1), (1, 8, 1), (1, 1, 8), (2, 2, 2), (4, 1, 2)])
def test_each_step_takes_the_same_samples_in_every_layout(tmp_path: Path, micro: int, accumulation: int, replicas: int) -> None:
    data = dataset(tmp_path)
    plan = BatchPlan(micro=micro, accumulation=accumulation, replicas=replicas)
    reference = taken(data, BatchPlan(micro=8, accumulation=1, replicas=1), 6)
    assert [sorted(batch) for batch in taken(data, plan, 6)] == [sorted(batch) for batch in reference]


def test_targets_are_the_tokens_that_follow(tmp_path: Path) -> None:
    batch = dataset(tmp_path).train_batch(0, BatchPlan(micro=4, accumulation=1, replicas=1), 0, 0)
    assert batch.tokens.shape == batch.targets.shape == (4, LENGTH)
    assert (batch.tokens[:, 1:] == batch.targets[:, :-1]).all()


def test_a_corpus_that_is_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the corpus has 201 tokens in 1 files: 2 samples of 100 tokens, but data.eval_every_nth = 5"):
        dataset(tmp_path, sequence_length=100)


def test_token_ids_beyond_the_vocabulary_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ids"
    np.arange(400, dtype="<u2").tofile(path)
    config = {"files": [str(path)], "encoding": "uint16", "sequence_length": 8, "eval_every_nth": 2}
    data = Dataset(TrainConfig.from_mapping({"name": "x", "steps": 20, "data": config}))
    everything = BatchPlan(micro=data.num_train, accumulation=1, replicas=1)
    with pytest.raises(DataError, match=r"the corpus holds token id \d+, but model.vocab_size is 256"):
        data.train_batch(0, everything, 0, 0)


def test_reads_go_across_files_in_sorted_order(tmp_path: Path) -> None:
    for name, content in (("b", b"456"), ("a", b"0123"), ("c", b""), ("d", b"789")):
        (tmp_path / name).write_bytes(content)
    corpus = Corpus(DataConfig(files=(str(tmp_path),)))
    assert [path.name for path in corpus.paths] == ["a", "b", "d"]
    assert bytes(corpus.read(0, 10).astype("u1")) == b"0123456789"
    assert bytes(corpus.read(3, 5).astype("u1")) == b"34567"
    with pytest.raises(IndexError):
        corpus.read(8, 3)


def test_half_a_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ids").write_bytes(b"123")
    with pytest.raises(DataError, match="3 bytes do not hold whole uint16 tokens of 2 bytes"):
        Corpus(DataConfig(files=(str(tmp_path / "ids"),), encoding="uint16"))


@pytest.mark.parametrize("change", [b"x" + bytes(999), bytes(999) + b"x", bytes(1001)])
def test_another_corpus_has_another_fingerprint(tmp_path: Path, change: bytes) -> None:
    (tmp_path / "one").write_bytes(bytes(1000))
    (tmp_path / "other").write_bytes(change)
    prints = {Corpus(DataConfig(files=(str(tmp_path / name),))).fingerprint for name in ("one", "other")}
    assert len(prints) == 2


def test_the_default_corpus_is_there_and_large_enough_to_learn_from() -> None:
    assert Corpus(DataConfig()).num_tokens > 4_000_000
    files = standard_library()
    assert files == standard_library()
    assert not [path for path in files if "site-packages" in path.parts or "dist-packages" in path.parts]
