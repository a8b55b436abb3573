"""The world of a job: workers x processes, derived once. Slots, -np, nproc-per-node, batch identity and gang size all follow from it."""

from dataclasses import dataclass

from workloads.errors import JobError
from workloads.place import Place
from workloads.quantity import cpu_millis
from workloads.spec import JobSpec


@dataclass(frozen=True, kw_only=True)
class World:
    """How many ranks there are and how they are spread."""

    workers: int
    """Worker pods, the members of the gang."""
    processes: int
    """Ranks per worker: slots of an MPI worker, processes of an agent."""
    accelerators: int
    """Accelerator devices per worker, 0 for a CPU job."""

    @property
    def size(self) -> int:
        """Ranks in all."""
        return self.workers * self.processes


def derive_world(spec: JobSpec, place: Place) -> World:
    """Return the world of a job on its place.

    Raises JobError, with the sum, when a number that the job states contradicts the rest.
    """
    accelerators = _accelerators(spec, place)
    world = World(workers=spec.num_workers, processes=_processes(spec, place, accelerators), accelerators=accelerators)
    shape = f"numWorkers {world.workers} x processesPerWorker {world.processes} = {world.size}"
    if spec.world_size not in (None, world.size):
        raise JobError("worldSize", spec.world_size, f"{shape}; leave it out and it follows")
    if spec.min_available not in (None, world.workers):
        launcher = "; the launcher is made only when all workers are ready, so a gang that counts it waits for ever"
        reason = launcher if spec.kind == "mpi" else "; no rank can train without the others"
        raise JobError("minAvailable", spec.min_available, f"numWorkers = {world.workers}, or leave it out{reason}")
    if place.max_nodes is not None and world.accelerators * 2 > place.node.accelerator_count and world.workers > place.max_nodes:
        raise JobError("numWorkers", world.workers, f"at most {place.max_nodes}: {place.name} may have {place.max_nodes} nodes")
    return world


def _accelerators(spec: JobSpec, place: Place) -> int:
    most = place.node.accelerator_count
    count = most if spec.accelerators is None else spec.accelerators
    if count > most:
        raise JobError("accelerators", count, f"at most {most}: a {place.node.name} of {place.name} has {most}")
    return count


def _processes(spec: JobSpec, place: Place, accelerators: int) -> int:
    stated = spec.processes_per_worker
    if accelerators and place.node.accelerator is not None:
        per_device = place.node.accelerator.cores_per_device
        processes = accelerators * per_device
        if stated not in (None, processes):
            sum_ = f"{accelerators} accelerators x {per_device} per accelerator = {processes}"
            raise JobError("processesPerWorker", stated, f"{sum_}, or leave it out: any other number leaves devices idle or shared")
        return processes
    if stated is None:
        raise JobError("processesPerWorker", None, "a number of processes: a job without accelerators has to state it")
    if spec.cpu is not None and stated > max(1, cpu_millis(spec.cpu) // 1000):
        raise JobError("processesPerWorker", stated, f"at most one for each whole core of cpu {spec.cpu}, and at least one")
    return stated
