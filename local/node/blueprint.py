"""From a node's settings to the files it reads and the spec its supervisor runs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.node import layout
from local.node.cgroup import CgroupTree
from local.node.control_plane import control_plane
from local.node.csi import csi_drivers
from local.node.kubeconfig import write_kubeconfig
from local.node.network import Link, load_or_choose_link
from local.node.pki import Pki, subjects
from local.node.requirements import known_binaries
from local.node.runtime import choose_snapshotter, file_system, runtime_files
from local.node.simulator import simulator, simulator_files
from local.node.spec import DaemonSpec, SupervisorSpec
from local.node.worker import worker, worker_files
from local.paths import copy_id

NODE_NAME = "trainyard-local"

DISK_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs"})
"""Those whose block device the kubelet can name."""

# Clients inside stay clear of the service address, which needs kube-proxy to work.
_INSIDE_SERVER = f"https://127.0.0.1:{layout.API_PORT}"


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    """Settings of one node."""

    state: Path
    binaries: Mapping[str, Path]
    trainer_env: Path | None

    @property
    def copy_id(self) -> str:
        return copy_id(self.state)

    def prepare(self) -> SupervisorSpec:
        """Write certificates and configuration below the state folder and return what to run. Equal settings give an equal spec.

        Raises:
            LocalStackError: no network is free, or a tool is missing or broken.
        """
        host = layout.Layout(self.state)
        for folder in (host.config / "cni", host.logs, host.kubelet, host.containerd, host.volumes, host.etcd):
            folder.mkdir(parents=True, exist_ok=True)
        # etcd asks for a folder that is nobody else's.
        host.etcd.chmod(0o700)
        link = load_or_choose_link(host.network, self.copy_id)
        self._write_pki(host, link)
        files = self._files()
        for name, text in files.items():
            write_if_changed(host.config / name, text)
        return SupervisorSpec(
            state=str(self.state),
            copy_id=self.copy_id,
            node_name=NODE_NAME,
            host_ip=link.host_ip,
            node_ip=link.node_ip,
            interface=link.interface,
            binaries={name: str(path) for name, path in known_binaries(self.binaries).items()},
            trainer_env=str(self.trainer_env) if self.trainer_env else None,
            daemons=self._daemons(link),
            inputs=_digest(files, host.pki),
        )

    def _write_pki(self, host: layout.Layout, link: Link) -> None:
        pki = Pki(host.pki)
        pki.ensure(subjects(NODE_NAME, link.node_ip))
        for user in ("controller-manager", "scheduler", "kubelet", "proxy", "coredns", "kwok"):
            write_kubeconfig(host.pki / f"{user}.kubeconfig", pki, server=_INSIDE_SERVER, user=user)
        write_kubeconfig(host.kubeconfig, pki, server=f"https://{link.node_ip}:{layout.API_PORT}", user="admin")

    def _files(self) -> Mapping[str, str]:
        inside = layout.Layout(layout.STATE)
        kind = file_system(self.state)
        return {
            **worker_files(NODE_NAME, inside, CgroupTree(self.copy_id).name, local_storage=kind in DISK_FILE_SYSTEMS),
            **runtime_files(inside, self.binaries["ctr"], trainer_env=self.trainer_env is not None, snapshotter=choose_snapshotter(kind)),
            **simulator_files(),
        }

    def _daemons(self, link: Link) -> tuple[DaemonSpec, ...]:
        inside = layout.Layout(layout.STATE)
        present = known_binaries(self.binaries)
        daemons = [*control_plane(link, inside), *worker(NODE_NAME, link, inside)]
        if "kwok" in present:
            daemons.append(simulator(inside, link.node_ip))
        if "csi-node" in present:
            daemons += csi_drivers(NODE_NAME, inside)
        return tuple(daemons)


def write_if_changed(path: Path, text: str) -> None:
    """Write `text` to `path` unless it is there: some daemons end when a file of theirs is written."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _digest(files: Mapping[str, str], pki: Path) -> str:
    digest = hashlib.sha256()
    for name, text in sorted(files.items()):
        digest.update(f"{name}\0{text}\0".encode())
    for certificate in sorted(pki.glob("*.crt")):
        digest.update(certificate.read_bytes())
    return digest.hexdigest()
