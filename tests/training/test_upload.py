"""Checkpoints in a bucket: uploaded behind the training, verified by what the store computed, gone on with after an interruption, restored.

The store is moto's server, a process of its own, behind a small proxy that can be told to fail.
"""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest

from tests.training.job import DDP, Job, values, zero
from tests.training.rank import REPOSITORY, contract, environment, find_damage, free_port, training_python, wait_until
from training import storage

pytestmark = pytest.mark.training

BUCKET = "checkpoints"
UPLOAD = {"upload": f"s3://{BUCKET}/team", "upload_checksum": "CRC32"}
PART_BYTES = 5 << 20


@dataclass
class Store:
    """The server, seen through the proxy."""

    port: int
    fault: Callable[[str, str, bytes], str | None] = lambda method, path, body: None
    """Given a request, what happens to it: None, "refuse", "cut" or "damage"."""
    requests: list[tuple[str, str]] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """What the AWS SDK of a rank reads."""
        keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_EC2_METADATA_DISABLED": "true"}
        return {**keys, "AWS_ENDPOINT_URL": self.endpoint, "AWS_DEFAULT_REGION": "us-east-1"}

    def client(self):
        """A client of the tests' own."""
        keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x", "region_name": "us-east-1"}
        return boto3.client("s3", endpoint_url=self.endpoint, **keys)

    def objects(self) -> list[str]:
        """All objects."""
        return [entry["Key"] for entry in self.client().list_objects_v2(Bucket=BUCKET).get("Contents", ())]


def proxy(store: Store, upstream: int) -> type[BaseHTTPRequestHandler]:
    """A handler that passes requests on, unless the store is told otherwise."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            store.requests.append((self.command, self.path))
            fault = store.fault(self.command, self.path, body)
            if fault == "refuse":
                self.send_response(503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if fault == "damage":
                body = bytes([body[0] ^ 1]) + body[1:]
            connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=60)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                    self.send_header(name, value)
            size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", size or "0")
            self.end_headers()
            if fault == "cut":
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            elif self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    return Handler


@pytest.fixture(scope="module")
def server() -> Generator[int]:
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=5).request("GET", "/moto-api/")
        except OSError:
            return False
        return True

    wait_until(answers, "moto's server")
    yield port
    process.terminate()
    process.wait()


@pytest.fixture
def store(server: int, monkeypatch: pytest.MonkeyPatch) -> Generator[Store]:
    store = Store(free_port())
    listener = ThreadingHTTPServer(("127.0.0.1", store.port), proxy(store, server))
    thread = threading.Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    http.client.HTTPConnection("127.0.0.1", server).request("POST", "/moto-api/reset")
    store.client().create_bucket(Bucket=BUCKET)
    for name, value in store.environ.items():
        monkeypatch.setenv(name, value)
    yield store
    listener.shutdown()
    listener.server_close()


def environs(store: Store, ranks: int) -> list[dict[str, str]]:
    return [{**environ, **store.environ} for environ in contract(ranks)]


@pytest.mark.parametrize(("engine", "mode"), [(DDP, "async"), (zero(1), "sync")], ids=["ddp-async", "zero-1-sync"])
def test_a_run_whose_disk_is_lost_goes_on_from_the_bucket(job: Job, store: Store, engine: dict, mode: str) -> None:
    whole = Job(job.folder / "whole", job.settings)
    whole.run(ranks=2, **engine)
    checkpoint: dict = {"checkpoint": {**UPLOAD, "mode": mode, "every": 3}}
    job.run(expect=75, environs=environs(store, 2), stop_after=7, **engine, **checkpoint)
    keys = store.objects()
    # Step 6 may have been left out for step 7, which came while step 3 was under way.
    for step in (3, 7):
        assert f"team/run/step-{step:09d}/manifest.json" in keys
    shutil.rmtree(job.checkpoints)
    finished = job.run(environs=environs(store, 2), **engine, **checkpoint)
    assert "fetching the checkpoint of step 7" in finished.log
    assert "resumed from step 7" in finished.log
    assert values(whole.history(), "loss")[7:] == values(job.history(), "loss")[7:]


def test_a_damaged_local_step_is_replaced_by_the_uploaded_one(job: Job, store: Store) -> None:
    checkpoint: dict = {"checkpoint": UPLOAD}
    job.run(expect=75, environs=environs(store, 1), stop_after=6, **checkpoint)
    newest = storage.step_directory(job.checkpoints, 6)
    (newest / "engine" / "__0_0.safetensors").unlink()
    finished = job.run(environs=environs(store, 1), **checkpoint)
    assert "checkpoint of step 6 is damaged and passed over: engine/__0_0.safetensors: missing" in finished.log
    assert "resumed from step 6" in finished.log


def test_a_damaged_upload_is_never_resumed_from(job: Job, store: Store) -> None:
    checkpoint: dict = {"checkpoint": UPLOAD}
    job.run(expect=75, environs=environs(store, 1), stop_after=6, **checkpoint)
    key = "team/run/step-000000006/engine/__0_0.safetensors"
    content = store.client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
    store.client().put_object(Bucket=BUCKET, Key=key, Body=content[:-1] + bytes([content[-1] ^ 1]))
    shutil.rmtree(job.checkpoints)
    finished = job.run(environs=environs(store, 1), **checkpoint)
    assert "the uploaded checkpoint of step 6 is passed over" in finished.log
    assert f"{key}: its content does not match its digest" in finished.log
    assert "resumed from step 4" in finished.log


def test_an_unreachable_bucket_is_an_error_for_a_new_run_and_a_warning_for_one_with_checkpoints(job: Job, store: Store) -> None:
    job.run(expect=75, environs=environs(store, 1), stop_after=5)
    store.fault = lambda method, path, body: "refuse"
    late: dict = {"checkpoint": UPLOAD, "name": "other"}
    finished = job.run(expect=1, environs=environs(store, 1), **late)
    assert "nobody knows whether this run is a new one" in finished.log.splitlines()[-1]
    finished = job.run(expect=1, environs=environs(store, 1), checkpoint=UPLOAD)
    assert "going on without checkpoint.upload" in finished.log
    assert "the checkpoint of step 12 could not be uploaded; it is whole in" in finished.log.splitlines()[-1]
    store.fault = lambda method, path, body: None
    assert "step 12  uploaded" in job.run(environs=environs(store, 1), checkpoint=UPLOAD, steps=13).log


PROGRAM = """
import pathlib, sys
from training import storage
from training.object_store import ObjectStore
directory = pathlib.Path(sys.argv[1])
store = ObjectStore(sys.argv[2], "run", "CRC32", part_bytes=int(sys.argv[3]))
store.upload(directory, 20, storage.read_manifest(directory))
store.publish(directory, 20)
print(store.steps())
"""
MAKE = """
import os, pathlib, sys
from training import storage
root = pathlib.Path(sys.argv[1])
aside = storage.saving_directory(root, 20)
(aside / "engine").mkdir()
(aside / "engine" / "large").write_bytes(os.urandom(int(sys.argv[2])))
(aside / "small").write_bytes(b"small")
(aside / "empty").write_bytes(b"")
storage.write_manifest(aside, 20, [storage.record_file(aside, path) for path in aside.rglob("*") if path.is_file()])
storage.publish(aside, storage.step_directory(root, 20))
"""


def program(text: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [training_python(), "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, cwd=REPOSITORY, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A checkpoint with a file of six parts."""
    assert program(MAKE, tmp_path, 5 * PART_BYTES + 1000).wait() == 0
    return tmp_path / "step-000000020"


