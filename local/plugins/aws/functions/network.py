"""VPCs and subnets that are there already."""

from collections.abc import Mapping
from typing import Any

from local.errors import LocalStackError
from local.plugins.aws.clients import Clients
from local.plugins.aws.functions.query import ask, filters, only, region_of, result


def subnets(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """Ids of all matching subnets, sorted."""
    found = ask(clients, "ec2", "DescribeSubnets", {"Filters": filters(args)}, args)["Subnets"]
    region = region_of(clients, args)
    return {**args, "id": region, "region": region, "ids": sorted(subnet["SubnetId"] for subnet in found)}


def subnet(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """The one matching subnet."""
    exact = {
        "subnet_id": args.get("id"),
        "vpc_id": args.get("vpcId"),
        "availability_zone": args.get("availabilityZone"),
        "cidr_block": args.get("cidrBlock"),
        "state": args.get("state"),
        "default_for_az": args.get("defaultForAz"),
    }
    found = only(ask(clients, "ec2", "DescribeSubnets", {"Filters": filters(args, **exact)}, args)["Subnets"], "subnet", args)
    return result(
        "aws:ec2/getSubnet:getSubnet",
        found,
        args,
        id=found["SubnetId"],
        arn=found.get("SubnetArn"),
        region=region_of(clients, args),
        availableIpAddressCount=found.get("AvailableIpAddressCount"),
    )


def vpc(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """The one matching VPC."""
    exact = {"vpc_id": args.get("id"), "cidr": args.get("cidrBlock"), "state": args.get("state"), "is_default": args.get("default")}
    named = {name.replace("is_default", "isDefault"): value for name, value in exact.items()}
    found = only(ask(clients, "ec2", "DescribeVpcs", {"Filters": filters(args, **named)}, args)["Vpcs"], "VPC", args)
    region, vpc_id = region_of(clients, args), found["VpcId"]
    return result(
        "aws:ec2/getVpc:getVpc",
        found,
        args,
        id=vpc_id,
        region=region,
        arn=f"arn:aws:ec2:{region}:{clients.account}:vpc/{vpc_id}",
        default=found.get("IsDefault"),
        mainRouteTableId=_main_table(clients, args, vpc_id),
        enableDnsSupport=_attribute(clients, args, vpc_id, "enableDnsSupport"),
        enableDnsHostnames=_attribute(clients, args, vpc_id, "enableDnsHostnames"),
    )


def _main_table(clients: Clients, args: Mapping[str, Any], vpc_id: str) -> str | None:
    mine = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "association.main", "Values": ["true"]}]
    tables = ask(clients, "ec2", "DescribeRouteTables", {"Filters": mine}, args)["RouteTables"]
    return tables[0]["RouteTableId"] if tables else None


def _attribute(clients: Clients, args: Mapping[str, Any], vpc_id: str, name: str) -> bool:
    answer = ask(clients, "ec2", "DescribeVpcAttribute", {"VpcId": vpc_id, "Attribute": name}, args)
    key = f"{name[0].upper()}{name[1:]}"
    if key not in answer:
        raise LocalStackError(f"DescribeVpcAttribute answered without {key} for {vpc_id}")
    return answer[key]["Value"]


FUNCTIONS = {
    "aws:ec2/getSubnets:getSubnets": subnets,
    "aws:ec2/getSubnet:getSubnet": subnet,
    "aws:ec2/getVpc:getVpc": vpc,
}
