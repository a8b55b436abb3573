"""No input makes a rule raise: every key removed, every value unknown or of another type, over all the cases of the rules."""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.policy.analyzer import UNKNOWN, Thing, analyze, analyze_stack
from tests.unit.policy.test_resource_rules import INVALID, VALID
from tests.unit.policy.test_stack_rules import INVALID as STACK_INVALID
from tests.unit.policy.test_stack_rules import VALID as STACK_VALID

pytestmark = pytest.mark.unit

REPLACEMENTS = (UNKNOWN, None, 7, 1.5, True, "é" * 300, [], {}, [UNKNOWN], {"a": UNKNOWN})


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


def mutants(properties: dict) -> Iterator[dict]:
    for place in places(properties):
        for replacement in ("remove", *REPLACEMENTS):
            mutant = copy.deepcopy(properties)
            holder: Any = mutant
            for step in place[:-1]:
                holder = holder[step]
            if isinstance(replacement, str) and replacement == "remove":
                del holder[place[-1]]
            else:
                holder[place[-1]] = replacement
            yield mutant


SINGLE = {f"{case[0]}-{index}": case[1] for index, case in enumerate([*VALID, *INVALID])}
STACKS = {f"{case[0]}-{index}": case[1] for index, case in enumerate([*STACK_VALID, *STACK_INVALID])}


QUICK = 41
"""Every mutant takes a minute; this share of them still reaches each place of the cases with some replacement."""


def judge_all(share: int) -> int:
    count = 0
    for thing in SINGLE.values():
        for mutant in itertools.islice(mutants(dict(thing.properties)), None, None, share):
            analyze(Thing(type=thing.type, name=thing.name, properties=mutant))
            count += 1
    for things in STACKS.values():
        for position, thing in enumerate(things):
            for mutant in itertools.islice(mutants(dict(thing.properties)), None, None, share):
                changed = Thing(type=thing.type, name=thing.name, properties=mutant, sources=thing.sources)
                analyze_stack([*things[:position], changed, *things[position + 1 :]])
                count += 1
    return count


def test_no_mutation_makes_a_rule_raise() -> None:
    assert judge_all(QUICK) > 300


@pytest.mark.slow
def test_no_mutation_at_all_makes_a_rule_raise() -> None:
    assert judge_all(1) > 10_000
