"""EC2 placement groups. Source: botocore ec2 2016-11-15; EC2 user guide, "Placement groups"."""

from moto.ec2.responses import EC2Response

from local.aws.extension.hooks import Call, Params, Refusal, add_operations
from local.aws.extension.store import Record, ec2_of, new_id, store_of
from local.aws.extension.tags import forget_tags, matches, tag_on_create, tags_of

STRATEGIES = ("cluster", "partition", "spread", "precision-time")
MAX_PARTITIONS = 7
FILTERS = {
    "group-name": "GroupName",
    "group-arn": "GroupArn",
    "state": "State",
    "strategy": "Strategy",
    "spread-level": "SpreadLevel",
}


def create(call: Call, given: Params) -> Params:
    """CreatePlacementGroup: refuses what the catalogue's PG01 lists, and a name in use."""
    call.error_on_dryrun()
    groups = store_of(call).placement_groups
    name = given.get("GroupName")
    if not name:
        raise Refusal("MissingParameter", "The request must contain the parameter groupName")
    if name in groups:
        raise Refusal("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    group = _shape(given) | {"GroupName": name, "GroupId": new_id("pg"), "State": "available"}
    group["GroupArn"] = f"arn:{call.partition}:ec2:{call.region}:{call.current_account}:placement-group/{name}"
    groups[name] = group
    tag_on_create(call, group["GroupId"], "placement-group", given.get("TagSpecifications"))
    return {"PlacementGroup": described(call, group)}


def _shape(given: Params) -> Record:
    strategy = given.get("Strategy") or "cluster"
    partitions, level = given.get("PartitionCount"), given.get("SpreadLevel")
    if strategy not in STRATEGIES:
        raise Refusal("InvalidParameterValue", f"Invalid value '{strategy}' for strategy: must be one of {', '.join(STRATEGIES)}.")
    if partitions is not None and strategy != "partition":
        raise Refusal("InvalidParameterCombination", f"The parameter partitionCount cannot be used with the strategy '{strategy}'.")
    if partitions is not None and not 1 <= partitions <= MAX_PARTITIONS:
        raise Refusal("InvalidParameterValue", f"Invalid partition count '{partitions}': must be between 1 and {MAX_PARTITIONS}.")
    if level is not None and strategy != "spread":
        raise Refusal("InvalidParameterCombination", f"The parameter spreadLevel cannot be used with the strategy '{strategy}'.")
    if level == "host":
        raise Refusal("InvalidParameterValue", "Spread level 'host' is supported on AWS Outposts only.")
    shape: Record = {"Strategy": strategy}
    if strategy == "partition":
        shape["PartitionCount"] = partitions or 2
    if strategy == "spread":
        shape["SpreadLevel"] = level or "rack"
    return shape


def describe(call: Call, given: Params) -> Params:
    """DescribePlacementGroups by name, by id and by filter."""
    groups = store_of(call).placement_groups
    names, ids = given.get("GroupNames") or [], given.get("GroupIds") or []
    known_ids = {group["GroupId"] for group in groups.values()}
    for wanted in [name for name in names if name not in groups] + [each for each in ids if each not in known_ids]:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{wanted}' is unknown.")
    chosen = [
        described(call, group)
        for group in groups.values()
        if (not names or group["GroupName"] in names) and (not ids or group["GroupId"] in ids)
    ]
    return {"PlacementGroups": [group for group in chosen if matches(group, given.get("Filters"), FILTERS)]}


def described(call: Call, group: Record) -> Record:
    """A group with its tags."""
    return group | {"Tags": tags_of(call, group["GroupId"])}


def delete(call: Call, given: Params) -> None:
    """DeletePlacementGroup: refused while instances or capacity reservations are in it."""
    call.error_on_dryrun()
    groups = store_of(call).placement_groups
    name = given["GroupName"]
    if name not in groups:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if users(call, groups[name]):
        raise Refusal("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted.")
    forget_tags(call, groups.pop(name)["GroupId"])


def users(call: Call, group: Record) -> list[str]:
    """Ids of the live instances and active reservations in a group."""
    instances = [
        instance.id
        for reservation in ec2_of(call).reservations.values()
        for instance in reservation.instances
        if instance.placement.group_name == group["GroupName"] and instance.state != "terminated"
    ]
    reservations = [
        record["CapacityReservationId"]
        for record in store_of(call).capacity_reservations.values()
        if record.get("PlacementGroupArn") == group["GroupArn"] and record["State"] == "active"
    ]
    return instances + reservations


def find(call: Call, wanted: str) -> Record | None:
    """The group with this name, id or ARN."""
    for group in store_of(call).placement_groups.values():
        if wanted in (group["GroupName"], group["GroupId"], group["GroupArn"]):
            return group
    return None


def install() -> None:
    """Add the three operations to EC2."""
    add_operations(
        EC2Response,
        {"create_placement_group": create, "describe_placement_groups": describe, "delete_placement_group": delete},
    )
