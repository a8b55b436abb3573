"""Every keyword of a structural schema: what it takes, what it refuses, and in which words."""

import json
from typing import Any

import pytest

from guardrails.node import UNKNOWN, Node, Undecided, shown
from guardrails.schema import Schemas

pytestmark = pytest.mark.policy

SHARED = {"name": {"type": "string", "maxLength": 3}, "maybe": {"type": "string", "nullable": True}}
MAP_LIST = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"], "items": {"type": "object"}}
SET_LIST = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}


def said(value: Any, schema: dict[str, Any]) -> list[tuple[str, Any, str, bool]]:
    """Path, what was found (None: the value itself), what is allowed, and whether it is only dropped."""
    return [
        (wrong.node.path, f"{shown(wrong.node.raw)}{wrong.remark}" if wrong.remark else wrong.found, wrong.allowed, wrong.pruned)
        for wrong in Schemas(SHARED).mismatches(Node(value, "spec", "o"), schema)
    ]


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, {"type": "string"}),
        ("x", {}),
        ({}, {"type": "object"}),
        ([], {"type": "array"}),
        ("", {"type": "string"}),
        (False, {"type": "boolean"}),
        (0, {"type": "integer"}),
        (1, {"type": "number"}),
        (1.5, {"type": "number"}),
        (5, {"x-kubernetes-int-or-string": True}),
        ("5", {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 0}]}),
        ("b", {"type": "string", "enum": ["a", "b"]}),
        ("abc", {"$ref": "name"}),
        ("ab", {"type": "string", "pattern": "^a"}),
        ("ab", {"type": "string", "pattern": "b$"}),
        ("$1", {"type": "string", "pattern": r"^\$[0-9]"}),
        ("ab", {"type": "string", "minLength": 2, "maxLength": 2}),
        ([1, 2], {"type": "array", "minItems": 2, "maxItems": 2}),
        ({"a": 1}, {"type": "object", "minProperties": 1, "maxProperties": 1}),
        (1, {"type": "integer", "minimum": 1, "maximum": 1}),
        (2**31 - 1, {"type": "integer", "format": "int32"}),
        (-(2**31), {"type": "integer", "format": "int32"}),
        (2**63 - 1, {"type": "integer", "format": "int64"}),
        (2**70, {"type": "integer"}),
        (True, {"type": "boolean", "minimum": 5}),
        ({"a": "x"}, {**CLOSED, "required": ["a"]}),
        ([None], {"type": "array", "items": {"$ref": "maybe"}}),
        ([None], {"type": "array"}),
        (["a", "b"], SET_LIST),
        (["a", "a"], {"type": "array", "items": {"type": "string"}}),
        ([{"name": "a", "port": 1}, {"name": "a", "port": 2}], MAP_LIST),
        ([UNKNOWN, UNKNOWN], SET_LIST),
        (3, {"allOf": [{"minimum": 1}, {"maximum": 3}]}),
        (3, {"anyOf": [{"minimum": 4}, {"maximum": 3}]}),
        (3, {"oneOf": [{"minimum": 4}, {"maximum": 3}]}),
        (3, {"not": {"minimum": 4}}),
        ({"c": "x"}, {"anyOf": [CLOSED]}),
        ({"a": UNKNOWN}, {"anyOf": [CLOSED]}),
    ],
)
def test_what_a_schema_takes(value: Any, schema: dict[str, Any]) -> None:
    assert [each for each in said(value, schema) if not each[3]] == []


