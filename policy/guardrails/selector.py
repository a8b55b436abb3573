"""Which resources of the program an EC2NodeClass selects: by where its terms' values come from, or by literal ids, names and tags."""

from collections.abc import Iterator, Mapping

from guardrails.links import demand
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.tokens import CAPACITY_RESERVATION, SECURITY_GROUP, SUBNET

_TERMS: Mapping[str, str] = {
    SECURITY_GROUP: "securityGroupSelectorTerms",
    SUBNET: "subnetSelectorTerms",
    CAPACITY_RESERVATION: "capacityReservationSelectorTerms",
}
_ANY_VALUE = "*"


def selected(program: Program, node_class: Resource, kind: str) -> list[Resource]:
    """The program's security groups, subnets or reservations that nodes of the class have.

    Raises:
        Undecided: a term, or what it would be compared with, is unknown, and no source of the terms' values says more.
    """
    origins, own = node_class.sources.get("spec", ()), list(terms(node_class, kind))
    # An unknown value comes from a source, be it one of this kind or not.
    unknown = [node for term in own if (node := _unknown(term)) is not None]
    if len(unknown) > len(origins):
        demand(unknown[0])
    found, others = [], []
    for each in program.of(kind):
        is_one = (each.urn and each.urn in origins) or any(selects(term, each) for term in own)
        (found if is_one else others).append(each)
    for term in own:
        # What an id names is one; what tags name may be many.
        if not (term.at("id").present and any(selects(term, each) for each in found)):
            for each in others:
                _demand_comparison(term, each)
    return found


def terms(node_class: Resource, kind: str) -> Iterator[Node]:
    """The terms by which the class selects resources of this kind; any of them is enough."""
    yield from node_class.at("spec", _TERMS[kind]).elements()


def selects(term: Node, target: Resource) -> bool:
    """Whether a term is known to select `target`."""
    return _compared(term, target) is True


def unaccounted(node_class: Resource, kind: str, found: list[Resource]) -> tuple[int, list[Node]]:
    """How many terms `found`, which the class selects, does not account for; and the terms that these are among."""
    own = list(terms(node_class, kind))
    unmatched = [term for term in own if not any(selects(term, each) for each in found)]
    by_source = [each for each in found if not any(selects(term, each) for term in own)]
    return max(0, len(unmatched) - len(by_source)), unmatched


def _demand_comparison(term: Node, target: Resource) -> None:
    result = _compared(term, target)
    if isinstance(result, Node):
        demand(result)


def _compared(term: Node, target: Resource) -> bool | Node:
    """Whether the term selects `target`, as far as the term is known; the target's value where that is unknown and decides."""
    wants = list(_wants(term, target))
    undecided: Node | None = None
    for wanted, places in wants:
        if not wanted.known:
            return False
        if any(place.known and place.present and wanted.text() in (_ANY_VALUE, place.text()) for place in places):
            continue
        unknown = next((place for place in places if not place.known), None)
        if unknown is None:
            return False
        undecided = unknown
    return undecided or bool(wants)


def _wants(term: Node, target: Resource) -> Iterator[tuple[Node, list[Node]]]:
    """What the term wants, each with the places of `target` that may have it: its tags are given to it or to all of its provider."""
    for key in ("id", "name"):
        if term.at(key).present:
            yield term.at(key), [target.at(key)]
    tags = term.at("tags")
    if not tags.known:
        yield tags, []
        return
    kinds = [target.at(kind) for kind in ("tags", "tagsAll")]
    for key, value in tags.entries():
        yield value, [kind.at(key) if kind.known else kind for kind in kinds]


def _unknown(term: Node) -> Node | None:
    """The first part of the term that is unknown."""
    tags = term.at("tags")
    values = [value for _, value in tags.entries()] if tags.known else [tags]
    return next((node for node in (term.at("id"), term.at("name"), *values) if not node.known), None)
