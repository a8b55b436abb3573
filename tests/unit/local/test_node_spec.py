"""What a supervisor is told to run: the daemons' order, their paths, and the file that carries it."""

from pathlib import Path

import pytest

from local.node import layout
from local.node.control_plane import control_plane
from local.node.csi import csi_drivers
from local.node.network import Link
from local.node.runtime import containerd_toml
from local.node.simulator import pod_stages, simulator
from local.node.spec import DaemonSpec, Probe, SupervisorSpec
from local.node.worker import corefile, kubelet_config, proxy_config, worker

pytestmark = pytest.mark.unit

INSIDE = layout.Layout(layout.STATE)
LINK = Link(interface="ty-0000000a", host_ip="10.213.0.1", node_ip="10.213.0.2")
# The longest unix socket path that Linux takes, without the final zero.
SOCKET_LIMIT = 107


def all_daemons() -> list[DaemonSpec]:
    return [*control_plane(LINK, INSIDE), *worker("node", LINK, INSIDE), simulator(INSIDE, LINK.node_ip), *csi_drivers("node", INSIDE)]


def spec(**changes: object) -> SupervisorSpec:
    fields = {
        "state": "/state",
        "copy_id": "0000000a",
        "node_name": "node",
        "host_ip": LINK.host_ip,
        "node_ip": LINK.node_ip,
        "interface": LINK.interface,
        "binaries": {"etcd": "/bin/etcd"},
        "trainer_env": None,
        "daemons": tuple(all_daemons()),
        "inputs": "x",
    }
    return SupervisorSpec(**{**fields, **changes})  # ty: ignore[invalid-argument-type]


def test_a_spec_survives_its_file(tmp_path: Path) -> None:
    spec().write(tmp_path / "spec.json")
    assert SupervisorSpec.read(tmp_path / "spec.json") == spec()


@pytest.mark.parametrize("change", [{"trainer_env": "/env"}, {"inputs": "y"}, {"binaries": {"etcd": "/other"}}, {"daemons": ()}])
def test_whatever_changes_what_runs_changes_the_digest(change: dict[str, object]) -> None:
    assert spec(**change).digest() != spec().digest()


def test_a_file_that_is_no_spec_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text('{"daemons": [{"name": "etcd"}]}')
    with pytest.raises(ValueError, match="holds no supervisor spec"):
        SupervisorSpec.read(path)


@pytest.mark.parametrize("fields", [{}, {"url": "http://x", "unix": "/x"}])
def test_a_probe_looks_at_exactly_one_thing(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="either url or unix"):
        Probe(**fields)


def test_every_daemon_waits_only_for_daemons_that_come_before_it() -> None:
    seen: set[str] = set()
    for daemon in all_daemons():
        assert set(daemon.after) <= seen, daemon.name
        assert daemon.name not in seen
        seen.add(daemon.name)


def test_daemons_listen_on_different_ports() -> None:
    urls = [daemon.probe.url for daemon in all_daemons() if daemon.probe.url]
    assert len(set(urls)) == len(urls)


def test_no_word_of_a_daemon_names_a_path_of_the_host() -> None:
    for daemon in all_daemons():
        for path in (word.partition("=")[2] or word for word in daemon.argv):
            assert not path.startswith("/") or path.startswith(("/run/", "/var/lib/kubelet")), f"{daemon.name}: {path}"


def test_socket_paths_are_short_whatever_the_state_folder() -> None:
    sockets = [daemon.probe.unix for daemon in all_daemons() if daemon.probe.unix]
    assert len(sockets) == 3
    assert all(len(socket) < SOCKET_LIMIT for socket in sockets)


def test_the_api_server_checks_clients_and_reaches_the_node_by_address() -> None:
    (api,) = [daemon for daemon in all_daemons() if daemon.name == "kube-apiserver"]
    assert "--authorization-mode=Node,RBAC" in api.argv
    assert "--advertise-address=10.213.0.2" in api.argv
    assert "--kubelet-preferred-address-types=InternalIP" in api.argv


def test_the_kubelet_trusts_nobody_unknown_and_keeps_to_its_cgroup() -> None:
    config = kubelet_config(INSIDE, "/trainyard-0000000a", local_storage=True)
    assert config["authentication"] == {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True},
        "x509": {"clientCAFile": "/run/node/pki/ca.crt"},
    }
    assert config["cgroupRoot"] == "/trainyard-0000000a"
    assert config["imageGCHighThresholdPercent"] == 100, "a collected image could not be had again"


def test_the_proxy_leaves_settings_of_the_whole_machine_alone() -> None:
    assert proxy_config("node", INSIDE)["conntrack"] == {
        "maxPerCore": 0,
        "min": 0,
        "tcpEstablishedTimeout": "0s",
        "tcpCloseWaitTimeout": "0s",
    }


def test_dns_listens_where_the_kubelet_sends_pods() -> None:
    config = kubelet_config(INSIDE, "/x", local_storage=True)
    assert config["clusterDNS"] == [layout.SERVICE_DNS]
    assert corefile(INSIDE).count(f"bind {layout.SERVICE_DNS}\n") == 2


def test_containerd_runs_where_negative_scores_are_refused_and_leaves_no_profile() -> None:
    text = containerd_toml(INSIDE, Path("/cni"), "overlayfs")
    assert "restrict_oom_score_adj = true" in text
    assert "disable_apparmor = true" in text


def test_pods_on_fake_nodes_run_until_they_are_deleted() -> None:
    run, delete = (stage["spec"] for stage in pod_stages())
    assert "phase: Running" in run["next"]["statusTemplate"]
    assert delete["next"]["delete"] is True
    assert len(pod_stages()) == 2, "a stage that completes pods would end gangs by itself"
