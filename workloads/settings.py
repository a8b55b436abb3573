"""Settings of the jobs program: the only reader of its Pulumi configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from workloads.errors import JobError
from workloads.spec import JobSpec

PROJECT = "trainyard-workloads"
KEYS = ("platform", "image", "jobs")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the program was asked to run."""

    platform: str
    """Platform stack, as organization/project/stack."""
    image: str | None
    """Trainer image of jobs that name none."""
    jobs: tuple[JobSpec, ...]
    """The jobs."""

    @classmethod
    def load(cls) -> "Settings":
        """Read the current stack's configuration. Raises pulumi.RunError naming the path, the value and what is allowed."""
        config = pulumi.Config(PROJECT)
        values: dict[str, Any] = {"platform": config.get("platform"), "image": config.get("image"), "jobs": config.get_object("jobs")}
        try:
            return parse(values)
        except JobError as error:
            raise pulumi.RunError(f"{PROJECT}:{error}") from None


def parse(values: Mapping[str, Any]) -> Settings:
    """Return settings from plain values. Raises JobError."""
    platform = values.get("platform")
    if not isinstance(platform, str) or platform.count("/") != 2 or not all(platform.split("/")):
        raise JobError("platform", platform, "a platform stack written organization/project/stack, such as organization/trainyard/local")
    raw = values.get("jobs")
    if not isinstance(raw, list):
        raise JobError("jobs", raw, "a list of jobs; an empty one is written []")
    jobs = tuple(JobSpec.parse(job, f"jobs[{index}]") for index, job in enumerate(raw))
    _refuse_shared(jobs)
    return Settings(platform=platform, image=values.get("image"), jobs=jobs)


def _refuse_shared(jobs: tuple[JobSpec, ...]) -> None:
    names: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job.name in names:
            raise JobError(f"jobs[{index}].name", job.name, f"a name of its own; jobs[{names[job.name]}] has this one")
        names[job.name] = index