def parts_sent(store: Store) -> list[int]:
    queries = [parse_qs(urlsplit(path).query) for method, path in store.requests if method == "PUT"]
    return [int(query["partNumber"][0]) for query in queries if "partNumber" in query]


def test_a_killed_upload_goes_on_with_the_parts_that_are_there(large: Path, store: Store) -> None:
    def slow_at_the_fifth(method: str, path: str, body: bytes) -> str | None:
        if "partNumber=5" in path:
            time.sleep(30)
        return None

    store.fault = slow_at_the_fifth
    killed = program(PROGRAM, large, UPLOAD["upload"], PART_BYTES)
    wait_until(lambda: {1, 2, 3, 4, 5} <= set(parts_sent(store)), "four parts")
    time.sleep(1)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    store.fault = lambda method, path, body: None
    store.requests.clear()
    done = program(PROGRAM, large, UPLOAD["upload"], PART_BYTES)
    output, _ = done.communicate(timeout=120)
    assert output.strip() == "[20]"
    assert not {1, 2, 3, 4} & set(parts_sent(store)), "parts that are there must not be sent again"
    uploaded = store.client().get_object(Bucket=BUCKET, Key="team/run/step-000000020/engine/large")["Body"].read()
    assert uploaded == (large / "engine" / "large").read_bytes()
    assert not store.client().list_multipart_uploads(Bucket=BUCKET).get("Uploads"), "nothing half uploaded may stay to be paid for"
    store.requests.clear()
    assert program(PROGRAM, large, UPLOAD["upload"], PART_BYTES).communicate(timeout=120)[0].strip() == "[20]"
    assert [request for request in store.requests if request[0] in ("PUT", "POST")] == [], "what is there whole is not sent again"


def test_refused_requests_are_retried(large: Path, store: Store) -> None:
    """Each request is refused once."""
    seen: set[str] = set()

    def once(method: str, path: str, body: bytes) -> str | None:
        known = f"{method} {path}"
        if known in seen:
            return None
        seen.add(known)
        return "refuse"

    store.fault = once
    output, _ = program(PROGRAM, large, UPLOAD["upload"], PART_BYTES).communicate(timeout=240)
    assert output.strip() == "[20]"
    uploaded = store.client().get_object(Bucket=BUCKET, Key="team/run/step-000000020/engine/large")["Body"].read()
    assert uploaded == (large / "engine" / "large").read_bytes()


def test_what_the_store_got_wrong_is_seen_and_sent_again(large: Path, store: Store) -> None:
    damaged: list[str] = []

    def damage_one(method: str, path: str, body: bytes) -> str | None:
        if method == "PUT" and "partNumber=2" in path and not damaged:
            damaged.append(path)
            return "damage"
        return None

    store.fault = damage_one
    output, _ = program(PROGRAM, large, UPLOAD["upload"], PART_BYTES).communicate(timeout=120)
    assert damaged
    assert output.strip() == "[20]"
    assert len([part for part in parts_sent(store) if part == 2]) > 1
    uploaded = store.client().get_object(Bucket=BUCKET, Key="team/run/step-000000020/engine/large")["Body"].read()
    assert uploaded == (large / "engine" / "large").read_bytes()


def test_a_file_that_was_damaged_on_disk_is_not_uploaded(large: Path, store: Store) -> None:
    (large / "small").write_bytes(b"smalm")
    assert find_damage(large)
    output, _ = program(PROGRAM, large, UPLOAD["upload"], PART_BYTES).communicate(timeout=120)
    assert "small: its content does not match its digest; it is not uploaded" in output
    assert "team/run/step-000000020/manifest.json" not in store.objects()
