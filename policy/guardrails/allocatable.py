"""What a node of an instance type leaves to its pods."""

from dataclasses import dataclass

from guardrails.facts import load

_HYPERVISOR_SHARE = 0.075
"""Part of the memory that Karpenter takes for the hypervisor and the kernel."""
_EVICTION_MIB = 100
_KUBELET_MIB, _KUBELET_MIB_PER_POD = 255, 11


@dataclass(frozen=True)
class Allocatable:
    """CPUs and bytes that pods may ask for on a node that runs nothing else."""

    cpus: float
    memory: float


def allocatable(instance_type: str) -> Allocatable | None:
    """Of a node with the default kubelet of EKS, as Karpenter reckons it; None where the type is not known."""
    size = load("sizes")["types"].get(instance_type)
    if size is None:
        return None
    cpus, memory_mib, most_pods = size
    reserved_mib = _KUBELET_MIB + _KUBELET_MIB_PER_POD * most_pods + _EVICTION_MIB
    return Allocatable(cpus - _reserved_cpus(cpus), (memory_mib * (1 - _HYPERVISOR_SHARE) - reserved_mib) * 1024**2)


def _reserved_cpus(cpus: int) -> float:
    """6 % of the first CPU, 1 % of the second, half a percent of the next two, a quarter percent of each other one."""
    shares = (0.06, 0.01, 0.005, 0.005)
    return sum(shares[:cpus]) + 0.0025 * max(0, cpus - len(shares))
