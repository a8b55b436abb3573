"""Launching instances: network interfaces (EFA), placement groups and reservations, in launch templates, RunInstances and CreateFleet.

Sources: botocore ec2 2016-11-15; EC2 user guide, "Elastic Fabric Adapter" (limits: DescribeInstanceTypes), "Placement group rules".
A launch template is stored without looking at its instance type, as on AWS; the launch is what fails.
"""

from typing import Any

from moto.ec2.responses import EC2Response

from local.aws.extension import placement_group
from local.aws.extension.hooks import Call, Params, Refusal, add_completions, add_guards
from local.aws.extension.store import ec2_of, store_of

INTERFACE_TYPES = ("interface", "efa", "efa-only")
# EC2 does not put these in a cluster placement group.
NOT_IN_CLUSTER = ("t2.", "t3.", "t3a.", "t4g.", "mac", "m7i-flex.")


def check_template(call: Call, given: Params) -> None:
    """CreateLaunchTemplate and its versions: interface types and their order."""
    check_interfaces((given.get("LaunchTemplateData") or {}).get("NetworkInterfaces") or [])


def check_run(call: Call, given: Params) -> None:
    """RunInstances: the request over its launch template."""
    check_launch(call, _merged(call, given.get("LaunchTemplate"), given), given.get("SubnetId"))


def check_fleet(call: Call, given: Params) -> None:
    """CreateFleet: every override over its launch template."""
    for configuration in given.get("LaunchTemplateConfigs") or []:
        for override in configuration.get("Overrides") or [{}]:
            data = _merged(call, configuration.get("LaunchTemplateSpecification"), {})
            check_launch(
                call, data | ({"InstanceType": override["InstanceType"]} if "InstanceType" in override else {}), override.get("SubnetId")
            )


def check_launch(call: Call, data: Params, subnet_id: str | None) -> None:
    """One launch: interfaces against the instance type's limits, and the placement group."""
    interfaces = data.get("NetworkInterfaces") or []
    check_interfaces(interfaces)
    kind = data.get("InstanceType")
    if kind:
        _check_limits(call, kind, interfaces)
    name = (data.get("Placement") or {}).get("GroupName") or (data.get("Placement") or {}).get("GroupId")
    if name:
        _check_group(call, name, kind or "", subnet_id)


def check_interfaces(interfaces: list[Params]) -> None:
    """What holds for every instance type."""
    places = [(each.get("NetworkCardIndex") or 0, each.get("DeviceIndex")) for each in interfaces]
    if len(set(places)) != len(places):
        raise Refusal("InvalidParameterValue", "Each network interface needs a pair of network card and device index of its own.")
    for interface, place in zip(interfaces, places, strict=True):
        kind = interface.get("InterfaceType") or "interface"
        if kind not in INTERFACE_TYPES:
            raise Refusal("InvalidParameterValue", f"Invalid interfaceType '{kind}': must be one of {', '.join(INTERFACE_TYPES)}.")
        if kind == "efa-only" and place == (0, 0):
            raise Refusal("InvalidParameterCombination", "The primary network interface can't be of the type efa-only.")
        addresses = ("Ipv6Addresses", "PrivateIpAddresses", "Ipv4Prefixes", "PrivateIpAddress", "SecondaryPrivateIpAddressCount")
        if kind == "efa-only" and any(interface.get(name) for name in addresses):
            raise Refusal("InvalidParameterCombination", "A network interface of the type efa-only can't have IP addresses.")
    if len(interfaces) > 1 and any(interface.get("AssociatePublicIpAddress") for interface in interfaces):
        raise Refusal(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.",
        )


def _check_limits(call: Call, kind: str, interfaces: list[Params]) -> None:
    found = ec2_of(call).describe_instance_types([kind])[0]["NetworkInfo"]
    efa = [each for each in interfaces if (each.get("InterfaceType") or "interface").startswith("efa")]
    most = found.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    if efa and not found.get("EfaSupported"):
        raise Refusal("InvalidParameterCombination", f"The instance type '{kind}' does not support Elastic Fabric Adapter.")
    if len(efa) > most:
        raise Refusal("AttachmentLimitExceeded", f"The instance type '{kind}' supports {most} EFA interfaces, {len(efa)} were specified.")
    cards = [each.get("NetworkCardIndex") or 0 for each in efa]
    if len(set(cards)) != len(cards):
        raise Refusal("AttachmentLimitExceeded", "A network card takes one EFA interface.")
    number = found.get("MaximumNetworkCards", 1)
    for interface in interfaces:
        if (interface.get("NetworkCardIndex") or 0) >= number:
            raise Refusal(
                "InvalidParameterValue",
                f"Invalid network card index '{interface['NetworkCardIndex']}': the instance type '{kind}' has {number} network cards.",
            )


