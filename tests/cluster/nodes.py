"""Nodes and pods for the tests of this folder."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from kubernetes import client, config
from kubernetes.stream import stream

from local.images.layer import file
from local.images.oci import ImageConfig, write_archive
from local.node import Node
from local.node.api import Json
from local.progress import Progress
from local.toolchain.go import go_command
from local.toolchain.tools import CLUSTER, ensure

T = TypeVar("T")

PROBE_IMAGE = "trainyard.test/probe:1"


def require_root() -> None:
    """Skip where a node cannot run at all: that is a property of the machine, not of the code."""
    if os.geteuid() != 0:
        pytest.skip("a node needs root")


@contextmanager
def node_folder() -> Generator[Path]:
    """A state folder of its own, with nothing left in it or of it afterwards."""
    # Not pytest's own folder: state folders are short in use, and long ones would hide nothing but one more difference.
    with tempfile.TemporaryDirectory(prefix="ty-") as folder:
        yield Path(folder) / "node"


def progress(folder: Path) -> Progress:
    return Progress(folder.parent / "progress.log", total=1)


def cluster_binaries() -> dict[str, Path]:
    """The tools of a node, built where the store lacks them."""
    with tempfile.TemporaryDirectory() as folder:
        return dict(ensure([CLUSTER], Progress(Path(folder) / "build.log", total=1)))


def probe_archive(folder: Path) -> Path:
    """An image with the probe in it."""
    binary = folder / "probe"
    environment = {**os.environ, "CGO_ENABLED": "0"}
    subprocess.run([go_command(), "build", "-o", binary, "."], cwd=Path(__file__).parent / "probe", env=environment, check=True)
    layer = [file("/probe", binary, mode=0o755)]
    return write_archive(folder / "probe.tar", references=[PROBE_IMAGE], layers=[layer], config=ImageConfig(entrypoint=["/probe"])).path


def wait_for(what: str, probe: Callable[[], T], seconds: float = 60.0) -> T:
    """The first true value of `probe`."""
    deadline = time.monotonic() + seconds
    while not (value := probe()):
        assert time.monotonic() < deadline, f"no {what} within {seconds:.0f} s"
        time.sleep(0.2)
    return value


def probe_container(*words: str) -> Json:
    """A container that runs the probe."""
    return {"name": "probe", "image": PROBE_IMAGE, "imagePullPolicy": "Never", "args": list(words)}


class Pods:
    """Pods of the probe image in the namespace `default`."""

    path = "/api/v1/namespaces/default/pods"

    def __init__(self, node: Node) -> None:
        self.api = node.api()
        # Logs, commands and ports go through the client that users have.
        self.core = client.CoreV1Api(config.new_client_from_config(str(node.kubeconfig)))

    def run(self, name: str, *words: str, **spec: object) -> None:
        """Create a pod that runs the probe with `words`; `spec` overrides fields of its spec."""
        usual = {"containers": [probe_container(*words)], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
        self.api.create(self.path, {"metadata": {"name": name, "labels": {"app": name}}, "spec": {**usual, **spec}})

    def wait(self, name: str, phase: str) -> Json:
        """The pod once it is in `phase`."""
        wait_for(f"{phase} pod {name}", lambda: self._in_phase(name, phase))
        return self.api.get(f"{self.path}/{name}")

    def serve(self, name: str, **spec: object) -> Json:
        """A running pod with the probe's web server."""
        self.run(name, "serve", **spec)
        return self.wait(name, "Running")

    def service(self, name: str, **spec: object) -> Json:
        """Create a service of the pods with the label `app=<name>`, unless `spec` says otherwise."""
        body = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, **spec}}
        return self.api.create("/api/v1/namespaces/default/services", body)

    def running(self, prefix: str) -> list[Json]:
        """Running pods whose names begin with `prefix`."""
        found = self.api.get(self.path)["items"]
        return [pod for pod in found if pod["metadata"]["name"].startswith(prefix) and pod["status"]["phase"] == "Running"]

    def log(self, name: str) -> str:
        return self.core.read_namespaced_pod_log(name, "default")

    def execute(self, name: str, *words: str) -> str:
        """What the probe prints when it is run in a running pod; errors too."""
        connect = self.core.connect_get_namespaced_pod_exec
        return stream(connect, name, "default", command=["/probe", *words], stdout=True, stderr=True, stdin=False, tty=False)

    def _in_phase(self, name: str, phase: str) -> bool:
        found = self.api.get(f"{self.path}/{name}")["status"]["phase"]
        assert found not in {"Succeeded", "Failed"} - {phase}, f"pod {name} is {found}: {self.log(name)}"
        return found == phase
