"""The zones that nodes stand in, as far as requirements, subnets and groups say."""

from collections.abc import Sequence
from dataclasses import dataclass

from guardrails import selector
from guardrails.launch import class_of, subnets_key
from guardrails.links import targets
from guardrails.node import Node
from guardrails.pool import ZONE, ZONE_ID, allowed_values, narrowed
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.tokens import NODE_POOL, SCALING_GROUP, SUBNET


@dataclass(frozen=True)
class Zones:
    """The zones that nodes of one pool or group may be in."""

    names: tuple[str, ...] = ()
    others: int | None = 0
    """How many there may be besides, in subnets whose zone nothing says; None where nothing limits them."""

    @property
    def most(self) -> int | None:
        """The most zones that these may be; None where nothing limits them."""
        return None if self.others is None else len(self.names) + self.others

    def words(self) -> str:
        """What a message says of them."""
        if self.names:
            return f"zones {', '.join(self.names)}" + (" and more" if self.others != 0 else "")
        return "without a zone" if self.others != 0 else "zones none"


def pool_zones(program: Program, pool: Resource) -> Zones:
    """The zones that a NodePool names, or else those of the subnets that its class selects."""
    named, ids = allowed_values(pool, ZONE), allowed_values(pool, ZONE_ID)
    if named is not None and (ids is None or len(ids) != 1):
        return Zones(tuple(dict.fromkeys(named)))
    if ids is not None:
        return Zones((), len(set(ids)))
    node_class = class_of(program, pool)
    if node_class is None:
        return Zones((), None)
    selected = selector.selected(program, node_class, SUBNET)
    return _of_subnets(_allowed(pool, selected), _unseen(node_class, selected))


def group_zones(program: Program, group: Resource) -> Zones:
    """The zones of a managed node group or an Auto Scaling group."""
    subnets = list(group.at(subnets_key(group)).elements())
    own = [zone.text() for zone in group.at("availabilityZones").elements()]
    if own and (len(own) == 1 or not subnets):
        return Zones(tuple(dict.fromkeys(own)))
    if not subnets and group.type == SCALING_GROUP:
        return Zones((), None)
    made = targets(program, group, subnets_key(group), SUBNET)
    return _of_subnets(made, max(0, len(subnets) - len(made)))


def zones_place(group: Resource) -> Node:
    """Where a group of either kind says its zones."""
    subnets = group.at(subnets_key(group))
    return group.at("availabilityZones") if group.type == SCALING_GROUP and not subnets.present else subnets


def group_words(group: Resource, zones: Zones) -> str:
    """What a message says of the zones of a group of either kind."""
    count = len(list(group.at(subnets_key(group)).elements()))
    if not count and zones.names:
        return zones.words()
    return f"{count} subnets" + (f" in {', '.join(zones.names)}" if len(zones.names) > 1 else "")


def named_zones(program: Program, pool: Resource) -> list[str]:
    """The names of zones that nodes of a NodePool may be in, as far as the program says; there may be more."""
    named, ids = allowed_values(pool, ZONE), allowed_values(pool, ZONE_ID)
    if named is not None:
        # Which of several names an id is that of can't be told.
        return named if ids is None or len(named) == 1 else []
    node_class = class_of(program, pool)
    if node_class is None:
        return []
    return list(_of_subnets(_allowed(pool, selector.selected(program, node_class, SUBNET)), 0).names)


def beyond_one(program: Program, nodes: Resource) -> Zones | None:
    """The zones of a pool or group that is not kept to one; None where it is, or where what keeps it there may yet come."""
    if _names_one_subnet(program, nodes):
        return None
    zones = pool_zones(program, nodes) if nodes.type == NODE_POOL else group_zones(program, nodes)
    # An Auto Scaling group that names neither subnets nor zones is refused, whatever it launches.
    if zones.most == 1 or (nodes.type == SCALING_GROUP and zones.most is None):
        return None
    # As resources arrive, subnets have no ids yet, and those that a class selects by tags need not have come.
    may_come = nodes.type == NODE_POOL or program.has({SUBNET})
    if not program.whole and may_come and zones.others != 0 and len(zones.names) < 2:
        return None
    return zones


def _names_one_subnet(program: Program, nodes: Resource) -> bool:
    """Whether it is kept to one subnet, whichever that is."""
    if nodes.type != NODE_POOL:
        return len(list(nodes.at(subnets_key(nodes)).elements())) == 1
    if allowed_values(nodes, ZONE) is not None or allowed_values(nodes, ZONE_ID) is not None:
        return False
    node_class = class_of(program, nodes)
    terms = list(selector.terms(node_class, SUBNET)) if node_class else []
    return len(terms) == 1 and terms[0].at("id").present


def _unseen(node_class: Resource, selected: list[Resource]) -> int | None:
    """How many subnets the class names that are none of the program's; None where its terms may select any number."""
    count, open_terms = selector.unaccounted(node_class, SUBNET, selected)
    if count and not all(term.at("id").present for term in open_terms):
        return None
    return count


def _allowed(pool: Resource, subnets: Sequence[Resource]) -> list[Resource]:
    """Those of the subnets that the pool's requirements leave."""
    keys = ((ZONE, "availabilityZone"), (ZONE_ID, "availabilityZoneId"))
    said = [(key, own) for key, own in keys if narrowed(pool, key, []) is not None]
    return [each for each in subnets if all(narrowed(pool, key, [each.at(own).text()]) for key, own in said)]


def _of_subnets(subnets: Sequence[Resource], unseen: int | None) -> Zones:
    names, others = list[str](), set[str]()
    for subnet in subnets:
        name = subnet.at("availabilityZone").text()
        if name:
            names.append(name)
        else:
            others.add(subnet.at("availabilityZoneId").text() or subnet.name)
    return Zones(tuple(dict.fromkeys(names)), None if unseen is None else unseen + len(others))
