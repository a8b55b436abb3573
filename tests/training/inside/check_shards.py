"""Token shards as a corpus: samples within shards, the damage that a start finds, and what does not fit together."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.training.inside.shards import LENGTH, config, make_shards, numbers
from training.data import Dataset
from training.errors import DataError
from training.schema import ConfigError
from training.tokenize import main as tokenize

pytestmark = pytest.mark.training

SIZES = [20, 31, 4, 25, 28]


def read_all(dataset: Dataset) -> list[int]:
    rows = np.empty((dataset.num_train, LENGTH + 1), dtype=np.int32)
    dataset.read_train(0, rows)
    return numbers(rows)


def test_held_out_samples_and_trained_ones_are_all_samples(tmp_path: Path) -> None:
    dataset = Dataset(config(make_shards(tmp_path / "shards", SIZES)))
    held_out = numbers(dataset.eval_batch(range(dataset.num_eval)).tokens.numpy())
    assert held_out == [number for number in range(108) if number % 9 == 8]
    assert sorted(read_all(dataset) + held_out) == list(range(108))


def test_samples_do_not_cross_shards_and_the_first_tokens_can_do(tmp_path: Path) -> None:
    folder = make_shards(tmp_path / "shards", SIZES)
    dataset = Dataset(config(folder, max_tokens=20 * LENGTH + 1 + 10 * LENGTH + 1))
    assert dataset.num_train + dataset.num_eval == 30
    assert set(read_all(dataset)) <= set(range(30))


def test_the_dataset_is_the_same_wherever_it_lies(tmp_path: Path) -> None:
    one, same, other = (make_shards(tmp_path / name, sizes) for name, sizes in (("a", SIZES), ("b", SIZES), ("c", SIZES[::-1])))
    prints = [Dataset(config(folder)).fingerprint for folder in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]
    assert Dataset(config(one, max_tokens=500)).fingerprint != prints[0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: os.truncate(path, 100), "bytes in place of"),
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"), "its content does not match its checksum"),
        (lambda path: (path.unlink(), path.mkdir()), "bytes in place of"),
    ],
    ids=["cut", "gone", "flipped", "folder"],
)
@pytest.mark.parametrize("victim", ["shard-00003.npy", "shard-00000.documents.npy"])
def test_a_start_names_damage_whichever_reader_finds_it(tmp_path: Path, victim: str, damage, message: str) -> None:
    folder = make_shards(tmp_path / "shards", SIZES)
    damage(folder / victim)
    dataset = Dataset(config(folder))
    found = [line for part in range(3) for line in dataset.find_damage(part, 3)]
    assert len(found) == 1
    assert f"{victim}: " in found[0]
    assert message in found[0]
    sizes_alone = Dataset(config(folder, verify="sizes")).find_damage(0, 1)
    assert (sizes_alone == found) == ("checksum" not in message)


def test_what_is_no_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data.shards: .*/nowhere has no index.json; name a folder that training.tokenize has made"):
        Dataset(config(tmp_path / "nowhere"))
    folder = make_shards(tmp_path / "shards", SIZES)
    (folder / "index.json").write_bytes((folder / "index.json").read_bytes()[:-30])
    with pytest.raises(DataError, match=r"shards/index.json: unreadable \(JSONDecodeError"):
        Dataset(config(folder))


def test_a_model_that_knows_fewer_ids_than_the_shards_hold_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * 400)
    assert tokenize([str(tmp_path / "a.txt"), "-o", str(tmp_path / "shards")]) == 0
    with pytest.raises(DataError, match=r"data.shards has ids up to 256, but model.vocab_size is 256; set it to at least 257"):
        Dataset(config(tmp_path / "shards"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"files": ["a"], "shards": "x"}, 'data.files: ["a"] is refused; allowed: nothing when data.shards is given'),
        ({"encoding": "uint16", "shards": "x"}, 'data.encoding: "uint16" is refused; allowed: its default when data.shards is given'),
        ({"shuffle_shards": 2}, "data.shuffle_shards: 2 is refused; allowed: nothing without data.shards"),
        ({"verify": "all"}, 'data.verify: "all" is refused; allowed: one of "contents", "sizes"'),
        ({"workers": -1}, "data.workers: -1 is refused"),
        ({"prefetch": 0}, "data.prefetch: 0 is refused"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(data: dict, message: str) -> None:
    from training.config import TrainConfig

    with pytest.raises(ConfigError) as caught:
        TrainConfig.from_mapping({"name": "x", "steps": 20, "data": data})
    assert message in str(caught.value)
