"""The same Kubernetes object is judged alike, whichever way it reaches the cluster."""

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from guardrails import RULES, tokens
from guardrails.judge import by_id
from tests.unit.policy.analyzer import UNKNOWN, Thing, analyze, not_evaluated, violations
from tests.unit.policy.case import Case
from tests.unit.policy.cases import CASES
from tests.unit.policy.test_cases import name

pytestmark = pytest.mark.policy

RULE_BY_ID = by_id(RULES)
NOT_OBJECTS = frozenset({tokens.RELEASE})


def manifest(thing: Thing) -> dict[str, Any]:
    version, _, kind = thing.type.removeprefix("kubernetes:").rpartition(":")
    return {"apiVersion": version.removeprefix("core/"), "kind": kind, **thing.properties}


def custom_resource(thing: Thing) -> Thing:
    written = manifest(thing)
    return replace(thing, type=f"kubernetes:{written['apiVersion']}:{written['kind']}", properties=written)


def item_of_a_list(thing: Thing) -> Thing:
    return replace(
        thing, type="kubernetes:core/v1:List", properties={"items": [{"apiVersion": "v1", "kind": "Namespace"}, manifest(thing)]}
    )


def item_of_a_typed_list(thing: Thing) -> Thing:
    return replace(thing, type=f"{thing.type}List", properties={"items": [dict(thing.properties)]})


def value_of_a_release(thing: Thing) -> Thing:
    return replace(thing, type=tokens.RELEASE, properties={"chart": "x", "version": "1.0.0", "values": {"extraObjects": [manifest(thing)]}})


def nested_value_of_a_release(thing: Thing) -> Thing:
    return replace(
        thing, type=tokens.RELEASE, properties={"chart": "x", "version": "1.0.0", "values": {"sub": {"manifests": {"a": manifest(thing)}}}}
    )


def text_in_a_release(thing: Thing) -> Thing:
    text = "apiVersion: v1\nkind: Namespace\n---\n" + yaml.safe_dump(manifest(thing))
    return replace(thing, type=tokens.RELEASE, properties={"chart": "x", "version": "1.0.0", "values": {"extraManifests": [text]}})


def json_text_in_a_release(thing: Thing) -> Thing:
    return replace(
        thing, type=tokens.RELEASE, properties={"chart": "x", "version": "1.0.0", "values": {"extraDeploy": json.dumps(manifest(thing))}}
    )


ROUTES = (
    custom_resource,
    item_of_a_list,
    item_of_a_typed_list,
    value_of_a_release,
    nested_value_of_a_release,
    text_in_a_release,
    json_text_in_a_release,
)


def is_object(thing: Thing) -> bool:
    return thing.type.startswith("kubernetes:") and thing.type not in NOT_OBJECTS


@pytest.mark.parametrize("case", [case for case in CASES if any(map(is_object, case.things))], ids=name)
def test_the_verdict_does_not_depend_on_the_route(case: Case) -> None:
    rule = RULE_BY_ID[case.rule]
    written = json.dumps([dict(thing.properties) for thing in case.things])
    with_unknown = UNKNOWN in written
    for route in ROUTES:
        if (with_unknown or "{{" in written) and route in (text_in_a_release, json_text_in_a_release):
            continue  # Text with an unknown in it is unknown as a whole, and one with a template in it a template.
        said = analyze(*(route(thing) if is_object(thing) else thing for thing in case.things), rules=[rule])
        messages = violations(said, case.rule)
        if with_unknown and route is not custom_resource and any(thing.sources for thing in case.things) and not messages:
            # Of an item of a list nobody can say where its own values come from.
            assert not case.refused or not_evaluated(said, case.rule), route.__name__
            continue
        assert bool(messages) == case.refused, f"{route.__name__}: {messages}"
        assert case.refused or not_evaluated(said, case.rule) == [], route.__name__