@pytest.mark.parametrize(
    ("value", "schema", "found", "allowed"),
    [
        (1, {"type": "string"}, "1 (integer)", "a string"),
        ("1", {"type": "integer"}, "1 (string)", "an integer"),
        (True, {"type": "integer"}, "true (boolean)", "an integer"),
        (1.5, {"type": "integer"}, "1.5 (number)", "an integer"),
        (True, {"type": "number"}, "true (boolean)", "a number"),
        (0, {"type": "boolean"}, "0 (integer)", "a boolean"),
        ([], {"type": "object"}, "[] (array)", "an object"),
        ({}, {"type": "array"}, "{} (object)", "an array"),
        (True, {"x-kubernetes-int-or-string": True}, "true (boolean)", "a whole number or a text"),
        (1.5, {"x-kubernetes-int-or-string": True, "type": "string"}, "1.5 (number)", "a whole number or a text"),
        ("c", {"type": "string", "enum": ["a", 2]}, None, "one of a, 2"),
        ("abcd", {"$ref": "name"}, None, "at most 3 characters"),
        ("", {"type": "string", "minLength": 1}, None, "at least 1 characters"),
        ("ba", {"type": "string", "pattern": "^a"}, None, "text of the form ^a"),
        ("ab\n", {"type": "string", "pattern": "b$"}, None, "text of the form b$"),
        ("٣", {"type": "string", "pattern": r"^\d$"}, None, r"text of the form ^\d$"),
        ([], {"type": "array", "minItems": 1}, None, "at least 1 items"),
        ([1, 2], {"type": "array", "maxItems": 1}, None, "at most 1 items"),
        ({}, {"type": "object", "minProperties": 1}, None, "at least 1 properties"),
        ({"a": 1, "b": 2}, {"type": "object", "maxProperties": 1}, None, "at most 1 properties"),
        (0, {"type": "integer", "minimum": 1}, None, "at least 1"),
        (2, {"type": "integer", "maximum": 1}, None, "at most 1"),
        (0.5, {"type": "number", "minimum": 1}, None, "at least 1"),
        (2**31, {"type": "integer", "format": "int32"}, None, "a whole number that int32 holds"),
        (-(2**31) - 1, {"type": "integer", "format": "int32"}, None, "a whole number that int32 holds"),
        (2**63, {"type": "integer", "format": "int64"}, None, "a whole number that int64 holds"),
        (5, {"allOf": [{"minimum": 1}, {"maximum": 3}]}, None, 'what fits all of [{"minimum": 1}, {"maximum": 3}]'),
        (5, {"anyOf": [{"minimum": 6}, {"maximum": 3}]}, None, 'what fits one of [{"minimum": 6}, {"maximum": 3}]'),
        (5, {"oneOf": [{"minimum": 4}, {"minimum": 3}]}, None, 'what fits one of [{"minimum": 4}, {"minimum": 3}]'),
        (5, {"not": {"minimum": 4}}, None, 'nothing that fits {"minimum": 4}'),
        ({"a": 1}, {"anyOf": [CLOSED]}, None, f"what fits one of [{json.dumps(CLOSED)}]"),
    ],
)
def test_what_a_schema_refuses(value: Any, schema: dict[str, Any], found: str | None, allowed: str) -> None:
    assert said(value, schema) == [("spec", found, allowed, False)]


def test_a_required_field_is_named_whether_it_is_absent_or_null() -> None:
    schema = {**CLOSED, "required": ["a", "b"]}
    missing = [("spec.a", "unset", "set", False), ("spec.b", "unset", "set", False)]
    assert said({}, schema) == missing
    assert said({"a": None, "b": None}, schema) == missing


@pytest.mark.parametrize(
    ("value", "newer"),
    [
        ({}, False),
        ({"c": 1}, True),
        ({"Address": 1}, False),
        ({"addres": 1}, False),
        ({"addr": 1}, False),
        ({"c": 1, "apiVersion": 1}, False),
    ],
)
def test_a_required_field_is_in_doubt_beside_fields_of_another_version(value: Any, newer: bool) -> None:
    schema = {"type": "object", "properties": {"address": {}}, "required": ["address"]}
    missing, *_ = Schemas(SHARED).mismatches(Node(value, "spec", "o"), schema)
    assert (missing.node.path, missing.newer) == ("spec.address", newer)


