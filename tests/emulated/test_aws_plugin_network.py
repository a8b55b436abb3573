"""EC2's types of the stand-in aws plug-in on the emulator: each one's whole life, with no drift that nobody made."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.aws.emulator import Emulator
from tests.emulated.aws_plugin_driver import REGION, Life, Resource, running_driver

pytestmark = pytest.mark.emulated

ANYWHERE = {"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}
ITSELF = {"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}


@pytest.fixture(scope="module")
def life(emulator: Emulator) -> Iterator[Life]:
    with running_driver() as driver:
        driver.configure(emulator.endpoint, defaultTags={"tags": {"Project": "trainyard"}})
        yield Life(driver)


@pytest.fixture
def vpc(life: Life) -> Iterator[Resource]:
    yield life.of("aws:ec2/vpc:Vpc", "net", cidrBlock="10.0.0.0/16", enableDnsHostnames=True, tags={"Team": "a"})
    life.end()


def subnet(life: Life, vpc: Resource, zone: str = "a", **more: Any) -> Resource:
    block = f"10.0.{ord(zone) - ord('a')}.0/24"
    return life.of("aws:ec2/subnet:Subnet", f"net-{zone}", vpcId=vpc.id, cidrBlock=block, availabilityZone=f"{REGION}{zone}", **more)


def test_vpc_and_its_attributes(life: Life) -> None:
    made = life.of(
        "aws:ec2/vpc:Vpc",
        "net",
        cidrBlock="10.0.0.0/16",
        enableDnsHostnames=True,
        tags={"Team": "a"},
        change={"enableDnsHostnames": False, "tags": {"Team": "b"}},
    )
    assert made["tagsAll"] == {"Team": "b", "Project": "trainyard"}
    assert made["arn"] == f"arn:aws:ec2:{REGION}:123456789012:vpc/{made.id}"
    assert made["defaultSecurityGroupId"].startswith("sg-")
    assert made["mainRouteTableId"].startswith("rtb-")
    life.end()


def test_subnets_gateways_and_routes(life: Life, vpc: Resource) -> None:
    public = subnet(life, vpc, change={"mapPublicIpOnLaunch": True})
    internet = life.of("aws:ec2/internetGateway:InternetGateway", "net", vpcId=vpc.id)
    address = life.of("aws:ec2/eip:Eip", "nat", domain="vpc", change={"tags": {"a": "b"}})
    nat = life.of("aws:ec2/natGateway:NatGateway", "nat", subnetId=public.id, allocationId=address.id)
    assert nat["publicIp"] == address["publicIp"]
    table = life.of("aws:ec2/routeTable:RouteTable", "private", vpcId=vpc.id)
    to_nat = [{"cidrBlock": "0.0.0.0/0", "natGatewayId": nat.id}]
    to_internet = [{"cidrBlock": "0.0.0.0/0", "gatewayId": internet.id}]
    life.of("aws:ec2/routeTable:RouteTable", "inline", vpcId=vpc.id, routes=to_internet, change={"routes": to_nat})
    life.of(
        "aws:ec2/route:Route",
        "out",
        routeTableId=table.id,
        destinationCidrBlock="0.0.0.0/0",
        gatewayId=internet.id,
        change={"gatewayId": None, "natGatewayId": nat.id},
        import_id=f"{table.id}_0.0.0.0/0",
    )
    life.of("aws:ec2/routeTableAssociation:RouteTableAssociation", "private", routeTableId=table.id, subnetId=public.id)
    service = f"com.amazonaws.{REGION}"
    life.of(
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "s3",
        vpcId=vpc.id,
        serviceName=f"{service}.s3",
        routeTableIds=[table.id],
        change={"tags": {"a": "b"}},
    )
    group = life.of("aws:ec2/securityGroup:SecurityGroup", "endpoints", vpcId=vpc.id)
    life.of(
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "sqs",
        vpcId=vpc.id,
        serviceName=f"{service}.sqs",
        vpcEndpointType="Interface",
        subnetIds=[public.id],
        securityGroupIds=[group.id],
        privateDnsEnabled=True,
    )


def test_security_groups_and_rules(life: Life, vpc: Resource) -> None:
    ssh: dict[str, Any] = {
        "protocol": "tcp",
        "fromPort": 22,
        "toPort": 22,
        "cidrBlocks": ["10.0.0.0/8", "192.168.0.0/16"],
        "description": "ssh",
    }
    life.of("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", "default", vpcId=vpc.id)
    life.of(
        "aws:ec2/securityGroup:SecurityGroup",
        "inline",
        vpcId=vpc.id,
        ingress=[ssh, ITSELF],
        egress=[ANYWHERE],
        change={"ingress": [{**ssh, "cidrBlocks": ["10.0.0.0/8"]}]},
    )
    group = life.of("aws:ec2/securityGroup:SecurityGroup", "plain", vpcId=vpc.id, description="plain")
    assert group["egress"] == [], "a new group starts without AWS's rule that lets everything out"
    sources = ["10.0.0.0/8", "10.1.0.0/16"]
    listed: dict[str, Any] = {
        "type": "ingress",
        "securityGroupId": group.id,
        "protocol": "tcp",
        "fromPort": 443,
        "toPort": 443,
        "cidrBlocks": sources,
    }
    name = f"{group.id}_ingress_tcp_443_443_" + "_".join(sources)
    life.of("aws:ec2/securityGroupRule:SecurityGroupRule", "web", description="x", change={"description": "y"}, import_id=name, **listed)
    itself: dict[str, Any] = {"type": "egress", "securityGroupId": group.id, "protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}
    life.of("aws:ec2/securityGroupRule:SecurityGroupRule", "self", import_id=f"{group.id}_egress_-1_0_0_self", **itself)
    one: dict[str, Any] = {"securityGroupId": group.id, "ipProtocol": "tcp", "fromPort": 80, "toPort": 80, "cidrIpv4": "0.0.0.0/0"}
    life.of("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule", "out", description="web", change={"toPort": 81}, **one)
    both: dict[str, Any] = {"securityGroupId": group.id, "ipProtocol": "-1", "referencedSecurityGroupId": group.id}
    life.of("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule", "in", tags={"a": "b"}, **both)


def test_placement_and_capacity(life: Life) -> None:
    life.of("aws:ec2/placementGroup:PlacementGroup", "pack", strategy="cluster", change={"tags": {"a": "b"}})
    life.of(
        "aws:ec2/capacityReservation:CapacityReservation",
        "held",
        instanceType="p5.48xlarge",
        instancePlatform="Linux/UNIX",
        availabilityZone=f"{REGION}a",
        instanceCount=2,
        change={"instanceCount": 4, "endDateType": "limited", "endDate": "2027-01-01T00:00:00Z"},
    )
    life.end()


def test_launch_template_makes_a_version_for_each_change(life: Life, vpc: Resource) -> None:
    group = life.of("aws:ec2/securityGroup:SecurityGroup", "efa", vpcId=vpc.id)
    cards = [
        {"deviceIndex": min(n, 1), "networkCardIndex": n, "interfaceType": "efa-only" if n else "efa", "securityGroups": [group.id]}
        for n in range(3)
    ]
    disk = {"volumeSize": 100, "volumeType": "gp3", "encrypted": "true", "deleteOnTermination": "true"}
    template = life.of(
        "aws:ec2/launchTemplate:LaunchTemplate",
        "nodes",
        instanceType="p5.48xlarge",
        userData="aGVsbG8=",
        metadataOptions={"httpTokens": "required", "httpPutResponseHopLimit": 1},
        blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": disk}],
        networkInterfaces=cards,
        placement={"groupName": "pack"},
        tagSpecifications=[{"resourceType": "instance", "tags": {"Name": "n"}}],
        change={"instanceType": "p4d.24xlarge", "updateDefaultVersion": True},
    )
    assert (template["latestVersion"], template["defaultVersion"]) == (2, 2)


def test_flow_log(life: Life, vpc: Resource) -> None:
    logs = life.of("aws:cloudwatch/logGroup:LogGroup", "flows", retentionInDays=7, change={"retentionInDays": 14, "tags": {"a": "b"}})
    statement = {"Effect": "Allow", "Principal": {"Service": "vpc-flow-logs.amazonaws.com"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    role = life.of("aws:iam/role:Role", "flows", assumeRolePolicy=trust)
    life.of("aws:ec2/flowLog:FlowLog", "net", vpcId=vpc.id, trafficType="ALL", logDestination=logs["arn"], iamRoleArn=role["arn"])
