"""EC2 on-demand capacity reservations. Source: botocore ec2 2016-11-15; EC2 user guide, "Capacity Reservations"."""

from datetime import UTC, datetime

from moto.ec2.responses import EC2Response

from local.aws.extension import placement_group
from local.aws.extension.hooks import Call, Params, Refusal, add_operations
from local.aws.extension.store import Record, ec2_of, new_id, store_of
from local.aws.extension.tags import matches, tag_on_create, tags_of

MATCH_CRITERIA = ("open", "targeted")
END_TYPES = ("unlimited", "limited")
FILTERS = {
    "instance-type": "InstanceType",
    "owner-id": "OwnerId",
    "instance-platform": "InstancePlatform",
    "availability-zone": "AvailabilityZone",
    "tenancy": "Tenancy",
    "state": "State",
    "end-date-type": "EndDateType",
    "instance-match-criteria": "InstanceMatchCriteria",
    "placement-group-arn": "PlacementGroupArn",
}


def create(call: Call, given: Params) -> Params:
    """CreateCapacityReservation; with `PlacementGroupArn` the group must exist and use the cluster strategy."""
    call.error_on_dryrun()
    zone = zone_of(call, given)
    _check_choices(given)
    group_arn = given.get("PlacementGroupArn")
    if group_arn:
        group = placement_group.find(call, group_arn)
        if group is None:
            raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{group_arn}' is unknown.")
        if group["Strategy"] != "cluster":
            raise Refusal("InvalidParameterCombination", "Capacity Reservations can be created in cluster placement groups only.")
    record = new_reservation(call, given["InstanceType"], zone, given["InstanceCount"])
    record |= {
        "InstancePlatform": given["InstancePlatform"],
        "Tenancy": given.get("Tenancy") or "default",
        "EbsOptimized": bool(given.get("EbsOptimized")),
        "EphemeralStorage": bool(given.get("EphemeralStorage")),
        "EndDateType": given.get("EndDateType") or "unlimited",
        "InstanceMatchCriteria": given.get("InstanceMatchCriteria") or "open",
        "ReservationType": "default",
    }
    if given.get("EndDate"):
        record["EndDate"] = given["EndDate"]
    if group_arn:
        record["PlacementGroupArn"] = group_arn
    store_of(call).capacity_reservations[record["CapacityReservationId"]] = record
    tag_on_create(call, record["CapacityReservationId"], "capacity-reservation", given.get("TagSpecifications"))
    return {"CapacityReservation": described(call, record)}


def new_reservation(call: Call, instance_type: str, zone: str, count: int) -> Record:
    """The members that every kind of reservation has. Instance type and zone must exist, the count be positive."""
    if not any(known["InstanceType"] == instance_type for known in ec2_of(call).describe_instance_types([])):
        raise Refusal("InvalidParameterValue", f"The instance type '{instance_type}' is not valid.")
    if count < 1:
        raise Refusal("InvalidParameterValue", f"The instance count '{count}' must be at least 1.")
    now = datetime.now(UTC)
    reservation_id = new_id("cr")
    return {
        "CapacityReservationId": reservation_id,
        "CapacityReservationArn": f"arn:{call.partition}:ec2:{call.region}:{call.current_account}:capacity-reservation/{reservation_id}",
        "OwnerId": call.current_account,
        "InstanceType": instance_type,
        "AvailabilityZone": zone,
        "AvailabilityZoneId": _zone_id(call, zone),
        "TotalInstanceCount": count,
        "State": "active",
        "StartDate": now,
        "CreateDate": now,
    }


def zone_of(call: Call, given: Params) -> str:
    """The zone's name, from a name or an id. InvalidParameterValue where the region has no such zone."""
    for zone in ec2_of(call).describe_availability_zones():
        if given.get("AvailabilityZone") == zone.name or given.get("AvailabilityZoneId") == zone.zone_id:
            return zone.name
    wanted = given.get("AvailabilityZone") or given.get("AvailabilityZoneId")
    if not wanted:
        raise Refusal("MissingParameter", "The request must contain the parameter availabilityZone or availabilityZoneId")
    raise Refusal("InvalidParameterValue", f"Invalid availability zone: [{wanted}]")


def _zone_id(call: Call, name: str) -> str:
    return next(zone.zone_id for zone in ec2_of(call).describe_availability_zones() if zone.name == name)


