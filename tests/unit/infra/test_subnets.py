"""Subnet arithmetic: for every VPC range and number of zones, the ranges are inside, apart, and as large as they can be."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.network import plan_subnets

pytestmark = pytest.mark.unit


@given(st.integers(16, 20), st.integers(1, 6))
def test_ranges_are_inside_the_vpc_and_apart(prefix, count):
    vpc = f"10.0.0.0/{prefix}"
    plan = plan_subnets(vpc, [f"z{index}" for index in range(count)])
    ranges = [ipaddress.IPv4Network(cidr) for row in plan for cidr in (row.private_cidr, row.public_cidr)]
    assert all(found.subnet_of(ipaddress.IPv4Network(vpc)) for found in ranges)
    assert not any(a.overlaps(b) for index, a in enumerate(ranges) for b in ranges[index + 1 :])
    assert all(found.prefixlen <= 28 for found in ranges)


def test_three_zones_of_a_sixteen_get_a_quarter_each():
    plan = plan_subnets("10.0.0.0/16", ["a", "b", "c"])
    assert [row.private_cidr for row in plan] == ["10.0.0.0/18", "10.0.64.0/18", "10.0.128.0/18"]
    assert [row.public_cidr for row in plan] == ["10.0.192.0/20", "10.0.208.0/20", "10.0.224.0/20"]


def test_renaming_a_zone_moves_no_range():
    before, after = (plan_subnets("10.0.0.0/16", zones) for zones in (["a", "b", "c"], ["a", "x", "c"]))
    assert [row.private_cidr for row in before] == [row.private_cidr for row in after]


def test_a_range_too_small_is_an_error_with_the_limit():
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/26 is too small for 3 zones.*/28"):
        plan_subnets("10.0.0.0/26", ["a", "b", "c"])
