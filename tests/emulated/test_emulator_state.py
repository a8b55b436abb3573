"""What was acknowledged is there after kill -9, to the last id, time and tag; what can't be kept is said, not lost in silence."""

import base64
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.aws.emulator import Emulator
from local.aws.inventory import inventory
from local.errors import LocalStackError
from tests.emulated.landscape import Clients, clients, lustre_request, make_cluster, make_network, make_role

pytestmark = pytest.mark.emulated


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Emulator]:
    started = Emulator(tmp_path)
    started.start()
    yield started
    started.stop()


def kill(emulator: Emulator) -> None:
    pid = emulator.status().pid or 0
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while emulator.status().running and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not emulator.status().running


def populate(aws: Clients) -> None:
    """About 60 resources of the kinds the platform makes, and a few it does not."""
    ec2, iam, eks, network = aws("ec2"), aws("iam"), aws("eks"), make_network(aws)
    tags = [{"Key": "trainyard:stack", "Value": "local"}]
    ec2.create_tags(Resources=[network.vpc, *network.subnets], Tags=tags)
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=network.vpc)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    ec2.create_nat_gateway(SubnetId=network.subnets[0], AllocationId=address)
    table = ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    for subnet in network.subnets:
        ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.create_vpc_endpoint(VpcId=network.vpc, ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[table])
    ec2.create_placement_group(GroupName="training", Strategy="cluster")
    group_arn = ec2.describe_placement_groups()["PlacementGroups"][0]["GroupArn"]
    for count in range(2):
        ec2.create_capacity_reservation(
            InstanceType="p5.48xlarge",
            InstancePlatform="Linux/UNIX",
            AvailabilityZone="us-east-1a",
            InstanceCount=count + 1,
            InstanceMatchCriteria="targeted",
            PlacementGroupArn=group_arn,
        )
    for number in range(10):
        data = {"InstanceType": "t3.micro", "UserData": base64.b64encode(b"#!/bin/sh").decode()}
        ec2.create_launch_template(LaunchTemplateName=f"template-{number}", LaunchTemplateData=data)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    ec2.run_instances(ImageId=image, InstanceType="m7i.large", MinCount=3, MaxCount=3, SubnetId=network.subnets[1])
    ec2.create_volume(AvailabilityZone="us-east-1a", Size=10)
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}]}
    cluster = make_cluster(aws, network, tags={"team": "a"})
    role, pod_role = make_role(aws), make_role(aws, "pods.eks.amazonaws.com")
    iam.attach_role_policy(RoleName=role.rpartition("/")[2], PolicyArn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
    iam.put_role_policy(RoleName=role.rpartition("/")[2], PolicyName="inline", PolicyDocument=json.dumps(document))
    iam.create_instance_profile(InstanceProfileName="nodes")
    iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName=role.rpartition("/")[2])
    eks.create_nodegroup(clusterName=cluster, nodegroupName="system", subnets=[network.subnets[0]], nodeRole=role)
    for addon in ("vpc-cni", "coredns", "kube-proxy"):
        eks.create_addon(clusterName=cluster, addonName=addon)
    eks.create_pod_identity_association(clusterName=cluster, namespace="kube-system", serviceAccount="karpenter", roleArn=pod_role)
    eks.create_access_entry(clusterName=cluster, principalArn=pod_role)
    file_system = aws("fsx").create_file_system(**lustre_request(network, Tags=tags))["FileSystem"]["FileSystemId"]
    aws("fsx").create_data_repository_association(FileSystemId=file_system, FileSystemPath="/d", DataRepositoryPath="s3://checkpoints/d")
    shared = aws("efs").create_file_system(CreationToken="t", Encrypted=True, ThroughputMode="elastic", Tags=tags)["FileSystemId"]
    for subnet in network.subnets:
        aws("efs").create_mount_target(FileSystemId=shared, SubnetId=subnet, SecurityGroups=[network.group])
    aws("efs").create_access_point(FileSystemId=shared, PosixUser={"Uid": 1000, "Gid": 1000})
    queue = aws("sqs").create_queue(QueueName="interruption", tags={"a": "b"})["QueueUrl"]
    aws("sqs").send_message(QueueUrl=queue, MessageBody="kept")
    for rule in ("spot", "rebalance", "health"):
        aws("events").put_rule(Name=rule, EventPattern='{"source": ["aws.ec2"]}')
        aws("events").put_targets(Rule=rule, Targets=[{"Id": "1", "Arn": "arn:aws:sqs:us-east-1:123456789012:interruption"}])
    aws("s3").create_bucket(Bucket="checkpoints")
    aws("s3").put_bucket_versioning(Bucket="checkpoints", VersioningConfiguration={"Status": "Enabled"})
    aws("s3").put_object(Bucket="checkpoints", Key="small", Body=b"x" * 100, Metadata={"step": "1"})
    aws("s3").put_object(Bucket="checkpoints", Key="large", Body=os.urandom(200_000))
    key = aws("kms").create_key(Tags=[{"TagKey": "a", "TagValue": "b"}])["KeyMetadata"]["KeyId"]
    aws("kms").create_alias(AliasName="alias/trainyard", TargetKeyId=key)
    aws("logs").create_log_group(logGroupName="/aws/eks/c/cluster")
    aws("ssm").put_parameter(Name="/trainyard/setting", Value="v", Type="String")
    aws("ecr").create_repository(repositoryName="trainer")


