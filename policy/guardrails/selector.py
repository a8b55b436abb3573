"""Which resources of the program an EC2NodeClass selects: by where its terms' values come from, or by literal ids, names and tags."""

from collections.abc import Iterator, Mapping

from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.tokens import SECURITY_GROUP, SUBNET

_TERMS: Mapping[str, str] = {SECURITY_GROUP: "securityGroupSelectorTerms", SUBNET: "subnetSelectorTerms"}
_ANY_VALUE = "*"


def selected(program: Program, node_class: Resource, kind: str) -> list[Resource]:
    """The program's security groups or subnets that nodes of the class have. Raises `Undecided` where the terms are unknown."""
    origins, own = node_class.sources.get("spec", ()), list(terms(node_class, kind))
    return [each for each in program.of(kind) if (each.urn and each.urn in origins) or any(selects(term, each) for term in own)]


def terms(node_class: Resource, kind: str) -> Iterator[Node]:
    """The terms by which the class selects resources of this kind; any of them is enough."""
    yield from node_class.at("spec", _TERMS[kind]).elements()


def selects(term: Node, target: Resource) -> bool:
    """Whether a term is known to select `target`."""
    for key in ("id", "name"):
        if term.at(key).present:
            own = target.at(key)
            return term.at(key).known and own.present and own.known and own.text() == term.at(key).text()
    wanted = list(term.at("tags").entries()) if term.at("tags").known else []
    return bool(wanted) and all(_has_tag(target, key, value) for key, value in wanted)


def _has_tag(target: Resource, key: str, value: Node) -> bool:
    """Whether it has the tag, given to it or to everything of its provider."""
    tags = (target.at(kind).at(key) for kind in ("tags", "tagsAll") if target.at(kind).known)
    return value.known and any(tag.present and tag.known and value.text() in (_ANY_VALUE, tag.text()) for tag in tags)
