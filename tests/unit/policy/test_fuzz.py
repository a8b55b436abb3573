"""No input makes a rule raise. A small share by default; `TRAINYARD_POLICY_FUZZ=20000 pytest tests/unit/policy/test_fuzz.py` for all."""

import os
import random
from typing import Any

import pytest

from guardrails import RULES
from tests.unit.policy.analyzer import UNKNOWN, Thing, analyze
from tests.unit.policy.cases import CASES
from tests.unit.policy.mutation import REMOVE, places, with_value

pytestmark = pytest.mark.policy

COUNT = int(os.environ.get("TRAINYARD_POLICY_FUZZ", "400"))
SEED = 20261129
BATCH = 8
TEXTS = (
    *("", " ", "0", "-1", "1e3", "0x10", "10Gi", "1.5Ti", "100m", "5 GiB", "NaN", "true", "null", "latest", "auto", "${x}", "{{ .V }}"),
    *("a" * 100_000, "\u202e\U0001f680", "*/5 * * * *", "@daily", "arn:aws:s3:::b", "../..", "[", "{", "apiVersion: [kind", "\n---\n"),
)
NUMBERS = (0, -1, 1, 7, 1.5, 1e18, -1e18, 2**53)
SHAPES = ([], {}, [[]], [{}], {"": ""}, [None], ["a"] * 200, {"apiVersion": 3, "kind": []}, {"name": {"name": {}}})
UNKNOWNS = (UNKNOWN, [UNKNOWN], {"a": UNKNOWN})
VALUES: tuple[Any, ...] = (*TEXTS, *NUMBERS, *SHAPES, *UNKNOWNS, None, True, False, REMOVE)


def mutated(thing: Thing, chance: random.Random) -> Thing:
    """`thing` with one to four places changed, and at times a key that nobody knows."""
    for _ in range(chance.randint(1, 4)):
        found = list(places(thing.properties))
        if not found:
            break
        place = chance.choice(found)
        kind = chance.random()
        if kind < 0.15:
            thing = with_value(thing, (*place[:-1], "unknownKey") if isinstance(place[-1], str) else place, chance.choice(VALUES[:-1]))
        else:
            thing = with_value(thing, place, chance.choice(VALUES))
    return thing


def test_no_mutated_program_makes_a_rule_raise() -> None:
    chance = random.Random(SEED)
    for _ in range(0, COUNT, BATCH):
        things = [thing for case in chance.choices(CASES, k=BATCH) for thing in case.things]
        analyze(*(mutated(thing, chance) for thing in things), rules=RULES)
