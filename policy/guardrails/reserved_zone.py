"""Whether nodes are in the zone of the capacity that is reserved for them: no other node takes it."""

from collections.abc import Sequence

from guardrails import selector
from guardrails.launch import launchers_with, pools_with
from guardrails.links import demand, targets
from guardrails.node import Node
from guardrails.pool import ZONE, capacity_types
from guardrails.program import Program
from guardrails.rule import Report, Resource
from guardrails.tokens import CAPACITY_RESERVATION, NODE_GROUP
from guardrails.zones import group_zones, pool_zones, zones_place

_TARGET = ("capacityReservationTarget", "capacityReservationId")
_PROPERTY = "capacityReservationSpecification"
_BLOCKS = frozenset({"capacity-block", "CAPACITY_BLOCK"})


def of_groups(program: Program, template: Resource, report: Report) -> None:
    """CR01: judge the groups that launch into the on-demand reservation that their launch template names."""
    if not program.has({CAPACITY_RESERVATION}) or template.at("instanceMarketOptions", "marketType").text() in _BLOCKS:
        return
    place = template.at(_PROPERTY, *_TARGET)
    if not template.sources.get(_PROPERTY):
        demand(place)
    for reservation in targets(program, template, _PROPERTY, CAPACITY_RESERVATION, place=place):
        for group in launchers_with(program, template):
            with report.part():
                if group.type != NODE_GROUP or group.at("capacityType").text() not in _BLOCKS:
                    _group(program, group, reservation, report)


def _group(program: Program, group: Resource, reservation: Resource, report: Report) -> None:
    zone, zones = reservation.at("availabilityZone").text(), group_zones(program, group)
    if not zone or zones.names in ((), (zone,)) or zones.others != 0:
        return
    # In the zones that are left, or with another template of the policy, some may start.
    certain = zone not in zones.names and not group.at("mixedInstancesPolicy").present
    tell = report.refuse if certain else report.advise
    allowed = f"{zone} alone, the zone of {reservation.name}: launches elsewhere fail"
    tell(group, zones_place(group), allowed=allowed, found=f"in {' and '.join(zones.names)}")


def of_pools(program: Program, node_class: Resource, report: Report) -> None:
    """CR02: judge the pools of a class that names reservations of the program and no others."""
    terms = node_class.at("spec", "capacityReservationSelectorTerms")
    # Subnets that say where the nodes of a class are may yet come.
    if not program.whole or not terms.present or not program.has({CAPACITY_RESERVATION}):
        return
    reserved = _named(program, node_class, list(terms.elements()))
    zones = {each.at("availabilityZone").text() for each in reserved}
    # One that has the id of a zone may be in any.
    pools = list(pools_with(program, node_class)) if zones and "" not in zones else []
    missing = [pool for pool in pools if _misses(program, pool, zones)]
    for pool in missing:
        with report.part():
            certain = capacity_types(pool) == ["reserved"] and all(term.at("id").present for term in terms.elements())
            # A pool that buys on demand may leave the reservations to others of the class.
            if certain or len(missing) == len(pools):
                allowed = f"{ZONE} {' or '.join(sorted(zones))}, where the reservations of {node_class.name} are: none is found elsewhere"
                tell = report.refuse if certain else report.advise
                place = pool.at("spec", "template", "spec", "requirements")
                tell(pool, place, allowed=allowed, found=pool_zones(program, pool).words())


def _named(program: Program, node_class: Resource, terms: Sequence[Node]) -> list[Resource]:
    """The reservations of a class; none where others may be among them."""
    if any(term.at(key).present for term in terms for key in ("ownerID", "instanceMatchCriteria")):
        return []
    found = selector.selected(program, node_class, CAPACITY_RESERVATION)
    count, _ = selector.unaccounted(node_class, CAPACITY_RESERVATION, found)
    return [] if count else found


def _misses(program: Program, pool: Resource, zones: set[str]) -> bool:
    """Whether no node of the pool is in one of the zones."""
    own = pool_zones(program, pool)
    return own.others == 0 and bool(own.names) and zones.isdisjoint(own.names)
