"""What one rank finds on its host. Plain values, so that all ranks can compare them."""

import os
import resource
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from training.banner import versions
from training.distributed import Ranks

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_CGROUP_USES = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Of one rank."""

    host: str
    time: float
    """Seconds since 1970 by this host's clock, right after all ranks have met."""
    versions: dict[str, str]
    device: str
    """Kind of the device: cuda or cpu."""
    device_id: str
    """Tells one device from all others; empty on a CPU."""
    num_devices: int
    """Accelerators that this rank sees."""
    expected_ranks: int | None
    """Ranks that the launcher says are on this host."""
    free_mib: int
    """Memory that is free on the device, or on the host within the container's limit."""
    shared_memory_mib: int
    """Size of /dev/shm."""
    memlock_mib: int | None
    """How much memory the process may pin; None means any amount."""
    efa_devices: int
    """EFA interfaces in this pod or on this host."""
    fabric: str
    """FI_PROVIDER, by which a job asks libfabric for one."""


def gather_facts(ranks: Ranks) -> list[Facts]:
    """Every rank's, by rank."""
    ranks.barrier()
    now = time.time()
    cuda = ranks.device.type == "cuda"
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    shared = os.statvfs("/dev/shm")
    own = Facts(
        host=socket.gethostname(),
        time=now,
        versions=versions(ranks.device),
        device=ranks.device.type,
        device_id=str(torch.cuda.get_device_properties(ranks.device).uuid) if cuda else "",
        num_devices=torch.cuda.device_count(),
        expected_ranks=ranks.launch.local_world_size,
        free_mib=torch.cuda.mem_get_info(ranks.device)[0] // _MIB if cuda else free_host_mib(),
        shared_memory_mib=shared.f_blocks * shared.f_frsize // _MIB,
        memlock_mib=None if limit == resource.RLIM_INFINITY else limit // _MIB,
        efa_devices=count_efa_devices(),
        fabric=os.environ.get("FI_PROVIDER", ""),
    )
    return ranks.gather(own)


def free_host_mib() -> int:
    """Memory that the kernel can give, at most what the container's limit leaves."""
    table = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(table["MemAvailable"].split()[0]) // 1024
    limits, uses = _first_number(_CGROUP_LIMITS), _first_number(_CGROUP_USES)
    return free if limits is None or uses is None else min(free, max(0, limits - uses) // _MIB)


def count_efa_devices(root: Path = Path("/sys/class/infiniband")) -> int:
    """RDMA devices whose driver is EFA's."""
    return sum((device / "device" / "driver").resolve().name == "efa" for device in root.glob("*"))


def _first_number(paths: tuple[str, ...]) -> int | None:
    """What the first file that is there holds; None if it says `max` or there is none."""
    for path in paths:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdigit() else None
    return None
