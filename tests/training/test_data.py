"""Whole runs on token shards with loader workers: bitwise the runs without them, across an epoch's end and other numbers of ranks."""

import json
import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.training.job import Job, merge, values, zero
from tests.training.object_store import CREDENTIALS, s3_server
from tests.training.rank import REPOSITORY, children, contract, environment, training_python, wait, wait_until
from training.history import History

pytestmark = pytest.mark.training

STEPS_PER_EPOCH, BATCH, NTH, LENGTH = 8, 8, 9, 32
SAMPLES = STEPS_PER_EPOCH * BATCH * NTH // (NTH - 1)


def tokenized(folder: Path, sizes: Sequence[int], shard_tokens: int) -> Path:
    """Shards that the command makes from JSON lines: a document of each size."""
    texts = ["".join(chr(65 + (index * index + size) % 58) for index in range(size)) for size in sizes]
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    made = ["-o", str(folder / "data"), "--shard-tokens", str(shard_tokens)]
    command = [training_python(), "-m", "training.tokenize", str(folder / "text.jsonl"), *made]
    subprocess.run(command, cwd=REPOSITORY, env=environment(), check=True, stdout=subprocess.DEVNULL)
    return folder / "data"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards that hold two epochs of 8 steps each."""
    sizes = [size * LENGTH for size in (30, 22, SAMPLES - 52)]
    return tokenized(tmp_path_factory.mktemp("shards"), sizes, 1)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards of documents that are shorter than a sample."""
    return tokenized(tmp_path_factory.mktemp("short"), [3 + number * 7 % 23 for number in range(180)], 1000)


def settings(shards: Path, **data: object) -> dict:
    """Two epochs in 16 steps."""
    return {
        "steps": 16,
        "model": {"vocab_size": 258},
        "data": {"shards": str(shards), "eval_every_nth": NTH, "shuffle_shards": 2, **data},
        "checkpoint": {"every": 8},
    }


def assert_same(pieces: History, whole: History) -> None:
    assert len(pieces.steps) == 16
    for key in ("loss", "grad_norm"):
        assert values(pieces, key) == values(whole, key), key
    assert pieces.evaluations == whole.evaluations


@pytest.mark.parametrize("stop", [7, 8, 9])
def test_a_stop_at_an_epochs_end_skips_nothing_with_other_workers(tmp_path: Path, shards: Path, stop: int) -> None:
    whole, job = Job(tmp_path / "whole", settings(shards)), Job(tmp_path / "pieces", settings(shards))
    assert "2.00 epochs" in whole.run().log
    job.run(expect=75, stop_after=stop, data={"workers": 1})
    assert "2.00 epochs" in job.run(data={"workers": 2, "prefetch": 3}).log
    assert_same(job.history(), whole.history())
    assert all(step["data_wait_seconds"] >= 0 for step in job.history().steps.values())


def test_other_ranks_micro_batches_and_workers_go_on_with_the_same_samples(tmp_path: Path, shards: Path) -> None:
    whole, job = Job(tmp_path / "whole", settings(shards)), Job(tmp_path / "pieces", settings(shards))
    whole.run()
    job.run(ranks=2, expect=75, stop_after=8, data={"workers": 2})
    job.run(ranks=4, expect=75, stop_after=3, data={"workers": 1}, batch={"micro": 1})
    job.run(ranks=1, data={"workers": 3}, batch={"micro": 4})
    assert [start["step"] for start in job.history().starts] == [0, 8, 11]
    assert values(job.history(), "loss") == pytest.approx(values(whole.history(), "loss"), rel=1e-5)


