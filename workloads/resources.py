"""What each worker asks for, from the instance catalogue: requests that fit a node, or a refusal that says by how much they do not."""

from dataclasses import dataclass

from infra import catalogue, labels
from workloads.errors import JobError
from workloads.place import Place
from workloads.quantity import cpu_millis, memory_mib
from workloads.spec import JobSpec
from workloads.world import World

_MOST_SHARED_MIB = 64 * 1024
_EFA_VARIABLES = ("FI_", "NCCL_NET", "NCCL_OFI_", "NCCL_NET_PLUGIN")


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Resources of one worker."""

    cpu_millis: int
    """CPU, in millicores."""
    memory_mib: int
    """Memory, in MiB; its limit too."""
    shared_mib: int
    """Size of /dev/shm, in MiB; what lies in it counts as the worker's memory."""
    devices: dict[str, int]
    """Extended resources by name: accelerators and EFA interfaces."""

    def requirements(self) -> dict[str, dict[str, str]]:
        """Return requests and limits as Kubernetes spells them.

        Devices and memory: limit = request. So is CPU where there are devices, which makes the pod Guaranteed; a CPU job may use what its
        node has to spare.
        """
        devices = {name: str(count) for name, count in self.devices.items()}
        cpu, memory = f"{self.cpu_millis}m", f"{self.memory_mib}Mi"
        limits = {"memory": memory, **devices}
        return {"requests": {"cpu": cpu, **limits}, "limits": {"cpu": cpu, **limits} if devices else limits}


def worker_resources(spec: JobSpec, place: Place, world: World) -> Resources:
    """Return what one worker asks for. Raises JobError for what no node of the place can give."""
    devices = _devices(spec, place, world)
    room_cpu = place.node.allocatable_cpu_millis - catalogue.AGENTS_CPU_MILLIS
    room_memory = place.node.allocatable_memory_mib - catalogue.AGENTS_MEMORY_MIB
    cpu = cpu_millis(spec.cpu) if spec.cpu else _share("cpu", room_cpu, place, world)
    memory = memory_mib(spec.memory) if spec.memory else _share("memory", room_memory, place, world)
    what = f"{place.node.name} of {place.name} has for pods, its agents' share taken off"
    if cpu > room_cpu:
        raise JobError("cpu", spec.cpu, f"at most {room_cpu}m, which a {what}")
    if memory > room_memory:
        raise JobError("memory", spec.memory, f"at most {room_memory}Mi, which a {what}")
    shared = memory_mib(spec.shared_memory) if spec.shared_memory else min(memory // 2, _MOST_SHARED_MIB)
    if shared >= memory:
        raise JobError("sharedMemory", spec.shared_memory, f"less than memory = {memory}Mi, which it is taken from")
    return Resources(cpu_millis=cpu, memory_mib=memory, shared_mib=shared, devices=devices)


def _share(name: str, room: int, place: Place, world: World) -> int:
    """Return the part of a node that belongs to the accelerators a worker takes."""
    if not world.accelerators:
        raise JobError(name, None, "a quantity: a job without accelerators has to state it")
    return room * world.accelerators // place.node.accelerator_count


def _devices(spec: JobSpec, place: Place, world: World) -> dict[str, int]:
    devices: dict[str, int] = {}
    if world.accelerators and place.node.accelerator is not None:
        devices[place.node.accelerator.resource] = world.accelerators
    interfaces = _efa_interfaces(spec, place, world)
    if interfaces:
        devices[labels.EFA_RESOURCE] = interfaces
    else:
        _refuse_efa_variables(spec)
    return devices


def _efa_interfaces(spec: JobSpec, place: Place, world: World) -> int:
    """Return how many EFA interfaces a worker takes: those that belong to its accelerators, or all of a node without accelerators."""
    has = place.node.efa_max if place.efa else 0
    if spec.efa and not has:
        reason = "its pool attaches none" if place.node.efa_max else f"a {place.node.name} has none"
        raise JobError(
            "efa", spec.efa, f"false on {place.name}: {reason}; types that have some: {', '.join(catalogue.efa_type_names()[:8])}"
        )
    if spec.efa is False or not has:
        return 0
    devices = place.node.accelerator_count
    if not world.accelerators:
        # A CPU job on a node with EFA gets it only when it asks: most such jobs share the node.
        return has if spec.efa else 0
    interfaces, rest = divmod(has * world.accelerators, devices)
    if rest or not interfaces:
        if spec.efa is None and world.workers == 1:
            return 0
        # Between nodes, the default must not quietly become TCP.
        raise JobError("efa", spec.efa, f"false: {world.accelerators} of {devices} accelerators get no whole share of {has} interfaces")
    return interfaces


def _refuse_efa_variables(spec: JobSpec) -> None:
    for name, value in spec.env.items():
        if name.startswith(_EFA_VARIABLES):
            raise JobError(f"env.{name}", value, "only with EFA interfaces: without a request for them the variable makes nothing use EFA")
