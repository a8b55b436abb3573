"""A job, whole and checked: everything that its pods and objects are built from."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from training.batch import BatchPlan
from training.config import TrainConfig
from training.layout import Layout, check_nodes
from training.schema import ConfigError
from workloads.errors import JobError
from workloads.place import Place, Platform, type_place
from workloads.resources import Resources, worker_resources
from workloads.spec import JobSpec
from workloads.world import World, derive_world

# Between the agent's own patience with its ranks and the pod's: the agent has to see them end.
AGENT_MARGIN_SECONDS = 10


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """One job on one platform."""

    spec: JobSpec
    """What the author wrote."""
    image: str
    """Trainer image."""
    platform: Platform
    """Namespace, service account and claims."""
    place: Place
    """Where the workers run."""
    launcher_place: Place | None
    """Where the launcher runs, for the kinds that have one."""
    world: World
    """Ranks."""
    resources: Resources
    """What each worker asks for."""
    train: TrainConfig
    """The run."""
    batch: BatchPlan
    """Batch identity on this world."""
    layout: Layout
    """Mesh of the ranks."""

    @property
    def warnings(self) -> list[str]:
        """What works, but had better be laid out otherwise."""
        return check_nodes(self.layout, self.world.processes)

    @property
    def queue(self) -> str:
        """Volcano queue of the job."""
        return self.spec.queue or self.platform.queue

    @property
    def drain_seconds(self) -> int:
        """How long ranks have between the signal and being killed."""
        return self.spec.termination_grace_seconds - AGENT_MARGIN_SECONDS


def plan_job(spec: JobSpec, platform: Platform, *, image: str | None) -> JobPlan:
    """Put a job on a platform. Raises JobError naming what does not fit, with a path relative to the job."""
    place = platform.pool_place(spec.pool, "pool") if spec.pool is not None else type_place(spec.instance_type or "")
    launcher_place = platform.pool_place(spec.launcher_pool, "launcherPool") if spec.kind == "mpi" else None
    chosen = spec.image or image
    if not chosen:
        raise JobError("image", None, "the name of a trainer image, here or in the program's image setting")
    world = derive_world(spec, place)
    resources = worker_resources(spec, place, world)
    for index, mount in enumerate(spec.mounts):
        platform.claim(mount.claim, f"mounts[{index}].claim")
    _check_grace(spec, platform)
    train, layout, batch = _run(spec, world)
    return JobPlan(
        spec=spec,
        image=chosen,
        platform=platform,
        place=place,
        launcher_place=launcher_place,
        world=world,
        resources=resources,
        train=train,
        batch=batch,
        layout=layout,
    )


def _check_grace(spec: JobSpec, platform: Platform) -> None:
    """Refuse pods that ask for more time than a pool's nodes have: when that is over, they are killed in the middle of a save."""
    for pool in platform.pools_of(spec):
        given, limit = spec.termination_grace_seconds, pool.termination_grace_seconds
        if limit is not None and given > limit:
            raise JobError(
                "terminationGraceSeconds",
                given,
                f"at most {limit}, the terminationGracePeriod of pool {pool.name!r}, which ends every pod there; "
                "lower it, or raise that in the platform's settings and bring the platform up",
            )


def _run(spec: JobSpec, world: World) -> tuple[TrainConfig, Layout, BatchPlan]:
    """Return the run's configuration, its mesh and its batch identity on this world."""
    try:
        train = TrainConfig.from_mapping({"name": spec.name, **spec.train})
        layout = train.layout(world.size, world.processes)
        batch = train.plan_batch(world.size)
    except ConfigError as error:
        raise JobError(f"train.{error.path}", error.value, error.allowed) from None
    directory = PurePosixPath(train.checkpoint.directory)
    writable = [mount.path for mount in spec.mounts if not mount.read_only]
    if not any(PurePosixPath(path) in (directory, *directory.parents) for path in writable):
        found = ", ".join(writable) or "(the job has none)"
        raise JobError("train.checkpoint.directory", str(directory), f"a folder in one of the job's writable mounts: {found}")
    if train.distributed.backend == "nccl" and not world.accelerators:
        raise JobError("train.distributed.backend", "nccl", "auto or gloo for a job without accelerators")
    return train, layout, batch
