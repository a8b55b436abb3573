"""No message shows a secret, whole or in part, in whichever form a rule tells it."""

import json
from typing import Any

import pytest
import yaml
from pulumi_policy import deserialize

from guardrails import tokens
from guardrails.judge import Judge
from guardrails.node import Node
from guardrails.rule import Report, Resource, Rule, StackRule
from guardrails.secret import HIDDEN, hidden, redacted
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import Thing, analyze
from tests.unit.policy.cases import fsx

pytestmark = pytest.mark.unit

SIGNATURE = deserialize.SPECIAL_SIG_KEY
LONG = "s3cr3t/" * 30
LINES = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF"
TOKEN = "abcdefgh"


def secret(value: Any) -> dict[str, Any]:
    return {SIGNATURE: deserialize.SPECIAL_SECRET_SIG, "value": value}


def output(value: Any) -> dict[str, Any]:
    return {SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4", "secret": True, "value": value}


@pytest.mark.parametrize("signed", [secret, output])
@pytest.mark.parametrize("value", ["hunter2-hunter2", LONG, LINES, f"{TOKEN} {TOKEN}", {"key": TOKEN}, [TOKEN]])
def test_a_secret_text_is_hidden_whole(signed: Any, value: Any) -> None:
    for thing in (fsx.p2(perUnitStorageThroughput=signed(value)), b.node_pool({"spec/disruption/consolidationPolicy": signed(value)})):
        text = str(analyze(thing))
        assert HIDDEN in text
        for part in ("hunter2", "s3cr3t", "BEGIN", "MIIEvQ", "kqhkiG", TOKEN):
            assert part not in text


def test_a_secret_number_is_hidden() -> None:
    said = str(analyze(fsx.scratch(storageCapacity=secret(1201))))
    assert "storageCapacity is [secret]; allowed: " in said
    assert "1201" not in said


CONFIGURATION = {"optimizer": {"type": "TopSecretOptimizer"}, "train_batch_size": -4, "team_alpha_key": 1, "fp16": {"enabled": True}}
POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "alpha-pool", "labels": {"team-alpha": "-alpha-"}},
    "spec": {"disruption": {"budgets": [{"nodes": "alpha%"}]}, "alphaField": 1},
}


@pytest.mark.parametrize(
    ("kind", "properties", "place"),
    [
        (tokens.CONFIG_MAP, {"data": {"ds.json": secret(json.dumps(CONFIGURATION))}}, 'data["ds.json"]'),
        (tokens.CONFIG_MAP, {"data": secret({"ds.json": json.dumps(CONFIGURATION)})}, 'data["ds.json"]'),
        (tokens.RELEASE, {"values": {"extra": secret(yaml.safe_dump(POOL))}}, "values.extra"),
        (tokens.RELEASE, {"values": {"extra": secret(yaml.safe_dump({"alpha": [POOL]}))}}, "values.extra"),
    ],
)
def test_nothing_is_told_of_what_a_secret_text_holds(kind: str, properties: dict[str, Any], place: str) -> None:
    said = [each.message.splitlines()[0] for each in analyze(Thing(type=kind, name="owner", properties=properties))]
    mine = [line for line in said if place in line]
    assert mine
    assert not [line for line in said if "alpha" in line or "TopSecret" in line or "train_batch_size is" in line or "-4" in line]
    assert all(f" owner: {place} is [secret]" in line or f" owner: {place} is unset" in line for line in mine)


def test_an_object_with_a_secret_name_is_called_as_what_carries_it() -> None:
    pool = {**POOL, "metadata": {"name": secret("alpha-pool")}}
    said = str(analyze(Thing(type=tokens.RELEASE, name="owner", properties={"values": {"extra": pool}})))
    assert "KRP03 owner: " in said
    assert "alpha-pool" not in said


