"""Kubernetes quantities of CPU and memory, as whole millicores and MiB."""

import re

_CPU = re.compile(r"(?P<whole>\d+)(?P<fraction>\.\d{1,3})?|(?P<millis>\d+)m")
_MEMORY = re.compile(r"(?P<count>\d+)(?P<unit>Mi|Gi|Ti)")
_MIB = {"Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}

CPU_FORM = "CPU cores such as 2, 0.5 or 500m, above 0"
MEMORY_FORM = "memory in Mi, Gi or Ti such as 512Mi or 64Gi, above 0"


def cpu_millis(text: str) -> int:
    """Return CPU cores written as `2`, `0.5` or `500m` in millicores. Raises ValueError for anything else and for nothing at all."""
    match = _CPU.fullmatch(text.strip())
    if match is None:
        raise ValueError(CPU_FORM)
    millis = int(match["millis"]) if match["millis"] else round(float(match[0]) * 1000)
    if millis == 0:
        raise ValueError(CPU_FORM)
    return millis


def memory_mib(text: str) -> int:
    """Return memory written as `512Mi`, `64Gi` or `1Ti` in MiB. Raises ValueError for anything else and for nothing at all."""
    match = _MEMORY.fullmatch(text.strip())
    if match is None or int(match["count"]) == 0:
        raise ValueError(MEMORY_FORM)
    return int(match["count"]) * _MIB[match["unit"]]
