"""What a machine must have to run a node, checked before anything is started."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from local.errors import LocalStackError
from local.node.runtime import find_cni_folder

REQUIRED_BINARIES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "coredns",
    "pause",
)
OPTIONAL_BINARIES = ("kwok", "csi-node")

_ALTERNATIVE = "Or use a cluster that exists (kind, k3d, ...): set `trainyard:kubernetes` to `{kubeconfig: <path>}`."
_HOST_TOOLS = {"runc": "runc", "ip": "iproute2", "iptables": "iptables", "nsenter": "util-linux", "mount": "mount"}
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def check_machine(binaries: Mapping[str, Path], *, platform: str = sys.platform, user_id: int | None = None) -> None:
    """Check system, rights, tools of the distribution and our own binaries.

    Raises:
        LocalStackError: something is missing; the message says what, and which other way there is.
    """
    if platform != "linux":
        raise LocalStackError(f"the local Kubernetes node needs Linux; this is {platform}. {_ALTERNATIVE}")
    if (os.geteuid() if user_id is None else user_id) != 0:
        raise LocalStackError(f"the local Kubernetes node needs root, to make namespaces and mounts. {_ALTERNATIVE}")
    path = os.pathsep.join([os.environ.get("PATH", ""), *_SYSTEM_FOLDERS])
    packages = [package for tool, package in _HOST_TOOLS.items() if shutil.which(tool, path=path) is None]
    if packages:
        raise LocalStackError(
            f"the local Kubernetes node needs these Debian packages: `apt-get install {' '.join(packages)}`. {_ALTERNATIVE}"
        )
    find_cni_folder()
    missing = [name for name in REQUIRED_BINARIES if name not in binaries or not binaries[name].is_file()]
    if missing:
        raise LocalStackError(f"the local Kubernetes node misses the binaries {', '.join(missing)}: run `make setup`. {_ALTERNATIVE}")


def known_binaries(binaries: Mapping[str, Path]) -> dict[str, Path]:
    """Those of `binaries` that a node uses, optional ones only where the file exists."""
    wanted = {name: binaries[name] for name in (*REQUIRED_BINARIES, *OPTIONAL_BINARIES) if name in binaries}
    return {name: path for name, path in wanted.items() if path.is_file()}
