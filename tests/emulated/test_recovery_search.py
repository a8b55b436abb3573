"""A recovery's questions to AWS: each kind's calls are accepted, and what does not exist is not found."""

from typing import Any

import pytest

from infra import labels
from local.aws.emulator import Emulator
from local.aws.inventory import Account, emulator_session
from tests.emulated.landscape import Clients, unique
from trainyard.recovery.aws_kinds import KINDS
from trainyard.recovery.aws_search import AwsSearch
from trainyard.recovery.wanted import Wanted

pytestmark = pytest.mark.emulated

TAGS = {labels.TAG_STACK: "trainyard/recovered"}
# Every input that a kind looks at, with ids of things that are not there.
NOWHERE = {
    "name": "absent",
    "role": "absent",
    "bucket": "absent",
    "clusterName": "absent",
    "nodeGroupName": "absent",
    "addonName": "vpc-cni",
    "principalArn": "arn:aws:iam::123456789012:role/absent",
    "namespace": "training",
    "serviceAccount": "trainer",
    "rule": "absent",
    "arn": "arn:aws:sqs:us-east-1:123456789012:absent",
    "fileSystemId": "fs-0123456789abcdef0",
    "subnetId": "subnet-0123456789abcdef0",
    "routeTableId": "rtb-0123456789abcdef0",
    "destinationCidrBlock": "0.0.0.0/0",
    "securityGroupId": "sg-0123456789abcdef0",
}


def wanted(kind: str, inputs: dict[str, Any], *, pending: bool = True) -> Wanted:
    return Wanted(resource={"urn": f"urn:pulumi:recovered::trainyard::{kind}::x", "type": kind, "inputs": inputs}, pending=pending)


@pytest.fixture
def search(emulator: Emulator) -> AwsSearch:
    return AwsSearch(Account(emulator_session(emulator.region), emulator.endpoint), TAGS, lambda waiting: None)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_never_made_is_not_found(search: AwsSearch, kind: str):
    assert search.find(wanted(kind, NOWHERE), set()) is None


def test_only_what_carries_the_stacks_tag_is_taken(search: AwsSearch, aws: Clients):
    name = unique("queue")
    mine = {"name": name, "tagsAll": TAGS, "__defaults": []}
    url = aws("sqs").create_queue(QueueName=name, tags={labels.TAG_STACK: "trainyard/other"})["QueueUrl"]
    assert search.find(wanted("aws:sqs/queue:Queue", mine), set()) is None
    aws("sqs").tag_queue(QueueUrl=url, Tags=TAGS)
    found = search.find(wanted("aws:sqs/queue:Queue", mine), set())
    assert found is not None
    assert found.id == url
    assert search.find(wanted("aws:sqs/queue:Queue", mine), {url}) is None, "the state has it already"


def test_a_made_up_name_is_known_by_its_beginning(search: AwsSearch, aws: Clients):
    beginning = unique("events")
    url = aws("sqs").create_queue(QueueName=f"{beginning}-1a2b3c4", tags=TAGS)["QueueUrl"]
    planned = {"name": f"{beginning}-9f8e7d6", "__defaults": ["name"]}
    found = search.find(wanted("aws:sqs/queue:Queue", planned, pending=False), set())
    assert found is not None
    assert (found.id, found.inputs) == (url, {"name": f"{beginning}-1a2b3c4"})
    assert search.find(wanted("aws:sqs/queue:Queue", planned), set()) is None, "one that had begun has the name which the state holds"


def test_a_bucket_that_was_killed_before_its_tags_is_ours_by_its_made_up_name_only(search: AwsSearch, aws: Clients):
    beginning = unique("checkpoints")
    bucket = f"{beginning}-1a2b3c4"
    aws("s3").create_bucket(Bucket=bucket)
    planned = {"bucket": f"{beginning}-9f8e7d6", "__defaults": ["bucket"]}
    found = search.find(wanted("aws:s3/bucket:Bucket", planned, pending=False), set())
    assert found is not None
    assert found.id == bucket
    chosen = {"bucket": bucket, "__defaults": []}
    assert search.find(wanted("aws:s3/bucket:Bucket", chosen, pending=False), set()) is None, "somebody else may have made it"
    tags = [{"Key": labels.TAG_STACK, "Value": "trainyard/other"}]
    aws("s3").put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    assert search.find(wanted("aws:s3/bucket:Bucket", planned, pending=False), set()) is None
