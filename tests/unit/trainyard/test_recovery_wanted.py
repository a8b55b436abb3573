"""Whether something that exists is what the state lacks."""

from typing import Any

import pytest

from tests.unit.trainyard.state import QUEUE, VPC, resource
from trainyard.recovery.wanted import UNKNOWN, Found, Wanted, is_meant

pytestmark = pytest.mark.unit
TAGS = {"trainyard:stack": "trainyard/dev"}


def wanted(inputs: dict[str, Any], *, pending: bool = False, kind: str = VPC) -> Wanted:
    return Wanted(resource=resource(kind, "net", inputs=inputs), pending=pending)


@pytest.mark.parametrize(
    ("inputs", "pending", "value", "same"),
    [
        # The program's own name.
        ({"name": "jobs"}, False, "jobs", True),
        ({"name": "jobs"}, False, "jobs-1a2b3c4", False),
        # A made-up one: a preview makes another up.
        ({"name": "jobs-1a2b3c4", "__defaults": ["name"]}, False, "jobs-9f8e7d6", True),
        ({"name": "jobs-1a2b3c4", "__defaults": ["name"]}, False, "other-9f8e7d6", False),
        ({"name": "jobs-1a2b3c4", "__defaults": ["name"]}, False, "jobs-mine", False),
        # From a prefix: more digits.
        ({"name": "jobs-" + "1" * 26, "__defaults": ["name"]}, False, "jobs-" + "a" * 26, True),
        # The state holds the very name that the call was given.
        ({"name": "jobs-1a2b3c4", "__defaults": ["name"]}, True, "jobs-9f8e7d6", False),
        ({"name": "jobs-1a2b3c4", "__defaults": ["name"]}, True, "jobs-1a2b3c4", True),
        ({"name": UNKNOWN}, False, UNKNOWN, False),
        ({}, False, "jobs", False),
    ],
)
def test_a_name_is_known_again(inputs: dict[str, Any], pending: bool, value: str, same: bool):
    assert wanted(inputs, pending=pending, kind=QUEUE).is_named("name", value) is same


@pytest.mark.parametrize(
    ("inputs", "found", "meant"),
    [
        ({"cidrBlock": "10.0.0.0/16"}, Found(id="v", inputs={"cidrBlock": "10.0.0.0/16"}, tags=TAGS), True),
        ({"cidrBlock": "10.0.0.0/16"}, Found(id="v", inputs={"cidrBlock": "10.1.0.0/16"}, tags=TAGS), False),
        # AWS's own choice tells nothing.
        ({}, Found(id="v", inputs={"cidrBlock": "10.1.0.0/16"}, tags=TAGS), True),
        # An input that no call can have had yet.
        ({"vpcId": UNKNOWN}, Found(id="v", inputs={"vpcId": "vpc-1"}, tags=TAGS), False),
        # Numbers come as text from some services.
        ({"port": 988.0}, Found(id="v", inputs={"port": 988.0}), True),
        ({"subnetIds": ["b", "a"]}, Found(id="v", inputs={"subnetIds": ["a", "b"]}, tags=TAGS), True),
        ({"tags": {"Name": "net"}}, Found(id="v", tags={**TAGS, "Name": "net", "aws:x": "y"}), True),
        ({"tags": {"Name": "net"}}, Found(id="v", tags={**TAGS, "Name": "other"}), False),
        ({"tagsAll": {"Name": "net"}}, Found(id="v", tags=TAGS), False),
        # Nobody's, or another stack's.
        ({}, Found(id="v", tags={}), False),
        ({}, Found(id="v", tags={"trainyard:stack": "trainyard/prod"}), False),
        # A kind without tags belongs to what its inputs name.
        ({"fileSystemId": "fs-1"}, Found(id="v", inputs={"fileSystemId": "fs-1"}, tags=None), True),
    ],
)
def test_what_is_found_is_held_against_what_is_wanted(inputs: dict[str, Any], found: Found, meant: bool):
    assert is_meant(found, wanted(inputs), TAGS) is meant


@pytest.mark.parametrize(
    ("condition", "settling", "failed"),
    [("CREATING", True, False), ("pending", True, False), ("ACTIVE", False, False), ("", False, False), ("CREATE_FAILED", False, True)],
)
def test_a_condition_tells_whether_to_wait(condition: str, settling: bool, failed: bool):
    found = Found(id="x", condition=condition)
    assert (found.settling, found.failed) == (settling, failed)


@pytest.mark.parametrize("value", [None, UNKNOWN, {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}, ["a"]])
def test_an_input_that_is_not_plain_text_is_not_known(value: Any):
    assert wanted({"role": value}).known("role") is None


def test_a_number_is_known_as_text():
    assert wanted({"fromPort": 988}).known("fromPort") == "988"
