"""All settings of a platform stack: one field for each `trainyard:*` key."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from infra.component import PACKAGE
from infra.settings.addons import AddonsSettings
from infra.settings.base import Settings
from infra.settings.cluster import ClusterSettings
from infra.settings.jobs import JobsSettings
from infra.settings.network import NetworkSettings
from infra.settings.pools import PoolSettings
from infra.settings.storage import StorageSettings


class AwsSettings(Settings):
    """Where on AWS, or on what stands in for it."""

    region: Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")]
    """AWS region."""
    endpoint: str | None = Field(default=None, pattern=r"^https?://[^\s/]+$")
    """URL that all AWS calls go to instead of AWS, for instance an emulator's."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags on every resource, beside the stack's own."""


class KubernetesSettings(Settings):
    """How the cluster is reached."""

    kubeconfig: str | None = None
    """Path of a kubeconfig used instead of the EKS cluster's own."""
    context: str | None = None
    """Context of that kubeconfig; unset: its current one."""


class PlatformSettings(Settings):
    """All settings of a platform stack."""

    aws: AwsSettings
    """Where on AWS."""
    kubernetes: KubernetesSettings = KubernetesSettings()
    """How the cluster is reached."""
    network: NetworkSettings
    """The VPC and its subnets."""
    cluster: ClusterSettings
    """The EKS cluster and its system nodes."""
    pools: tuple[PoolSettings, ...] = ()
    """Training pools."""
    storage: StorageSettings = StorageSettings()
    """File systems and the checkpoint bucket."""
    addons: AddonsSettings = AddonsSettings()
    """What is installed in the cluster."""
    jobs: JobsSettings = JobsSettings()
    """Where training jobs run."""
    protect: bool = False
    """Whether Pulumi refuses to delete what holds data: file systems and bucket. True outside of trial stacks."""


def stack_file_schema() -> dict[str, Any]:
    """Return the JSON schema of a `Pulumi.<stack>.yaml`, for editors."""
    settings = PlatformSettings.model_json_schema(by_alias=True)
    definitions = settings.pop("$defs")
    config = {
        "type": "object",
        "properties": {f"{PACKAGE}:{key}": value for key, value in settings["properties"].items()},
        "required": [f"{PACKAGE}:{key}" for key in settings["required"]],
        "patternProperties": {f"^(?!{PACKAGE}:)": {}},
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trainyard platform stack",
        "type": "object",
        "properties": {"config": config},
        "$defs": definitions,
    }
