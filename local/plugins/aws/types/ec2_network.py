"""VPC, subnet, gateways and addresses."""

from typing import Any

from local.plugins.aws.row import Call, Described, Prop, Row, Update, Wait, fixed, plain
from local.plugins.aws.run import Run
from local.plugins.aws.types.ec2 import ARN, DEPENDENTS, ec2_tags, first

_VPC_ATTRIBUTES = ("enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics")


def _describe_vpc(run: Run) -> dict[str, Any] | None:
    vpc = first(run, "DescribeVpcs", "Vpcs", VpcIds=[run.resource_id])
    if vpc is None:
        return None
    for attribute in _VPC_ATTRIBUTES:
        vpc |= run.call("DescribeVpcAttribute", {"VpcId": run.resource_id, "Attribute": attribute})
    return vpc


def _default_group(run: Run, vpc: Described) -> str | None:
    mine = [{"Name": "vpc-id", "Values": [run.resource_id]}, {"Name": "group-name", "Values": ["default"]}]
    group = first(run, "DescribeSecurityGroups", "SecurityGroups", Filters=mine)
    return group["GroupId"] if group else None


def _main_route_table(run: Run, vpc: Described) -> str | None:
    mine = [{"Name": "vpc-id", "Values": [run.resource_id]}, {"Name": "association.main", "Values": ["true"]}]
    table = first(run, "DescribeRouteTables", "RouteTables", Filters=mine)
    return table["RouteTableId"] if table else None


def _default_acl(run: Run, vpc: Described) -> str | None:
    mine = [{"Name": "vpc-id", "Values": [run.resource_id]}, {"Name": "default", "Values": ["true"]}]
    acl = first(run, "DescribeNetworkAcls", "NetworkAcls", Filters=mine)
    return acl["NetworkAclId"] if acl else None


def _attach(run: Run) -> None:
    attached, wanted = run.state.get("vpcId"), run.inputs.get("vpcId")
    if attached and attached != wanted:
        run.call("DetachInternetGateway", {"InternetGatewayId": run.resource_id, "VpcId": attached})
    if wanted and attached != wanted:
        run.call("AttachInternetGateway", {"InternetGatewayId": run.resource_id, "VpcId": wanted}, {"VpcId": "vpcId"})


def _delete_gateway(run: Run) -> None:
    gateway = run.describe()
    for attachment in (gateway or {}).get("Attachments", []):
        run.call("DetachInternetGateway", {"InternetGatewayId": run.resource_id, "VpcId": attachment["VpcId"]})
    run.call("DeleteInternetGateway", {"InternetGatewayId": run.resource_id})


def _public_dns(run: Run, address: Described) -> str | None:
    ip = address.get("PublicIp")
    where = "compute-1" if run.region == "us-east-1" else f"{run.region}.compute"
    return ip and f"ec2-{ip.replace('.', '-')}.{where}.amazonaws.com"


VPC = Row(
    token="aws:ec2/vpc:Vpc",
    service="ec2",
    create=Call(op="CreateVpc", result="Vpc"),
    id="VpcId",
    read=_describe_vpc,
    delete=Call(op="DeleteVpc", by={"VpcId": "$id"}),
    retry_delete=DEPENDENTS,
    created=Wait(at="State", done=("available",)),
    props={
        **fixed("cidrBlock", computed=True),
        **fixed("ipv4IpamPoolId", "ipv4NetmaskLength", read=""),
        **fixed("instanceTenancy", default="default"),
        "assignGeneratedIpv6CidrBlock": Prop(param="AmazonProvidedIpv6CidrBlock", read="", replace=True),
        "enableDnsSupport": Prop(param="", default=True, read="EnableDnsSupport"),
        "enableDnsHostnames": Prop(param="", default=False, read="EnableDnsHostnames"),
        "enableNetworkAddressUsageMetrics": Prop(param="", computed=True, read="EnableNetworkAddressUsageMetrics"),
    },
    updates=[Call(op="ModifyVpcAttribute", by={"VpcId": "$id"}, takes=_VPC_ATTRIBUTES, each=True)],
    outputs={
        "arn": ARN + "vpc/{id}",
        "ownerId": "OwnerId",
        "dhcpOptionsId": "DhcpOptionsId",
        "defaultSecurityGroupId": _default_group,
        "defaultNetworkAclId": _default_acl,
        "defaultRouteTableId": _main_route_table,
        "mainRouteTableId": _main_route_table,
        "ipv6AssociationId": "Ipv6CidrBlockAssociationSet[0].AssociationId",
        "ipv6CidrBlock": "Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock",
    },
    tags=ec2_tags("vpc"),
)

_SUBNET_ATTRIBUTES = (
    "mapPublicIpOnLaunch",
    "assignIpv6AddressOnCreation",
    "enableDns64",
    "enableResourceNameDnsARecordOnLaunch",
    "enableResourceNameDnsAaaaRecordOnLaunch",
    "privateDnsHostnameTypeOnLaunch",
)
_ON_LAUNCH = "PrivateDnsNameOptionsOnLaunch"

