"""The choice of a node's addresses."""

import ipaddress
import json
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.node import network

pytestmark = pytest.mark.unit


def networks(*texts: str) -> list[ipaddress.IPv4Network]:
    return [ipaddress.IPv4Network(text) for text in texts]


def test_a_link_is_two_addresses_of_one_small_network() -> None:
    link = network.choose_link("ty-x", [], start=5)
    assert link.host_ip == "10.213.0.21"
    assert link.node_ip == "10.213.0.22"
    assert link.network == ipaddress.IPv4Network("10.213.0.20/30")


def test_a_network_in_use_is_passed_over() -> None:
    assert network.choose_link("ty-x", networks("10.213.0.0/29"), start=0).host_ip == "10.213.0.9"


def test_the_search_wraps_round_the_pool() -> None:
    last = 2**14 - 1
    assert network.choose_link("ty-x", networks("10.213.255.252/30"), start=last).host_ip == "10.213.0.1"


def test_the_second_pool_serves_where_the_first_is_taken() -> None:
    assert network.choose_link("ty-x", networks("10.213.0.0/16"), start=0).host_ip == "198.18.0.1"


def test_no_free_network_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "POOLS", ("10.213.0.0/28", "198.18.0.0/28"))
    with pytest.raises(LocalStackError, match=r"10.213.0.0/28 or 198.18.0.0/28.*ip route"):
        network.choose_link("ty-x", networks("10.213.0.0/16", "198.18.0.0/15"), start=0)


def test_a_recorded_link_is_kept_while_nothing_else_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[ipaddress.IPv4Network] = []
    monkeypatch.setattr(network, "used_networks", lambda *, except_interface: used)
    path = tmp_path / "network.json"
    first = network.load_or_choose_link(path, "0000000a")
    used += networks("10.213.0.0/30")
    assert network.load_or_choose_link(path, "0000000a") == first
    used.append(first.network)
    assert network.load_or_choose_link(path, "0000000a").network != first.network


def test_a_broken_record_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "used_networks", lambda *, except_interface: [])
    path = tmp_path / "network.json"
    path.write_text("{")
    link = network.load_or_choose_link(path, "ffffffff")
    assert len(link.interface) <= 15, "the kernel takes no longer name"
    assert json.loads(path.read_text())["host_ip"] == link.host_ip


ADDRESS = {"family": "inet", "local": "10.213.4.7", "prefixlen": 24}


def test_addresses_and_narrow_routes_count_as_used_but_wide_ones_and_our_own_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "addr": [
            {
                "ifname": "eth0",
                "addr_info": [ADDRESS, {"family": "inet6", "local": "fe80::1"}],
            },
            {"ifname": "ty-own", "addr_info": [{"family": "inet", "local": "10.213.9.1", "prefixlen": 30}]},
        ],
        "route": [
            {"dst": "default", "dev": "eth0"},
            {"dst": "10.0.0.0/8", "dev": "vpn0"},
            {"dst": "10.213.8.0/24", "dev": "vpn0"},
            {"dst": "10.213.9.0/30", "dev": "ty-own"},
            {"dst": "fe80::/64", "dev": "eth0"},
        ],
    }
    monkeypatch.setattr(network, "_ip_json", lambda *words: answers[words[0]])
    assert network.used_networks(except_interface="ty-own") == networks("10.213.4.0/24", "10.213.8.0/24")
