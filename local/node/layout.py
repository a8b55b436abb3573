"""Where a node keeps its files: on the host below its state folder, and at fixed short paths inside its mount namespace."""

from dataclasses import dataclass
from pathlib import Path

# Fixed inside the namespaces, so two copies never meet and no socket path comes near the limit of 107 bytes.
STATE = Path("/run/node")
BIN = Path("/run/bin")
TRAINER_ENV = Path("/run/trainer-env")
CONTAINERD_SOCKET = Path("/run/containerd/containerd.sock")
# The kubelet's device manager accepts no other folder.
KUBELET_ROOT = Path("/var/lib/kubelet")

# Where containers see the training environment.
TRAINER_ENV_IN_POD = Path("/opt/trainyard/env")

POD_CIDR = "10.244.0.0/24"
POD_GATEWAY = "10.244.0.1"
SERVICE_CIDR = "10.96.0.0/16"
SERVICE_API = "10.96.0.1"
SERVICE_DNS = "10.96.0.10"
API_PORT = 6443


@dataclass(frozen=True)
class Layout:
    """Paths of one node. `root` is its state folder as the reader sees it: the host's, or `STATE` inside."""

    root: Path

    @property
    def pki(self) -> Path:
        """Certificates, keys and kubeconfigs; readable by root only."""
        return self.root / "pki"

    @property
    def config(self) -> Path:
        """Configuration files written anew by each start."""
        return self.root / "config"

    @property
    def logs(self) -> Path:
        """One log per daemon, and the supervisor's own."""
        return self.root / "logs"

    @property
    def etcd(self) -> Path:
        return self.root / "etcd"

    @property
    def containerd(self) -> Path:
        """Images and snapshots."""
        return self.root / "containerd"

    @property
    def kubelet(self) -> Path:
        """Seen as `KUBELET_ROOT` inside."""
        return self.root / "kubelet"

    @property
    def volumes(self) -> Path:
        """Folders that stand in for file systems, one per volume handle."""
        return self.root / "volumes"

    @property
    def spec(self) -> Path:
        """What the supervisor was told to run."""
        return self.root / "spec.json"

    @property
    def status(self) -> Path:
        """What the supervisor says of its daemons."""
        return self.root / "status.json"

    @property
    def network(self) -> Path:
        """The chosen addresses, kept over restarts."""
        return self.root / "network.json"

    @property
    def pid(self) -> Path:
        """The supervisor."""
        return self.root / "supervisor.pid"

    @property
    def init_pid(self) -> Path:
        """Process 1 of the node, as the host sees it."""
        return self.root / "init.pid"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.pki / "admin.kubeconfig"

    def log(self, daemon: str) -> Path:
        return self.logs / f"{daemon}.log"
