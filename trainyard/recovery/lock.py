"""Whether an engine still works on a stack: lifting its lock would let two of them write one state."""

import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit


def running_engine(environment: Mapping[str, str], project: str, stack: str) -> int | None:
    """Process id of a live engine of this machine that holds a lock in a file backend; None for any other backend."""
    backend = urlsplit(environment.get("PULUMI_BACKEND_URL", ""))
    if backend.scheme != "file":
        return None
    locks = Path(unquote(backend.path)) / ".pulumi" / "locks"
    for holder in _holders(locks, project, stack):
        if holder.get("hostname") == socket.gethostname() and _is_engine(holder.get("pid")):
            return holder["pid"]
    return None


def _holders(locks: Path, project: str, stack: str) -> Iterator[dict]:
    for file in locks.glob(f"*/{project}/{stack}/*.json"):
        try:
            yield json.loads(file.read_text())
        except (OSError, ValueError):
            # Gone since, or cut short by the kill: nobody holds it.
            continue


def _is_engine(pid: object) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    name, _, rest = fields.partition("(")[2].rpartition(")")
    # A zombie has ended.
    return name == "pulumi" and rest.split()[0] != "Z"