def described(aws: Clients) -> dict[str, Any]:
    """What a refresh of every resource would see."""
    eks, cluster = aws("eks"), aws("eks").list_clusters()["clusters"][0]
    queue = aws("sqs").get_queue_url(QueueName="interruption")["QueueUrl"]
    shared = aws("efs").describe_file_systems()["FileSystems"][0]["FileSystemId"]
    key = aws("kms").list_aliases()["Aliases"][0]["TargetKeyId"]
    calls: dict[str, Callable[[], Any]] = {
        name: getattr(aws("ec2"), f"describe_{name}")
        for name in (
            "vpcs",
            "subnets",
            "internet_gateways",
            "nat_gateways",
            "addresses",
            "route_tables",
            "vpc_endpoints",
            "security_groups",
            "security_group_rules",
            "network_interfaces",
            "placement_groups",
            "capacity_reservations",
            "launch_templates",
            "instances",
            "volumes",
            "network_acls",
            "tags",
        )
    }
    calls |= {
        "template versions": lambda: aws("ec2").describe_launch_template_versions(Versions=["$Latest"]),
        "images": lambda: sorted(image["ImageId"] for image in aws("ec2").describe_images()["Images"]),
        "roles": aws("iam").list_roles,
        "profiles": aws("iam").list_instance_profiles,
        "policies": lambda: aws("iam").list_policies(OnlyAttached=True),
        "cluster": lambda: eks.describe_cluster(name=cluster),
        "node group": lambda: eks.describe_nodegroup(clusterName=cluster, nodegroupName="system"),
        "addon": lambda: eks.describe_addon(clusterName=cluster, addonName="vpc-cni"),
        "identities": lambda: eks.list_pod_identity_associations(clusterName=cluster),
        "entries": lambda: eks.list_access_entries(clusterName=cluster),
        "lustre": aws("fsx").describe_file_systems,
        "associations": aws("fsx").describe_data_repository_associations,
        "efs": lambda: {**aws("efs").describe_file_systems()["FileSystems"][0], "SizeInBytes": None},
        "mount targets": lambda: aws("efs").describe_mount_targets(FileSystemId=shared),
        "access points": aws("efs").describe_access_points,
        "queue": lambda: aws("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["All"]),
        "rules": aws("events").list_rules,
        "targets": lambda: aws("events").list_targets_by_rule(Rule="spot"),
        "objects": lambda: aws("s3").list_object_versions(Bucket="checkpoints"),
        "small": lambda: aws("s3").get_object(Bucket="checkpoints", Key="small")["Metadata"],
        "large": lambda: aws("s3").get_object(Bucket="checkpoints", Key="large")["Body"].read(),
        "key": lambda: aws("kms").describe_key(KeyId=key),
        "log groups": aws("logs").describe_log_groups,
        "parameter": lambda: aws("ssm").get_parameter(Name="/trainyard/setting")["Parameter"],
        "repositories": aws("ecr").describe_repositories,
    }
    answers = {name: call() for name, call in calls.items()}
    return {
        name: {k: v for k, v in answer.items() if k != "ResponseMetadata"} if isinstance(answer, dict) else answer
        for name, answer in answers.items()
    }


def test_sixty_resources_of_every_kind_are_the_same_after_kill_9(own: Emulator) -> None:
    aws = clients(own.endpoint)
    populate(aws)
    before, things = described(aws), inventory(own.endpoint)
    assert len(things) >= 60
    kill(own)
    own.start()
    after = described(aws)
    for name, answer in before.items():
        assert after[name] == answer, name
    assert inventory(own.endpoint) == things
    message = aws("sqs").receive_message(QueueUrl=aws("sqs").get_queue_url(QueueName="interruption")["QueueUrl"])["Messages"][0]
    assert message["Body"] == "kept"
    # It goes on from there: what refers to each other still does.
    ec2, vpc = aws("ec2"), next(vpc for vpc in before["vpcs"]["Vpcs"] if not vpc["IsDefault"])["VpcId"]
    with pytest.raises(ec2.exceptions.ClientError, match="DependencyViolation"):
        ec2.delete_vpc(VpcId=vpc)
    aws("fsx").delete_file_system(FileSystemId=before["lustre"]["FileSystems"][0]["FileSystemId"])
    assert len(ec2.describe_network_interfaces()["NetworkInterfaces"]) == len(before["network_interfaces"]["NetworkInterfaces"]) - 1


def test_each_acknowledged_change_survives_a_kill_right_after_it(own: Emulator) -> None:
    aws, made = clients(own.endpoint), []
    for number in range(2):
        vpc = aws("ec2").create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"]
        kill(own)
        made.append(vpc)
        own.start()
        assert [each["VpcId"] for each in aws("ec2").describe_vpcs(VpcIds=made)["Vpcs"]] == made


def test_a_state_that_lies_is_refused_with_the_remedy(own: Emulator) -> None:
    clients(own.endpoint)("ec2").create_vpc(CidrBlock="10.0.0.0/16")
    own.stop()
    file, unsaved = own.state / "state.pickle", own.state / "unsaved.json"
    header, _, body = whole = file.read_bytes().partition(b"\n")
    other = json.dumps(json.loads(header) | {"moto": "5.0.0"}).encode()
    for damaged, named in ((header + b"\n" + body[: len(body) // 2], "can't be read"), (other + b"\n" + body, "moto 5.0.0")):
        file.write_bytes(damaged)
        with pytest.raises(LocalStackError, match=rf"can't be relied on.*{named}.*make clean"):
            own.start()
        assert named in (own.status().problem or "")
    file.write_bytes(b"".join(whole))
    unsaved.write_text(json.dumps({"problem": "PicklingError: a generator"}))
    with pytest.raises(LocalStackError, match=r"a generator.*make clean"):
        own.start()
    own.forget()
    own.start()
    assert own.status().problem is None
    assert inventory(own.endpoint) == []
