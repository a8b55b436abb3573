"""Which network NCCL uses between hosts, from its own log: EFA, sockets or another. Standard library only.

NCCL says so at its first collective when NCCL_DEBUG is INFO: `Using network <name>` names the plug-in or built-in transport, and the
aws-ofi-nccl plug-in adds `NET/OFI Selected provider is <name> ... (found <n> nics)`. Without its plug-in, or without a device in the pod,
NCCL takes sockets and goes on without a word at any lower level.
"""

import os
import re
import tempfile
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from pathlib import Path

_NETWORK = re.compile(r"NCCL INFO (?:Using network|Assigned NET plugin) (?P<name>.+?)(?: to comm.*)?$")
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is (?P<name>[^\s,;]+)[^(]*(?:\(found (?P<nics>\d+) nics\))?")
_REASONS = (
    r"Could not find: ?libnccl-net",
    r"Failed to (?:initialize|load) [^ ]*",
    r"No eligible providers",
    r"Unable to find (?:a )?provider",
    r"No device found",
)
_TROUBLE = re.compile(rf"NCCL (?:INFO|WARN) (?P<text>.*(?:{'|'.join(_REASONS)}).*)$")
_SHOWN = {"efa": "EFA", "sockets": "sockets (TCP)", "infiniband": "InfiniBand or RoCE"}


@dataclass(frozen=True)
class Transport:
    """What carries NCCL's traffic between hosts."""

    kind: str
    """efa, sockets, infiniband, another libfabric provider's name, another plug-in's name, or unknown."""
    interfaces: int | None = None
    """Interfaces that the plug-in has found, where it says so."""
    trouble: str = ""
    """The log's reason why no faster one was taken, if it gives one."""

    def __str__(self) -> str:
        interfaces = f", {self.interfaces} interfaces" if self.interfaces is not None else ""
        return _SHOWN.get(self.kind, self.kind) + interfaces + (f" ({self.trouble})" if self.trouble else "")


def parse_transport(lines: Iterable[str]) -> Transport:
    """Read NCCL's log; the last network that it names counts."""
    network, provider, interfaces, trouble = None, None, None, ""
    for line in lines:
        if found := _PROVIDER.search(line):
            provider = found["name"].lower()
            interfaces = int(found["nics"]) if found["nics"] else None
        elif found := _NETWORK.search(line.rstrip()):
            network = found["name"].strip().lower()
        elif found := _TROUBLE.search(line.rstrip()):
            trouble = trouble or found["text"].strip()
    if network is None:
        return Transport("unknown", trouble=trouble)
    if "libfabric" in network or "ofi" in network:
        return Transport(provider or "unknown", interfaces)
    kinds = {"socket": "sockets", "ib": "infiniband"}
    return Transport(kinds.get(network, network), trouble=trouble if network == "socket" else "")


class NcclLog:
    """Has NCCL write what `parse_transport` reads; made before NCCL's first collective. Leaves a log that the user asked for alone."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        self._file: Path | None = None
        if "NCCL_DEBUG_FILE" in environ and "%" not in environ["NCCL_DEBUG_FILE"]:
            self._file = Path(environ["NCCL_DEBUG_FILE"])
        elif "NCCL_DEBUG" not in environ and "NCCL_DEBUG_FILE" not in environ:
            descriptor, name = tempfile.mkstemp(prefix="trainyard-nccl-")
            os.close(descriptor)
            self._file = Path(name)
            environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", NCCL_DEBUG_FILE=name)

    def transport(self) -> Transport:
        """What the log says by now."""
        if self._file is None:
            return Transport("unknown", trouble="NCCL_DEBUG is set, so its log goes where you sent it; unset it to have it read")
        try:
            return parse_transport(self._file.read_text(encoding="utf-8", errors="replace").splitlines())
        except OSError as error:
            return Transport("unknown", trouble=f"NCCL's log cannot be read: {error}")
