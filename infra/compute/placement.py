"""Where a pool's instances stand: one cluster placement group, or one capacity reservation."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import child_options, token
from infra.settings import GroupPlacement, NewReservationPlacement, PoolSettings, ReservationPlacement


@dataclass(frozen=True, kw_only=True)
class PlacementArgs:
    """What a Placement needs to know."""

    pool: PoolSettings
    """The pool, with its choice of placement."""


class Placement(pulumi.ComponentResource):
    """The placement a pool asks for. Never both kinds: a reservation not made in the group cannot be used with it."""

    group_id: pulumi.Output[str] | None
    """Id of the placement group (pg-...), or None with a reservation."""
    reservation_ids: Sequence[pulumi.Input[str]]
    """Ids of the capacity reservations; empty with a placement group."""

    def __init__(self, name: str, args: PlacementArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        choice = args.pool.placement
        if choice is None:
            raise ValueError(f"pool {args.pool.name!r} asks for no placement, so it gets no Placement component")
        super().__init__(token("compute", "Placement"), name, {"kind": choice.kind, "zone": args.pool.zone}, opts)
        self.group_id, self.reservation_ids = None, []
        match choice:
            case GroupPlacement():
                group = aws.ec2.PlacementGroup(name, strategy="cluster", tags={"Name": name}, opts=child_options(self))
                self.group_id = group.placement_group_id
            case ReservationPlacement():
                self.reservation_ids = list(choice.ids)
            case NewReservationPlacement():
                self.reservation_ids = [self._reserve(name, args.pool, choice.instances)]
        self.register_outputs({"group_id": self.group_id, "reservation_ids": self.reservation_ids})

    def _reserve(self, name: str, pool: PoolSettings, instances: int) -> pulumi.Output[str]:
        reservation = aws.ec2.CapacityReservation(
            name,
            instance_type=pool.instance_type,
            instance_platform="Linux/UNIX",
            availability_zone=pool.zone or "",
            instance_count=instances,
            # Only launches that name it draw from it, or a node of another pool takes a paid place.
            instance_match_criteria="targeted",
            end_date_type="unlimited",
            ebs_optimized=True,
            tags={"Name": name},
            opts=child_options(self),
        )
        return reservation.id
