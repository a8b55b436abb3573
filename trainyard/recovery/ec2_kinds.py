"""How EC2's resources are looked for."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from infra import labels
from local.aws.inventory import Account
from trainyard.recovery.tagging import tags_of
from trainyard.recovery.wanted import Found, Wanted

_GONE = ("deleted", "deleting", "cancelled", "expired")
# Property of a rule -> field in AWS's answer.
_RULE = {
    "ipProtocol": "IpProtocol",
    "fromPort": "FromPort",
    "toPort": "ToPort",
    "cidrIpv4": "CidrIpv4",
    "cidrIpv6": "CidrIpv6",
    "prefixListId": "PrefixListId",
}
_DESTINATIONS = {
    "destinationCidrBlock": "DestinationCidrBlock",
    "destinationIpv6CidrBlock": "DestinationIpv6CidrBlock",
    "destinationPrefixListId": "DestinationPrefixListId",
}


def _tagged(
    operation: str, member: str, identity: str, same: Mapping[str, str], *, filters: str = "Filters"
) -> Callable[[Account, Wanted], Iterator[Found]]:
    """A kind whose list can be asked for by tag, in parameter `filters`. `same` maps distinguishing inputs to fields of an item."""

    def kind(account: Account, wanted: Wanted) -> Iterator[Found]:
        ours = [{"Name": "tag-key", "Values": [labels.TAG_STACK]}]
        for item in account.every("ec2", operation, member, **{filters: ours}):
            condition = str(item.get("State", "")) if isinstance(item.get("State"), str) else ""
            if condition.lower() not in _GONE:
                inputs = {prop: item.get(field) for prop, field in same.items()}
                yield Found(id=item[identity], inputs=inputs, tags=tags_of(item.get("Tags")), condition=condition)

    return kind


def _rule(account: Account, wanted: Wanted, *, egress: bool) -> Iterator[Found]:
    group = wanted.known("securityGroupId")
    if not group:
        return
    mine = [{"Name": "group-id", "Values": [group]}]
    for item in account.every("ec2", "describe_security_group_rules", "SecurityGroupRules", Filters=mine):
        if item["IsEgress"] == egress and _rule_fields(item) == _declared_fields(wanted):
            yield Found(id=item["SecurityGroupRuleId"], tags=tags_of(item.get("Tags")))


def _rule_fields(item: Mapping[str, Any]) -> dict[str, str]:
    fields = {prop: item.get(field) for prop, field in _RULE.items()}
    fields["referencedSecurityGroupId"] = (item.get("ReferencedGroupInfo") or {}).get("GroupId")
    # AWS writes -1 for the ports of a rule about every protocol.
    return {prop: str(value) for prop, value in fields.items() if value not in (None, "", -1)}


def _declared_fields(wanted: Wanted) -> dict[str, str | None]:
    names = (*_RULE, "referencedSecurityGroupId")
    return {prop: wanted.known(prop) for prop in names if wanted.inputs.get(prop) not in (None, -1, "-1") or prop == "ipProtocol"}


def _ingress(account: Account, wanted: Wanted) -> Iterator[Found]:
    yield from _rule(account, wanted, egress=False)


def _egress(account: Account, wanted: Wanted) -> Iterator[Found]:
    yield from _rule(account, wanted, egress=True)


def _route(account: Account, wanted: Wanted) -> Iterator[Found]:
    table = wanted.known("routeTableId")
    for prop, field in _DESTINATIONS.items():
        destination = wanted.known(prop)
        if table and destination:
            for each in account.every("ec2", "describe_route_tables", "RouteTables", RouteTableIds=[table]):
                if any(route.get(field) == destination for route in each["Routes"]):
                    # The plug-in's own form of an id: AWS has none.
                    yield Found(id=f"r-{table}{zlib.crc32(destination.encode())}")


def _route_table_association(account: Account, wanted: Wanted) -> Iterator[Found]:
    if table := wanted.known("routeTableId"):
        for each in account.every("ec2", "describe_route_tables", "RouteTables", RouteTableIds=[table]):
            for association in each["Associations"]:
                if not association.get("Main") and association.get("SubnetId") == wanted.known("subnetId"):
                    yield Found(id=association["RouteTableAssociationId"])


KINDS: Mapping[str, Callable[[Account, Wanted], Iterator[Found]]] = {
    "aws:ec2/vpc:Vpc": _tagged("describe_vpcs", "Vpcs", "VpcId", {"cidrBlock": "CidrBlock"}),
    "aws:ec2/subnet:Subnet": _tagged(
        "describe_subnets",
        "Subnets",
        "SubnetId",
        {"vpcId": "VpcId", "cidrBlock": "CidrBlock", "availabilityZone": "AvailabilityZone"},
    ),
    "aws:ec2/internetGateway:InternetGateway": _tagged("describe_internet_gateways", "InternetGateways", "InternetGatewayId", {}),
    "aws:ec2/eip:Eip": _tagged("describe_addresses", "Addresses", "AllocationId", {}),
    "aws:ec2/natGateway:NatGateway": _tagged(
        "describe_nat_gateways", "NatGateways", "NatGatewayId", {"subnetId": "SubnetId"}, filters="Filter"
    ),
    "aws:ec2/routeTable:RouteTable": _tagged("describe_route_tables", "RouteTables", "RouteTableId", {"vpcId": "VpcId"}),
    "aws:ec2/route:Route": _route,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _route_table_association,
    "aws:ec2/vpcEndpoint:VpcEndpoint": _tagged(
        "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", {"vpcId": "VpcId", "serviceName": "ServiceName"}
    ),
    "aws:ec2/securityGroup:SecurityGroup": _tagged(
        "describe_security_groups", "SecurityGroups", "GroupId", {"vpcId": "VpcId", "name": "GroupName"}
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _ingress,
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _egress,
    "aws:ec2/launchTemplate:LaunchTemplate": _tagged(
        "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId", {"name": "LaunchTemplateName"}
    ),
    "aws:ec2/placementGroup:PlacementGroup": _tagged("describe_placement_groups", "PlacementGroups", "GroupName", {"name": "GroupName"}),
    "aws:ec2/capacityReservation:CapacityReservation": _tagged(
        "describe_capacity_reservations",
        "CapacityReservations",
        "CapacityReservationId",
        {"instanceType": "InstanceType", "availabilityZone": "AvailabilityZone"},
    ),
}
"""Type token -> function that yields what may be a wanted resource."""
