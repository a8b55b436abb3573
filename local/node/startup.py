"""From a launched supervisor to a node that takes pods."""

import contextlib
import datetime
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from local.errors import LocalStackError
from local.images.layer import file
from local.images.oci import ImageConfig, write_archive
from local.node import layout
from local.node.api import ApiError, KubernetesApi
from local.node.blueprint import NODE_NAME
from local.node.csi import apply_csi_drivers
from local.node.rbac import apply_rbac
from local.node.requirements import known_binaries
from local.node.runtime import PAUSE_IMAGE

if TYPE_CHECKING:
    from local.node.node import Node

_TIMEOUT_SECONDS = 180.0
_POLL_SECONDS = 0.2
_GIVE_UP_RESTARTS = 4
# Pods cannot be created before it is there.
_ACCOUNT_PATH = "/api/v1/namespaces/default/serviceaccounts/default"
_NODE_PATH = f"/api/v1/nodes/{NODE_NAME}"


class Startup:
    """Waits for a node's daemons in the order they depend on what is set up here."""

    def __init__(self, node: "Node", paths: layout.Layout) -> None:
        self._node = node
        self._paths = paths
        # Whole seconds, as the kubelet's reports have it.
        self._begin = datetime.datetime.fromtimestamp(int(paths.pid.stat().st_mtime), datetime.UTC)
        self._deadline = time.monotonic() + _TIMEOUT_SECONDS

    def finish(self) -> None:
        """Set up what the cluster needs and return when the node is ready.

        Raises:
            LocalStackError: the supervisor ended, a daemon keeps failing, or the time is up.
        """
        self._wait("containerd", lambda: self._is_ready("containerd"))
        self._import_sandbox_image()
        self._wait("kube-apiserver", lambda: self._is_ready("kube-apiserver"))
        api = self._node.api()
        self._wait("kube-apiserver", lambda: _succeeds(lambda: apply_rbac(api)))
        if "csi-node" in known_binaries(self._node.binaries):
            apply_csi_drivers(api)
        self._wait("", lambda: self._node.status().ready)
        self._wait("kubelet", lambda: node_is_ready(api, since=self._begin))
        self._wait("kube-controller-manager", lambda: _succeeds(lambda: api.get(_ACCOUNT_PATH)))

    def _import_sandbox_image(self) -> None:
        archive = self._paths.config / "pause.tar"
        layer = [file("/pause", self._node.binaries["pause"], mode=0o755)]
        write_archive(archive, references=[PAUSE_IMAGE], layers=[layer], config=ImageConfig(entrypoint=["/pause"], user="65535"))
        # The socket is there a moment before the services behind it.
        self._wait("containerd", lambda: _succeeds(lambda: self._node.import_images([archive])))

    def _is_ready(self, daemon: str) -> bool:
        found = self._node.status().daemons.get(daemon)
        return found is not None and found.ready

    def _wait(self, daemon: str, done: Callable[[], bool]) -> None:
        while not done():
            self._check_alive()
            if time.monotonic() > self._deadline:
                waited_for = daemon or ", ".join(name for name, status in self._node.status().daemons.items() if not status.ready)
                raise self._failure(f"not ready after {_TIMEOUT_SECONDS:.0f} s: {waited_for}", waited_for.partition(",")[0] or "supervisor")
            time.sleep(_POLL_SECONDS)

    def _check_alive(self) -> None:
        if self._node.supervisor() is None:
            raise self._failure("its supervisor ended", "supervisor")
        for name, status in self._node.status().daemons.items():
            if status.restarts >= _GIVE_UP_RESTARTS and not status.ready:
                raise self._failure(f"{name} ended {status.restarts} times, last with {status.last_exit}", name)

    def _failure(self, what: str, daemon: str) -> LocalStackError:
        log = self._paths.log(daemon)
        with contextlib.suppress(FileNotFoundError):
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
            return LocalStackError(f"the Kubernetes node did not start: {what}\n{tail}", log=log)
        return LocalStackError(f"the Kubernetes node did not start: {what}", log=log)


def node_is_ready(api: KubernetesApi, *, since: datetime.datetime | None = None) -> bool:
    """True where the kubelet says so, and has said so after `since`: an object in the store may tell of an earlier life."""
    try:
        node = api.get(_NODE_PATH)
    except ApiError:
        return False
    # The controller manager lifts this one a moment after the kubelet's report.
    if any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", [])):
        return False
    for condition in node["status"].get("conditions", []):
        if condition["type"] == "Ready":
            heard = datetime.datetime.fromisoformat(condition["lastHeartbeatTime"])
            return condition["status"] == "True" and (since is None or heard >= since)
    return False


def apply_labels(api: KubernetesApi, labels: Mapping[str, str], record: Path) -> None:
    """Give the node exactly these labels beside its own; those of an earlier call that are no longer wanted go. Raises ApiError."""
    previous: list[str] = []
    with contextlib.suppress(FileNotFoundError, ValueError):
        previous = json.loads(record.read_text())
    change = {**dict.fromkeys(previous), **labels}
    if change:
        api.merge(_NODE_PATH, {"metadata": {"labels": change}})
    record.write_text(json.dumps(sorted(labels)))


def _succeeds(action: Callable[[], object]) -> bool:
    try:
        action()
    except LocalStackError:
        return False
    return True
