"""Settings of the training pools."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from infra import catalogue, versions
from infra.settings.base import DnsName, Duration, Settings
from infra.settings.network import ZoneName

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Reason = Literal["Drifted", "Underutilized", "Empty"]


class GroupPlacement(Settings):
    """All nodes of the pool in one cluster placement group, made here."""

    kind: Literal["group"]
    """Kind of placement."""


class ReservationPlacement(Settings):
    """Nodes out of capacity reservations that exist already (on-demand reservations or Capacity Blocks)."""

    kind: Literal["reservation"]
    """Kind of placement."""
    ids: tuple[Annotated[str, Field(pattern=r"^cr-[0-9a-z]+$")], ...] = Field(min_length=1, max_length=30)
    """Ids of the reservations."""


class NewReservationPlacement(Settings):
    """Nodes out of an on-demand capacity reservation made here; it costs from the moment it exists."""

    kind: Literal["new-reservation"]
    """Kind of placement."""
    instances: int = Field(ge=1, le=1000)
    """Instances to reserve."""


Placement = Annotated[GroupPlacement | ReservationPlacement | NewReservationPlacement, Field(discriminator="kind")]


class AliasImage(Settings):
    """Node image by pinned alias."""

    kind: Literal["alias"]
    """Kind of image reference."""
    alias: str = Field(pattern=r"^al2023@v[0-9]{8}$")
    """Pinned release of the EKS image of Amazon Linux 2023, for instance al2023@v20260903; never @latest."""


class IdImage(Settings):
    """Node image by AMI id."""

    kind: Literal["id"]
    """Kind of image reference."""
    id: str = Field(pattern=r"^ami-[0-9a-z]+$")
    """AMI id; the image must be of the AL2023 family."""


Image = Annotated[AliasImage | IdImage, Field(discriminator="kind")]


class DisruptionWindow(Settings):
    """Hours of the week (UTC) in which Karpenter may replace nodes of the pool; outside of all windows it may not."""

    reasons: tuple[Literal["Drifted", "Underutilized"], ...] = Field(min_length=1)
    """What Karpenter may act on."""
    days: tuple[Day, ...] = Field(min_length=1)
    """Days on which the window opens."""
    start: str = Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")
    """When it opens, HH:MM in UTC."""
    hours: int = Field(ge=1, le=24)
    """How long it stays open."""
    nodes: str = Field(default="1", pattern=r"^([0-9]+|[0-9]{1,2}%|100%)$")
    """Most nodes in disruption at a time in the window, a number or a percentage."""


class PoolSettings(Settings):
    """A training pool: nodes of one instance type that Karpenter adds when jobs need them and removes when they are empty."""

    name: DnsName
    """Name of the pool; jobs select it by this name."""
    instance_type: str
    """The pool's one EC2 instance type."""
    zone: ZoneName | None = None
    """The availability zone of all nodes. Required with EFA or a placement: neither reaches across zones."""
    efa: bool = False
    """Whether nodes get all the EFA interfaces their type has."""
    placement: Placement | None = None
    """Placement group or capacity reservation; one of them, because a reservation not made in the group cannot be used with it."""
    image: Image = AliasImage(kind="alias", alias=f"al2023@v{versions.AL2023_RELEASE}")
    """Node image."""
    max_nodes: int = Field(ge=1, le=1000)
    """Most nodes; becomes the pool's limits."""
    root_volume_gib: int = Field(default=500, ge=20, le=16384)
    """Size of the encrypted gp3 root volume, GiB."""
    local_scratch: bool = True
    """Whether the instance store becomes one RAID0 scratch volume for pods, where the type has one."""
    consolidate_after: Duration = "10m"
    """How long a node stays empty before it is removed."""
    termination_grace_period: Duration = "1h"
    """Longest drain of a node; it must cover writing a checkpoint, since it overrides every protection of pods."""
    disruption_windows: tuple[DisruptionWindow, ...] = ()
    """When Karpenter may replace nodes that are in use. None: never."""

    @field_validator("instance_type")
    @classmethod
    def _check_type(cls, value: str) -> str:
        catalogue.require(value)
        return value

    @model_validator(mode="after")
    def _check_together(self) -> "PoolSettings":
        kind = catalogue.require(self.instance_type)
        if self.efa and not kind.efa_max:
            same = [name for name in catalogue.efa_type_names() if name.startswith(kind.family)]
            near = ", ".join(same or ["p5.48xlarge", "p4d.24xlarge"])
            raise ValueError(f"efa: true, but instanceType {self.instance_type} has no EFA; types that do: {near}")
        if self.zone is None and (self.efa or self.placement):
            why = "efa: true" if self.efa else f"placement {self.placement.kind if self.placement else ''}"
            raise ValueError(f"zone is required with {why}: name the one availability zone of all nodes")
        if isinstance(self.placement, GroupPlacement) and self.instance_type.startswith(("t2.", "t3.", "t3a.", "t4g.", "m7i-flex.")):
            raise ValueError(f"instanceType {self.instance_type} cannot be in a cluster placement group")
        if isinstance(self.placement, NewReservationPlacement) and self.placement.instances > self.max_nodes:
            raise ValueError(f"placement reserves {self.placement.instances} instances, but maxNodes is {self.max_nodes}")
        return self

    @property
    def capacity_type(self) -> Literal["on-demand", "reserved"]:
        """Karpenter's capacity type of the pool. Spot is no choice for training pools."""
        return "reserved" if isinstance(self.placement, (ReservationPlacement, NewReservationPlacement)) else "on-demand"
