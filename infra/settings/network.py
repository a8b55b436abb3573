"""Settings of the network."""

import ipaddress
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from infra.settings.base import Settings

ZoneName = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9][a-z]$")]

# What nodes and controllers call when nothing leads out of the VPC.
ENDPOINTS_WITHOUT_NAT = ("ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts")


class NetworkSettings(Settings):
    """The VPC and its subnets."""

    cidr: str = "10.0.0.0/16"
    """IPv4 range of the VPC, /16 to /20."""
    zones: tuple[ZoneName, ...] = Field(min_length=3, max_length=3)
    """The three availability zones, by name and in order; each gets a private and a public subnet."""
    nat: Literal["none", "single", "per-az"] = "single"
    """NAT gateways: none (interface endpoints needed), a single one, or one per zone."""
    interface_endpoints: tuple[str, ...] = ()
    """AWS services reached through interface endpoints in the private subnets, for instance ecr.api, sts."""

    @field_validator("cidr")
    @classmethod
    def _check_cidr(cls, value: str) -> str:
        try:
            network = ipaddress.IPv4Network(value)
        except ValueError as error:
            raise ValueError(f"must be an IPv4 range such as 10.0.0.0/16 ({error})") from None
        if not 16 <= network.prefixlen <= 20:
            raise ValueError("the VPC's range must be /16 to /20: nodes and pods take their addresses from it")
        if not network.is_private:
            raise ValueError("must be a private range (10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16)")
        return value

    @field_validator("zones")
    @classmethod
    def _check_zones(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("names a zone twice; each zone gets one subnet of a kind")
        return value

    @model_validator(mode="after")
    def _check_nat(self) -> "NetworkSettings":
        missing = [name for name in ENDPOINTS_WITHOUT_NAT if name not in self.interface_endpoints]
        if self.nat == "none" and missing:
            raise ValueError(f"nat none needs interfaceEndpoints for {', '.join(missing)}; add them or choose nat single or per-az")
        return self
