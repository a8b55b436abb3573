"""What the stand-in aws plug-in makes of refusals, half-done work, drift, repeated creations and dependants that go late."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import boto3
import grpc
import pytest
from pulumi.runtime.proto import provider_pb2, status_pb2

from local.aws.emulator import Emulator
from local.plugins.aws.values import decode, encode
from tests.emulated.aws_plugin_driver import REGION, Driver, Life, Resource, running_driver, urn

pytestmark = pytest.mark.emulated

VPC = "aws:ec2/vpc:Vpc"
ROLE = "aws:iam/role:Role"
BUCKET = "aws:s3/bucket:Bucket"
EFS = "aws:efs/fileSystem:FileSystem"
TRUST = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
)


@pytest.fixture(scope="module")
def endpoint(emulator: Emulator) -> str:
    return emulator.endpoint


@pytest.fixture
def life(endpoint: str) -> Iterator[Life]:
    with running_driver() as driver:
        driver.configure(endpoint)
        life = Life(driver)
        yield life
        life.end()


@pytest.fixture
def driver(life: Life) -> Driver:
    return life.driver


def client(endpoint: str, service: str) -> Any:
    return boto3.client(service, endpoint_url=endpoint, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")


def details(error: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    return error.value.details()  # ty: ignore[missing-attribute]


def test_a_refusal_names_the_call_the_code_and_the_property(driver: Driver) -> None:
    with pytest.raises(grpc.RpcError) as error:
        driver.create("aws:ec2/subnet:Subnet", "s", vpcId="vpc-0123456789abcdef0", cidrBlock="10.0.0.0/24")
    assert "creating s: CreateSubnet: InvalidVpcID.NotFound" in details(error)
    assert "[property vpcId]" in details(error)


def test_parameters_are_held_against_botocores_model_before_a_call(driver: Driver) -> None:
    inputs = driver.check(ROLE, "r", {"assumeRolePolicy": TRUST}) | {"maxSessionDuration": 5}
    with pytest.raises(grpc.RpcError) as error:
        driver.stub.Create(provider_pb2.CreateRequest(urn=urn(ROLE, "r"), properties=encode(inputs)))
    assert "ParamValidationError" in details(error)
    assert "[property maxSessionDuration]" in details(error)


def test_a_resource_that_was_made_half_is_kept_and_finished_by_the_next_run(life: Life) -> None:
    missing = "arn:aws:iam::aws:policy/NoSuchPolicy"
    inputs = life.driver.check(ROLE, "half", {"assumeRolePolicy": TRUST, "managedPolicyArns": [missing]})
    with pytest.raises(grpc.RpcError) as error:
        life.driver.stub.Create(provider_pb2.CreateRequest(urn=urn(ROLE, "half"), properties=encode(inputs)))
    kept = init_failure(error.value)
    assert kept.id == inputs["name"]
    assert "NoSuchEntity" in kept.reasons[0]
    # What the engine records, and then updates although the inputs may be the same.
    role = Resource(token=ROLE, name="half", id=kept.id, inputs=inputs, outputs=decode(kept.properties))
    life.made.append(role)
    assert role["arn"].endswith(f":role/{kept.id}")
    there = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    life.driver.update(role, assumeRolePolicy=TRUST, managedPolicyArns=[there])
    assert role["managedPolicyArns"] == [there]


def init_failure(error: Any) -> Any:
    packed = next(value for key, value in error.trailing_metadata() if key == "grpc-status-details-bin")
    kept = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(packed).details[0].Unpack(kept)
    return kept


def test_drift_is_told_property_by_property(life: Life, endpoint: str) -> None:
    queue = life.of("aws:sqs/queue:Queue", "q", messageRetentionSeconds=300, tags={"a": "1", "b": "2"})
    sqs = client(endpoint, "sqs")
    sqs.set_queue_attributes(QueueUrl=queue.id, Attributes={"MessageRetentionPeriod": "60"})
    sqs.tag_queue(QueueUrl=queue.id, Tags={"a": "9", "new": "x"})
    sqs.untag_queue(QueueUrl=queue.id, TagKeys=["b"])
    # In the engine's direction: from what is there to what was declared.
    paths = {"messageRetentionSeconds": "UPDATE"}
    paths |= {f"{top}.{key}": kind for top in ("tags", "tagsAll") for key, kind in (("a", "UPDATE"), ("b", "ADD"), ("new", "DELETE"))}
    assert life.driver.drift(queue) == paths


def test_what_nobody_declared_is_drift_only_where_aws_did_not_choose_it(life: Life, endpoint: str) -> None:
    vpc = life.of(VPC, "net", cidrBlock="10.0.0.0/16")
    group = life.of("aws:ec2/securityGroup:SecurityGroup", "g", vpcId=vpc.id)
    client(endpoint, "ec2").create_tags(Resources=[vpc.id], Tags=[{"Key": "by", "Value": "hand"}])
    open_to_all = [{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    client(endpoint, "ec2").authorize_security_group_ingress(GroupId=group.id, IpPermissions=open_to_all)
    assert set(life.driver.drift(vpc)) == {"tags", "tagsAll"}
    # Rules may be resources of their own, so the group does not claim them.
    assert life.driver.drift(group) == {}


def test_a_vanished_resource_is_gone_and_can_be_deleted(life: Life, endpoint: str) -> None:
    vpc = life.driver.create(VPC, "net", cidrBlock="10.0.0.0/16")
    client(endpoint, "ec2").delete_vpc(VpcId=vpc.id)
    assert life.driver.read(vpc) is None
    assert life.driver.imported(vpc) is None
    life.driver.delete(vpc)


def test_a_deletion_waits_for_dependants_that_go_late(life: Life, endpoint: str) -> None:
    vpc = life.driver.create(VPC, "net", cidrBlock="10.0.0.0/16")
    ec2 = client(endpoint, "ec2")
    subnet = ec2.create_subnet(VpcId=vpc.id, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    later = threading.Timer(1.5, lambda: ec2.delete_subnet(SubnetId=subnet))
    later.start()
    life.driver.delete(vpc)
    later.join()
    assert life.driver.read(vpc) is None


def test_a_deletion_that_stays_refused_says_why(life: Life) -> None:
    vpc = life.of(VPC, "net", cidrBlock="10.0.0.0/16")
    life.of("aws:ec2/subnet:Subnet", "s", vpcId=vpc.id, cidrBlock="10.0.0.0/24")
    request = provider_pb2.DeleteRequest(id=vpc.id, urn=vpc.urn, properties=encode(vpc.outputs), old_inputs=encode(vpc.inputs), timeout=0.5)
    with pytest.raises(grpc.RpcError) as error:
        life.driver.stub.Delete(request)
    assert "deleting net: DeleteVpc: DependencyViolation" in details(error)


def test_waiting_ends_when_the_engine_cancels(life: Life) -> None:
    vpc = life.of(VPC, "net", cidrBlock="10.0.0.0/16")
    life.of("aws:ec2/subnet:Subnet", "s", vpcId=vpc.id, cidrBlock="10.0.0.0/24")
    threading.Timer(0.5, life.driver.cancel).start()
    start = time.monotonic()
    with pytest.raises(grpc.RpcError) as error:
        life.driver.delete(vpc)
    assert "cancelled" in details(error)
    assert time.monotonic() - start < 4
    life.driver.configure(life.driver.endpoint)


def test_a_bucket_with_objects_goes_only_if_it_may(life: Life, endpoint: str) -> None:
    kept, emptied = life.driver.create(BUCKET, "kept"), life.driver.create(BUCKET, "emptied", forceDestroy=True)
    s3 = client(endpoint, "s3")
    for bucket in (kept, emptied):
        s3.put_bucket_versioning(Bucket=bucket.id, VersioningConfiguration={"Status": "Enabled"})
        for _ in range(2):
            s3.put_object(Bucket=bucket.id, Key="a", Body=b"x")
        s3.delete_object(Bucket=bucket.id, Key="a")
    with pytest.raises(grpc.RpcError) as error:
        life.driver.delete(kept)
    assert "BucketNotEmpty" in details(error)
    life.driver.delete(emptied)
    assert life.driver.read(emptied) is None
    life.driver.update(kept, forceDestroy=True)
    life.driver.delete(kept)


def repeated(life: Life, token: str, name: str, **news: Any) -> tuple[str, str]:
    """Identifiers of a creation and of its repetition by a run which does not know that the first one came through."""
    inputs = life.driver.check(token, name, news)
    request = provider_pb2.CreateRequest(urn=urn(token, name), properties=encode(inputs))
    first, second = life.driver.stub.Create(request), life.driver.stub.Create(request)
    life.made.append(Resource(token=token, name=name, id=second.id, inputs=inputs, outputs=decode(second.properties)))
    return first.id, second.id


def test_a_creation_repeated_after_a_kill_adopts_what_is_there(life: Life) -> None:
    vpc = life.of(VPC, "net", cidrBlock="10.0.0.0/16")
    subnet = life.of("aws:ec2/subnet:Subnet", "s", vpcId=vpc.id, cidrBlock="10.0.0.0/24")
    itself = [{"protocol": "-1", "fromPort": 0, "toPort": 0, "self": True}]
    group = life.of("aws:ec2/securityGroup:SecurityGroup", "g", vpcId=vpc.id, ingress=itself, egress=itself)
    lustre = {"subnetIds": subnet.id, "securityGroupIds": [group.id], "storageCapacity": 1200, "deploymentType": "SCRATCH_2"}
    for token, news in ((EFS, {}), ("aws:fsx/lustreFileSystem:LustreFileSystem", lustre)):
        first, second = repeated(life, token, "again", **news)
        assert first == second, token


def test_a_deleted_resource_can_be_made_again(life: Life) -> None:
    for _ in range(2):
        inputs = life.driver.check(EFS, "twice", {})
        answer = life.driver.stub.Create(provider_pb2.CreateRequest(urn=urn(EFS, "twice"), properties=encode(inputs)))
        made = Resource(token=EFS, name="twice", id=answer.id, inputs=inputs, outputs=decode(answer.properties))
        assert life.driver.read(made) is not None
        life.driver.delete(made)


def test_unknown_functions_and_types_are_named(driver: Driver) -> None:
    with pytest.raises(grpc.RpcError) as error:
        driver.invoke("aws:ec2/getNothing:getNothing")
    assert "does not know function aws:ec2/getNothing:getNothing" in details(error)
    with pytest.raises(grpc.RpcError) as error:
        driver.check("aws:ec2/instance:Instance", "i", {})
    assert "does not carry out type aws:ec2/instance:Instance" in details(error)


def test_an_identifier_of_the_wrong_form_is_refused(driver: Driver) -> None:
    addon = Resource(token="aws:eks/addon:Addon", name="a", id="no-colon", inputs={})
    with pytest.raises(grpc.RpcError) as error:
        driver.imported(addon)
    assert "its form is {clusterName}:{addonName}" in details(error)


def test_a_preview_with_unknowns_plans_all_outputs(driver: Driver) -> None:
    from local.plugins.aws.values import UNKNOWN

    planned = driver.preview("aws:ec2/subnet:Subnet", "s", vpcId=UNKNOWN, cidrBlock="10.0.0.0/24")
    assert planned["cidrBlock"] == "10.0.0.0/24"
    assert (planned["vpcId"], planned["arn"], planned["availabilityZone"]) == (UNKNOWN, UNKNOWN, UNKNOWN)
