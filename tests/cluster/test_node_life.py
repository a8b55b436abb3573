"""How a node ends and comes back: what a killed one leaves on the machine, what a stopped one keeps, how two live side by side."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.node import ApiError, Node
from local.node.api import Json
from local.node.cgroup import CgroupTree
from local.paths import REPOSITORY, copy_id
from local.process import find_daemon
from tests.cluster.nodes import PROBE_IMAGE, Pods, cluster_binaries, node_folder, probe_archive, progress, require_root, wait_for

pytestmark = pytest.mark.cluster

START_LIMIT_SECONDS = 20.0


class Host:
    """What a node could leave on the machine, apart from its state folder."""

    def __init__(self, node: Node) -> None:
        self._words = (str(node.state), copy_id(node.state))
        self.tunables = _tunables()

    def traces(self) -> list[str]:
        """Mounts, interfaces, rules and processes that belong to the node."""
        places = {
            "mount": Path("/proc/self/mounts").read_text(),
            "interface": _output("ip", "-o", "link") + _output("ip", "-o", "addr") + _output("ip", "netns"),
            "rule": _output("iptables-save"),
            "process": _output("ps", "-eo", "pid,args"),
        }
        lines = [f"{kind}: {line}" for kind, text in places.items() for line in text.splitlines()]
        found = [line for line in lines if any(word in line for word in self._words)]
        return found + [f"process: {pid}" for pid in _processes_below(self._words[0])]

    def cgroups(self) -> list[Path]:
        return [folder for folder in CgroupTree(self._words[1]).folders if folder.exists()]


@pytest.fixture(scope="module")
def binaries() -> dict[str, Path]:
    require_root()
    return cluster_binaries()


@pytest.fixture
def node(binaries: dict[str, Path]) -> Generator[Node]:
    with node_folder() as state:
        one = Node(state, binaries)
        try:
            yield one
        finally:
            one.destroy()


@pytest.mark.parametrize("victim", ["supervisor", "init"])
def test_killing_either_process_of_a_node_leaves_nothing_on_the_host(node: Node, tmp_path: Path, victim: str) -> None:
    host = Host(node)
    assert host.traces() == []
    node.start(progress(node.state))
    node.import_images([probe_archive(tmp_path)])
    Pods(node).serve("left-behind")
    assert host.traces(), "the test could not tell otherwise"
    process = find_daemon(node.state / f"{victim}.pid")
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    wait_for("clean host", lambda: not host.traces(), seconds=10.0)
    assert _tunables() == host.tunables, "settings of the whole machine are not the node's to change"
    assert not node.status().running
    node.start(progress(node.state))
    assert node.status().ready, "the next start needs no cleaning by hand"
    node.stop()
    assert host.traces() == []
    assert host.cgroups() == []


def test_a_stopped_node_keeps_its_objects_and_images_and_starts_soon(node: Node, tmp_path: Path) -> None:
    node.start(progress(node.state))
    archive = probe_archive(tmp_path)
    assert node.import_images([archive]) == [PROBE_IMAGE]
    node.api().create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}, "data": {"key": "value"}})
    Pods(node).serve("kept", restartPolicy="Always")
    node.stop()
    assert not node.status().running
    with pytest.raises(ApiError, match="does not answer"):
        node.api().get("/readyz")
    begin = time.monotonic()
    node.start(progress(node.state))
    assert time.monotonic() - begin < START_LIMIT_SECONDS
    assert node.api().get("/api/v1/namespaces/default/configmaps/kept")["data"] == {"key": "value"}
    assert node.import_images([archive]) == []
    pods = Pods(node)
    # Until the kubelet has looked, the object still tells of its earlier life.
    wait_for("restarted pod", lambda: _restarts(pods.running("kept")) == 1)
    assert pods.execute("kept", "get", "http://localhost:8080") == "kept"


def test_a_node_whose_settings_changed_is_started_anew_with_its_data(node: Node, tmp_path: Path) -> None:
    node.start(progress(node.state))
    node.api().create("/api/v1/namespaces", {"metadata": {"name": "kept"}})
    before = node.supervisor()
    changed = Node(node.state, node.binaries, trainer_env=tmp_path)
    changed.start(progress(node.state))
    assert changed.supervisor() != before
    assert changed.api().get("/api/v1/namespaces/kept")["status"]["phase"] == "Active"


def test_two_nodes_live_side_by_side_and_one_ends_alone(node: Node, binaries: dict[str, Path]) -> None:
    node.start(progress(node.state))
    with node_folder() as state:
        other = Node(state, binaries)
        other.start(progress(state))
        assert {node.host_ip, node.node_ip}.isdisjoint({other.host_ip, other.node_ip})
        other.api().create("/api/v1/namespaces", {"metadata": {"name": "only-here"}})
        with pytest.raises(ApiError, match="not found"):
            node.api().get("/api/v1/namespaces/only-here")
        host = Host(other)
        other.destroy()
        assert host.traces() == []
        assert not state.exists()
    assert node.status().ready
    assert node.api().is_ready()


def test_destroying_a_node_leaves_neither_files_nor_cgroups(node: Node) -> None:
    node.start(progress(node.state))
    host = Host(node)
    node.destroy()
    assert host.traces() == []
    assert host.cgroups() == []
    assert not node.state.exists()


def test_a_daemon_that_cannot_start_is_named_with_the_end_of_its_log(node: Node, tmp_path: Path) -> None:
    broken = tmp_path / "coredns"
    broken.write_text("#!/bin/sh\necho this machine has no luck\nexit 3\n")
    broken.chmod(0o755)
    unlucky = Node(node.state, {**node.binaries, "coredns": broken})
    with pytest.raises(LocalStackError, match=r"coredns ended \d+ times, last with exit status 3(.|\n)*no luck") as caught:
        unlucky.start(progress(node.state))
    assert caught.value.log == node.state / "logs" / "coredns.log"
    assert Host(node).traces() == [], "a start that fails leaves nothing running"


def test_ctrl_c_during_a_start_leaves_nothing_running(node: Node) -> None:
    # What is started in the background inherits an ignored SIGINT.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from tests.cluster.nodes import *; "
        "Node(Path(sys.argv[1]), cluster_binaries()).start(progress(Path(sys.argv[1])))"
    )
    starter = subprocess.Popen([sys.executable, "-c", program, node.state], cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
    host = Host(node)
    wait_for("API server", lambda: node.status().daemons.get("kube-apiserver"), seconds=30.0)
    assert host.traces()
    starter.send_signal(signal.SIGINT)
    _, errors = starter.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert host.traces() == []
    assert host.cgroups() == []


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout if shutil.which(argv[0]) else ""


def _processes_below(state: str) -> list[int]:
    """Daemons and pods: their own words name no state folder, but the mounts they see do."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"{state} " in (entry / "mountinfo").read_text():
                found.append(int(entry.name))
    return found


def _restarts(found: list[Json]) -> int:
    statuses = [status for pod in found for status in pod["status"]["containerStatuses"]]
    return sum(status["restartCount"] for status in statuses if "running" in status["state"])


def _tunables() -> dict[str, str]:
    names = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
    return {name: Path("/proc/sys", name).read_text() for name in names}
