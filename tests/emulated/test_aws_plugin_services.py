"""Storage, messaging, identity and key types of the stand-in aws plug-in on the emulator: each one's whole life."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local.aws.emulator import Emulator
from tests.emulated.aws_plugin_driver import REGION, Life, Resource, running_driver

pytestmark = pytest.mark.emulated


@pytest.fixture(scope="module")
def driven(emulator: Emulator) -> Iterator[Life]:
    with running_driver() as driver:
        driver.configure(emulator.endpoint)
        yield Life(driver)


@pytest.fixture
def life(driven: Life) -> Iterator[Life]:
    yield driven
    driven.end()


def document(action: Any, resource: str = "*", **more: Any) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": resource, **more}]})


def trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def network(life: Life) -> tuple[list[Resource], Resource]:
    """Two subnets and a group that lets its members talk to each other."""
    vpc = life.of("aws:ec2/vpc:Vpc", "net", cidrBlock="10.0.0.0/16")
    itself = [{"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}]
    group = life.of("aws:ec2/securityGroup:SecurityGroup", "nodes", vpcId=vpc.id, ingress=itself, egress=itself)
    places = [
        life.of("aws:ec2/subnet:Subnet", f"net-{zone}", vpcId=vpc.id, cidrBlock=f"10.0.{n}.0/24", availabilityZone=f"{REGION}{zone}")
        for n, zone in enumerate("ab")
    ]
    return places, group


def test_roles_and_policies(life: Life) -> None:
    role = life.of(
        "aws:iam/role:Role",
        "node",
        assumeRolePolicy=trust("ec2.amazonaws.com"),
        description="d",
        managedPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"],
        change={"description": "e", "maxSessionDuration": 7200, "tags": {"a": "b"}},
    )
    policy = life.of("aws:iam/policy:Policy", "read", policy=document("s3:Get*"), change={"policy": document(["s3:Get*", "s3:List*"])})
    as_object = json.loads(document("s3:*"))
    life.of("aws:iam/rolePolicy:RolePolicy", "inline", role=role.id, policy=as_object, change={"policy": document("ec2:*")})
    own = life.of("aws:iam/role:Role", "pod", assumeRolePolicy=trust("ec2.amazonaws.com"))
    life.of("aws:iam/rolePolicyAttachment:RolePolicyAttachment", "read", role=own.id, policyArn=policy["arn"])
    life.of("aws:iam/instanceProfile:InstanceProfile", "node", role=role.id, change={"role": own.id, "tags": {"a": "b"}})
    life.of(
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
        "issuer",
        url="https://oidc.example.com/id/1",
        clientIdLists=["sts.amazonaws.com"],
        thumbprintLists=["9e99a48a9960b14926bb7f3b02e22da2b0ab7280"],
        change={"tags": {"a": "b"}},
    )


def test_a_policy_changes_more_often_than_aws_keeps_versions(life: Life) -> None:
    policy = life.of("aws:iam/policy:Policy", "often", policy=document("s3:Get0"))
    for number in range(1, 8):
        life.driver.update(policy, policy=document(f"s3:Get{number}"))
    found = life.driver.read(policy)
    assert found is not None
    assert json.loads(found["policy"])["Statement"][0]["Action"] == "s3:Get7"


def test_queue_and_events(life: Life) -> None:
    queue = life.of(
        "aws:sqs/queue:Queue",
        "interruptions",
        messageRetentionSeconds=300,
        sqsManagedSseEnabled=True,
        tags={"a": "b"},
        change={"messageRetentionSeconds": 600, "tags": {"a": "c"}},
    )
    services: dict[str, Any] = {"Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]}}
    allowed = document("sqs:SendMessage", queue["arn"], **services)
    one = document("sqs:SendMessage", queue["arn"], Principal={"Service": "events.amazonaws.com"})
    life.of("aws:sqs/queuePolicy:QueuePolicy", "send", queueUrl=queue.id, policy=json.loads(allowed), change={"policy": one})
    pattern = json.dumps({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]})
    rule = life.of("aws:cloudwatch/eventRule:EventRule", "spot", eventPattern=pattern, change={"description": "x"})
    target: dict[str, Any] = {"rule": rule.id, "arn": queue["arn"], "targetId": "queue"}
    life.of("aws:cloudwatch/eventTarget:EventTarget", "spot", change={"input": "{}"}, import_id=f"{rule.id}/queue", **target)


def test_lustre_with_its_link_to_s3(life: Life) -> None:
    (place, _), group = network(life)
    shared: dict[str, Any] = {"subnetIds": place.id, "securityGroupIds": [group.id], "storageCapacity": 1200}
    system = life.of(
        "aws:fsx/lustreFileSystem:LustreFileSystem",
        "data",
        deploymentType="PERSISTENT_2",
        perUnitStorageThroughput=250,
        dataCompressionType="LZ4",
        fileSystemTypeVersion="2.15",
        # FSx does not tell which groups its interfaces have.
        not_imported={"securityGroupIds"},
        change={"storageCapacity": 2400, "tags": {"a": "b"}},
        **shared,
    )
    assert system["dnsName"].startswith(system.id)
    assert system["mountName"]
    scratch = life.of(
        "aws:fsx/lustreFileSystem:LustreFileSystem", "scratch", deploymentType="SCRATCH_2", not_imported={"securityGroupIds"}, **shared
    )
    assert life.driver.plan(scratch, **{**shared, "deploymentType": "SCRATCH_1"}).replaces == ["deploymentType"]
    bucket = life.of("aws:s3/bucket:Bucket", "Data", tags={"a": "b"}, change={"tags": {"c": "d"}})
    both: dict[str, Any] = {"autoImportPolicy": {"events": ["NEW", "CHANGED"]}, "autoExportPolicy": {"events": ["NEW"]}}
    life.of(
        "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
        "data",
        fileSystemId=system.id,
        fileSystemPath="/data",
        dataRepositoryPath=f"s3://{bucket.id}/x",
        s3=both,
        change={"s3": {**both, "autoImportPolicy": {"events": ["NEW"]}}},
    )


def test_efs(life: Life) -> None:
    (place, other), group = network(life)
    month = [{"transitionToIa": "AFTER_30_DAYS"}]
    system = life.of(
        "aws:efs/fileSystem:FileSystem",
        "home",
        encrypted=True,
        lifecyclePolicies=month,
        throughputMode="elastic",
        change={"throughputMode": "bursting"},
    )
    target: dict[str, Any] = {"fileSystemId": system.id, "subnetId": place.id, "securityGroups": [group.id]}
    life.of("aws:efs/mountTarget:MountTarget", "home-a", **target)
    life.of("aws:efs/mountTarget:MountTarget", "home-b", fileSystemId=system.id, subnetId=other.id)
    point = life.of(
        "aws:efs/accessPoint:AccessPoint",
        "team",
        fileSystemId=system.id,
        posixUser={"uid": 1000, "gid": 1000},
        rootDirectory={"path": "/team", "creationInfo": {"ownerUid": 1000, "ownerGid": 1000, "permissions": "0755"}},
    )
    assert life.driver.plan(point, fileSystemId=system.id, posixUser={"uid": 7, "gid": 1000}).replaces == ["posixUser"]
    on, off = {"status": "ENABLED"}, {"status": "DISABLED"}
    life.of("aws:efs/backupPolicy:BackupPolicy", "home", fileSystemId=system.id, backupPolicy=on, change={"backupPolicy": off})


def test_bucket_and_its_settings(life: Life) -> None:
    bucket = life.of("aws:s3/bucket:Bucket", "Checkpoints", tags={"a": "b"})
    on, off = {"status": "Enabled"}, {"status": "Suspended"}
    name: dict[str, Any] = {"bucket": bucket.id}
    life.of("aws:s3/bucketVersioning:BucketVersioning", "b", versioningConfiguration=on, change={"versioningConfiguration": off}, **name)
    kms = [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "aws:kms"}, "bucketKeyEnabled": True}]
    plain = [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": "AES256"}}]
    sse = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    life.of(sse, "b", rules=kms, change={"rules": plain}, **name)
    old = {"id": "old", "status": "Enabled", "noncurrentVersionExpiration": {"noncurrentDays": 30}}
    short = {"id": "old", "status": "Enabled", "filter": {"prefix": "a/"}, "expiration": {"days": 3}}
    lifecycle = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    life.of(lifecycle, "b", rules=[old], change={"rules": [short]}, **name)
    blocks: dict[str, Any] = dict.fromkeys(("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"), True)
    life.of("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "b", change={"ignorePublicAcls": False}, **blocks, **name)
    plainly: dict[str, Any] = {"Principal": "*", "Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    life.of("aws:s3/bucketPolicy:BucketPolicy", "b", policy=document("s3:*", f"{bucket['arn']}/*", **plainly), **name)
    owner, writer = {"objectOwnership": "BucketOwnerEnforced"}, {"objectOwnership": "ObjectWriter"}
    life.of("aws:s3/bucketOwnershipControls:BucketOwnershipControls", "b", rule=owner, change={"rule": writer}, **name)


def test_keys_parameters_and_repositories(life: Life) -> None:
    key = life.of(
        "aws:kms/key:Key",
        "data",
        description="d",
        enableKeyRotation=True,
        change={"description": "e", "enableKeyRotation": False, "tags": {"a": "b"}},
    )
    life.of("aws:kms/alias:Alias", "data", name="alias/data", targetKeyId=key["arn"])
    life.of("aws:ssm/parameter:Parameter", "p", name="/a/b", type="String", value="v", change={"value": "w", "tags": {"a": "b"}})
    life.of(
        "aws:ecr/repository:Repository",
        "images",
        imageScanningConfiguration={"scanOnPush": True},
        encryptionConfigurations=[{"encryptionType": "AES256"}],
        change={"imageTagMutability": "IMMUTABLE", "tags": {"a": "b"}},
    )
