"""From a property to the resources it names: by where its value comes from, or by a literal id."""

from collections.abc import Iterator, Sequence

from guardrails.node import Node, Undecided
from guardrails.program import Program
from guardrails.rule import Resource


def targets(program: Program, resource: Resource, key: str, *types: str, place: Node | None = None) -> list[Resource]:
    """The resources of `types` that the property `key` names, or, with `place`, those that this part of it does.

    The sources are those of the whole property, so a part of which all is known names by its ids alone those that have one, and none whose
    id is yet to come.

    Raises:
        Undecided: a literal id is none of the known ones, and the id of one of them is unknown.
    """
    literal = set(_literals(place if place is not None else resource.at(key)))
    origins = resource.sources.get(key, ())
    candidates = list(program.of(*types))
    settled = place is not None and place.present and is_known(place)
    found = []
    for target in candidates:
        identity = _identity(target)
        comes_from = bool(target.urn) and target.urn in origins and not (settled and target.at("id").present)
        found += [target] if comes_from or identity in literal else []
    if literal and not found:
        for candidate in candidates:
            demand(candidate.at("id"))
    return found


def named(program: Program, name: str, *types: str) -> Resource | None:
    """The Kubernetes object of one of `types` called `name`. Raises `Undecided` where the one with an unknown name might be it."""
    indices = [indexed(program, kind, "metadata", "name") for kind in types]
    for known, _ in indices:
        found = next((each for each in known.get(name, ()) if each.at("metadata", "name").present), None)
        if found is not None:
            return found
    for _, unknown in indices:
        if unknown is not None:
            demand(unknown)
    return None


def indexed(program: Program, kind: str, *keys: str) -> tuple[dict[str, list[Resource]], Node | None]:
    """The resources of a type by the text under `keys`, which is empty where it is left out; and one of the texts that are unknown."""
    if (kind, keys) not in program.memo:
        known: dict[str, list[Resource]] = {}
        unknown: Node | None = None
        for resource in program.of(kind):
            own = resource.at(*keys)
            if own.known:
                known.setdefault(own.text(), []).append(resource)
            else:
                unknown = own
        program.memo[kind, keys] = known, unknown
    return program.memo[kind, keys]


def demand(node: Node) -> None:
    """Raise `Undecided` where a value (or a member of the list) is unknown; nothing otherwise."""
    node.value  # noqa: B018 - reading it raises
    for member in node.elements():
        member.value  # noqa: B018


def is_known(node: Node) -> bool:
    """Whether a value, and each member where it is a list, is known."""
    return node.known and all(member.known for member in node.elements())


def decided(checks: Sequence[bool | Undecided]) -> bool:
    """Whether any check holds; raises the first `Undecided` among them if none does."""
    if any(check is True for check in checks):
        return True
    for check in checks:
        if isinstance(check, Undecided):
            raise check
    return False


def _identity(resource: Resource) -> str | None:
    raw = resource.at("id").raw
    return raw if isinstance(raw, str) else None


def _literals(node: Node) -> Iterator[str]:
    values = node.raw if isinstance(node.raw, list) else [node.raw]
    yield from (value for value in values if isinstance(value, str))
