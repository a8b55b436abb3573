"""Instance catalogue: what an EC2 instance type carries, and what follows from it for interfaces and pod requests.

Pure data (catalogue.json, with its source and date) and functions. EFA layouts, pod requests, slots and pool limits all come from here.
"""

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from infra import labels

AcceleratorKind = Literal["nvidia", "neuron"]

_DATA = Path(__file__).with_name("catalogue.json")
_RESOURCES: dict[str, str] = {"nvidia": labels.GPU_RESOURCE, "neuron": labels.NEURON_RESOURCE}

# What the agents of a node (CNI, kube-proxy, CSI nodes, device plug-ins, Pod Identity) ask for together; a pod that wants a whole node
# leaves this much, or it stays pending for ever.
AGENTS_CPU_MILLIS = 1000
AGENTS_MEMORY_MIB = 2048

# Karpenter's estimate of what the hypervisor takes, and the kubelet's default hard eviction threshold.
_VM_MEMORY_OVERHEAD = 0.075
_EVICTION_MEMORY_MIB = 100
_RESERVED_MEMORY_BASE_MIB = 255
_RESERVED_MEMORY_PER_POD_MIB = 11
# Share of each core that the kubelet reserves: (first core of the band, last core of the band, millicores per core).
_RESERVED_CPU_BANDS = ((0, 1, 60.0), (1, 2, 10.0), (2, 4, 5.0), (4, None, 2.5))


class UnknownInstanceTypeError(ValueError):
    """An instance type that the catalogue does not hold."""


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """The accelerators of one instance."""

    kind: AcceleratorKind
    name: str
    """Model, for instance H100 or Trainium2."""
    count: int
    """Devices per instance."""
    cores_per_device: int = 1
    """NeuronCores per device; 1 for GPUs."""

    @property
    def resource(self) -> str:
        """Extended resource a pod asks for to get a device."""
        return _RESOURCES[self.kind]

    @property
    def processes(self) -> int:
        """Training processes per instance: one per GPU, one per NeuronCore."""
        return self.count * self.cores_per_device


@dataclass(frozen=True, kw_only=True)
class NetworkInterface:
    """One network interface of an instance, in EC2's terms."""

    card: int
    device: int
    interface_type: Literal["interface", "efa-only"]


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """An EC2 instance type."""

    name: str
    arch: Literal["amd64", "arm64"]
    vcpus: int
    memory_mib: int
    max_pods: int
    """Pods per node by the VPC CNI's rule, with all of card 0's interfaces usable."""
    network_gbps: float
    """Sustained bandwidth of all cards together."""
    network_cards: int
    efa_max: int
    """Most EFA interfaces an instance may have; 0 where it has none."""
    efa_on_primary_card: bool
    """Whether card 0 takes an EFA interface beside its ordinary one."""
    accelerator: Accelerator | None

    @property
    def accelerator_count(self) -> int:
        """Devices per instance, 0 without accelerators."""
        return self.accelerator.count if self.accelerator else 0

    @property
    def allocatable_cpu_millis(self) -> int:
        """CPU left for pods with the default kubelet, in millicores."""
        reserved = sum(max(0, min(self.vcpus, last or self.vcpus) - first) * share for first, last, share in _RESERVED_CPU_BANDS)
        return int(self.vcpus * 1000 - reserved)

    @property
    def allocatable_memory_mib(self) -> int:
        """Memory left for pods with the default kubelet, in MiB."""
        reserved = _RESERVED_MEMORY_BASE_MIB + _RESERVED_MEMORY_PER_POD_MIB * self.max_pods + _EVICTION_MEMORY_MIB
        return int(self.memory_mib * (1 - _VM_MEMORY_OVERHEAD)) - reserved

    @property
    def family(self) -> str:
        """What stands before the dot of the name."""
        return self.name.partition(".")[0]

    def efa_interfaces(self) -> list[NetworkInterface]:
        """Return the interfaces of an instance that uses all its EFA: an ordinary primary, then one efa-only per card.

        EC2's law: (card 0, device 0) is an ordinary interface, no card has more than one EFA, (card, device) is unique.
        Raises ValueError where the type has no EFA.
        """
        if not self.efa_max:
            raise ValueError(f"instance type {self.name!r} has no EFA; types that do: {', '.join(efa_type_names()[:12])}, ...")
        first = 0 if self.efa_on_primary_card else 1
        primary = NetworkInterface(card=0, device=0, interface_type="interface")
        return [primary, *(NetworkInterface(card=first + n, device=1, interface_type="efa-only") for n in range(self.efa_max))]

    def whole_node_requests(self, *, efa: bool) -> dict[str, str]:
        """Return the requests of a pod that takes a whole node and leaves room for the node's agents.

        Keys are resource names, values Kubernetes quantities. `efa` asks for all EFA interfaces too; raises ValueError without EFA.
        """
        requests = {
            "cpu": f"{self.allocatable_cpu_millis - AGENTS_CPU_MILLIS}m",
            "memory": f"{self.allocatable_memory_mib - AGENTS_MEMORY_MIB}Mi",
        }
        if self.accelerator:
            requests[self.accelerator.resource] = str(self.accelerator.count)
        if efa:
            requests[labels.EFA_RESOURCE] = str(len(self.efa_interfaces()) - 1)
        return requests


def require(name: str) -> InstanceType:
    """Return the instance type called `name`; raises UnknownInstanceTypeError with the nearest names."""
    found = _types().get(name)
    if found is None:
        near = difflib.get_close_matches(name, list(_types()), n=4, cutoff=0.5)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise UnknownInstanceTypeError(f"instance type {name!r} is not in the catalogue ({len(_types())} types){hint}")
    return found


def instance_types() -> Iterator[InstanceType]:
    """Yield every instance type of the catalogue."""
    return iter(_types().values())


def efa_type_names() -> list[str]:
    """Return the names of the instance types that have EFA."""
    return [kind.name for kind in _types().values() if kind.efa_max]


def accelerator_type_names(kind: AcceleratorKind) -> list[str]:
    """Return the names of the instance types that carry accelerators of `kind`."""
    return [it.name for it in _types().values() if it.accelerator and it.accelerator.kind == kind]


@cache
def _types() -> dict[str, InstanceType]:
    rows = json.loads(_DATA.read_text(encoding="utf-8"))["types"]
    return {row["type"]: _instance_type(row) for row in rows}


def _instance_type(row: dict) -> InstanceType:
    raw = row.get("accelerator")
    accelerator = (
        Accelerator(kind=raw["kind"], name=raw["name"], count=raw["count"], cores_per_device=raw.get("coresPerDevice", 1)) if raw else None
    )
    efa_max = row.get("efa", 0)
    return InstanceType(
        name=row["type"],
        arch=row["arch"],
        vcpus=row["vcpus"],
        memory_mib=row["memoryMib"],
        max_pods=row["maxPods"],
        network_gbps=row["gbps"],
        network_cards=row["cards"],
        efa_max=efa_max,
        efa_on_primary_card=bool(efa_max) and row.get("primaryCardHasEfa", True),
        accelerator=accelerator,
    )
