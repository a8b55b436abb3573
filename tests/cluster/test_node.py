"""A running node: what pods, their network and their volumes do. Only a real kubelet, runtime and kernel can show it."""

import http.server
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from kubernetes.stream import portforward

from local.node import Node, add_fake_nodes, remove_fake_nodes
from local.node.daemon import DaemonStatus
from tests.cluster.nodes import (
    PROBE_IMAGE,
    Pods,
    cluster_binaries,
    node_folder,
    probe_archive,
    probe_container,
    progress,
    require_root,
    wait_for,
)

pytestmark = pytest.mark.cluster

LABELS = {"topology.kubernetes.io/zone": "eu-west-1a", "example.org/pool": "system"}
IDLE_LIMIT_BYTES = 1.5 * 2**30


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Generator[Node]:
    require_root()
    trainer_env = tmp_path_factory.mktemp("trainer")
    (trainer_env / "marker").write_text("training environment")
    with node_folder() as state:
        one = Node(state, cluster_binaries(), trainer_env=trainer_env, labels=LABELS)
        try:
            one.start(progress(state))
            one.import_images([probe_archive(tmp_path_factory.mktemp("image"))])
            yield one
        finally:
            one.destroy()


@pytest.fixture(scope="module")
def pods(node: Node) -> Pods:
    return Pods(node)


def test_the_node_is_ready_with_its_labels_and_room_for_pods(node: Node) -> None:
    found = node.api().get(f"/api/v1/nodes/{node.name}")
    assert found["metadata"]["labels"].items() >= LABELS.items()
    assert {"cpu", "memory", "pods", "ephemeral-storage"} <= set(found["status"]["allocatable"])
    assert not found["spec"].get("taints"), "a taint that is never lifted would keep every pod away"
    assert node.status().ready


def test_the_idle_daemons_are_small(node: Node) -> None:
    assert 0 < node.status().memory_bytes < IDLE_LIMIT_BYTES


def test_starting_a_running_node_takes_no_time_and_changes_nothing(node: Node) -> None:
    before = node.supervisor()
    begin = time.monotonic()
    node.start(progress(node.state))
    assert time.monotonic() - begin < 1.0
    assert node.supervisor() == before


def test_labels_that_are_no_longer_wanted_go(node: Node) -> None:
    fewer = Node(node.state, node.binaries, trainer_env=node.trainer_env, labels={"example.org/pool": "other"})
    fewer.start(progress(node.state))
    labels = node.api().get(f"/api/v1/nodes/{node.name}")["metadata"]["labels"]
    assert labels["example.org/pool"] == "other"
    assert "topology.kubernetes.io/zone" not in labels
    assert labels["kubernetes.io/hostname"] == node.name, "labels of the kubelet are not ours to remove"
    node.start(progress(node.state))


def test_a_pod_runs_to_its_end_and_its_log_can_be_read(pods: Pods) -> None:
    pods.run("speaker", "say", "loss falls")
    pods.wait("speaker", "Succeeded")
    assert pods.log("speaker") == "loss falls\n"


def test_commands_and_ports_of_a_pod_are_reached_through_the_api_server(pods: Pods) -> None:
    pods.serve("reached")
    assert pods.execute("reached", "say", "inside") == "inside\n"
    forward = portforward(pods.core.connect_get_namespaced_pod_portforward, "reached", "default", ports="8080")
    connection = forward.socket(8080)
    connection.setblocking(True)
    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
    answer = b""
    while chunk := connection.recv(1024):
        answer += chunk
    assert answer.endswith(b"reached")


def test_pods_find_each_other_by_name_even_before_they_are_ready(pods: Pods) -> None:
    """MPI and torch rendezvous look up peers' names through a headless service while the peers still start."""
    pods.service("ranks", clusterIP="None", publishNotReadyAddresses=True, selector={"app": "rank-0"}, ports=[{"port": 8080}])
    pods.run("rank-0", "serve", hostname="rank-0", subdomain="ranks", containers=[_never_ready("rank-0")])
    address = pods.wait("rank-0", "Running")["status"]["podIP"]
    pods.serve("asker")
    assert wait_for("address", lambda: _is(pods.execute("asker", "resolve", "rank-0.ranks"), address))
    assert pods.execute("asker", "resolve", "ranks.default.svc.cluster.local") == address
    assert pods.execute("asker", "get", "http://rank-0.ranks:8080") == "rank-0"


def test_a_name_outside_the_cluster_is_refused_at_once(pods: Pods) -> None:
    pods.serve("curious")
    begin = time.monotonic()
    assert "no such host" in pods.execute("curious", "resolve", "example.org")
    assert time.monotonic() - begin < 3.0


