"""Arithmetic of subnet ranges: pure functions of the VPC's range and its zones."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ZoneSubnets:
    """The ranges of one availability zone."""

    zone: str
    private_cidr: str
    """Large: nodes, and every pod by the VPC CNI, take their addresses here."""
    public_cidr: str
    """Small: NAT gateways and internet-facing load balancers only."""


def plan_subnets(vpc_cidr: str, zones: Sequence[str]) -> list[ZoneSubnets]:
    """Divide `vpc_cidr` among `zones`: one equal private block each, and the next block shared by the public subnets.

    The plan depends on the number of zones only, so that renaming a zone moves no range. Raises ValueError where a public subnet would be
    smaller than EC2's /28.
    """
    network = ipaddress.IPv4Network(vpc_cidr)
    count = len(zones)
    if not count:
        raise ValueError("at least one zone is needed to plan subnets")
    block_prefix = network.prefixlen + _bits(count + 1)
    public_prefix = block_prefix + _bits(count)
    if public_prefix > 28:
        raise ValueError(f"{vpc_cidr} is too small for {count} zones: public subnets would be /{public_prefix}, EC2 allows /28 at least")
    blocks = list(network.subnets(new_prefix=block_prefix))
    publics = list(blocks[count].subnets(new_prefix=public_prefix))
    return [ZoneSubnets(zone=zone, private_cidr=str(blocks[index]), public_cidr=str(publics[index])) for index, zone in enumerate(zones)]


def _bits(count: int) -> int:
    """Return how many bits number `count` things."""
    return max(count - 1, 0).bit_length()
