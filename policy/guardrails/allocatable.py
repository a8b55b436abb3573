"""What a node of an instance type leaves to its pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from guardrails.facts import efa_interfaces, instance_types, load
from guardrails.quantity import MEBIBYTE
from guardrails.template import EFA, GPU, NEURON, NEURON_CORE

HYPERVISOR_SHARE = 0.075
"""Part of the memory that Karpenter takes for the hypervisor and the kernel."""
_NEURON_ACCELERATORS = ("Trainium", "Inferentia")
_EVICTION_MIB = 100
_KUBELET_MIB, _KUBELET_MIB_PER_POD = 255, 11


@dataclass(frozen=True)
class Allocatable:
    """CPUs, bytes and devices that pods may ask for on a node that runs nothing else."""

    cpus: float
    memory: float
    devices: Mapping[str, int] = field(default_factory=dict)
    """GPUs, Neuron devices and cores, EFA interfaces; those of which nothing is known are left out."""


def allocatable(instance_type: str) -> Allocatable | None:
    """Of a node with the default kubelet of EKS, as Karpenter reckons it; None where the type is not known."""
    size = load("sizes")["types"].get(instance_type)
    if size is None:
        return None
    cpus, memory_mib, most_pods = size
    reserved_mib = _KUBELET_MIB + _KUBELET_MIB_PER_POD * most_pods + _EVICTION_MIB
    memory = (memory_mib * (1 - HYPERVISOR_SHARE) - reserved_mib) * MEBIBYTE
    interfaces = {EFA: count} if (count := efa_interfaces().get(instance_type)) is not None else {}
    return Allocatable(cpus - _reserved_cpus(cpus), memory, {**_devices(instance_type), **interfaces})


def _devices(name: str) -> dict[str, int]:
    instance = instance_types().get(name)
    if instance is None:
        return dict.fromkeys((GPU, NEURON, NEURON_CORE), 0)
    if not instance.accelerator.startswith(_NEURON_ACCELERATORS):
        return {GPU: instance.count, NEURON: 0, NEURON_CORE: 0}
    cores = load("neuron")["coresPerDevice"].get(name.split(".")[0])
    return {GPU: 0, NEURON: instance.count, **({NEURON_CORE: cores * instance.count} if cores else {})}


def _reserved_cpus(cpus: int) -> float:
    """6 % of the first CPU, 1 % of the second, half a percent of the next two, a quarter percent of each other one."""
    shares = (0.06, 0.01, 0.005, 0.005)
    return sum(shares[:cpus]) + 0.0025 * max(0, cpus - len(shares))