@pytest.mark.parametrize(
    "layout",
    [{"engine": {"kind": "fsdp"}, "parallel": {"tensor": 2}}, {"engine": {"kind": "fsdp"}}, zero(3)],
    ids=["tensor", "fsdp", "zero-3"],
)
def test_documents_that_do_not_see_each_other_are_the_same_on_every_mesh(tmp_path: Path, short: Path, layout: dict) -> None:
    """Samples of several documents each; one rank against two that share the work in different ways, and the same run without the mask."""
    masked = merge(settings(short), {"steps": 8, "model": {"document_end": 256}})
    whole, shared = Job(tmp_path / "whole", masked), Job(tmp_path / "shared", merge(masked, layout))
    whole.run()
    shared.run(ranks=2)
    assert values(shared.history(), "loss") == pytest.approx(values(whole.history(), "loss"), rel=1e-5)
    unmasked = Job(tmp_path / "unmasked", merge(masked, {"model": {"document_end": None}}))
    unmasked.run()
    assert values(unmasked.history(), "loss") != pytest.approx(values(whole.history(), "loss"), rel=1e-4)
    assert "documents in data.shards end with id 256, but model.document_end is 10" in whole.run(expect=1, model={"document_end": 10}).log


@pytest.fixture
def bucket(shards: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[dict[str, str]]:
    """A copy of the shards at s3://corpus/v1; gives the environment in which a rank finds it."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_server() as address:
        client = boto3.client("s3", endpoint_url=address)
        client.create_bucket(Bucket="corpus")
        for file in shards.iterdir():
            client.upload_file(str(file), "corpus", f"v1/{file.name}")
        yield {**CREDENTIALS, "AWS_ENDPOINT_URL": address}


def test_a_run_goes_on_with_shards_from_s3(tmp_path: Path, shards: Path, bucket: dict[str, str]) -> None:
    """From the folder to its copy in a bucket and on: the dataset is the same one, and a bucket that goes away is named."""
    whole, job = Job(tmp_path / "whole", settings(shards)), Job(tmp_path / "pieces", settings(shards))
    whole.run(ranks=2)
    job.run(ranks=2, expect=75, stop_after=5)
    remote: dict[str, Any] = {"data": {"shards": "s3://corpus/v1", "cache_directory": str(tmp_path / "cache"), "workers": 2}}
    for stop, expected in ((8, 75), (None, 0)):
        with job.started(environs=[{**bucket, **environ} for environ in contract(2)], stop_after=stop, **remote) as ranks:
            finished = wait(ranks)
        assert set(finished.codes) == {expected}, finished.log
    assert_same(job.history(), whole.history())
    elsewhere: dict[str, Any] = {**remote, "data": {**remote["data"], "shards": "s3://corpus/v2"}}
    with job.started(environs=[bucket], **elsewhere) as ranks:
        finished = wait(ranks)
    assert finished.codes == [1]
    assert "data.shards: s3://corpus/v2/index.json cannot be read" in finished.log.strip().splitlines()[-1]


def test_damage_stops_all_ranks_before_the_first_step_with_the_file_named(tmp_path: Path, shards: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in shards.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    victim = copy / "shard-00001.npy"
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    finished = Job(tmp_path / "runs", settings(copy)).run(ranks=2, expect=1)
    for log in finished.logs:
        last = log.strip().splitlines()[-1]
        assert "the corpus is damaged: rank 1: " in last
        assert "shard-00001.npy: its content does not match its checksum in the index" in last
    assert "Traceback" not in finished.log


def test_a_worker_that_is_killed_ends_the_run_with_its_name(tmp_path: Path, shards: Path) -> None:
    job = Job(tmp_path / "runs", settings(shards, workers=1))
    endless: dict[str, Any] = {"steps": 100_000, "schedule": {"decay_steps": 100}, "checkpoint": {"every": 0}, "evaluation": {"every": 0}}
    with job.started(**endless) as (rank,):
        wait_until(lambda: "step 2 " in rank.log(), "the first steps")
        (worker,) = children(rank.pid)
        subprocess.run(["kill", "-9", str(worker)], check=True)
        finished = wait([rank], 60)
    assert finished.codes == [1]
    last = finished.log.strip().splitlines()[-1]
    assert f"rank 0 of 1 ended with exit code 1 (failed): DataError: loader worker 0 (process {worker}) was killed by SIGKILL" in last
    assert "Traceback" not in finished.log
