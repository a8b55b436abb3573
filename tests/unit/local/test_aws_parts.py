"""Parts of the AWS emulator that need no process: fault rules, image names, addresses, error forms, Lustre's metadata IOPS."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from local.aws.emulator import check_address
from local.aws.faults import Fault, FaultError, Faults
from local.aws.node_image import image_id, images, parameters
from local.errors import LocalStackError

pytestmark = pytest.mark.unit


def test_a_fault_strikes_as_often_as_counted_and_only_what_it_names() -> None:
    faults = Faults()
    faults.replace([{"kind": "error", "service": "ec2", "operation": "CreateVpc", "count": 2}], None)
    assert faults.strike("ec2", "DescribeVpcs") is None
    assert faults.strike("eks", "CreateVpc") is None
    assert [faults.strike("ec2", "CreateVpc") is not None for _ in range(3)] == [True, True, False]


def test_bad_rules_leave_the_good_ones_in_force() -> None:
    faults = Faults()
    faults.replace([{"kind": "drop"}], None)
    with pytest.raises(FaultError, match="kind: 'burn'"):
        faults.replace([{"kind": "burn"}], None)
    assert [Fault(**rule).kind for rule in faults.listed()] == ["drop"]


def test_image_ids_are_of_ec2s_form_and_follow_from_the_name_alone() -> None:
    names = list(images())
    assert len({image_id(name) for name in names}) == len(names)
    assert all(re.fullmatch(r"ami-[0-9a-f]{17}", image_id(name)) for name in names)
    assert set(parameters().values()) == {image_id(name) for name in names}


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "1.1.1.1", "node", "192.168.254.253"])
def test_addresses_that_are_not_ours_and_private_are_refused(address: str) -> None:
    with pytest.raises(LocalStackError, match=re.escape(address)):
        check_address(address)


def test_a_loopback_address_is_accepted() -> None:
    check_address("127.0.0.2")


def test_errors_have_the_wire_format_of_their_service() -> None:
    from local.aws.error_response import error_response
    from local.aws.operation import Operation

    def body(protocol: str, kind: str) -> tuple[bytes, str]:
        content, status, _ = error_response(Operation(service="s", name="Op", region="r", protocol=protocol), kind, "a < b")
        return b"".join(content), status.split()[0]

    assert json.loads(body("json", "throttle")[0])["__type"] == "ThrottlingException"
    for protocol, code in (("ec2", "RequestLimitExceeded"), ("query", "Throttling"), ("rest-xml", "SlowDown")):
        text, _ = body(protocol, "throttle")
        assert ElementTree.fromstring(text).findtext(".//Code") or ElementTree.fromstring(text).findtext("Code") == code
    assert body("ec2", "missing")[1] == "501"


def test_metadata_iops_grow_with_capacity_as_fsx_gives_them() -> None:
    from local.aws.extension.lustre import automatic_iops

    assert [automatic_iops(capacity) for capacity in (1200, 2400, 4800, 9600, 12000, 24000, 48000)] == [
        1500,
        3000,
        6000,
        6000,
        12000,
        12000,
        24000,
    ]
