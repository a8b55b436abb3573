"""Settings of the EKS cluster and its system nodes."""

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from infra import catalogue, versions
from infra.settings.base import DnsName, Settings

PrincipalArn = Annotated[str, StringConstraints(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/.+$")]
LogType = Literal["api", "audit", "authenticator", "controllerManager", "scheduler"]


class AdminSettings(Settings):
    """A principal with full rights in the cluster."""

    name: DnsName
    """Short name of the entry."""
    principal_arn: PrincipalArn
    """ARN of an IAM role (or user); the identity that runs `pulumi up` must be among the admins."""


class EndpointSettings(Settings):
    """Where the API server may be reached from. The private endpoint is always on."""

    public_cidrs: tuple[str, ...] = ()
    """Ranges that may reach the public endpoint; empty switches it off."""

    @field_validator("public_cidrs")
    @classmethod
    def _check_cidrs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for cidr in value:
            try:
                network = ipaddress.IPv4Network(cidr)
            except ValueError as error:
                raise ValueError(f"{cidr!r} is not an IPv4 range ({error})") from None
            if network.prefixlen < 8:
                raise ValueError(f"{cidr!r} opens the API server to the internet; name the ranges your people and CI come from")
        return value


class SystemNodesSettings(Settings):
    """The managed node group that runs controllers and CPU jobs."""

    name: DnsName = "system"
    """Pool name that jobs select these nodes by."""
    instance_type: str = "m7i.2xlarge"
    """EC2 instance type without accelerators."""
    min_nodes: int = Field(default=2, ge=1, le=100)
    """Fewest nodes."""
    max_nodes: int = Field(default=4, ge=1, le=100)
    """Most nodes."""
    disk_gib: int = Field(default=100, ge=20, le=16384)
    """Size of the encrypted gp3 root volume, GiB."""
    release_version: str = Field(default=versions.AL2023_NODE_GROUP_RELEASE, pattern=r"^[0-9]+\.[0-9]+\.[0-9]+-[0-9]{8}$")
    """Pinned AMI release of the node group, `<kubernetes>-<date>`."""

    @field_validator("instance_type")
    @classmethod
    def _check_type(cls, value: str) -> str:
        kind = catalogue.require(value)
        if kind.accelerator or kind.arch != "amd64":
            raise ValueError("system nodes need an amd64 type without accelerators, for instance m7i.2xlarge")
        return value

    @model_validator(mode="after")
    def _check_counts(self) -> "SystemNodesSettings":
        if self.min_nodes > self.max_nodes:
            raise ValueError(f"minNodes {self.min_nodes} is above maxNodes {self.max_nodes}")
        return self


class ClusterSettings(Settings):
    """The EKS cluster."""

    name: DnsName
    """Name of the cluster."""
    version: str = Field(default=versions.KUBERNETES, pattern=r"^1\.[0-9]{2}$")
    """Kubernetes version; add-ons and images are pinned for the default."""
    admins: tuple[AdminSettings, ...] = Field(min_length=1)
    """Who administers the cluster. Nobody else gets in, the creator included."""
    endpoint: EndpointSettings = EndpointSettings()
    """Where the API server may be reached from."""
    log_types: tuple[LogType, ...] = ("api", "audit", "authenticator")
    """Control plane logs sent to CloudWatch."""
    secrets_key_arn: str | None = None
    """ARN of a KMS key that encrypts Kubernetes secrets, beside the encryption EKS always does."""
    deletion_protection: bool = False
    """Whether AWS refuses to delete the cluster."""
    system_nodes: SystemNodesSettings = SystemNodesSettings()
    """The nodes that controllers and CPU jobs run on."""
    addon_versions: dict[str, str] = Field(default_factory=dict)
    """Versions of EKS add-ons that differ from the pinned ones, by add-on name."""

    @field_validator("version")
    @classmethod
    def _check_version(cls, value: str) -> str:
        if int(value.partition(".")[2]) < int(versions.KUBERNETES.partition(".")[2]):
            raise ValueError(f"the add-ons and images are pinned for {versions.KUBERNETES}; older clusters are not supported")
        return value

    @field_validator("addon_versions")
    @classmethod
    def _check_addons(cls, value: dict[str, str]) -> dict[str, str]:
        unknown = sorted(set(value) - set(versions.EKS_ADDONS))
        if unknown:
            raise ValueError(f"unknown add-on {', '.join(unknown)}; allowed: {', '.join(versions.EKS_ADDONS)}")
        return value

    @field_validator("admins")
    @classmethod
    def _check_admins(cls, value: tuple[AdminSettings, ...]) -> tuple[AdminSettings, ...]:
        for field in ("name", "principal_arn"):
            seen = [getattr(admin, field) for admin in value]
            twice = sorted({item for item in seen if seen.count(item) > 1})
            if twice:
                raise ValueError(f"{', '.join(twice)} stands there twice; one access entry per principal")
        return value
