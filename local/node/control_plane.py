"""Command lines of etcd, the API server, the controller manager and the scheduler."""

from collections.abc import Mapping

from local.node import layout
from local.node.network import Link
from local.node.spec import DaemonSpec, Probe

# A collector that runs more often keeps the idle cluster small; the limits are soft, so a busy one just works harder.
_SMALL = {"GOGC": "50"}


def control_plane(link: Link, inside: layout.Layout) -> tuple[DaemonSpec, ...]:
    """The daemons that make an API server with working controllers."""
    return (_etcd(inside), _apiserver(link, inside), _controller_manager(inside), _scheduler(inside))


def _etcd(inside: layout.Layout) -> DaemonSpec:
    client, peer, metrics = "http://127.0.0.1:2379", "http://127.0.0.1:2380", "http://127.0.0.1:2381"
    flags = {
        "name": "node",
        "data-dir": str(inside.etcd),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"node={peer}",
        "listen-metrics-urls": metrics,
        # A crash of the machine may cost the local cluster its newest writes; waiting for the disk would cost each start seconds.
        "unsafe-no-fsync": "true",
        "auto-compaction-mode": "periodic",
        "auto-compaction-retention": "10m",
        # Not the default 100,000: the log of a small cluster stays small in memory.
        "snapshot-count": "5000",
        "log-level": "warn",
    }
    return DaemonSpec(name="etcd", argv=_argv("etcd", flags), probe=Probe(url=f"{metrics}/readyz"), env=_SMALL)


def _apiserver(link: Link, inside: layout.Layout) -> DaemonSpec:
    pki = inside.pki
    flags = {
        "advertise-address": link.node_ip,
        "secure-port": str(layout.API_PORT),
        "etcd-servers": "http://127.0.0.1:2379",
        "client-ca-file": pki / "ca.crt",
        "tls-cert-file": pki / "apiserver.crt",
        "tls-private-key-file": pki / "apiserver.key",
        "kubelet-certificate-authority": pki / "ca.crt",
        "kubelet-client-certificate": pki / "apiserver-kubelet-client.crt",
        "kubelet-client-key": pki / "apiserver-kubelet-client.key",
        # Logs and exec go to the node's address: nothing resolves its name.
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": pki / "service-account.pub",
        "service-account-signing-key-file": pki / "service-account.key",
        "service-cluster-ip-range": layout.SERVICE_CIDR,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "profiling": "false",
        "shutdown-delay-duration": "0s",
    }
    url = f"https://127.0.0.1:{layout.API_PORT}/readyz"
    argv = _argv("kube-apiserver", flags)
    return DaemonSpec(name="kube-apiserver", argv=argv, probe=Probe(url=url), after=("etcd",), env=_SMALL, stop_seconds=2.0)


def _controller_manager(inside: layout.Layout) -> DaemonSpec:
    pki = inside.pki
    flags = {
        **_client(inside, "controller-manager"),
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "root-ca-file": pki / "ca.crt",
        "cluster-signing-cert-file": pki / "ca.crt",
        "cluster-signing-key-file": pki / "ca.key",
        "service-account-private-key-file": pki / "service-account.key",
        "use-service-account-credentials": "true",
        # Addresses of pods come from the node's own CNI configuration.
        "controllers": "*,-node-ipam-controller,-node-route-controller",
        "profiling": "false",
        "flex-volume-plugin-dir": layout.KUBELET_ROOT / "plugins-exec",
        "kube-api-qps": "100",
        "kube-api-burst": "200",
    }
    probe = Probe(url="https://127.0.0.1:10257/healthz")
    argv = _argv("kube-controller-manager", flags)
    return DaemonSpec(name="kube-controller-manager", argv=argv, probe=probe, after=("kube-apiserver",), env=_SMALL)


def _scheduler(inside: layout.Layout) -> DaemonSpec:
    flags = {
        **_client(inside, "scheduler"),
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "profiling": "false",
        "kube-api-qps": "200",
        "kube-api-burst": "400",
    }
    probe = Probe(url="https://127.0.0.1:10259/healthz")
    return DaemonSpec(name="kube-scheduler", argv=_argv("kube-scheduler", flags), probe=probe, after=("kube-apiserver",), env=_SMALL)


def _client(inside: layout.Layout, user: str) -> dict[str, object]:
    kubeconfig = inside.pki / f"{user}.kubeconfig"
    return {"kubeconfig": kubeconfig, "authentication-kubeconfig": kubeconfig, "authorization-kubeconfig": kubeconfig}


def _argv(binary: str, flags: Mapping[str, object]) -> tuple[str, ...]:
    return (str(layout.BIN / binary), *(f"--{name}={value}" for name, value in flags.items()))
