"""The link between host and node: a veth pair on a private /30, and the pod network behind it."""

import contextlib
import ipaddress
import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from local.errors import LocalStackError
from local.node import layout

# 10.213.0.0/16 is seldom used; 198.18.0.0/15 is set aside for benchmarks and so routed nowhere.
POOLS = ("10.213.0.0/16", "198.18.0.0/15")

IPv4Network = ipaddress.IPv4Network


@dataclass(frozen=True, kw_only=True)
class Link:
    """Both ends of a node's link to the host."""

    interface: str
    """The host's end, at most 15 characters."""
    host_ip: str
    node_ip: str

    @property
    def network(self) -> IPv4Network:
        return IPv4Network(f"{self.host_ip}/30", strict=False)


def load_or_choose_link(path: Path, copy_id: str) -> Link:
    """The link recorded at `path`, or a free one, recorded there. A recorded one that something else uses by now is replaced.

    Raises:
        LocalStackError: every network of `POOLS` is in use.
    """
    interface = f"ty-{copy_id}"
    used = used_networks(except_interface=interface)
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
        link = Link(**json.loads(path.read_text()))
        if link.interface == interface and not any(link.network.overlaps(other) for other in used):
            return link
    link = choose_link(interface, used, start=int(copy_id, 16))
    path.write_text(json.dumps(asdict(link)))
    return link


def choose_link(interface: str, used: Iterable[IPv4Network], *, start: int) -> Link:
    """The first free /30 of `POOLS`, looking from number `start` on, so that two copies seldom try the same one."""
    taken = list(used)
    for candidate in _candidates(start):
        if not any(candidate.overlaps(other) for other in taken):
            return Link(interface=interface, host_ip=str(candidate[1]), node_ip=str(candidate[2]))
    raise LocalStackError(
        f"no free /30 network in {' or '.join(POOLS)} for the node: remove addresses or routes of these ranges (`ip route`)"
    )


def used_networks(*, except_interface: str) -> list[IPv4Network]:
    """Networks that the host has an address or a route in. Routes wider than /12 say nothing about single addresses."""
    networks = []
    for item in _ip_json("addr"):
        if item["ifname"] != except_interface:
            networks += [IPv4Network(f"{a['local']}/{a['prefixlen']}", strict=False) for a in item["addr_info"] if a["family"] == "inet"]
    for route in _ip_json("route", "show", "table", "all"):
        if route.get("dev") == except_interface or route["dst"] == "default" or ":" in route["dst"]:
            continue
        with contextlib.suppress(ValueError):
            network = IPv4Network(route["dst"], strict=False)
            if network.prefixlen >= 12:
                networks.append(network)
    return networks


def connect_host(link: Link, pid: int) -> None:
    """Make the veth pair, one end on the host and one, `eth0`, in the network namespace of `pid`."""
    remove_host_end(link.interface)
    _ip("link", "add", link.interface, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip("addr", "add", f"{link.host_ip}/30", "dev", link.interface)
    _ip("link", "set", link.interface, "up")


def remove_host_end(interface: str) -> None:
    """Remove the host's end and with it the other. It is gone already where the namespace has ended."""
    if Path("/sys/class/net", interface).exists():
        subprocess.run(["ip", "link", "delete", interface], capture_output=True, check=False)


def configure_node(link: Link) -> None:
    """Addresses, routes and address translation inside the namespace; the caller is in it."""
    _ip("link", "set", "lo", "up")
    # CoreDNS answers on the service's address itself: no rule of kube-proxy is needed to reach it.
    _ip("addr", "add", f"{layout.SERVICE_DNS}/32", "dev", "lo")
    _ip("addr", "add", f"{link.node_ip}/30", "dev", "eth0")
    _ip("link", "set", "eth0", "up")
    # A client on the node must find a route to a service before kube-proxy's rules rewrite it. There is no default route:
    # whatever is neither in here nor on the host fails at once, where it would time out otherwise.
    _ip("route", "add", layout.SERVICE_CIDR, "via", link.host_ip)
    for name in ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"):
        Path("/proc/sys", name).write_text("1")
    # Pods meet the host as the node: the host then needs no route to them and no rule.
    masquerade = ["-s", layout.POD_CIDR, "-o", "eth0", "-j", "MASQUERADE"]
    _run(["iptables", "-w", "-t", "nat", "-A", "POSTROUTING", *masquerade])


def _candidates(start: int) -> Iterator[IPv4Network]:
    for pool in map(IPv4Network, POOLS):
        count = pool.num_addresses // 4
        base = int(pool.network_address)
        for index in range(count):
            yield IPv4Network((base + 4 * ((start + index) % count), 30))


def _ip_json(*words: str) -> list[dict]:
    return json.loads(_run(["ip", "-json", *words]) or "[]")


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(argv: list[str]) -> str:
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LocalStackError(f"`{' '.join(argv)}` failed: {result.stderr.strip()}")
    return result.stdout
