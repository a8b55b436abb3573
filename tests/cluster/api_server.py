"""A real API server on loopback with its own etcd, for what admission says; no node, no controllers, no root."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_TOKEN = "trainyard-test"
_PATIENCE_SECONDS = 90


class ApiServer:
    """Talks to the server; `port` is its secure port on loopback."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder
        # The certificate is made by the server itself at its start, for this run alone.
        self._context = ssl._create_unverified_context()
        self._connection: http.client.HTTPSConnection | None = None

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        connection = self._connection or http.client.HTTPSConnection("127.0.0.1", self.port, context=self._context, timeout=30)
        headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection = None
            raise
        self._connection = connection
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, {"message": text.decode(errors="replace")}

    def define(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        """Make custom resource definitions and wait until they are served."""
        for definition in definitions:
            status, answer = self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
            assert status == 201, answer
        for definition in definitions:
            name = definition["metadata"]["name"]
            until(lambda name=name: self._established(name), f"definition {name}")

    def dry_run(self, path: str, value: Mapping[str, Any]) -> tuple[bool, str]:
        """Whether the server would take the object, and what it says where it would not."""
        status, answer = self.request("POST", f"{path}?dryRun=All&fieldValidation=Ignore", value)
        assert status < 500, answer
        return status in (200, 201), str(answer.get("message", ""))

    def ready(self) -> bool:
        """Whether it answers."""
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def kubeconfig(self) -> Path:
        """A kubeconfig for programs that want one."""
        path = self.folder / "kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}
        context = {"cluster": "c", "user": "u", "namespace": "default"}
        parts = {"clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": _TOKEN}}]}
        path.write_text(json.dumps({**parts, "contexts": [{"name": "x", "context": context}], "current-context": "x"}))
        return path

    def _established(self, name: str) -> bool:
        _, answer = self.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        conditions = answer.get("status", {}).get("conditions") or ()
        return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@contextmanager
def api_server(folder: Path, etcd: Path, server: Path) -> Generator[ApiServer]:
    """Run the two programs until the block ends."""
    client, peer, port = free_port(), free_port(), free_port()
    (folder / "tokens.csv").write_text(f"{_TOKEN},admin,admin,system:masters\n")
    key = folder / "service-account.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    with (
        program([etcd, *_etcd_flags(folder, client, peer)], folder / "etcd.log"),
        program([server, *_server_flags(folder, client, port, key)], folder / "apiserver.log"),
    ):
        found = ApiServer(port, folder)
        until(found.ready, f"the API server ({folder / 'apiserver.log'})")
        yield found


@contextmanager
def program(argv: Sequence[object], log: Path) -> Generator[subprocess.Popen[bytes]]:
    """A process that ends with the block."""
    with log.open("wb") as out:
        process = subprocess.Popen([str(word) for word in argv], stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "GOGC": "50"})
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _etcd_flags(folder: Path, client: int, peer: int) -> list[str]:
    clients, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    return [
        *(f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"),
        *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"),
        *("--unsafe-no-fsync", "--log-level=warn"),
    ]


def _server_flags(folder: Path, client: int, port: int, key: Path) -> list[str]:
    return [
        *(f"--etcd-servers=http://127.0.0.1:{client}", "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={folder}"),
        *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}", "--service-account-issuer=https://test"),
        *("--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none", "--advertise-address=10.0.0.1"),
        *("--authorization-mode=RBAC", f"--token-auth-file={folder / 'tokens.csv'}", "--disable-admission-plugins=ServiceAccount"),
        "--enable-priority-and-fairness=false",
    ]


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds; an AssertionError that names `what` where it never does."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(f"{what} was not ready in {_PATIENCE_SECONDS} s")
