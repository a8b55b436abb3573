"""Availability zones, and which instance types they offer."""

from collections.abc import Mapping
from typing import Any

from local.plugins.aws.clients import Clients
from local.plugins.aws.functions.query import ask, filters, only, region_of, result


def _zones(clients: Clients, args: Mapping[str, Any], **exact: Any) -> list[dict[str, Any]]:
    params = {"Filters": filters(args, state=args.get("state"), **exact), "AllAvailabilityZones": bool(args.get("allAvailabilityZones"))}
    return ask(clients, "ec2", "DescribeAvailabilityZones", params, args)["AvailabilityZones"]


def availability_zones(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """Zones of a region, by name, without the excluded ones."""
    names, ids = set(args.get("excludeNames") or ()), set(args.get("excludeZoneIds") or ())
    found = sorted(
        (zone for zone in _zones(clients, args) if zone["ZoneName"] not in names and zone["ZoneId"] not in ids),
        key=lambda zone: zone["ZoneName"],
    )
    region = region_of(clients, args)
    return {
        **args,
        "region": region,
        "id": region,
        "names": [zone["ZoneName"] for zone in found],
        "zoneIds": [zone["ZoneId"] for zone in found],
        "groupNames": sorted({zone.get("GroupName") or region for zone in found}),
    }


def availability_zone(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """One zone, by name or id."""
    zone = only(_zones(clients, args, zone_name=args.get("name"), zone_id=args.get("zoneId")), "availability zone", args)
    name = zone["ZoneName"]
    region = zone.get("RegionName") or region_of(clients, args)
    return result(
        "aws:index/getAvailabilityZone:getAvailabilityZone",
        zone,
        args,
        id=name,
        name=name,
        nameSuffix=name.removeprefix(region),
        region=region,
    )


def instance_type_offerings(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """Instance types and the places that offer them, as two lists of equal length."""
    params: dict[str, Any] = {"LocationType": args.get("locationType") or "region", "Filters": filters(args)}
    offered: list[dict[str, Any]] = []
    while True:
        page = ask(clients, "ec2", "DescribeInstanceTypeOfferings", params, args)
        offered += page["InstanceTypeOfferings"]
        if not page.get("NextToken"):
            break
        params["NextToken"] = page["NextToken"]
    offered.sort(key=lambda one: (one["InstanceType"], one["Location"]))
    return {
        **args,
        "id": region_of(clients, args),
        "region": region_of(clients, args),
        "instanceTypes": [one["InstanceType"] for one in offered],
        "locations": [one["Location"] for one in offered],
        "locationTypes": [one["LocationType"] for one in offered],
    }


FUNCTIONS = {
    "aws:index/getAvailabilityZones:getAvailabilityZones": availability_zones,
    "aws:index/getAvailabilityZone:getAvailabilityZone": availability_zone,
    "aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings": instance_type_offerings,
}
