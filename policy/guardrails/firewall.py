"""What a security group lets through, whether written in the group itself or as rules of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from guardrails.links import decided, demand
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
    group: str | Node
    """The group that it is of: its id or the URN of what an unknown id comes from, or what nothing says more of."""
    protocol: Node
    first: Node
    last: Node
    itself: bool
    """The peer is the group itself."""
    groups: tuple[str | Node, ...]
    """Other groups of the peer: their ids, the URNs of what unknown ids come from, or what nothing says more of."""
    cidrs: tuple[Node, ...]
    """Address ranges of the peer."""

    def everything(self) -> bool:
        """Whether it opens all protocols and ports. Raises `Undecided`."""
        return self._protocol() in _ALL_PROTOCOLS

    def covers(self, first: int, last: int) -> bool:
        """Whether it opens every TCP port from `first` to `last`. Raises `Undecided`."""
        low, high = self.ports()
        return low <= first and last <= high

    def touches(self, port: int) -> bool:
        """Whether it opens this TCP port. Raises `Undecided`."""
        return self.covers(port, port)

    def ports(self) -> tuple[int, int]:
        """The first and last TCP port that it opens, the last before the first where it opens none. Raises `Undecided`."""
        if self.everything():
            return 0, _LAST_PORT
        if self._protocol() not in _TCP:
            return 1, 0
        low, high = self.first.integer(), self.last.integer()
        return (1, 0) if low is None or high is None else (low, high)

    def _protocol(self) -> str:
        # The provider takes names in capitals too, and sends them in small letters.
        return self.protocol.text().lower()


def openings(program: Program, group: Resource, direction: str) -> list[Opening | Undecided]:
    """The rules of `group` in `direction` (ingress or egress), and what is unknown of them.

    Rules of their own come first: once there are any, the provider computes the group's inline list, which preview then can't know.
    """
    found: list[Opening | Undecided] = []
    for rule in program.of(INGRESS_RULE if direction == "ingress" else EGRESS_RULE):
        found += _attempt(lambda rule=rule: _of_its_own(program, rule, group))
    for rule in program.of(SECURITY_GROUP_RULE):
        found += _attempt(lambda rule=rule: _older(program, rule, group, direction))
    return found + _attempt(lambda: [_inline(group, direction, place) for place in group.at(direction).elements()])


def written(program: Program, direction: str) -> list[Opening | Undecided]:
    """Every rule of the direction that the program writes, whosever group it is for, and what is unknown of them."""
    found: list[Opening | Undecided] = []
    for rule in program.of(INGRESS_RULE if direction == "ingress" else EGRESS_RULE):
        found += _attempt(lambda rule=rule: [_of_anybody(rule)])
    for rule in program.of(SECURITY_GROUP_RULE):
        found += _attempt(lambda rule=rule: [_older_of_anybody(rule)] if rule.at("type").text() == direction else [])
    for group in program.of(SECURITY_GROUP, DEFAULT_SECURITY_GROUP):
        found += _attempt(lambda group=group: [_inline(group, direction, place) for place in group.at(direction).elements()])
    return found


def is_open(
    program: Program, groups: Sequence[Resource], direction: str, first: int, last: int, peer: Callable[[Opening], bool] | None = None
) -> bool:
    """Whether rules of the groups together open all TCP ports from `first` to `last` to a peer, or to anybody. Raises `Undecided`.

    What carries several groups is let through by a rule of any of them.
    """
    opened, undecided = list[tuple[int, int]](), None
    for opening in (each for group in groups for each in openings(program, group, direction)):
        try:
            if isinstance(opening, Undecided):
                raise opening
            if (peer or _anybody)(opening):
                opened.append(opening.ports())
        except Undecided as error:
            undecided = undecided or error
    if _cover(opened, first, last):
        return True
    if undecided is not None:
        raise undecided
    return False


def names_of(groups: Sequence[Resource]) -> frozenset[str]:
    """What rules may name these groups by."""
    ids = [group.at("id").raw for group in groups]
    return frozenset(name for name in (*ids, *(group.urn for group in groups)) if isinstance(name, str) and name)


def peers_of(program: Program, groups: Sequence[Resource], direction: str) -> list[str]:
    """The groups that rules of `groups` name as peers, themselves aside, as far as they are known."""
    found = [each for group in groups for each in openings(program, group, direction) if isinstance(each, Opening)]
    own = names_of(groups)
    return list(dict.fromkeys(name for opening in found for name in opening.groups if isinstance(name, str) and name not in own))


def to_themselves(groups: Sequence[Resource]) -> Callable[[Opening], bool]:
    """Whether the peer is one of the groups itself: whoever carries all of them is in each."""
    own = names_of(groups)

    def check(opening: Opening) -> bool:
        # An address range may hold the group's own members as well as others.
        return opening.itself or bool(opening.cidrs) or _has(opening, own)

    return check


def to_others(groups: Sequence[Resource]) -> Callable[[Opening], bool]:
    """Whether the peer is somebody besides the groups."""
    own = names_of(groups)
    return lambda opening: bool(opening.cidrs) or any(name not in own for name in opening.groups)


def to_group(name: str, *, by_address: bool) -> Callable[[Opening], bool]:
    """Whether the peer is the group of this id or URN, or, with `by_address`, addresses that may be its members'."""
    return lambda opening: (by_address and bool(opening.cidrs)) or _has(opening, frozenset({name}))