def test_the_longest_of_overlapping_secrets_is_hidden_first() -> None:
    for names in (("tok", "token-xyz"), ("token-xyz", "tok")):
        assert redacted("a token-xyz, a tok", frozenset(names)) == "a [secret], a [secret]"


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        ("1201, 12011, 0.1201, 1201.", {1201}, "[secret], 12011, 0.1201, [secret]."),
        ("1.5 and 1.55", {1.5}, "[secret] and 1.55"),
        ("a ab abc", {"ab"}, "a ab abc"),
        ("ABC", {"abc"}, "[secret]"),
        ("one line, two", {"one\nline"}, "[secret], two"),
        ("--token=hunter2x", {"run --token=hunter2x now"}, "--token=[secret]"),
        ("", {"abc"}, ""),
        ("nothing", {"ab"}, "nothing"),
    ],
)
def test_a_text_is_shown_without_the_secrets_in_it(text: str, secrets: set[Any], shown: str) -> None:
    assert redacted(text, frozenset(secrets)) == shown


def test_plain_data_is_shown_without_its_secrets() -> None:
    data = {"a": ["ab", 2, True, None], "key-abc": {"b": "x ab"}}
    secrets: frozenset[Any] = frozenset({"ab", 2, 1, "key-abc"})
    assert hidden(data, secrets) == {"a": [HIDDEN, HIDDEN, True, None], HIDDEN: {"b": "x ab"}}


def test_what_a_rule_makes_of_a_secret_value_is_not_told() -> None:
    report = Report()
    owner = Resource(type="t", name="n", properties=Node({"a": "registry/image:tag", "b": 1}), secrets=frozenset({"registry/image:tag"}))
    report.refuse(owner, owner.at("a"), found="tag", allowed="another than registry/image:tag")
    report.refuse(owner, owner.at("b"), found="1 of registry/image:tag", allowed="2")
    assert [(each.found, each.allowed) for each in report.findings] == [(HIDDEN, f"another than {HIDDEN}"), (f"1 of {HIDDEN}", "2")]


WORDS: dict[str, Any] = {"name": "x-require-y", "title": "t", "why": "w", "fix": "f", "source": "s"}


def test_a_rule_over_all_resources_tells_no_secret_of_another() -> None:
    def check(program: Any, report: Report) -> None:
        one, other = program
        report.refuse(one, one.at("a"), found=other.at("a").text(), allowed=f"not {other.at('a').text()}")

    rule = StackRule(id="XX01", check=check, **WORDS)
    things = (Thing(type="a:b:C", name="one", properties={"a": 1}), Thing(type="a:b:C", name="two", properties={"a": secret(TOKEN)}))
    (said,) = analyze(*things, rules=[rule])
    assert said.message.startswith("XX01 one: a is [secret]; allowed: not [secret].")


@pytest.mark.parametrize("stack", [False, True])
def test_the_text_of_a_fault_is_told_only_where_there_are_no_secrets(stack: bool) -> None:
    def check(subject: Any, report: Report) -> None:
        raise ValueError(TOKEN)

    rule = StackRule(id="XX01", check=check, **WORDS) if stack else Rule(id="XX01", check=check, types=frozenset({"t"}), **WORDS)
    for secrets, told in ((frozenset(), True), (frozenset({TOKEN}), False)):
        resource, judge = Resource(type="t", name="n", properties=Node({}), secrets=secrets), Judge([rule])
        (verdict,) = [*judge.resource(resource), *judge.program([resource])]
        assert "could not judge" in verdict.message
        assert "ValueError" in verdict.message
        assert (TOKEN in verdict.message) is told


def test_control_characters_are_written_out() -> None:
    thing = Thing(type=fsx.p2().type, name="a\x1b[2Jb", properties={"deploymentType": "SCRATCH_\x1b[1m\u202e2", "storageCapacity": 7})
    said = analyze(thing)
    assert said
    assert all(letter.isprintable() or letter == "\n" for each in said for letter in each.message)
    assert r"a\x1b[2Jb" in str(said[0].message)
