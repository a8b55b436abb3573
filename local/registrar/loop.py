"""The registrar's loop: look at both sides, change what differs, and give up when one of them stays away."""

import socket
import time
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Protocol

from local.node.api import ApiError
from local.node.csi import register_csi_node
from local.registrar.instance import Instance
from local.registrar.plan import INSTANCE_ANNOTATION, Json, Plan, plan

NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODES = "/api/v1/nodes"


class Cluster(Protocol):
    """What is needed of `KubernetesApi`."""

    def get(self, path: str) -> Json: ...

    def create(self, path: str, body: Json) -> Json: ...

    def merge(self, path: str, body: Json) -> Json: ...

    def delete(self, path: str) -> None: ...


class Registrar:
    """One round of work at a time. `instances` asks the cloud; `report` gets a line for each change."""

    def __init__(self, cluster: Cluster, instances: Callable[[], Sequence[Instance]], report: Callable[[str], None]) -> None:
        self._cluster, self._instances, self._report = cluster, instances, report

    def step(self) -> Plan:
        """Look and change. Raises what the cluster or the cloud raises."""
        claims = self._claims()
        nodes = self._cluster.get(NODES)["items"]
        if not claims and not any(INSTANCE_ANNOTATION in node["metadata"].get("annotations", {}) for node in nodes):
            return Plan(create=(), delete=(), taints={})
        change = plan(claims, nodes, self._instances())
        for node in change.create:
            self._create(node)
        for name in change.delete:
            self._cluster.delete(f"{NODES}/{name}")
            self._report(f"node {name} removed: its instance has ended")
        for name, taints in change.taints.items():
            self._cluster.merge(f"{NODES}/{name}", {"spec": {"taints": list(taints)}})
            self._report(f"node {name}: startup taints removed")
        return change

    def _claims(self) -> list[Json]:
        try:
            return self._cluster.get(NODE_CLAIMS)["items"]
        except ApiError as error:
            # Karpenter's resources come with the platform; until then there is nothing to register.
            if error.status != 404:
                raise
            return []

    def _create(self, node: Json) -> None:
        name = node["metadata"]["name"]
        try:
            register_csi_node(self._cluster, self._cluster.create(NODES, node))
        except ApiError as error:
            # A Node of an earlier instance with the same address, on its way out: the next round finds the name free.
            if error.status != 409:
                raise
            self._report(f"node {name} is still there, waiting for it to go")
        else:
            self._report(f"node {name} registered for {node['metadata']['annotations'][INSTANCE_ANNOTATION]}")


def run(
    registrar: Registrar,
    *,
    reachable: Callable[[], None],
    patience_seconds: float,
    interval_seconds: float,
    report: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Work until every round of `patience_seconds` has failed. `reachable` raises where the cloud does not answer."""
    last_success, last_error = clock(), ""
    while clock() - last_success < patience_seconds:
        try:
            reachable()
            registrar.step()
            last_success, last_error = clock(), ""
        # Whatever boto3, the API server or the network answers: the next round tries again until patience ends.
        except Exception as error:
            if str(error) != last_error:
                last_error = str(error)
                report(f"{type(error).__name__}: {error}")
        sleep(interval_seconds)
    report(f"nothing to register with for {patience_seconds:.0f} s: {last_error}")


def answers(endpoint: str) -> None:
    """Raise where nothing accepts connections at `endpoint`."""
    url = urllib.parse.urlsplit(endpoint)
    socket.create_connection((url.hostname, url.port or 80), timeout=5).close()
