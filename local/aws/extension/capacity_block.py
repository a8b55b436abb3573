"""EC2 Capacity Blocks for ML and spot placement scores: what is offered follows from the request, as there is no market here.

Source: botocore ec2 2016-11-15; EC2 user guide, "Capacity Blocks for ML" (1 to 14 days in steps of one, then weeks to 26;
1 to 64 instances; they start and end at 11:30 UTC).
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from moto.ec2.responses import EC2Response

from local.aws.extension.capacity_reservation import described, new_reservation
from local.aws.extension.hooks import Call, Params, Refusal, add_operations
from local.aws.extension.price import hourly_price
from local.aws.extension.store import ec2_of, new_id, store_of
from local.aws.extension.tags import tag_on_create

FAMILIES = ("p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "trn1", "trn2")
MAX_INSTANCES = 64
MAX_DAYS = 26 * 7


def describe_offerings(call: Call, given: Params) -> Params:
    """DescribeCapacityBlockOfferings: one offering a zone that has the instance type, from the next 11:30 UTC after the wanted start."""
    kind, count, hours = given.get("InstanceType", ""), given.get("InstanceCount") or 1, given["CapacityDurationHours"]
    if kind.partition(".")[0] not in FAMILIES:
        raise Refusal("InvalidParameterValue", f"Capacity Blocks are not offered for the instance type '{kind}'.")
    if not 1 <= count <= MAX_INSTANCES:
        raise Refusal("InvalidParameterValue", f"The instance count '{count}' must be between 1 and {MAX_INSTANCES}.")
    days = hours / 24
    if hours % 24 or not 1 <= days <= MAX_DAYS or (days > 14 and days % 7):
        raise Refusal("InvalidParameterValue", f"The duration '{hours}' hours must be 1 to 14 days, or weeks up to {MAX_DAYS} days.")
    start = _next_start(given.get("StartDateRange"))
    offered = ec2_of(call).describe_instance_type_offerings(location_type="availability-zone", filters={"instance-type": [kind]})
    offerings = [_offering(call, zone["Location"], kind, count, hours, start) for zone in offered]
    store_of(call).capacity_block_offerings.update({offering["CapacityBlockOfferingId"]: offering for offering in offerings})
    return {"CapacityBlockOfferings": offerings}


def _next_start(wanted: Any) -> datetime:
    earliest = max(datetime.now(UTC), wanted.replace(tzinfo=wanted.tzinfo or UTC) if wanted else datetime.now(UTC))
    start = earliest.replace(hour=11, minute=30, second=0, microsecond=0)
    return start if start > earliest else start + timedelta(days=1)


def _offering(call: Call, zone: str, kind: str, count: int, hours: int, start: datetime) -> Params:
    return {
        "CapacityBlockOfferingId": new_id("cb"),
        "InstanceType": kind,
        "AvailabilityZone": zone,
        "InstanceCount": count,
        "StartDate": start,
        "EndDate": start + timedelta(hours=hours),
        "CapacityBlockDurationHours": hours,
        "UpfrontFee": f"{hourly_price(ec2_of(call), kind) * count * hours:.2f}",
        "CurrencyCode": "USD",
        "Tenancy": "default",
    }


def purchase(call: Call, given: Params) -> Params:
    """PurchaseCapacityBlock: a targeted reservation that becomes active at the block's start."""
    offering = store_of(call).capacity_block_offerings.pop(given["CapacityBlockOfferingId"], None)
    if offering is None:
        raise Refusal("InvalidCapacityBlockOfferingId.NotFound", f"The offering '{given['CapacityBlockOfferingId']}' does not exist.")
    record = new_reservation(call, offering["InstanceType"], offering["AvailabilityZone"], offering["InstanceCount"])
    record |= {
        "InstancePlatform": given["InstancePlatform"],
        "Tenancy": "default",
        "EbsOptimized": True,
        "EphemeralStorage": False,
        "EndDateType": "limited",
        "InstanceMatchCriteria": "targeted",
        "ReservationType": "capacity-block",
        "StartDate": offering["StartDate"],
        "EndDate": offering["EndDate"],
        "State": "scheduled",
    }
    store_of(call).capacity_reservations[record["CapacityReservationId"]] = record
    tag_on_create(call, record["CapacityReservationId"], "capacity-reservation", given.get("TagSpecifications"))
    return {"CapacityReservation": described(call, record)}


def spot_placement_scores(call: Call, given: Params) -> Params:
    """GetSpotPlacementScores: 10 minus one for each tenth instance asked, and 1 for what the region does not offer."""
    regions = given.get("RegionNames") or [call.region]
    wanted = set(given.get("InstanceTypes") or [])
    scores = []
    for region in regions:
        offered = ec2_of(call).describe_instance_type_offerings(location_type="region", filters={"instance-type": sorted(wanted)})
        full = len({each["InstanceType"] for each in offered}) == len(wanted)
        scores.append({"Region": region, "Score": max(10 - given["TargetCapacity"] // 10, 1) if full else 1})
    return {"SpotPlacementScores": scores}


def install() -> None:
    """Add the operations to EC2."""
    add_operations(
        EC2Response,
        {
            "describe_capacity_block_offerings": describe_offerings,
            "purchase_capacity_block": purchase,
            "get_spot_placement_scores": spot_placement_scores,
        },
    )
