"""The mount namespace of a node: the host's files, with every place that a node writes to replaced by its own."""

import os
from pathlib import Path

from local.node import layout, namespaces
from local.node.spec import SupervisorSpec

# The kubelet sets these for the whole machine where they differ. Inside they read as it wants them, so the host's stay as they are.
KUBELET_TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def enter_private_files(spec: SupervisorSpec) -> None:
    """Arrange the mounts of the calling process, which is alone in a new mount and pid namespace.

    Nothing is written to the host but below the state folder; the mounts end with the namespace.
    """
    namespaces.mount("none", "/", flags=namespaces.MS_REC | namespaces.MS_PRIVATE)
    # Held open, because /run and /var/lib are about to be covered and any of these may lie below them.
    held = {layout.STATE: _hold(spec.state)}
    if spec.trainer_env:
        held[layout.TRAINER_ENV] = _hold(spec.trainer_env)
    held |= {layout.BIN / name: _hold(path) for name, path in spec.binaries.items()}

    namespaces.mount("proc", "/proc", "proc", namespaces.MS_NOSUID | namespaces.MS_NODEV | namespaces.MS_NOEXEC)
    _tmpfs("/run")
    for target, fd in held.items():
        _place(fd, target)
    _cover_var(layout.Layout(layout.STATE))
    _cover_tunables()
    # Pods' volumes and CSI mounts propagate through shared mounts; being private to the host, they stay in here.
    namespaces.mount("none", "/", flags=namespaces.MS_REC | namespaces.MS_SHARED)


def _hold(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _place(fd: int, target: Path) -> None:
    if Path(f"/proc/self/fd/{fd}").is_dir():
        target.mkdir(parents=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    namespaces.bind(f"/proc/self/fd/{fd}", target)
    os.close(fd)


def _tmpfs(target: str, mode: str = "0755") -> None:
    namespaces.mount("tmpfs", target, "tmpfs", namespaces.MS_NOSUID | namespaces.MS_NODEV, f"mode={mode}")


def _cover_var(inside: layout.Layout) -> None:
    """Give the kubelet, CNI and the container logs their folders below /var without making any on the host."""
    for name in ("lib", "log"):
        scratch = Path("/run/cover") / name
        (scratch / "upper").mkdir(parents=True)
        (scratch / "work").mkdir()
        namespaces.mount("overlay", f"/var/{name}", "overlay", 0, f"lowerdir=/var/{name},upperdir={scratch}/upper,workdir={scratch}/work")
    for folder, source in ((layout.KUBELET_ROOT, inside.kubelet), (Path("/var/log/pods"), inside.logs / "pods")):
        folder.mkdir(parents=True, exist_ok=True)
        source.mkdir(parents=True, exist_ok=True)
        namespaces.bind(source, folder)
    for folder in ("/var/log/containers", "/var/lib/cni"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        _tmpfs(folder)


def _cover_tunables() -> None:
    for name, value in KUBELET_TUNABLES.items():
        real = Path("/proc/sys") / name
        if not real.exists() or real.read_text().strip() == value:
            continue
        shown = Path("/run/tunables") / name
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.write_text(f"{value}\n")
        namespaces.bind(shown, real)
