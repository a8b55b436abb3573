"""The node of one copy of the repository: start it, use it, stop it, remove it."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from local.errors import LocalStackError
from local.node import layout
from local.node.api import KubernetesApi
from local.node.archive import archive_images
from local.node.blueprint import NODE_NAME, Blueprint
from local.node.cgroup import CgroupTree
from local.node.daemon import DaemonStatus
from local.node.network import Link, load_or_choose_link, remove_host_end
from local.node.processes import node_memory_bytes
from local.node.requirements import check_machine
from local.node.spec import SupervisorSpec
from local.node.startup import Startup, apply_labels, node_is_ready
from local.paths import REPOSITORY, copy_id
from local.process import Daemon, find_daemon, start_daemon
from local.progress import Progress

_STOP_SECONDS = 25.0


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """What runs of a node."""

    running: bool
    phase: str
    """`running`, `stopping` or `stopped`."""
    daemons: Mapping[str, DaemonStatus] = field(default_factory=dict)
    memory_bytes: int = 0
    """Resident memory of the node's own daemons, pods left out."""

    @property
    def ready(self) -> bool:
        """True where every daemon runs and has answered."""
        return self.running and bool(self.daemons) and all(daemon.ready for daemon in self.daemons.values())


class Node:
    """A one-node Kubernetes cluster in namespaces of its own, with all its data below `state`."""

    name = NODE_NAME

    def __init__(
        self,
        state: Path,
        binaries: Mapping[str, Path],
        *,
        trainer_env: Path | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """`binaries`: see `requirements`; `trainer_env` shows read-only in every container at `layout.TRAINER_ENV_IN_POD`."""
        self.state = state.resolve()
        self.binaries = dict(binaries)
        self.trainer_env = trainer_env
        self.labels = dict(labels or {})
        self._layout = layout.Layout(self.state)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; it exists once the node was started."""
        return self._layout.kubeconfig

    @property
    def host_ip(self) -> str:
        """The host as pods and node see it. The address exists while the node runs."""
        return self._link().host_ip

    @property
    def node_ip(self) -> str:
        """The node as host and pods see it."""
        return self._link().node_ip

    def api(self) -> KubernetesApi:
        """A client with all rights. Raises LocalStackError before the first start."""
        return KubernetesApi.from_kubeconfig(self.kubeconfig)

    def start(self, progress: Progress) -> None:
        """Have the node running and ready. One that runs as wanted is left alone; a dead or different one is started anew, data kept.

        Raises:
            LocalStackError: the machine lacks something, or a daemon does not start; the message holds the end of its log.
        """
        check_machine(self.binaries)
        if self.trainer_env and not self.trainer_env.is_dir():
            raise LocalStackError(f"trainer_env: {self.trainer_env} is no folder")
        with progress.step("Kubernetes node"), self._lock():
            spec = Blueprint(state=self.state, binaries=self.binaries, trainer_env=self.trainer_env).prepare()
            if not self._runs_as(spec):
                self._end()
                self._launch(spec)
            try:
                # One whose start was cut short by the end of its caller is finished here as well.
                if not (self.status().ready and node_is_ready(self.api())):
                    Startup(self, self._layout).finish()
            except BaseException:
                # Neither Ctrl-C nor a daemon that fails for ever leaves half a node behind.
                self._end()
                raise
            apply_labels(self.api(), self.labels, self.state / "labels.json")

    def stop(self) -> None:
        """End pods, daemons and namespaces. Data stays. A node that does not run is no error."""
        if self.state.exists():
            with self._lock():
                self._end()

    def destroy(self) -> None:
        """Stop the node and remove all its data, file systems of volumes too.

        Raises:
            LocalStackError: something is still mounted below the state folder, so that removing it might reach other data.
        """
        self.stop()
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        below = [point for point in mounts if point.startswith(f"{self.state}/")]
        if below:
            raise LocalStackError(f"{below[0]} is still mounted: unmount it, then remove {self.state}")
        shutil.rmtree(self.state, ignore_errors=True)
        if self.state.exists():
            shutil.rmtree(self.state)

    def status(self) -> NodeStatus:
        """What runs now, without asking the API server."""
        init = find_daemon(self._layout.init_pid) if self.supervisor() else None
        if init is None:
            return NodeStatus(running=False, phase="stopped")
        try:
            data = json.loads(self._layout.status.read_text())
            daemons = {name: DaemonStatus(**value) for name, value in data["daemons"].items()}
        except (FileNotFoundError, ValueError):
            return NodeStatus(running=True, phase="starting")
        return NodeStatus(running=True, phase=data["phase"], daemons=daemons, memory_bytes=node_memory_bytes(init.pid))

    def supervisor(self) -> Daemon | None:
        """The supervisor's process on the host, if it lives."""
        return find_daemon(self._layout.pid)

    def enter(self, argv: Sequence[str], *, stdin: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command inside the node's namespaces; binaries are at `layout.BIN`. Its output is captured, its status not checked.

        Raises:
            LocalStackError: the node does not run.
        """
        init = find_daemon(self._layout.init_pid)
        if init is None:
            raise LocalStackError("the Kubernetes node does not run: start it with `make up`")
        words = ["nsenter", f"--target={init.pid}", "--mount", "--net", "--uts", "--ipc", "--pid", "--", *argv]
        with (stdin or Path(os.devnull)).open("rb") as source:
            return subprocess.run(words, stdin=source, capture_output=True, text=True, check=False)

    def import_images(self, archives: Iterable[Path]) -> list[str]:
        """Import OCI archives for the kubelet to find. Returns the names of those that were not there yet with the same digest.

        Raises:
            LocalStackError: an archive is broken, or containerd refuses it.
        """
        imported = []
        present = self.images()
        for archive in archives:
            wanted = archive_images(archive)
            if all(present.get(name) == digest for name, digest in wanted.items()):
                continue
            result = self._ctr("images", "import", "-", stdin=archive)
            if result.returncode:
                raise LocalStackError(f"image {', '.join(wanted)} from {archive}: {result.stderr.strip()}")
            imported += wanted
        return imported

    def images(self) -> dict[str, str]:
        """Name -> digest of all images that the node has. Raises LocalStackError."""
        result = self._ctr("images", "ls")
        if result.returncode:
            raise LocalStackError(f"containerd does not list its images: {result.stderr.strip()}")
        rows = [line.split() for line in result.stdout.splitlines()[1:]]
        return {row[0]: row[2] for row in rows}

    def _ctr(self, *words: str, stdin: Path | None = None) -> subprocess.CompletedProcess[str]:
        ctr = [str(layout.BIN / "ctr"), "--address", str(layout.CONTAINERD_SOCKET), "--namespace", "k8s.io"]
        return self.enter([*ctr, *words], stdin=stdin)

    def _link(self) -> Link:
        self.state.mkdir(parents=True, exist_ok=True)
        return load_or_choose_link(self._layout.network, copy_id(self.state))

    def _runs_as(self, spec: SupervisorSpec) -> bool:
        if self.supervisor() is None:
            return False
        # Without its process 1, which a starting one has not noted yet, a supervisor is about to end.
        if self._layout.init_pid.exists() and find_daemon(self._layout.init_pid) is None:
            return False
        try:
            return SupervisorSpec.read(self._layout.spec).digest() == spec.digest()
        except (OSError, ValueError):
            return False

    def _launch(self, spec: SupervisorSpec) -> None:
        for stale in (self._layout.status, self._layout.init_pid):
            stale.unlink(missing_ok=True)
        spec.write(self._layout.spec)
        log = self._layout.log("supervisor")
        # Errors are read from this log: those of an earlier start must not be taken for this one's.
        log.unlink(missing_ok=True)
        start_daemon(
            [sys.executable, "-m", "local.node.supervisor", self._layout.spec],
            log=log,
            pid_file=self._layout.pid,
            cwd=REPOSITORY,
        )

    def _end(self) -> None:
        """End what runs, and remove what a killed supervisor may have left."""
        supervisor, init = self.supervisor(), find_daemon(self._layout.init_pid)
        for process in (supervisor, init):
            if process:
                process.stop(_STOP_SECONDS)
        identity = copy_id(self.state)
        left = CgroupTree(identity).remove()
        if left:
            raise LocalStackError(f"cgroup {left[0]} cannot be removed: something still runs in it (see its cgroup.procs)")
        remove_host_end(f"ty-{identity}")

    @contextlib.contextmanager
    def _lock(self) -> Generator[None]:
        """One start or stop at a time for one state folder."""
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