SUBNET = Row(
    token="aws:ec2/subnet:Subnet",
    service="ec2",
    create=Call(op="CreateSubnet", result="Subnet"),
    id="SubnetId",
    read=Call(op="DescribeSubnets", by={"SubnetIds": ["$id"]}, result="Subnets[0]"),
    delete=Call(op="DeleteSubnet", by={"SubnetId": "$id"}),
    retry_delete=DEPENDENTS,
    created=Wait(at="State", done=("available",)),
    props={
        **fixed("vpcId", "outpostArn"),
        **fixed("availabilityZone", "availabilityZoneId", "cidrBlock", computed=True),
        **fixed("ipv6CidrBlock", read="Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock"),
        **fixed("ipv6Native", default=False),
        **plain("mapPublicIpOnLaunch", "assignIpv6AddressOnCreation", "enableDns64", param="", default=False),
        "enableResourceNameDnsARecordOnLaunch": Prop(param="", default=False, read=f"{_ON_LAUNCH}.EnableResourceNameDnsARecord"),
        "enableResourceNameDnsAaaaRecordOnLaunch": Prop(param="", default=False, read=f"{_ON_LAUNCH}.EnableResourceNameDnsAAAARecord"),
        "privateDnsHostnameTypeOnLaunch": Prop(param="", computed=True, read=f"{_ON_LAUNCH}.HostnameType"),
    },
    updates=[Call(op="ModifySubnetAttribute", by={"SubnetId": "$id"}, takes=_SUBNET_ATTRIBUTES, each=True)],
    outputs={
        "arn": "SubnetArn",
        "ownerId": "OwnerId",
        "ipv6CidrBlockAssociationId": "Ipv6CidrBlockAssociationSet[0].AssociationId",
    },
    tags=ec2_tags("subnet"),
)

INTERNET_GATEWAY = Row(
    token="aws:ec2/internetGateway:InternetGateway",
    service="ec2",
    create=Call(op="CreateInternetGateway", result="InternetGateway"),
    id="InternetGatewayId",
    read=Call(op="DescribeInternetGateways", by={"InternetGatewayIds": ["$id"]}, result="InternetGateways[0]"),
    delete=_delete_gateway,
    retry_delete=DEPENDENTS,
    props={"vpcId": Prop(param="", computed=True, told=True, read="Attachments[0].VpcId")},
    updates=[Update(takes=("vpcId",), run=_attach, on_create=True)],
    outputs={"arn": ARN + "internet-gateway/{id}", "ownerId": "OwnerId"},
    tags=ec2_tags("internet-gateway"),
)

EIP = Row(
    token="aws:ec2/eip:Eip",
    service="ec2",
    create=Call(op="AllocateAddress"),
    id="AllocationId",
    read=Call(op="DescribeAddresses", by={"AllocationIds": ["$id"]}, result="Addresses[0]"),
    delete=Call(op="ReleaseAddress", by={"AllocationId": "$id"}),
    retry_delete=DEPENDENTS,
    props={
        **fixed("domain", "networkBorderGroup", "publicIpv4Pool", computed=True),
        **fixed("address", "customerOwnedIpv4Pool", read=""),
    },
    outputs={
        "allocationId": "AllocationId",
        "arn": ARN + "elastic-ip/{id}",
        "associationId": "AssociationId",
        "privateIp": "PrivateIpAddress",
        "publicIp": "PublicIp",
        "publicDns": _public_dns,
    },
    tags=ec2_tags("elastic-ip"),
)

_NAT_ADDRESS = "NatGatewayAddresses[0]"

NAT_GATEWAY = Row(
    token="aws:ec2/natGateway:NatGateway",
    service="ec2",
    create=Call(op="CreateNatGateway", result="NatGateway", token="ClientToken"),
    id="NatGatewayId",
    read=Call(op="DescribeNatGateways", by={"NatGatewayIds": ["$id"]}, result="NatGateways[?State!='deleted'] | [0]"),
    delete=Call(op="DeleteNatGateway", by={"NatGatewayId": "$id"}),
    created=Wait(at="State", done=("available",), failed=("failed",), reason="FailureMessage", seconds=600),
    deleted=Wait(at="State", done=("deleted",), failed=("failed",), seconds=600),
    props={
        **fixed("subnetId"),
        **fixed("connectivityType", default="public"),
        **fixed("secondaryAllocationIds", "secondaryPrivateIpAddresses", "secondaryPrivateIpAddressCount", read=""),
        "allocationId": Prop(replace=True, read=f"{_NAT_ADDRESS}.AllocationId"),
        "privateIp": Prop(param="PrivateIpAddress", replace=True, computed=True, read=f"{_NAT_ADDRESS}.PrivateIp"),
    },
    outputs={
        "associationId": f"{_NAT_ADDRESS}.AssociationId",
        "networkInterfaceId": f"{_NAT_ADDRESS}.NetworkInterfaceId",
        "publicIp": f"{_NAT_ADDRESS}.PublicIp",
        "vpcId": "VpcId",
    },
    tags=ec2_tags("natgateway"),
)

ROWS = (VPC, SUBNET, INTERNET_GATEWAY, EIP, NAT_GATEWAY)
