"""JobSpec: what the author of a training job writes, checked on construction. A refusal names the path, the value and what is allowed."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from infra import catalogue
from training.launch import CONTRACT_VARIABLES
from workloads.contract import RESERVED_PATHS
from workloads.errors import JobError
from workloads.quantity import cpu_millis, memory_mib

Kind = Literal["mpi", "volcano"]
Positive = Annotated[int, Field(ge=1, strict=True)]

# A job's objects are named <name>-<8 hex digits>-worker-<index>, and a name in DNS has at most 63 characters.
NAME_FORM = "1 to 40 lower-case letters, digits and dashes, starting with a letter and not ending with a dash"
Name = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$")]
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTERFACES = "NCCL_SOCKET_IFNAME"
# The link of the EKS Pod Identity agent: NCCL must not take it for a network between nodes.
POD_IDENTITY_LINK = "pod-id-link0"


class _Settings(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)


class Mount(_Settings):
    """One volume claim of the platform in the job's pods."""

    claim: str
    """Purpose of the claim as the platform's outputs name it: checkpoints, home, ..."""
    path: str
    """Absolute path in the pods."""
    read_only: bool = False
    """Whether the pods may only read it."""

    @field_validator("path")
    @classmethod
    def _free_path(cls, value: str) -> str:
        path = PurePosixPath(value)
        if not path.is_absolute() or ".." in path.parts or path == PurePosixPath("/"):
            raise ValueError("an absolute path below /, without ..")
        for reserved in RESERVED_PATHS:
            if path == reserved or path in reserved.parents or reserved in path.parents:
                raise ValueError(f"a path that neither holds nor lies in {reserved}, which the pods need")
        return str(path)


class JobSpec(_Settings):
    """One training job."""

    name: Name
    """Name of the job; its Kubernetes objects add a hash of everything that decides what runs."""
    kind: Kind
    """Who starts the ranks: mpi (an MPIJob, mpirun) or volcano (a Volcano Job, an agent in each pod)."""
    attempt: Positive = 1
    """Raise it to run an unchanged job again, a failed one for instance: it is replaced and resumes from its newest checkpoint."""
    image: str | None = None
    """Trainer image; nothing means the program's `image` setting."""
    pool: str | None = None
    """Node pool of the platform that the workers run on. Give this or instance_type."""
    instance_type: str | None = None
    """EC2 instance type that the workers run on, in whatever pool offers it. Give this or pool."""
    launcher_pool: str = "system"
    """Node pool of the launcher of an MPI job, which needs no accelerator."""
    num_workers: Positive
    """Worker pods."""
    accelerators: Annotated[int, Field(ge=0, strict=True)] | None = None
    """Accelerator devices of each worker; nothing means all of its node's, 0 makes it a CPU job."""
    processes_per_worker: Positive | None = None
    """Training processes of each worker. With accelerators one process drives each; a CPU job has to state the number."""
    world_size: Positive | None = None
    """Ranks in all. Derived; a stated number must be workers x processes."""
    min_available: Positive | None = None
    """Pods the gang scheduler waits for. Derived; a stated number must be the workers."""
    cpu: str | None = None
    """CPU of each worker, such as 500m or 90. With accelerators, nothing means the workers' share of the node."""
    memory: str | None = None
    """Memory of each worker, such as 2Gi. With accelerators, nothing means the workers' share of the node."""
    shared_memory: str | None = None
    """Size of each worker's /dev/shm, out of its memory; nothing means half of the memory, at most 64Gi."""
    efa: bool | None = None
    """Whether workers ask for EFA interfaces; nothing means all that belong to the accelerators they take."""
    mounts: tuple[Mount, ...] = ()
    """Volume claims in the workers."""
    queue: str | None = None
    """Volcano queue; nothing means the platform's."""
    env: Mapping[str, str] = Field(default_factory=dict)
    """More environment of the ranks."""
    train: Mapping[str, Any]
    """The run, as training.config.TrainConfig's keys; its name is the job's unless stated."""
    deadline_seconds: Positive | None = None
    """Longest the job may take: an MPI job over all its restarts, each pod of a Volcano job since it started."""
    max_restarts: Annotated[int, Field(ge=0, strict=True)] = 6
    """Restarts before the job has failed. Evictions count, so leave some for them. Agents of a Volcano job restart ranks in place as often
    within an hour, which does not count here."""
    termination_grace_seconds: Annotated[int, Field(ge=30, strict=True)] = 300
    """How long the ranks have to finish a step and save when their pod is taken away; at most the pool's terminationGracePeriod."""

    @field_validator("instance_type")
    @classmethod
    def _known_type(cls, value: str | None) -> str | None:
        if value is not None:
            catalogue.require(value)
        return value

    @field_validator("cpu")
    @classmethod
    def _cpu_form(cls, value: str | None) -> str | None:
        if value is not None:
            cpu_millis(value)
        return value

    @field_validator("memory", "shared_memory")
    @classmethod
    def _memory_form(cls, value: str | None) -> str | None:
        if value is not None:
            memory_mib(value)
        return value

    @field_validator("mounts")
    @classmethod
    def _separate_paths(cls, value: tuple[Mount, ...]) -> tuple[Mount, ...]:
        paths = [PurePosixPath(mount.path) for mount in value]
        for index, path in enumerate(paths):
            if any(path == other or other in path.parents for other in paths[:index] + paths[index + 1 :]):
                raise ValueError(f"paths that do not lie in each other; {path} does")
        return value

    @field_validator("env")
    @classmethod
    def _own_variables(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for name, text in value.items():
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"names of letters, digits and underscores; {name!r} is none")
            if name in CONTRACT_VARIABLES:
                # It would state the world size, or rank 0's address, a second time.
                raise ValueError(f"no {name}: the launcher gives it to each rank")
            if ";" in text or "\n" in text:
                # mpirun joins the variables it exports with semicolons.
                raise ValueError(f"values without semicolons and line ends; {name} is {text!r}")
        interfaces = value.get(_INTERFACES, "")
        if interfaces.startswith("^") and POD_IDENTITY_LINK not in interfaces[1:].split(","):
            raise ValueError(f"{_INTERFACES} with {POD_IDENTITY_LINK} among the excluded; it is {interfaces!r}")
        return value

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.pool is None) == (self.instance_type is None):
            raise ValueError("exactly one of pool and instanceType")
        return self

    @classmethod
    def parse(cls, values: object, path: str) -> "JobSpec":
        """Read a job from settings (camelCase keys). Raises JobError naming the key below `path`."""
        if not isinstance(values, Mapping):
            raise JobError(path, values, "a mapping of a job's settings")
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise refusal(error, path, cls) from None


def refusal(error: ValidationError, path: str, model: type[BaseModel]) -> JobError:
    """Return the first thing pydantic refused as an error with path, value and what is allowed."""
    first = error.errors(include_url=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    where = f"{path}{place}" if path else place.lstrip(".")
    if first["type"] == "extra_forbidden":
        known = ", ".join(sorted(field.alias or name for name, field in model.model_fields.items()))
        return JobError(where, first["input"], f"no such key; known keys: {known}" if len(first["loc"]) == 1 else "no such key")
    if first["type"] == "missing":
        return JobError(where, None, "a value: this key is required")
    if first["type"] == "string_pattern_mismatch":
        return JobError(where, first["input"], NAME_FORM)
    value = None if first["type"] == "value_error" and not first["loc"] else first["input"]
    return JobError(where, value, first["msg"].removeprefix("Value error, ").removeprefix("Input should be "))
