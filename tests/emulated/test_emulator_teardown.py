"""The order of a teardown: wrong orders are refused as AWS refuses them, the right one leaves nothing."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.emulator import Emulator
from local.aws.inventory import emulator_session, inventory, leftovers
from local.errors import LocalStackError
from tests.emulated.landscape import Clients, Network, clients, lustre_request, make_cluster, make_network, make_role

pytestmark = pytest.mark.emulated


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator of this module's own, so that what is left can be counted."""
    started = Emulator(Path(tmp_path_factory.mktemp("own")))
    started.start()
    yield started
    started.stop()


@pytest.fixture
def aws(own: Emulator) -> Clients:
    for request in ("moto-api/reset", "_trainyard/faults"):
        method = "POST" if "reset" in request else "DELETE"
        urllib.request.urlopen(urllib.request.Request(f"{own.endpoint}/{request}", method=method), timeout=30).close()
    return clients(own.endpoint)


def refused(call: Callable[..., Any], code: str, /, **given: Any) -> None:
    with pytest.raises(ClientError) as caught:
        call(**given)
    assert caught.value.response["Error"]["Code"] == code


def delete_network(aws: Clients, network: Network) -> None:
    ec2 = aws("ec2")
    for subnet in network.subnets:
        ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_security_group(GroupId=network.group)
    ec2.delete_vpc(VpcId=network.vpc)


def test_a_fresh_account_is_empty_and_a_removed_network_leaves_nothing(own: Emulator, aws: Clients) -> None:
    assert inventory(own.endpoint) == []
    network = make_network(aws)
    assert {each.kind for each in inventory(own.endpoint)} == {"ec2 vpc", "ec2 subnet", "ec2 security group"}
    refused(aws("ec2").delete_vpc, "DependencyViolation", VpcId=network.vpc)
    delete_network(aws, network)
    assert inventory(own.endpoint) == []


def test_a_nat_gateway_holds_its_subnet_its_address_and_the_internet_gateway(own: Emulator, aws: Clients) -> None:
    ec2, network = aws("ec2"), make_network(aws)
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=network.vpc)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=network.subnets[0], AllocationId=address)["NatGateway"]["NatGatewayId"]
    refused(ec2.delete_subnet, "DependencyViolation", SubnetId=network.subnets[0])
    refused(ec2.release_address, "InvalidIPAddress.InUse", AllocationId=address)
    refused(ec2.detach_internet_gateway, "DependencyViolation", InternetGatewayId=gateway, VpcId=network.vpc)
    ec2.delete_nat_gateway(NatGatewayId=nat)
    ec2.release_address(AllocationId=address)
    refused(ec2.delete_internet_gateway, "DependencyViolation", InternetGatewayId=gateway)
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=network.vpc)
    ec2.delete_internet_gateway(InternetGatewayId=gateway)
    delete_network(aws, network)
    assert inventory(own.endpoint) == []