def _has(opening: Opening, names: frozenset[str]) -> bool:
    """Whether the peer is one of these groups. Raises `Undecided` where an unknown one may be."""
    if any(name in names for name in opening.groups):
        return True
    for name in opening.groups:
        if isinstance(name, Node):
            demand(name)
    return False


def _anybody(opening: Opening) -> bool:
    return opening.itself or bool(opening.groups) or bool(opening.cidrs)


def _cover(opened: Sequence[tuple[int, int]], first: int, last: int) -> bool:
    """Whether the ranges together hold every port from `first` to `last`."""
    for low, high in sorted(opened):
        if low <= first <= high:
            first = high + 1
    return first > last


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


def _of_its_own(program: Program, rule: Resource, group: Resource) -> list[Opening]:
    if not program.refers(rule, "securityGroupId", group):
        return []
    itself = program.refers(rule, "referencedSecurityGroupId", group)
    return [replace(_of_anybody(rule), itself=True, groups=())] if itself else [_of_anybody(rule)]


def _older(program: Program, rule: Resource, group: Resource, direction: str) -> list[Opening]:
    if not program.refers(rule, "securityGroupId", group) or rule.at("type").text() != direction:
        return []
    itself = program.refers(rule, "sourceSecurityGroupId", group)
    return [replace(_older_of_anybody(rule), itself=True, groups=())] if itself else [_older_of_anybody(rule)]


def _of_anybody(rule: Resource) -> Opening:
    return _separate(rule, "ipProtocol", "referencedSecurityGroupId", ("cidrIpv4", "cidrIpv6", "prefixListId"))


def _older_of_anybody(rule: Resource) -> Opening:
    return _separate(rule, "protocol", "sourceSecurityGroupId", ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds"))


def _separate(rule: Resource, protocol: str, peer: str, ranges: tuple[str, ...]) -> Opening:
    itself = rule.at("self").value is True
    cidrs = tuple(member for key in ranges for member in _members(rule.at(key)))
    groups = () if itself else _named(rule, peer, _members(rule.at(peer)))
    return Opening(rule, _group_of(rule), rule.at(protocol), rule.at("fromPort"), rule.at("toPort"), itself, groups, cidrs)


def _group_of(rule: Resource) -> str | Node:
    place, origins = rule.at("securityGroupId"), rule.sources.get("securityGroupId", ())
    if place.known:
        return place.text() or rule.name
    # Which of several sources an unknown id comes from can't be told.
    return origins[0] if len(origins) == 1 else place


def _inline(group: Resource, direction: str, place: Node) -> Opening:
    ranges = ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds")
    cidrs = tuple(member for key in ranges for member in place.at(key).elements())
    groups = _named(group, direction, list(place.at("securityGroups").elements()))
    itself = place.at("self").value is True
    own = group.at("id").raw
    name = own if isinstance(own, str) and own else group.urn or group.name
    return Opening(group, name, place.at("protocol"), place.at("fromPort"), place.at("toPort"), itself, groups, cidrs)


def _named(resource: Resource, key: str, members: list[Node]) -> tuple[str | Node, ...]:
    """The groups that members of a property name; which of several sources an unknown one comes from can't be told."""
    origins = resource.sources.get(key, ())
    return tuple(dict.fromkeys(name for member in members for name in ((member.text(),) if member.known else origins or (member,))))


def _members(node: Node) -> list[Node]:
    if isinstance(node.raw, list):
        return list(node.elements())
    return [node] if node.present else []