def test_a_service_address_leads_to_its_pods_and_back_to_the_asking_pod(node: Node, pods: Pods) -> None:
    address = pods.service("served", ports=[{"port": 80, "targetPort": 8080}])["spec"]["clusterIP"]
    pods.serve("served")
    pods.serve("visitor")
    assert wait_for("service", lambda: _is(pods.execute("visitor", "get", f"http://{address}"), "served"))
    assert pods.execute("served", "get", f"http://{address}") == "served", "a pod must reach itself through its service"
    # The API server calls webhooks from the node itself.
    read = f"import urllib.request; print(urllib.request.urlopen('http://{address}', timeout=5).read().decode())"
    assert node.enter([sys.executable, "-c", read]).stdout == "served\n"
    # Its certificate is of an authority that the probe does not know; only the API server would show it.
    assert "unknown authority" in pods.execute("visitor", "get", "https://kubernetes:443/healthz")


def test_pods_reach_the_host_and_the_host_reaches_the_api_server(node: Node, pods: Pods) -> None:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"host sees {self.client_address[0]}".encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((node.host_ip, 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        pods.serve("caller")
        assert pods.execute("caller", "get", f"http://{node.host_ip}:{server.server_address[1]}") == f"host sees {node.node_ip}"
        server.shutdown()


def test_every_container_sees_the_training_environment_and_cannot_write_to_it(pods: Pods) -> None:
    pods.serve("trainer")
    assert "read-only" in pods.execute("trainer", "touch", "/opt/trainyard/env/scratch")
    assert pods.execute("trainer", "touch", "/scratch") == ""
    assert pods.execute("trainer", "cat", "/opt/trainyard/env/marker") == "training environment"


def test_a_volume_of_a_shared_file_system_outlives_the_pods_that_use_it(node: Node, pods: Pods) -> None:
    driver = {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-0123456789abcdef0", "volumeAttributes": {"dnsname": "x", "mountname": "y"}}
    size, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    claim_of = {"claimRef": {"namespace": "default", "name": "shared"}, "storageClassName": ""}
    volume = {"capacity": size, "accessModes": modes, "csi": driver, "persistentVolumeReclaimPolicy": "Retain", **claim_of}
    claim = {"accessModes": modes, "resources": {"requests": size}, "storageClassName": "", "volumeName": "shared"}
    pods.api.create("/api/v1/persistentvolumes", {"metadata": {"name": "shared"}, "spec": volume})
    pods.api.create("/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "shared"}, "spec": claim})
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]
    for name, words in (("writer", ("touch", "/data/checkpoint")), ("reader", ("cat", "/data/checkpoint"))):
        pods.run(name, containers=[{**probe_container(*words), **mounts}], volumes=volumes)
        pods.wait(name, "Succeeded")
    assert list(node.state.glob("volumes/**/checkpoint")), "the contents lie below the node's state folder"


def test_a_daemon_that_dies_comes_back(node: Node) -> None:
    before = node.status().daemons["kube-scheduler"]
    assert node.enter(["/bin/kill", "-9", str(before.pid)]).returncode == 0
    wait_for("new scheduler", lambda: _is_another(node.status().daemons["kube-scheduler"], before))
    after = node.status().daemons["kube-scheduler"]
    assert after.restarts == before.restarts + 1
    assert after.last_exit == "signal SIGKILL"


def test_an_image_is_imported_once(node: Node, tmp_path: Path) -> None:
    assert PROBE_IMAGE in node.images()
    assert node.import_images([probe_archive(tmp_path)]) == [], "the same contents have the same digest and are there already"


def test_pods_run_on_fake_nodes_and_go_with_them(node: Node, pods: Pods) -> None:
    api = node.api()
    capacity = {"cpu": 190, "memory": "1900Gi", "pods": 110, "nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}
    taints = [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]
    names = add_fake_nodes(api, "p5.48xlarge", 2, labels={"pool": "gpu"}, taints=taints, capacity=capacity)
    try:
        container = {
            "name": "train",
            "image": "example.org/none:1",
            "resources": {"limits": {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}},
        }
        for name in ("gang-0", "gang-1", "gang-2"):
            pods.run(name, containers=[container], nodeSelector={"pool": "gpu"}, tolerations=[{"operator": "Exists"}])
        running = wait_for("two running pods", lambda: _exactly(2, pods.running("gang-")))
        assert sorted(pod["spec"]["nodeName"] for pod in running) == names, "eight GPUs a node: one pod each, the third waits"
        api.delete(f"{pods.path}/{running[0]['metadata']['name']}")
        wait_for("third pod to take the place", lambda: pods.running("gang-2"))
    finally:
        assert sorted(remove_fake_nodes(api, "p5.48xlarge")) == names
    wait_for("end of the pods", lambda: not pods.running("gang-"))
    assert node.status().ready, "the real node is none of kwok's business"


def _never_ready(name: str) -> dict[str, object]:
    return {**probe_container("serve"), "name": name, "readinessProbe": {"httpGet": {"path": "/", "port": 1}, "periodSeconds": 1}}


def _is(found: str, wanted: str) -> bool:
    return found == wanted


def _is_another(daemon: DaemonStatus, before: DaemonStatus) -> bool:
    return daemon.ready and daemon.pid != before.pid


def _exactly(count: int, found: list) -> list:
    return found if len(found) == count else []
