"""EKS types of the stand-in aws plug-in on the emulator, and the data sources a cluster's program asks."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.aws.emulator import Emulator
from tests.emulated.aws_plugin_driver import REGION, Driver, Life, Resource, running_driver

pytestmark = pytest.mark.emulated


@pytest.fixture(scope="module")
def life(emulator: Emulator) -> Iterator[Life]:
    with running_driver() as driver:
        driver.configure(emulator.endpoint)
        life = Life(driver)
        yield life
        life.end()


@pytest.fixture(scope="module")
def subnets(life: Life) -> list[Resource]:
    vpc = life.of("aws:ec2/vpc:Vpc", "net", cidrBlock="10.0.0.0/16")
    return [
        life.of("aws:ec2/subnet:Subnet", f"net-{zone}", vpcId=vpc.id, cidrBlock=f"10.0.{n}.0/24", availabilityZone=f"{REGION}{zone}")
        for n, zone in enumerate("ab")
    ]


def role(life: Life, name: str, service: str, *actions: str) -> Resource:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": actions or ["sts:AssumeRole"]}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    return life.of("aws:iam/role:Role", name, assumeRolePolicy=trust)


def pod_role(life: Life, name: str) -> Resource:
    return role(life, name, "pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")


@pytest.fixture(scope="module")
def cluster(life: Life, subnets: list[Resource]) -> Resource:
    return life.of(
        "aws:eks/cluster:Cluster",
        "c",
        roleArn=role(life, "cluster", "eks.amazonaws.com")["arn"],
        version="1.36",
        vpcConfig={"subnetIds": [subnet.id for subnet in subnets], "endpointPrivateAccess": True, "endpointPublicAccess": False},
        accessConfig={"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
        bootstrapSelfManagedAddons=False,
        # EKS tells neither.
        not_imported={"bootstrapSelfManagedAddons"},
        enabledClusterLogTypes=["api", "audit"],
        upgradePolicy={"supportType": "STANDARD"},
        kubernetesNetworkConfig={"serviceIpv4Cidr": "172.20.0.0/16"},
        tags={"a": "b"},
        change={"enabledClusterLogTypes": ["api"], "tags": {"a": "c"}},
    )


def test_a_cluster_tells_how_it_is_reached(cluster: Resource) -> None:
    assert cluster["endpoint"].startswith("https://")
    assert base64.b64decode(cluster["certificateAuthority"]["data"])
    assert cluster["identities"][0]["oidcs"][0]["issuer"].startswith("https://")
    assert cluster["vpcConfig"]["vpcId"].startswith("vpc-")


def test_node_group(life: Life, cluster: Resource, subnets: list[Resource]) -> None:
    life.of(
        "aws:eks/nodeGroup:NodeGroup",
        "system",
        clusterName=cluster.id,
        nodeRoleArn=role(life, "node", "ec2.amazonaws.com")["arn"],
        subnetIds=[subnets[0].id],
        scalingConfig={"minSize": 1, "desiredSize": 2, "maxSize": 3},
        instanceTypes=["m7i.large"],
        labels={"a": "b", "c": "d"},
        taints=[{"key": "k", "value": "v", "effect": "NO_SCHEDULE"}],
        amiType="AL2023_x86_64_STANDARD",
        updateConfig={"maxUnavailable": 1},
        change={"scalingConfig": {"minSize": 1, "desiredSize": 3, "maxSize": 3}, "labels": {"a": "c"}, "taints": [], "tags": {"x": "y"}},
    )


def test_addon(life: Life, cluster: Resource) -> None:
    steering: dict[str, Any] = {"resolveConflictsOnCreate": "OVERWRITE", "resolveConflictsOnUpdate": "OVERWRITE", "preserve": False}
    life.of(
        "aws:eks/addon:Addon",
        "cni",
        clusterName=cluster.id,
        addonName="vpc-cni",
        configurationValues=json.dumps({"env": {"A": "b"}}),
        not_imported=set(steering),
        change={"configurationValues": json.dumps({"env": {"A": "c"}})},
        **steering,
    )


def test_access(life: Life, cluster: Resource) -> None:
    who: dict[str, Any] = {"clusterName": cluster.id, "principalArn": pod_role(life, "admin")["arn"]}
    life.of("aws:eks/accessEntry:AccessEntry", "admin", kubernetesGroups=["g"], change={"kubernetesGroups": ["h"]}, **who)
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    life.of("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "admin", policyArn=policy, accessScope={"type": "cluster"}, **who)


def test_pod_identity(life: Life, cluster: Resource) -> None:
    first, second = pod_role(life, "one"), pod_role(life, "two")
    pod: dict[str, Any] = {"clusterName": cluster.id, "namespace": "training", "serviceAccount": "trainer"}
    made = life.driver.create("aws:eks/podIdentityAssociation:PodIdentityAssociation", "trainer", roleArn=first["arn"], **pod)
    life.made.append(made)
    assert life.driver.drift(made) == {}
    life.driver.update(made, roleArn=second["arn"], **pod)
    found = life.driver.imported(made, f"{cluster.id},{made.id}")
    assert found is not None
    assert (found.id, found["roleArn"]) == (made.id, second["arn"])


@pytest.fixture(scope="module")
def driver(life: Life) -> Driver:
    return life.driver


def test_where_the_provider_is(driver: Driver) -> None:
    assert driver.invoke("aws:index/getCallerIdentity:getCallerIdentity")["accountId"] == "123456789012"
    assert driver.invoke("aws:index/getPartition:getPartition")["partition"] == "aws"
    assert driver.invoke("aws:index/getRegion:getRegion")["region"] == REGION
    zones = driver.invoke("aws:index/getAvailabilityZones:getAvailabilityZones", state="available", excludeNames=[f"{REGION}b"])
    assert f"{REGION}a" in zones["names"]
    assert f"{REGION}b" not in zones["names"]
    assert len(zones["names"]) == len(zones["zoneIds"])
    zone = driver.invoke("aws:index/getAvailabilityZone:getAvailabilityZone", name=f"{REGION}a")
    assert (zone["nameSuffix"], zone["zoneId"]) == ("a", zones["zoneIds"][0])


def test_what_instance_types_there_are(driver: Driver) -> None:
    only = [{"name": "instance-type", "values": ["p5.48xlarge"]}]
    offered = driver.invoke("aws:ec2/getInstanceTypeOfferings:getInstanceTypeOfferings", locationType="availability-zone", filters=only)
    assert set(offered["instanceTypes"]) == {"p5.48xlarge"}
    assert all(place.startswith(REGION) for place in offered["locations"])
    size = driver.invoke("aws:ec2/getInstanceType:getInstanceType", instanceType="p5.48xlarge")
    assert (size["defaultVcpus"], size["efaMaximumInterfaces"], size["gpuses"][0]["count"]) == (192, 32, 8)


def test_what_is_there_already(driver: Driver, life: Life, cluster: Resource, subnets: list[Resource]) -> None:
    vpc = driver.invoke("aws:ec2/getVpc:getVpc", id=subnets[0]["vpcId"])
    assert (vpc["cidrBlock"], vpc["enableDnsSupport"]) == ("10.0.0.0/16", True)
    of_vpc = [{"name": "vpc-id", "values": [vpc["id"]]}]
    assert driver.invoke("aws:ec2/getSubnets:getSubnets", filters=of_vpc)["ids"] == sorted(subnet.id for subnet in subnets)
    assert driver.invoke("aws:ec2/getSubnet:getSubnet", id=subnets[0].id)["availabilityZone"] == f"{REGION}a"
    found = driver.invoke("aws:eks/getCluster:getCluster", name=cluster.id)
    assert found["endpoint"] == cluster["endpoint"]
    assert found["vpcConfig"]["subnetIds"] == cluster["vpcConfig"]["subnetIds"]
    token = driver.invoke("aws:eks/getClusterAuth:getClusterAuth", name=cluster.id)["token"]
    assert token.startswith("k8s-aws-v1.")
    assert driver.invoke("aws:eks/getAddonVersion:getAddonVersion", addonName="vpc-cni", kubernetesVersion="1.36")["version"].startswith(
        "v"
    )
    made = driver.create("aws:ssm/parameter:Parameter", "p", name="/x", type="String", value="v")
    life.made.append(made)
    assert driver.invoke("aws:ssm/getParameter:getParameter", name="/x")["value"] == "v"


def test_policy_documents(driver: Driver) -> None:
    statement = {
        "sid": "one",
        "actions": ["s3:GetObject"],
        "resources": ["a", "b"],
        "principals": [{"type": "Service", "identifiers": ["ec2.amazonaws.com"]}],
        "conditions": [{"test": "StringEquals", "variable": "aws:username", "values": ["&{aws:username}"]}],
    }
    found = driver.invoke("aws:iam/getPolicyDocument:getPolicyDocument", statements=[statement])
    assert json.loads(found["json"]) == json.loads(found["minifiedJson"])
    assert json.loads(found["json"])["Statement"] == [
        {
            "Sid": "one",
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": ["a", "b"],
            "Principal": {"Service": "ec2.amazonaws.com"},
            "Condition": {"StringEquals": {"aws:username": "${aws:username}"}},
        }
    ]
