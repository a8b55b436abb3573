"""The network: named zones, the chosen way out, and a group that lets EFA through."""

import pytest

from infra.network import Vpc, VpcArgs, VpcEndpoints, VpcEndpointsArgs
from tests.recording import record
from tests.unit.infra.builders import platform, settings

pytestmark = pytest.mark.unit

SUBNET = "aws:ec2/subnet:Subnet"
NAT = "aws:ec2/natGateway:NatGateway"
ROUTE = "aws:ec2/route:Route"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
ENDPOINTS = ["ec2", "ecr.api", "ecr.dkr", "eks", "eks-auth", "sqs", "ssm", "sts"]


def with_network(**changes):
    """Record the network alone."""
    found = settings(lambda raw: raw["network"].update(changes)).network

    def program():
        vpc = Vpc("yard", VpcArgs(settings=found, cluster_name="yard"))
        tables = [*vpc.private_route_table_ids, vpc.public_route_table_id]
        args = VpcEndpointsArgs(
            region="us-east-1",
            services=found.interface_endpoints,
            vpc_id=vpc.vpc_id,
            vpc_cidr=vpc.cidr,
            route_table_ids=tables,
            subnet_ids=vpc.private_subnet_ids,
        )
        VpcEndpoints("yard", args)

    return record(program)


def test_each_named_zone_gets_a_private_and_a_public_subnet():
    subnets = platform().of_type(SUBNET)
    zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
    for kind in ("private", "public"):
        assert sorted(entry.inputs["availabilityZone"] for entry in subnets if f"-{kind}-" in entry.name) == zones
    assert not any(entry.inputs["mapPublicIpOnLaunch"] for entry in subnets)


@pytest.mark.parametrize(("nat", "gateways"), [("single", 1), ("per-az", 3)])
def test_the_nat_choice_sets_the_number_of_gateways_and_every_private_subnet_has_a_way_out(nat, gateways):
    recording = with_network(nat=nat)
    assert len(recording.of_type(NAT)) == gateways
    assert len([entry for entry in recording.of_type(ROUTE) if "natGatewayId" in entry.inputs]) == 3


def test_without_nat_the_services_come_in_through_interfaces():
    recording = with_network(nat="none", interfaceEndpoints=ENDPOINTS)
    assert not recording.of_type(NAT)
    interfaces = [entry for entry in recording.of_type(ENDPOINT) if entry.inputs["vpcEndpointType"] == "Interface"]
    assert sorted(entry.inputs["serviceName"].removeprefix("com.amazonaws.us-east-1.") for entry in interfaces) == ENDPOINTS
    assert all(len(entry.inputs["subnetIds"]) == 3 and entry.inputs["privateDnsEnabled"] for entry in interfaces)


def test_s3_is_reached_through_a_gateway_from_every_route_table():
    gateway = platform().one(ENDPOINT)
    assert gateway.inputs["serviceName"] == "com.amazonaws.us-east-1.s3"
    assert len(gateway.inputs["routeTableIds"]) == 4


def test_the_efa_group_names_itself_as_source_and_as_destination():
    recording = platform()
    (group,) = [entry for entry in recording.of_type("aws:ec2/securityGroup:SecurityGroup") if entry.name == "trainyard-efa"]
    for way in ("Ingress", "Egress"):
        rules = [
            rule.inputs
            for rule in recording.of_type(f"aws:vpc/securityGroup{way}Rule:SecurityGroup{way}Rule")
            if rule.inputs["securityGroupId"] == f"{group.name}-id"
        ]
        assert [(rule["referencedSecurityGroupId"], rule["ipProtocol"]) for rule in rules] == [(f"{group.name}-id", "-1")], way


def test_no_rule_opens_anything_to_the_internet():
    recording = with_network(nat="none", interfaceEndpoints=ENDPOINTS)
    rules = [entry for entry in recording.registrations if "securityGroup" in entry.type and "Rule" in entry.type]
    assert rules
    assert not [rule.name for rule in rules if rule.inputs.get("cidrIpv4") == "0.0.0.0/0"]
