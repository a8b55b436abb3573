"""The processes of a node, as the host sees them."""

import contextlib
import os
from pathlib import Path


def node_processes(init: int) -> list[int]:
    """Host pids of the processes in the pid namespace of `init` itself: daemons and shims, not what runs in pods."""
    namespace = _pid_namespace(init)
    entries = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in entries if namespace and _pid_namespace(pid) == namespace]


def node_memory_bytes(init: int) -> int:
    """Resident memory of those processes; pages they share count once for each."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for pid in node_processes(init):
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
    return total


def _pid_namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""
