"""The cgroup subtree of one node, in each mounted hierarchy (version 1) or in the one of version 2."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path


class CgroupTree:
    """`/trainyard-<copy id>`: the kubelet puts all pods below it, so nothing of ours is left once it is removed."""

    def __init__(self, copy_id: str, *, mounts: Path = Path("/proc/self/mounts")) -> None:
        self.name = f"/trainyard-{copy_id}"
        self._hierarchies = tuple(_hierarchies(mounts.read_text()))

    @property
    def folders(self) -> list[Path]:
        """The subtree's root in every hierarchy, whether it exists or not."""
        return [hierarchy / self.name.strip("/") for hierarchy in self._hierarchies]

    def create(self) -> None:
        """Make the subtree's roots."""
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
            # In version 1 a new cpuset is empty, and no process can join an empty one.
            for name in ("cpuset.cpus", "cpuset.mems"):
                parent, own = folder.parent / name, folder / name
                if own.exists() and not own.read_text().strip() and parent.exists():
                    own.write_text(parent.read_text())
            _delegate(folder.parent)

    def remove(self, timeout_seconds: float = 5.0) -> list[Path]:
        """Kill what still runs in the subtree and remove it. Returns the folders that could not be removed in time."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            left = [folder for folder in self.folders if not _remove(folder)]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)


def _hierarchies(mounts: str) -> Iterator[Path]:
    """Mount points of all hierarchies. Where a machine has both versions, runc uses both."""
    for line in mounts.splitlines():
        _, point, kind = line.split()[:3]
        if kind in ("cgroup", "cgroup2"):
            yield Path(point)


def _delegate(parent: Path) -> None:
    """Version 2: let children of `parent` have its controllers (runc does the same below)."""
    control = parent / "cgroup.subtree_control"
    if control.exists():
        for controller in (parent / "cgroup.controllers").read_text().split():
            with contextlib.suppress(OSError):
                control.write_text(f"+{controller}")


def _remove(folder: Path) -> bool:
    if not folder.exists():
        return True
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            for pid in Path(path, "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            Path(path).rmdir()
    return not folder.exists()
