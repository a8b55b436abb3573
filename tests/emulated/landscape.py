"""A small AWS landscape for tests of the emulator: clients, and one valid thing of each kind, so that a test changes one thing only."""

import functools
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.config import Config

from local.aws.inventory import emulator_session

REGION = "us-east-1"
Clients = Callable[[str], Any]


@functools.cache
def clients(url: str, region: str = REGION) -> Clients:
    """A factory of boto3 clients on the emulator, without retries; one client a service."""
    made: dict[str, Any] = {}
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, read_timeout=60)

    def client(service: str) -> Any:
        if service not in made:
            made[service] = emulator_session(region).client(service, endpoint_url=url, config=config)
        return made[service]

    return client


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True)
class Network:
    """A VPC with three private subnets in three zones, and a group that lets its members talk to each other."""

    vpc: str
    subnets: tuple[str, ...]
    group: str


def make_network(aws: Clients) -> Network:
    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = tuple(
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{index}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"]["SubnetId"]
        for index, zone in enumerate("abc")
    )
    group = ec2.create_security_group(GroupName=unique("efa"), Description="efa", VpcId=vpc)["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    return Network(vpc, subnets, group)


def make_role(aws: Clients, service: str = "ec2.amazonaws.com") -> str:
    """A role that `service` may assume; its ARN."""
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]}],
    }
    return aws("iam").create_role(RoleName=unique("role"), AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]


def cluster_request(aws: Clients, network: Network, **changes: Any) -> dict[str, Any]:
    """A CreateCluster request that EKS takes."""
    return {
        "name": unique("cluster"),
        "version": "1.36",
        "roleArn": make_role(aws, "eks.amazonaws.com"),
        "resourcesVpcConfig": {"subnetIds": list(network.subnets[:2]), "endpointPrivateAccess": True, "endpointPublicAccess": False},
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
    } | changes


def make_cluster(aws: Clients, network: Network, **changes: Any) -> str:
    """A cluster; its name."""
    return aws("eks").create_cluster(**cluster_request(aws, network, **changes))["cluster"]["name"]


def lustre_request(network: Network, lustre: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A CreateFileSystem request that FSx takes; `lustre` is laid over its LustreConfiguration, None takes a member out."""
    configuration = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250} | (lustre or {})
    return {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [network.subnets[0]],
        "SecurityGroupIds": [network.group],
        "LustreConfiguration": {name: value for name, value in configuration.items() if value is not None},
    } | changes
