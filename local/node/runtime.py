"""Configuration of containerd: its paths, the base specification of every container, and the pod network."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from local.errors import LocalStackError
from local.node import layout

PAUSE_IMAGE = "trainyard.local/pause:1"
"""Image of every pod's sandbox. It is made here and imported before the first pod starts."""

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
_CNI_PLUGINS = ("ptp", "host-local", "portmap")


def runtime_files(inside: layout.Layout, ctr: Path, *, trainer_env: bool, snapshotter: str) -> Mapping[str, str]:
    """Name in the configuration folder -> text."""
    return {
        "containerd.toml": containerd_toml(inside, find_cni_folder(), snapshotter),
        "base-spec.json": json.dumps(base_spec(ctr, trainer_env=trainer_env), indent=1),
        "cni/10-pods.conflist": json.dumps(pod_network(), indent=1),
    }


def containerd_toml(inside: layout.Layout, cni: Path, snapshotter: str) -> str:
    """containerd's configuration, version 3."""
    return f"""version = 3
root = "{inside.containerd}"
state = "{layout.CONTAINERD_SOCKET.parent}"

[grpc]
address = "{layout.CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "{snapshotter}"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
# A negative score is refused to us on some machines, and then no sandbox starts.
restrict_oom_score_adj = true
# A profile would be loaded into the host's kernel and stay there.
disable_apparmor = true
max_container_log_line_size = 262144
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{cni}"]
conf_dir = "{inside.config / "cni"}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
base_runtime_spec = "{inside.config / "base-spec.json"}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def base_spec(ctr: Path, *, trainer_env: bool) -> dict[str, object]:
    """What every container starts from: containerd's own default, the training environment mounted read-only if there is one.

    Raises:
        LocalStackError: `ctr` does not print its default.
    """
    result = subprocess.run([ctr, "oci", "spec"], capture_output=True, text=True, check=False)
    try:
        spec = json.loads(result.stdout)
        # The default allows 1024 open files; without it a container gets what the supervisor gave to containerd.
        spec["process"].pop("rlimits", None)
    except (ValueError, KeyError) as error:
        raise LocalStackError(f"`{ctr} oci spec` printed no container specification: {result.stderr.strip() or error}") from error
    if trainer_env:
        mount = {
            "destination": str(layout.TRAINER_ENV_IN_POD),
            "type": "bind",
            "source": str(layout.TRAINER_ENV),
            "options": ["rbind", "ro", "nosuid", "nodev"],
        }
        spec["mounts"].append(mount)
    return spec


def pod_network() -> dict[str, object]:
    """CNI configuration list. Point-to-point links, no bridge: every packet is routed, so services work without `br_netfilter`."""
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "mtu": 1500,
                "ipam": {
                    "type": "host-local",
                    # Reservations end with the pods: both are in memory and in the namespaces only.
                    "dataDir": "/run/cni",
                    "ranges": [[{"subnet": layout.POD_CIDR, "gateway": layout.POD_GATEWAY}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def find_cni_folder() -> Path:
    """The folder with the CNI plug-ins.

    Raises:
        LocalStackError: no folder has them all.
    """
    for folder in CNI_FOLDERS:
        if all((folder / name).exists() for name in _CNI_PLUGINS):
            return folder
    places = " or ".join(map(str, CNI_FOLDERS))
    names = ", ".join(_CNI_PLUGINS)
    raise LocalStackError(
        f"CNI plug-ins {names} not found in {places}: install them (Debian: `apt-get install containernetworking-plugins`)"
    )


def choose_snapshotter(kind: str) -> str:
    """For a file system `kind`: `overlayfs`, or `native` (slower, more space) on an overlay, which cannot be stacked."""
    return "native" if kind == "overlay" else "overlayfs"


def file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The kind of file system that `path`, absolute, lies on."""
    best, kind = "", ""
    for line in mounts.read_text().splitlines():
        point, this_kind = line.split()[1:3]
        inside = point == "/" or str(path) == point or str(path).startswith(f"{point}/")
        # Of two mounts on one point the later one is seen.
        if inside and len(point) >= len(best):
            best, kind = point, this_kind
    return kind