def test_a_group_stays_while_an_interface_carries_it_or_a_rule_names_it(own: Emulator, aws: Clients) -> None:
    ec2, network = aws("ec2"), make_network(aws)
    file_system = aws("fsx").create_file_system(**lustre_request(network))["FileSystem"]
    refused(ec2.delete_security_group, "DependencyViolation", GroupId=network.group)
    refused(ec2.delete_network_interface, "OperationNotPermitted", NetworkInterfaceId=file_system["NetworkInterfaceIds"][0])
    aws("fsx").delete_file_system(FileSystemId=file_system["FileSystemId"])
    other = ec2.create_security_group(GroupName="other", Description="names the first", VpcId=network.vpc)["GroupId"]
    rule = [{"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "UserIdGroupPairs": [{"GroupId": network.group}]}]
    ec2.authorize_security_group_ingress(GroupId=other, IpPermissions=rule)
    refused(ec2.delete_security_group, "DependencyViolation", GroupId=network.group)
    ec2.revoke_security_group_ingress(GroupId=other, IpPermissions=rule)
    ec2.delete_security_group(GroupId=other)
    delete_network(aws, network)
    assert inventory(own.endpoint) == []


def test_an_instance_that_a_controller_made_holds_subnet_group_placement_group_and_role(own: Emulator, aws: Clients) -> None:
    ec2, iam, network = aws("ec2"), aws("iam"), make_network(aws)
    role = make_role(aws).rpartition("/")[2]
    iam.create_instance_profile(InstanceProfileName="profile")
    iam.add_role_to_instance_profile(InstanceProfileName="profile", RoleName=role)
    ec2.create_placement_group(GroupName="training", Strategy="cluster")
    tags = [{"Key": "kubernetes.io/cluster/trainyard", "Value": "owned"}]
    data = {
        "ImageId": ec2.describe_images()["Images"][0]["ImageId"],
        "InstanceType": "p5.48xlarge",
        "NetworkInterfaces": [{"DeviceIndex": 0, "InterfaceType": "efa", "Groups": [network.group]}],
        "Placement": {"GroupName": "training"},
    }
    ec2.create_launch_template(LaunchTemplateName="nodes", LaunchTemplateData=data)
    overrides = [{"InstanceType": "p5.48xlarge", "SubnetId": network.subnets[0]}]
    fleet = ec2.create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {"LaunchTemplateSpecification": {"LaunchTemplateName": "nodes", "Version": "$Latest"}, "Overrides": overrides}
        ],
        TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    instance = fleet["Instances"][0]["InstanceIds"][0]
    found = ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
    assert (found["Placement"]["GroupName"], found["SecurityGroups"][0]["GroupId"]) == ("training", network.group)
    refused(ec2.delete_subnet, "DependencyViolation", SubnetId=network.subnets[0])
    refused(ec2.delete_security_group, "DependencyViolation", GroupId=network.group)
    refused(ec2.delete_placement_group, "InvalidPlacementGroup.InUse", GroupName="training")
    refused(iam.delete_role, "DeleteConflict", RoleName=role)
    left = leftovers(emulator_session(), {"kubernetes.io/cluster/trainyard": "*"}, endpoint=own.endpoint)
    assert [(each.kind, each.id) for each in left if each.kind == "ec2 instance"] == [("ec2 instance", instance)]
    ec2.terminate_instances(InstanceIds=[instance])
    assert leftovers(emulator_session(), {"kubernetes.io/cluster/trainyard": "*"}, endpoint=own.endpoint) == []
    ec2.delete_placement_group(GroupName="training")
    ec2.delete_launch_template(LaunchTemplateName="nodes")
    iam.remove_role_from_instance_profile(InstanceProfileName="profile", RoleName=role)
    iam.delete_instance_profile(InstanceProfileName="profile")
    iam.delete_role(RoleName=role)
    delete_network(aws, network)
    assert inventory(own.endpoint) == []


def test_a_cluster_goes_after_its_node_groups_and_takes_group_and_interfaces_along(own: Emulator, aws: Clients) -> None:
    ec2, eks, network = aws("ec2"), aws("eks"), make_network(aws)
    cluster = make_cluster(aws, network)
    group = eks.describe_cluster(name=cluster)["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"]
    eks.create_nodegroup(clusterName=cluster, nodegroupName="system", subnets=[network.subnets[0]], nodeRole=make_role(aws))
    refused(eks.delete_cluster, "ResourceInUseException", name=cluster)
    refused(ec2.delete_security_group, "DependencyViolation", GroupId=group)
    refused(ec2.delete_subnet, "DependencyViolation", SubnetId=network.subnets[1])
    eks.delete_nodegroup(clusterName=cluster, nodegroupName="system")
    eks.delete_cluster(name=cluster)
    delete_network(aws, network)
    assert {each.kind for each in inventory(own.endpoint)} == {"iam role"}


def test_roles_policies_and_buckets_that_are_in_use_stay(aws: Clients) -> None:
    iam, s3, role = aws("iam"), aws("s3"), make_role(aws).rpartition("/")[2]
    managed = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
    own = iam.create_policy(PolicyName="own", PolicyDocument=json.dumps(document))["Policy"]["Arn"]
    for policy in (managed, own):
        iam.attach_role_policy(RoleName=role, PolicyArn=policy)
    refused(iam.delete_role, "DeleteConflict", RoleName=role)
    refused(iam.delete_policy, "DeleteConflict", PolicyArn=own)
    iam.detach_role_policy(RoleName=role, PolicyArn=managed)
    iam.detach_role_policy(RoleName=role, PolicyArn=own)
    iam.delete_policy(PolicyArn=own)
    iam.delete_role(RoleName=role)
    s3.create_bucket(Bucket="trainyard-bucket")
    s3.put_object(Bucket="trainyard-bucket", Key="step-1", Body=b"x")
    refused(s3.delete_bucket, "BucketNotEmpty", Bucket="trainyard-bucket")


def test_leftovers_are_told_by_tag_or_name_in_every_service(own: Emulator, aws: Clients) -> None:
    mine, mine_lower = [{"Key": "trainyard:stack", "Value": "local"}], {"trainyard:stack": "local"}
    aws("ec2").create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": mine}])
    aws("ec2").create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": [mine[0] | {"Value": "other"}]}])
    aws("ec2").create_placement_group(GroupName="g", TagSpecifications=[{"ResourceType": "placement-group", "Tags": mine}])
    aws("sqs").create_queue(QueueName="interruption", tags=mine_lower)
    aws("events").put_rule(Name="spot", EventPattern='{"source": ["aws.ec2"]}', Tags=mine)
    aws("kms").create_key(Tags=[{"TagKey": "trainyard:stack", "TagValue": "local"}])
    aws("logs").create_log_group(logGroupName="/aws/eks/c/cluster", tags=mine_lower)
    aws("s3").create_bucket(Bucket="checkpoints")
    aws("s3").put_bucket_tagging(Bucket="checkpoints", Tagging={"TagSet": mine})
    aws("efs").create_file_system(CreationToken="t", Tags=mine)
    aws("iam").create_role(RoleName="trainyard-local-node", AssumeRolePolicyDocument="{}")
    found = leftovers(emulator_session(), {"trainyard:stack": "local"}, endpoint=own.endpoint, name_prefix="trainyard-local")
    assert [each.kind for each in found] == [
        "ec2 placement group",
        "ec2 vpc",
        "efs file system",
        "events rule",
        "iam role",
        "kms key",
        "logs log group",
        "s3 bucket",
        "sqs queue",
    ]
    with pytest.raises(LocalStackError, match="neither tags nor a name prefix"):
        leftovers(emulator_session(), {}, endpoint=own.endpoint)


def test_a_service_that_does_not_answer_is_named_not_passed_over(own: Emulator, aws: Clients) -> None:
    rule = json.dumps([{"kind": "error", "service": "kms", "operation": "ListKeys"}]).encode()
    urllib.request.urlopen(urllib.request.Request(f"{own.endpoint}/_trainyard/faults", data=rule, method="POST"), timeout=5).close()
    with pytest.raises(LocalStackError, match="kms"):
        leftovers(emulator_session(), {"trainyard:stack": "local"}, endpoint=own.endpoint)
