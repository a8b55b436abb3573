"""An S3 server for tests: moto's, in a process of the tests' own environment; and a proxy in front of it that fails on demand."""

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError

REPOSITORY = Path(__file__).parents[2]
# The training environment has no moto, so checks that run in it are told which interpreter has.
PYTHON = "TRAINYARD_TEST_PYTHON"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}

Fault = Callable[[str, bytes], tuple[int, bytes, int] | None]
"""Path and true body of a GET to (status, body, announced length) in its place, or nothing."""


@contextmanager
def s3_server() -> Generator[str]:
    """Address of a server that answers until the block is left."""
    python = os.environ.get(PYTHON) or str(REPOSITORY / ".venv" / "bin" / "python")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            assert process.poll() is None, "the S3 server has ended"
            assert time.monotonic() < deadline, "the S3 server does not answer"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@contextmanager
def failing_proxy(server: str, fault: Fault) -> Generator[str]:
    """Address of a proxy to the server; what `fault` gives for a GET is answered in place of the truth."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._forward()

        def do_HEAD(self) -> None:
            self._forward()

        def _forward(self) -> None:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            request = urllib.request.Request(server + self.path, headers=headers, method=self.command)
            try:
                with urllib.request.urlopen(request) as answer:
                    status, body, sent = answer.status, answer.read(), answer.headers
            except HTTPError as error:
                status, body, sent = error.code, error.read(), error.headers
            length = int(sent.get("Content-Length", len(body)))
            replaced = fault(self.path, body) if self.command == "GET" else None
            if replaced:
                status, body, length = replaced
            self.send_response(status)
            # A server that fails says nothing of the object.
            for name, value in sent.items() if status < 400 else ():
                if name.lower() not in ("content-length", "connection", "server", "date", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)
            if len(body) < length and self.command == "GET":
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    thread = Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_address[1]}"
    finally:
        proxy.shutdown()
        proxy.server_close()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
