"""The emulator as a process: one port for good, loopback and a private link only, quick enough, and a log of what it was asked.

.venv/bin/python -m pytest tests/emulated/test_emulator_process.py
"""

import json
import os
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from local.aws.emulator import Emulator
from local.errors import LocalStackError
from tests.emulated.landscape import Clients, clients

pytestmark = pytest.mark.emulated


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())


def listening(pid: int) -> set[str]:
    """Local addresses (hex, as the kernel writes them) on which the process listens."""
    inodes = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


def test_a_second_start_keeps_the_process_and_the_port(emulator: Emulator) -> None:
    before = emulator.status()
    endpoint = emulator.start()
    assert endpoint.url == before.url == emulator.endpoint
    assert emulator.status().pid == before.pid
    assert (endpoint.account, endpoint.region) == ("123456789012", "us-east-1")


def test_a_port_taken_by_another_program_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    emulator = Emulator(tmp_path)
    taken = socket.create_server(("127.0.0.1", int(emulator.endpoint.rpartition(":")[2])))
    with taken, pytest.raises(LocalStackError, match=r"taken by another program.*emulator\.json"):
        emulator.start()
    assert not emulator.status().running


def test_it_listens_on_loopback_only(emulator: Emulator) -> None:
    assert listening(emulator.status().pid or 0) == {"0100007F"}


def test_port_and_state_survive_a_stop_and_a_link_is_served_as_well(tmp_path: Path) -> None:
    emulator = Emulator(tmp_path)
    try:
        first = emulator.start()
        clients(first.url)("sqs").create_queue(QueueName="kept")
        emulator.stop()
        assert not emulator.status().running
        # 127.0.0.2 stands for the link's address: private, of a local interface, not the usual one.
        second = emulator.start(also_bind="127.0.0.2")
        assert second.url == first.url
        assert emulator.start().node_url == second.node_url == first.url.replace("127.0.0.1", "127.0.0.2")
        assert listening(emulator.status().pid or 0) == {"0100007F", "0200007F"}
        assert len(clients(second.node_url or "")("sqs").list_queues()["QueueUrls"]) == 1
        emulator.forget()
        emulator.start()
        assert "QueueUrls" not in clients(first.url)("sqs").list_queues()
    finally:
        emulator.stop()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("0.0.0.0", "not a private address"),
        ("::", "not a private address"),
        ("8.8.8.8", "not a private address"),
        ("10.213.77.1", "no local interface"),
        ("localhost", "not an IP address"),
    ],
)
def test_an_address_that_others_could_reach_is_refused(tmp_path: Path, address: str, reason: str) -> None:
    with pytest.raises(LocalStackError, match=reason):
        Emulator(tmp_path).start(also_bind=address)
    assert not Emulator(tmp_path).status().running


def test_requests_are_logged_with_service_operation_and_status(emulator: Emulator, aws: Clients) -> None:
    last = max((entry["number"] for entry in get(f"{emulator.endpoint}/_trainyard/requests")), default=0)
    aws("ec2").describe_vpcs()
    aws("efs").describe_file_systems()
    aws("s3").list_buckets()
    with pytest.raises(aws("eks").exceptions.ResourceNotFoundException):
        aws("eks").describe_cluster(name="absent")
    entries = get(f"{emulator.endpoint}/_trainyard/requests?after={last}")
    assert [(entry["service"], entry["operation"], entry["status"]) for entry in entries] == [
        ("ec2", "DescribeVpcs", 200),
        ("efs", "DescribeFileSystems", 200),
        ("s3", "ListBuckets", 200),
        ("eks", "DescribeCluster", 404),
    ]
    assert get(f"{emulator.endpoint}/_trainyard/requests?service=eks&after={last}")[0]["operation"] == "DescribeCluster"


def test_requests_for_any_account_key_and_region_are_served(emulator: Emulator) -> None:
    for region in ("eu-west-1", "us-west-2"):
        aws = clients(emulator.endpoint, region)
        assert aws("sts").get_caller_identity()["Account"] == "123456789012"
        assert aws("ec2").describe_availability_zones()["AvailabilityZones"][0]["RegionName"] == region


def test_a_request_costs_less_than_10_ms_of_processor_time(emulator: Emulator, aws: Clients) -> None:
    vpc = aws("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    aws("ec2").create_security_group(GroupName="first", Description="d", VpcId=vpc)
    # Processor time, not wall clock: other tests and builds share the machine.
    stat = Path(f"/proc/{emulator.status().pid}/stat")
    before = sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13]))
    for number in range(60):
        aws("ec2").create_security_group(GroupName=f"g{number}", Description="d", VpcId=vpc)
        aws("ec2").describe_vpcs(VpcIds=[vpc])
    ticks = sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) - before
    assert ticks / os.sysconf("SC_CLK_TCK") / 120 < 0.010