def test_a_field_that_is_not_known_is_only_dropped_and_the_known_ones_are_named() -> None:
    assert said({"c": 1}, CLOSED) == [("spec.c", None, "one of a, b", True)]
    many = {"type": "object", "properties": {f"field{number:03}": {} for number in range(60)}}
    assert said({"c": 1}, many) == [("spec.c", None, "a field of this kind", True)]


def test_a_field_that_is_not_known_is_kept_where_the_schema_has_room_for_it() -> None:
    assert said({"c": "x"}, {**CLOSED, "x-kubernetes-preserve-unknown-fields": True}) == []
    assert said({"c": "x"}, {**CLOSED, "additionalProperties": {"type": "string"}}) == []
    assert said({"c": "x"}, {"type": "object"}) == []


def test_the_names_of_known_fields_are_told_up_to_a_line() -> None:
    def names(length: int) -> dict[str, Any]:
        return {"type": "object", "properties": {"x" * length: {}}}

    assert said({"c": 1}, names(399))[0][2] == f"one of {'x' * 399}"
    assert said({"c": 1}, names(400))[0][2] == "a field of this kind"


def test_a_null_in_a_list_is_not_dropped() -> None:
    assert said(["a", None], SET_LIST) == [("spec[1]", "null", "no null in a list", False)]
    assert said([None], {"type": "array", "items": {"$ref": "name"}}) == [("spec[0]", "null", "no null in a list", False)]


def test_a_member_that_stands_twice_is_told_where_it_does() -> None:
    assert said(["a", "b", "a", "b"], SET_LIST) == [
        ("spec[2]", "a", "each value once", False),
        ("spec[3]", "b", "each value once", False),
    ]
    twice = [{"name": "a", "port": 1, "x": 1}, {"port": 1, "name": "a", "x": 2}]
    assert said(twice, MAP_LIST) == [("spec[1]", {"name": "a", "port": 1}, "each name and port once", False)]
    assert said([{"b": 1, "a": 2}, {"a": 2, "b": 1}], {**SET_LIST, "items": {}}) == [
        ("spec[1]", {"a": 2, "b": 1}, "each value once", False)
    ]
    assert said(["a", UNKNOWN, "a"], SET_LIST) == [("spec[2]", "a", "each value once", False)]
    assert said(["a", "a"], MAP_LIST) == [("spec[1]", "a", "each name and port once", False)]
    assert said([{"name": UNKNOWN}, {"name": UNKNOWN}], MAP_LIST)[0][0] == "spec[1]"


def test_an_unknown_value_is_left_to_whoever_walks() -> None:
    with pytest.raises(Undecided, match="spec"):
        said(UNKNOWN, {"type": "string"})


def test_members_come_with_their_own_schemas() -> None:
    schema = {"properties": {"a": {"type": "string"}, "r": {"$ref": "name"}}, "additionalProperties": {"type": "integer"}}
    members = {node.path: below for node, below in Schemas(SHARED).members(Node({"a": 1, "r": 2, "z": 3}, "spec"), schema)}
    assert members == {"spec.a": {"type": "string"}, "spec.r": {"$ref": "name"}, "spec.z": {"type": "integer"}}
    listed = [(node.path, below) for node, below in Schemas(SHARED).members(Node(["x"], "spec"), {"items": {"$ref": "name"}})]
    assert listed == [("spec[0]", {"$ref": "name"})]
    assert list(Schemas(SHARED).members(Node({"z": 3}, "spec"), {"properties": {}, "additionalProperties": True})) == []


def test_a_wrong_member_below_keeps_a_choice_from_fitting() -> None:
    deep = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}
    assert said({"a": {"b": "x"}}, {"anyOf": [deep]}) == []
    assert len(said({"a": {"b": 1}}, {"anyOf": [deep]})) == 1
    assert said({"a": {"b": 1}}, {"not": deep}) == []
