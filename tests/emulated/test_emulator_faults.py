"""Faults on purpose: what an SDK sees is what AWS sends when it throttles, fails, is late, or loses an answer."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from local.aws.emulator import Emulator
from tests.emulated.landscape import Clients, unique

pytestmark = pytest.mark.emulated

Inject = Callable[..., Any]


@pytest.fixture
def inject(emulator: Emulator) -> Iterator[Inject]:
    def call(*rules: dict[str, Any], method: str = "POST", seed: int | None = None) -> Any:
        body = json.dumps({"faults": list(rules), "seed": seed}).encode()
        request = urllib.request.Request(f"{emulator.endpoint}/_trainyard/faults", data=body, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    yield call
    call(method="DELETE")


@pytest.mark.parametrize(
    ("service", "operation", "call", "code", "status"),
    [
        ("ec2", "DescribeVpcs", "describe_vpcs", "RequestLimitExceeded", 503),
        ("iam", "ListRoles", "list_roles", "Throttling", 400),
        ("s3", "ListBuckets", "list_buckets", "SlowDown", 503),
        ("fsx", "DescribeFileSystems", "describe_file_systems", "ThrottlingException", 400),
        ("eks", "ListClusters", "list_clusters", "TooManyRequestsException", 429),
    ],
)
def test_throttling_has_the_form_of_each_protocol(
    aws: Clients, inject: Inject, service: str, operation: str, call: str, code: str, status: int
):
    inject({"kind": "throttle", "service": service, "operation": operation, "count": 1})
    with pytest.raises(ClientError) as caught:
        getattr(aws(service), call)()
    assert (caught.value.response["Error"]["Code"], caught.value.response["ResponseMetadata"]["HTTPStatusCode"]) == (code, status)
    getattr(aws(service), call)()


def test_an_sdk_that_retries_gets_over_two_internal_errors(emulator: Emulator, inject: Inject) -> None:
    inject({"kind": "error", "service": "ec2", "count": 2})
    client = boto3.client(
        "ec2",
        endpoint_url=emulator.endpoint,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"max_attempts": 4, "mode": "standard"}),
    )
    assert client.describe_vpcs()["ResponseMetadata"]["RetryAttempts"] == 2


def test_a_dropped_answer_leaves_the_resource_behind(aws: Clients, inject: Inject) -> None:
    name = unique("queue")
    inject({"kind": "drop", "service": "sqs", "operation": "CreateQueue", "count": 1})
    with pytest.raises(ConnectionClosedError):
        aws("sqs").create_queue(QueueName=name)
    assert aws("sqs").get_queue_url(QueueName=name)["QueueUrl"].endswith(name)


def test_a_delay_is_at_least_as_long_as_asked(aws: Clients, inject: Inject) -> None:
    inject({"kind": "delay", "service": "ec2", "seconds": 0.4, "count": 1})
    start = time.monotonic()
    aws("ec2").describe_vpcs()
    assert time.monotonic() - start >= 0.4


def test_the_same_seed_strikes_the_same_calls(aws: Clients, inject: Inject) -> None:
    def pattern() -> list[bool]:
        inject({"kind": "throttle", "service": "sqs", "probability": 0.4}, seed=11)
        struck = []
        for _ in range(20):
            try:
                aws("sqs").list_queues()
                struck.append(False)
            except ClientError:
                struck.append(True)
        return struck

    first = pattern()
    assert first == pattern()
    assert 3 <= sum(first) <= 15


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ({"kind": "explode"}, "kind: 'explode'"),
        ({"kind": "delay", "seconds": 90}, "seconds: 90"),
        ({"kind": "drop", "probability": 2}, "probability: 2"),
        ({"kind": "drop", "count": 0}, "count: 0"),
        ({"kind": "drop", "operations": "x"}, "operations: unknown field"),
        ({}, "kind: missing"),
    ],
)
def test_a_bad_rule_is_refused_by_field_and_value(inject: Inject, rule: dict[str, Any], named: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        inject(rule)
    assert named in json.loads(caught.value.read())["error"]


def test_waiting_for_a_queue_does_not_hold_up_others(aws: Clients, emulator: Emulator) -> None:
    url = aws("sqs").create_queue(QueueName=unique("long"))["QueueUrl"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(aws("sqs").receive_message, QueueUrl=url, WaitTimeSeconds=20)
        start = time.monotonic()
        aws("ec2").describe_vpcs()
        assert time.monotonic() - start < 5
        aws("sqs").send_message(QueueUrl=url, MessageBody="interruption")
        assert waiting.result(timeout=10)["Messages"][0]["Body"] == "interruption"
