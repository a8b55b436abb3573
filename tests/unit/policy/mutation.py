"""Places in a program's properties, and programs with one place changed."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pulumi_policy.deserialize import SPECIAL_SIG_KEY

from tests.unit.policy.analyzer import Thing

REMOVE = object()
Place = tuple[str | int, ...]


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    """The path to every value below `value`."""
    members = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, member in members:
        if key == SPECIAL_SIG_KEY:
            continue  # The engine's own mark of a secret or an asset is never anything else.
        yield (*path, key)
        yield from places(member, (*path, key))


def with_value(thing: Thing, place: Place, value: Any) -> Thing:
    """A copy of `thing` with another value at `place`, or without it for `REMOVE`."""
    properties = copy.deepcopy(dict(thing.properties))
    holder: Any = properties
    for step in place[:-1]:
        holder = holder[step]
    if value is REMOVE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return replace(thing, properties=properties)


def with_each(things: tuple[Thing, ...], value: Any) -> Iterator[tuple[str, tuple[Thing, ...]]]:
    """Each program in which one value is replaced by `value`, with the place in words."""
    for index, thing in enumerate(things):
        for place in places(thing.properties):
            words = f"{thing.name}:{'/'.join(str(step) for step in place)}"
            yield words, (*things[:index], with_value(thing, place, value), *things[index + 1 :])
