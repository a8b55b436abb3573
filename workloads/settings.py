"""Settings of the jobs program: the only reader of its Pulumi configuration."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.runtime import config as runtime_config

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
        everything = {**runtime_config.get_config_env(), **runtime_config.CONFIG.get()}
        prefix = f"{PROJECT}:"
        values = {key.removeprefix(prefix): _decode(value) for key, value in everything.items() if key.startswith(prefix)}
        try:
            return parse(values)
        except JobError as error:
            raise pulumi.RunError(f"{PROJECT}:{error}") from None


def parse(values: Mapping[str, Any]) -> Settings:
    """Return settings from plain values. Raises JobError."""
    for key, value in values.items():
        if key not in KEYS:
            raise JobError(key, value, f"no such key; known keys: {', '.join(KEYS)}")
    platform = values.get("platform")
    if not isinstance(platform, str) or platform.count("/") != 2 or not all(platform.split("/")):
        raise JobError("platform", platform, "a platform stack written organization/project/stack, such as organization/trainyard/local")
    image = values.get("image")
    if image is not None and not (isinstance(image, str) and image):
        raise JobError("image", image, "the name of a trainer image")
    raw = values.get("jobs")
    if not isinstance(raw, list):
        raise JobError("jobs", raw, "a list of jobs; an empty one is written []")
    jobs = tuple(JobSpec.parse(job, f"jobs[{index}]") for index, job in enumerate(raw))
    _refuse_shared(jobs)
    return Settings(platform=platform, image=image, jobs=jobs)


def _decode(value: Any) -> Any:
    """Return a value as data: Pulumi hands lists, maps and numbers over as JSON text, texts as they are."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _refuse_shared(jobs: tuple[JobSpec, ...]) -> None:
    names: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job.name in names:
            raise JobError(f"jobs[{index}].name", job.name, f"a name of its own; jobs[{names[job.name]}] has this one")
        names[job.name] = index
