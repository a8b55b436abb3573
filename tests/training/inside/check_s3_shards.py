"""Token shards in S3: the same samples as from the folder, whatever the network does; and a cache that stays small and is never trusted."""

import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import boto3
import numpy as np
import pytest

from tests.training.inside.shards import LENGTH, config, make_shards, numbers
from tests.training.object_store import CREDENTIALS, Fault, failing_proxy
from training import s3_store
from training.batch import BatchPlan
from training.data import Dataset
from training.errors import DataError
from training.loader import Loader
from training.schema import ConfigError
from training.shard_cache import ShardCache
from training.shard_index import ShardFile
from training.shard_writer import file_record

pytestmark = pytest.mark.training

SIZES = [20, 31, 4, 25, 28]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, s3: str) -> Path:
    """A dataset on disk, with a copy at s3://corpus/mixed/v1."""
    made = make_shards(tmp_path_factory.mktemp("data") / "shards", SIZES)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        client = boto3.client("s3", endpoint_url=s3)
        client.create_bucket(Bucket="corpus")
        for file in made.iterdir():
            client.upload_file(str(file), "corpus", f"mixed/v1/{file.name}")
    return made


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Callable[[str], None]:
    """Points boto3 at an address, as a user would."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(s3_store, "_PAUSE_SECONDS", 0.01)
    return lambda address: monkeypatch.setenv("AWS_ENDPOINT_URL", address)


def remote(tmp_path: Path, **changes: object) -> Dataset:
    return Dataset(config(Path("s3:/"), **{"shards": "s3://corpus/mixed/v1", "cache_directory": str(tmp_path / "cache"), **changes}))


def read(dataset: Dataset, first: int = 0, count: int | None = None) -> list[int]:
    rows = np.empty((count or dataset.num_train, LENGTH + 1), dtype=np.int32)
    dataset.read_train(first, rows)
    return numbers(rows)


@pytest.mark.parametrize("window", [None, 2])
def test_samples_are_those_of_the_folder(tmp_path: Path, s3: str, folder: Path, connect, window: int | None) -> None:
    connect(s3)
    here, there = Dataset(config(folder, shuffle_shards=window)), remote(tmp_path, shuffle_shards=window)
    assert there.fingerprint == here.fingerprint
    assert there.find_damage(0, 1) == []
    assert read(there) == read(here)


def test_workers_fetch_for_themselves(tmp_path: Path, s3: str, folder: Path, connect) -> None:
    connect(s3)
    settings = config(folder, shards="s3://corpus/mixed/v1", cache_directory=str(tmp_path / "cache"), workers=3, shuffle_shards=1)
    dataset = Dataset(settings)
    with closing(Loader(dataset, settings)) as loader:
        loader.start(0, BatchPlan(micro=2, accumulation=1, replicas=1), 0, pinned=False)
        fetched = [number for _ in range(48) for number in numbers(loader.next().tokens.numpy())]
    assert fetched == read(Dataset(config(folder, shuffle_shards=1)))


def sometimes(fault: Fault, times: int) -> Fault:
    """The fault for the first few shards that are asked for."""
    left = iter(range(times))
    return lambda path, body: fault(path, body) if "shard-" in path and next(left, None) is not None else None


@pytest.mark.parametrize(
    "fault",
    [
        lambda path, body: (503, b"", 0),
        lambda path, body: (200, body[: len(body) // 2], len(body)),
        lambda path, body: (200, body[:-1] + bytes([body[-1] ^ 1]), len(body)),
        lambda path, body: (200, body[:-7], len(body) - 7),
    ],
    ids=["busy", "cut-off", "flipped", "shorter"],
)
def test_faults_that_pass_change_nothing(tmp_path: Path, s3: str, folder: Path, connect, fault: Fault) -> None:
    with failing_proxy(s3, sometimes(fault, 3)) as address:
        connect(address)
        assert read(remote(tmp_path)) == read(Dataset(config(folder)))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda path, body: (200, body[:-1] + b"?", len(body)), "shard-00001.npy: not fetched in 4 attempts (Expected checksum "),
        (lambda path, body: (403, b"", 0), "shard-00001.npy: cannot be fetched (An error occurred (403)"),
    ],
    ids=["damaged", "forbidden"],
)  # fmt: skip
def test_faults_that_stay_are_named(tmp_path: Path, s3: str, folder: Path, connect, fault: Fault, message: str) -> None:
    def on_one(path: str, body: bytes) -> tuple[int, bytes, int] | None:
        return fault(path, body) if "shard-00001.npy" in path else None

    with failing_proxy(s3, on_one) as address:
        connect(address)
        with pytest.raises(DataError) as caught:
            read(remote(tmp_path))
    assert f"s3://corpus/mixed/v1/{message}" in str(caught.value)
    assert not list((tmp_path / "cache").glob("*.part"))


def test_an_object_of_another_dataset_is_named(tmp_path: Path, s3: str, folder: Path, connect) -> None:
    """Overwritten in the bucket: for S3 it is whole, for the index it is not."""
    connect(s3)
    client = boto3.client("s3")
    for file in folder.iterdir():
        content = file.read_bytes()
        client.put_object(
            Bucket="corpus", Key=f"mixed-up/{file.name}", Body=content[:-1] + b"?" if file.name == "shard-00003.npy" else content
        )
    dataset = remote(tmp_path, shards="s3://corpus/mixed-up")
    assert dataset.find_damage(0, 1) == []
    with pytest.raises(DataError, match=r"s3://corpus/mixed-up/shard-00003.npy: not fetched in 4 attempts \(its content does not match"):
        read(dataset)


def test_what_is_not_there_is_named_at_the_start(tmp_path: Path, s3: str, folder: Path, connect) -> None:
    connect(s3)
    with pytest.raises(DataError, match=r"data.shards: s3://corpus/other/index.json cannot be read \(.*NoSuchKey.*; name a prefix"):
        remote(tmp_path, shards="s3://corpus/other")
    with pytest.raises(DataError, match=r"data.shards: s3://elsewhere/index.json cannot be read \(.*NoSuchBucket"):
        remote(tmp_path, shards="s3://elsewhere/")
    client = boto3.client("s3")
    for file in folder.iterdir():
        client.upload_file(str(file), "corpus", f"broken/{file.name}")
    client.delete_object(Bucket="corpus", Key="broken/shard-00002.npy")
    client.put_object(Bucket="corpus", Key="broken/shard-00004.npy", Body=b"x")
    damage = remote(tmp_path, shards="s3://corpus/broken").find_damage(0, 1)
    assert damage[0] == "s3://corpus/broken/shard-00002.npy: missing"
    assert damage[1].startswith("s3://corpus/broken/shard-00004.npy: 1 bytes in place of ")


def test_a_server_that_is_not_there_is_named(tmp_path: Path, folder: Path, connect, monkeypatch: pytest.MonkeyPatch) -> None:
    connect("http://127.0.0.1:9")
    monkeypatch.setattr(s3_store, "_CLIENT", s3_store.Config(retries={"mode": "standard", "max_attempts": 1}))
    with pytest.raises(DataError, match="Could not connect to the endpoint URL"):
        remote(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cache_gb": 1e-6}, "data.cache_gb: 1e-06 is too small for all shards, which are mixed: 3."),
        ({"cache_gb": 1e-6, "shuffle_shards": 2}, "is too small for two windows of data.shuffle_shards = 2: "),
        ({"cache_directory": "/proc/nothing"}, "data.cache_directory: /proc/nothing cannot be made"),
    ],
)
def test_a_cache_that_cannot_work_is_refused(tmp_path: Path, s3: str, folder: Path, connect, changes: dict, message: str) -> None:
    connect(s3)
    with pytest.raises(DataError) as caught:
        remote(tmp_path, **changes)
    assert message in str(caught.value)


@pytest.mark.parametrize("url", ["s3://", "s3://A/b", "gs://bucket/x", "https://bucket/x"])
def test_other_addresses_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"data.shards: .* is refused; allowed: a folder, or s3://bucket/prefix"):
        config(tmp_path, shards=url)


def file_of(tmp_path: Path, number: int, size: int = 1000) -> tuple[ShardFile, Callable[[Path], None]]:
    """A file and how it is fetched."""
    path = tmp_path / f"source-{number}"
    path.write_bytes(bytes([number]) * size)
    return file_record(path), lambda target: (target.write_bytes(path.read_bytes()), None)[1]


def test_the_cache_stays_within_its_size_and_drops_what_was_used_longest_ago(tmp_path: Path) -> None:
    cache, files = ShardCache(tmp_path / "cache", 3500), [file_of(tmp_path, number) for number in range(6)]
    fetched: list[str] = []

    def get(number: int) -> bytes:
        file, fetch = files[number]
        return cache.get(file, lambda path: (fetched.append(file.path), fetch(path))[1]).read_bytes()

    for number in (0, 1, 2, 0, 3, 0, 4, 5, 0):
        assert get(number) == bytes([number]) * 1000
        assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 3500
    assert fetched == [f"source-{number}" for number in (0, 1, 2, 3, 4, 5)], "the one in use must not be dropped"


def test_a_damaged_entry_is_fetched_again(tmp_path: Path) -> None:
    cache, (file, fetch) = ShardCache(tmp_path / "cache", 5000), file_of(tmp_path, 7)
    entry = cache.get(file, fetch)
    for damage in (b"x" * 1000, b"x", b""):
        entry.write_bytes(damage)
        assert cache.get(file, fetch).read_bytes() == bytes([7]) * 1000


def test_many_readers_fetch_a_shard_once(tmp_path: Path) -> None:
    cache, (file, fetch) = ShardCache(tmp_path / "cache", 5000), file_of(tmp_path, 7)
    fetched: list[Path] = []
    threads = [threading.Thread(target=cache.get, args=(file, lambda path: (fetched.append(path), fetch(path))[1])) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetched) == 1


def test_what_a_killed_process_left_half_fetched_makes_room(tmp_path: Path) -> None:
    cache = ShardCache(tmp_path / "cache", 2500)
    pid = os.fork()
    if not pid:
        cache.get(file_of(tmp_path, 1, 2000)[0], lambda path: os.kill(os.getpid(), 9))
    os.waitpid(pid, 0)
    assert len(list((tmp_path / "cache").glob("*.part"))) == 1
    cache.get(*file_of(tmp_path, 2, 2000))
    assert not list((tmp_path / "cache").glob("*.part"))