def _check_group(call: Call, name: str, kind: str, subnet_id: str | None) -> None:
    group = placement_group.find(call, name)
    if group is None:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    if group["Strategy"] != "cluster":
        return
    if kind.startswith(NOT_IN_CLUSTER):
        raise Refusal("InvalidParameterCombination", f"The instance type '{kind}' can't be launched in a cluster placement group.")
    zone = _zone_of_subnet(call, subnet_id)
    used = {instance.placement.zone for instance in _members(call, group["GroupName"])}
    if zone and used and zone not in used:
        raise Refusal(
            "InsufficientInstanceCapacity", f"The placement group '{name}' has instances in {', '.join(sorted(used))}, not in {zone}."
        )


def _members(call: Call, name: str) -> list[Any]:
    return [
        instance
        for reservation in ec2_of(call).reservations.values()
        for instance in reservation.instances
        if instance.placement.group_name == name and instance.state != "terminated"
    ]


def _zone_of_subnet(call: Call, subnet_id: str | None) -> str | None:
    return next((zone[subnet_id].availability_zone for zone in ec2_of(call).subnets.values() if subnet_id in zone), None)


def _merged(call: Call, template: Params | None, given: Params) -> Params:
    """A launch template's data with the request's own members over it."""
    data: Params = {}
    if template:
        data = dict(ec2_of(call)._get_template_from_args(template).data)
    own = {name: value for name, value in given.items() if value not in (None, [], {})}
    return data | own


def record_run(call: Call, given: Params, result: Any) -> None:
    """After RunInstances: group, reservation and groups that moto drops."""
    data = _merged(call, given.get("LaunchTemplate"), given)
    for instance in result.instances:
        _record(call, instance, data)


def record_fleet(call: Call, given: Params, result: Any) -> None:
    """After CreateFleet: the same for the fleet's instances."""
    ids = {each for launched in result.get("Instances") or [] for each in launched["InstanceIds"]}
    specification = (given.get("LaunchTemplateConfigs") or [{}])[0].get("LaunchTemplateSpecification")
    data = _merged(call, specification, {})
    for reservation in ec2_of(call).reservations.values():
        for instance in reservation.instances:
            if instance.id in ids:
                _record(call, instance, data)


def _record(call: Call, instance: Any, data: Params) -> None:
    placement = data.get("Placement") or {}
    name = placement.get("GroupName") or placement.get("GroupId")
    group = placement_group.find(call, name) if name else None
    if group:
        instance.placement.group_name = group["GroupName"]
    groups = {group_id for interface in data.get("NetworkInterfaces") or [] for group_id in interface.get("Groups") or []}
    groups |= set(data.get("SecurityGroupIds") or [])
    if groups:
        _carry(call, instance, groups)
    target = (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    record: Params = {"SecurityGroupIds": sorted(groups)}
    if target.get("CapacityReservationId"):
        record["CapacityReservationId"] = target["CapacityReservationId"]
        # DescribeInstances shows it, as moto's serializer looks for members by name.
        instance.capacity_reservation_id = target["CapacityReservationId"]
    store_of(call).instance_placements[instance.id] = record


def _carry(call: Call, instance: Any, group_ids: set[str]) -> None:
    """Let an instance and its interfaces carry the groups of a launch template; moto's fleets drop them."""
    found = [group for groups in ec2_of(call).groups.values() for group in groups.values() if group.id in group_ids]
    instance.security_groups = found
    for interface in instance.nics.values():
        interface._group_set = list(found)


def filter_statuses(call: Call, given: Params, result: Any) -> None:
    """DescribeInstanceStatus: filters on status and events, which moto ignores. Nothing is impaired here, no event is planned."""
    for wanted in given.get("Filters") or []:
        if wanted["Name"] in ("instance-status.status", "system-status.status") and "ok" not in wanted["Values"]:
            result["InstanceStatuses"] = []
        if wanted["Name"].startswith("event."):
            result["InstanceStatuses"] = []


def ask_for_all(call: Call, given: Params) -> None:
    """DescribeLaunchTemplates and their versions: moto cuts the answer at 15 without saying so."""
    call.params.setdefault("MaxResults", 200)


def install() -> None:
    """Guard and complete EC2's launches."""
    add_guards(
        EC2Response,
        {
            "create_launch_template": check_template,
            "create_launch_template_version": check_template,
            "describe_launch_templates": ask_for_all,
            "describe_launch_template_versions": ask_for_all,
            "run_instances": check_run,
            "create_fleet": check_fleet,
        },
    )
    add_completions(EC2Response, {"run_instances": record_run, "create_fleet": record_fleet, "describe_instance_status": filter_statuses})