def _check_choices(given: Params) -> None:
    criteria, end = given.get("InstanceMatchCriteria") or "open", given.get("EndDateType") or "unlimited"
    if criteria not in MATCH_CRITERIA:
        raise Refusal("InvalidParameterValue", f"Invalid instanceMatchCriteria '{criteria}': must be open or targeted.")
    if end not in END_TYPES:
        raise Refusal("InvalidParameterValue", f"Invalid endDateType '{end}': must be unlimited or limited.")
    if (end == "limited") != bool(given.get("EndDate")):
        raise Refusal("InvalidParameterCombination", "endDate must be given if, and only if, endDateType is limited.")


def describe(call: Call, given: Params) -> Params:
    """DescribeCapacityReservations by id and filter; an unknown id is an error."""
    records = store_of(call).capacity_reservations
    ids = given.get("CapacityReservationIds") or list(records)
    for wanted in ids:
        if wanted not in records:
            raise Refusal("InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{wanted}' does not exist")
    chosen = [described(call, records[each]) for each in ids]
    return {"CapacityReservations": [record for record in chosen if matches(record, given.get("Filters"), FILTERS)]}


def described(call: Call, record: Record) -> Record:
    """A reservation with its tags and the number of instances still free."""
    used = sum(placement.get("CapacityReservationId") == record["CapacityReservationId"] for placement in _live_placements(call))
    free = max(record["TotalInstanceCount"] - used, 0) if record["State"] == "active" else 0
    return record | {"AvailableInstanceCount": free, "Tags": tags_of(call, record["CapacityReservationId"])}


def _live_placements(call: Call) -> list[Record]:
    placements = store_of(call).instance_placements
    return [
        placements[instance.id]
        for reservation in ec2_of(call).reservations.values()
        for instance in reservation.instances
        if instance.id in placements and instance.state != "terminated"
    ]


def _known(call: Call, given: Params) -> Record:
    wanted = given["CapacityReservationId"]
    record = store_of(call).capacity_reservations.get(wanted)
    if record is None:
        raise Refusal("InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{wanted}' does not exist")
    return record


def modify(call: Call, given: Params) -> Params:
    """ModifyCapacityReservation: count, end and match criteria of an active one."""
    record = _known(call, given)
    if record["State"] != "active":
        raise Refusal("InvalidCapacityReservationState", f"The capacity reservation is in the state '{record['State']}'.")
    if record["ReservationType"] == "capacity-block":
        raise Refusal("UnsupportedOperation", "A Capacity Block can't be modified.")
    if given.get("InstanceCount") is not None:
        used = record["TotalInstanceCount"] - described(call, record)["AvailableInstanceCount"]
        if given["InstanceCount"] < max(used, 1):
            raise Refusal("InvalidParameterValue", f"The instance count '{given['InstanceCount']}' is below the {used} instances in use.")
        record["TotalInstanceCount"] = given["InstanceCount"]
    if given.get("EndDateType") or given.get("EndDate"):
        _check_choices({"EndDateType": given.get("EndDateType") or "limited", "EndDate": given.get("EndDate")})
        record["EndDateType"] = given.get("EndDateType") or "limited"
        record["EndDate"] = given.get("EndDate")
    if given.get("InstanceMatchCriteria"):
        _check_choices({"InstanceMatchCriteria": given["InstanceMatchCriteria"]})
        record["InstanceMatchCriteria"] = given["InstanceMatchCriteria"]
    return {"Return": True}


def cancel(call: Call, given: Params) -> Params:
    """CancelCapacityReservation: it stays visible as cancelled; a Capacity Block can't be cancelled."""
    record = _known(call, given)
    if record["ReservationType"] == "capacity-block":
        raise Refusal("UnsupportedOperation", "A Capacity Block can't be cancelled.")
    if record["State"] != "active":
        raise Refusal("InvalidCapacityReservationState", f"The capacity reservation is in the state '{record['State']}'.")
    record["State"] = "cancelled"
    return {"Return": True}


def install() -> None:
    """Add the four operations to EC2."""
    add_operations(
        EC2Response,
        {
            "create_capacity_reservation": create,
            "describe_capacity_reservations": describe,
            "modify_capacity_reservation": modify,
            "cancel_capacity_reservation": cancel,
        },
    )
