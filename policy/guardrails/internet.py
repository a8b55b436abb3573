"""The internet: whether ranges of addresses let in all of it, each for itself or several together."""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from guardrails.links import demand
from guardrails.node import Node

_Range = TypeVar("_Range", ipaddress.IPv4Network, ipaddress.IPv6Network)
_PRIVATE = ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3")
# Addresses that nobody on the internet has: ranges that leave out only these leave out nobody.
_OUTSIDE_4 = [ipaddress.IPv4Network(block) for block in _PRIVATE]
# All that the internet has of IPv6 is in 2000::/3.
_OUTSIDE_6 = [ipaddress.IPv6Network(block) for block in ("::/3", "4000::/2", "8000::/1")]
_SHOWN = 3


def all_of_it(ranges: Iterable[Node]) -> list[list[Node]]:
    """The ranges that let in the whole internet, one list for IPv4 and one for IPv6: the one that does it alone, or those that do together.

    Raises:
        Undecided: those that are known do not, and there is one that is unknown.
    """
    given = list(ranges)
    networks = [(block, _network(block.text())) for block in given if block.known]
    found = [
        _whole([(block, network) for block, network in networks if isinstance(network, ipaddress.IPv4Network)], _OUTSIDE_4),
        _whole([(block, network) for block, network in networks if isinstance(network, ipaddress.IPv6Network)], _OUTSIDE_6),
    ]
    if not any(found):
        for block in given:
            demand(block)
    return [whole for whole in found if whole]


def words(whole: Sequence[Node]) -> str:
    """What a message says of one such list."""
    texts = [block.text() for block in whole]
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    network = _network(texts[0])
    remark = "together the whole internet" if len(texts) > 1 else "the whole internet" if network and network.prefixlen else ""
    return ", ".join(texts[:_SHOWN]) + more + (f" ({remark})" if remark else "")


def _whole(own: Sequence[tuple[Node, _Range]], beside: Sequence[_Range]) -> list[Node]:
    networks = [network for _, network in own]
    if not networks or next(ipaddress.collapse_addresses([*networks, *beside])).prefixlen:
        return []
    alone = next((block for block, network in own if not network.prefixlen), None)
    if alone is not None:
        return [alone]
    given = set(networks)
    return [block for block, network in own if not any(wider in given for wider in _around(network))]


def _around(network: _Range) -> Iterator[_Range]:
    """The wider ranges that a range lies in, of which there are at most as many as an address has bits."""
    return (network.supernet(new_prefix=length) for length in range(network.prefixlen))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The range, however it is spelled; None where the text is none, such as the name of a list of prefixes."""
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return None
