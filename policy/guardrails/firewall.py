"""What a security group lets through, whether written in the group itself or as rules of their own."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, replace

from guardrails.links import decided
from guardrails.node import Node, Undecided
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.tokens import DEFAULT_SECURITY_GROUP, EGRESS_RULE, INGRESS_RULE, SECURITY_GROUP, SECURITY_GROUP_RULE

GROUP_TYPES = frozenset({SECURITY_GROUP, SECURITY_GROUP_RULE, INGRESS_RULE, EGRESS_RULE})
"""What a rule over openings looks at."""

_ALL_PROTOCOLS = frozenset({"-1", "all"})
_TCP = frozenset({"tcp", "6"})
_LAST_PORT = 65535


@dataclass(frozen=True)
class Opening:
    """One rule of one direction of one group."""

    resource: Resource
    """What writes it: the group, or a rule resource."""
    protocol: Node
    first: Node
    last: Node
    itself: bool
    """The peer is the group itself."""
    others: bool
    """The peer is another group, or a list of addresses."""
    cidrs: tuple[Node, ...]
    """Address ranges of the peer."""

    def everything(self) -> bool:
        """Whether it opens all protocols and ports. Raises `Undecided`."""
        return self.protocol.text() in _ALL_PROTOCOLS

    def covers(self, first: int, last: int) -> bool:
        """Whether it opens every TCP port from `first` to `last`. Raises `Undecided`."""
        low, high = self._ports()
        return low <= first and last <= high

    def touches(self, port: int) -> bool:
        """Whether it opens this TCP port. Raises `Undecided`."""
        return self.covers(port, port)

    def _ports(self) -> tuple[int, int]:
        if self.everything():
            return 0, _LAST_PORT
        if self.protocol.text() not in _TCP:
            return 1, 0
        low, high = self.first.integer(), self.last.integer()
        return (1, 0) if low is None or high is None else (low, high)


def openings(program: Program, group: Resource, direction: str) -> list[Opening | Undecided]:
    """The rules of `group` in `direction` (ingress or egress), and what is unknown of them.

    Rules of their own come first: once there are any, the provider computes the group's inline list, which preview then can't know.
    """
    found: list[Opening | Undecided] = []
    for rule in program.of(INGRESS_RULE if direction == "ingress" else EGRESS_RULE):
        found += _attempt(lambda rule=rule: _of_its_own(program, rule, group))
    for rule in program.of(SECURITY_GROUP_RULE):
        found += _attempt(lambda rule=rule: _older(program, rule, group, direction))
    return found + _attempt(lambda: [_inline(group, place) for place in group.at(direction).elements()])


def anywhere(block: str) -> bool:
    """Whether an address range, however it is spelled, holds every address there is."""
    try:
        return ipaddress.ip_network(block.strip(), strict=False).prefixlen == 0
    except ValueError:
        return False


def written(program: Program, direction: str) -> list[Opening | Undecided]:
    """Every rule of the direction that the program writes, whosever group it is for, and what is unknown of them."""
    found: list[Opening | Undecided] = []
    for rule in program.of(INGRESS_RULE if direction == "ingress" else EGRESS_RULE):
        found += _attempt(lambda rule=rule: [_of_anybody(rule)])
    for rule in program.of(SECURITY_GROUP_RULE):
        found += _attempt(lambda rule=rule: [_older_of_anybody(rule)] if rule.at("type").text() == direction else [])
    for group in program.of(SECURITY_GROUP, DEFAULT_SECURITY_GROUP):
        found += _attempt(lambda group=group: [_inline(group, place) for place in group.at(direction).elements()])
    return found


def is_open(program: Program, group: Resource, direction: str, first: int, last: int, peer: str) -> bool:
    """Whether the group opens the TCP ports to `peer`: `itself`, `others`, or `any` of the two. Raises `Undecided`."""
    return decided([_judged(opening, first, last, peer) for opening in openings(program, group, direction)])


def opens_itself(program: Program, group: Resource, direction: str) -> bool:
    """Whether the group opens all protocols to itself; a rule to 0.0.0.0/0 is none. Raises `Undecided`."""
    return decided([_everything(opening) for opening in openings(program, group, direction)])


def _attempt(build: Callable[[], list[Opening]]) -> list[Opening | Undecided]:
    try:
        return [*build()]
    except Undecided as error:
        return [error]


def _everything(opening: Opening | Undecided) -> bool | Undecided:
    if isinstance(opening, Undecided):
        return opening
    try:
        return opening.itself and opening.everything()
    except Undecided as error:
        return error


def _judged(opening: Opening | Undecided, first: int, last: int, peer: str) -> bool | Undecided:
    if isinstance(opening, Undecided):
        return opening
    # An address range may hold the group's own members as well as others.
    wanted = {
        "itself": opening.itself or bool(opening.cidrs),
        "others": opening.others or bool(opening.cidrs),
        "any": opening.itself or opening.others or bool(opening.cidrs),
    }[peer]
    try:
        return wanted and opening.covers(first, last)
    except Undecided as error:
        return error


def _of_its_own(program: Program, rule: Resource, group: Resource) -> list[Opening]:
    if not program.refers(rule, "securityGroupId", group):
        return []
    itself = program.refers(rule, "referencedSecurityGroupId", group)
    return [replace(_of_anybody(rule), itself=True, others=False)] if itself else [_of_anybody(rule)]


def _older(program: Program, rule: Resource, group: Resource, direction: str) -> list[Opening]:
    if not program.refers(rule, "securityGroupId", group) or rule.at("type").text() != direction:
        return []
    itself = program.refers(rule, "sourceSecurityGroupId", group)
    return [replace(_older_of_anybody(rule), itself=True, others=False)] if itself else [_older_of_anybody(rule)]


def _of_anybody(rule: Resource) -> Opening:
    return _separate(rule, "ipProtocol", "referencedSecurityGroupId", ("cidrIpv4", "cidrIpv6", "prefixListId"))


def _older_of_anybody(rule: Resource) -> Opening:
    return _separate(rule, "protocol", "sourceSecurityGroupId", ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds"))


def _separate(rule: Resource, protocol: str, peer: str, ranges: tuple[str, ...]) -> Opening:
    itself = rule.at("self").value is True
    cidrs = tuple(member for key in ranges for member in _members(rule.at(key)))
    others = rule.at(peer).present and not itself
    return Opening(rule, rule.at(protocol), rule.at("fromPort"), rule.at("toPort"), itself, others, cidrs)


def _inline(group: Resource, place: Node) -> Opening:
    ranges = ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds")
    cidrs = tuple(member for key in ranges for member in place.at(key).elements())
    others = any(True for _ in place.at("securityGroups").elements())
    itself = place.at("self").value is True
    return Opening(group, place.at("protocol"), place.at("fromPort"), place.at("toPort"), itself, others, cidrs)


def _members(node: Node) -> list[Node]:
    if isinstance(node.raw, list):
        return list(node.elements())
    return [node] if node.present else []
