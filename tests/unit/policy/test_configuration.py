"""Levels and exemptions: what a configuration changes, what is refused in it, what is said of exemptions nobody needs."""

import datetime
import json
from unittest import mock

import grpc
import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2

from guardrails import RULES
from guardrails.configuration import ConfigurationError, Level, read_configuration
from guardrails.service import Service
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, analyze, violations

pytestmark = pytest.mark.unit

# What a configuration does must not depend on what the other rules say of the example.
FEW = [rule for rule in RULES if rule.id in ("FSX02", "KRP02")]
BAD = b.lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput=200)
EXEMPTION = {"rule": "FSX02", "resource": "scratch", "reason": "an old volume", "expires": "2999-12-31"}


def configured(values: dict, *, today: datetime.date | None = None) -> Service:
    """The service as the engine configures it: every policy with its level, then what the file changes."""
    service = Service(FEW)
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    info = service.GetAnalyzerInfo(None, None)
    for policy in info.policies:
        request.policyConfig[policy.name].enforcementLevel = policy.enforcementLevel
    for name, value in values.items():
        settings = {"enforcementLevel": value} if isinstance(value, str) else value
        config = request.policyConfig[name]
        for key, setting in settings.items():
            if key == "enforcementLevel":
                config.enforcementLevel = analyzer_pb2.EnforcementLevel.Value(setting.upper())
            else:
                json_format.ParseDict({key: setting}, config.properties)
    service.Configure(request, None)
    if today:
        service._judge.configuration.today = today
    return service


def test_defaults_need_no_configuration() -> None:
    assert [d.mandatory for d in analyze(BAD, service=configured({}))] == [d.mandatory for d in analyze(BAD, rules=FEW)] == [True]


@pytest.mark.parametrize("name", ["FSX02", "fsx02-lustre-disallow-scratch-throughput"])
def test_a_level_is_set_by_id_or_by_policy_name(name: str) -> None:
    assert [d.mandatory for d in analyze(BAD, service=configured({name: "advisory"}))] == [False]
    assert analyze(BAD, service=configured({name: {"enforcementLevel": "disabled"}})) == []


def test_an_exempted_resource_is_passed_over_and_the_others_are_not() -> None:
    service = configured({"guardrails": {"exemptions": [EXEMPTION]}})
    other = type(BAD)(type=BAD.type, name="other", properties=BAD.properties)
    said = analyze(BAD, other, service=service)
    assert [message.split(":")[0] for message in violations(said, "FSX02")] == ["FSX02 other"]
    assert len(said) == 1


@pytest.mark.parametrize("resource", ["scr*", "s?ratch", f"*{BAD.type}::scratch", BAD.urn])
def test_an_exemption_names_its_resource_by_name_or_urn_with_wildcards(resource: str) -> None:
    assert analyze(BAD, service=configured({"guardrails": {"exemptions": [{**EXEMPTION, "resource": resource}]}})) == []


def test_an_exemption_holds_through_its_last_day_and_not_longer() -> None:
    values = {"guardrails": {"exemptions": [{**EXEMPTION, "expires": "2027-01-31"}]}}
    assert analyze(BAD, service=configured(values, today=datetime.date(2027, 1, 31))) == []
    said = analyze(BAD, service=configured(values, today=datetime.date(2027, 2, 1)))
    assert len(violations(said, "FSX02")) == 1
    (expired,) = [d for d in said if d.policy == "guardrails"]
    assert "expired on 2027-01-31" in expired.message
    assert not expired.mandatory


def test_an_exemption_is_of_its_rule_alone() -> None:
    said = analyze(BAD, service=configured({"guardrails": {"exemptions": [{**EXEMPTION, "rule": "KRP02"}]}}))
    assert len(violations(said, "FSX02")) == 1


def test_an_exemption_from_a_rule_that_could_not_decide_is_not_idle() -> None:
    unknown = b.lustre(deploymentType=UNKNOWN, perUnitStorageThroughput=200)
    said = analyze(unknown, service=configured({"guardrails": {"exemptions": [EXEMPTION]}}))
    assert [d.message for d in said if "is not used" in d.message] == []


@pytest.mark.parametrize("name", ["scratch[0]", "scratch*", "scratch[[]0]", "urn:pulumi:test::*[[]0]"])
def test_an_exemption_names_a_resource_by_its_name_or_by_a_pattern(name: str) -> None:
    thing = type(BAD)(type=BAD.type, name="scratch[0]", properties=BAD.properties)
    assert analyze(thing, service=configured({"guardrails": {"exemptions": [{**EXEMPTION, "resource": name}]}})) == []


def test_an_exemption_that_nothing_needs_is_reported() -> None:
    said = analyze(b.lustre(deploymentType="SCRATCH_2"), service=configured({"guardrails": {"exemptions": [EXEMPTION]}}))
    assert ["is not used" in d.message and "an old volume" in d.message for d in said] == [True]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"FSX2": "advisory"}, "FSX2: there is no such rule; did you mean FSX02?"),
        ({"FSX02": "strict"}, "FSX02 is 'strict'; allowed: mandatory, advisory, disabled"),
        ({"FSX02": {"enforcementLevel": 3}}, "FSX02.enforcementLevel is 3"),
        ({"FSX02": {"level": "advisory"}}, "FSX02.level: no such setting; allowed: enforcementLevel"),
        ({"FSX02": None}, "FSX02 is None"),
        ({"all": "none"}, "all is 'none'"),
        ({"guardrails": {"exemption": []}}, "guardrails.exemption: no such setting; allowed: exemptions"),
        ({"guardrails": "advisory"}, "guardrails is 'advisory'; allowed: a mapping with exemptions"),
        ({"guardrails": {"exemptions": {}}}, "guardrails.exemptions is {}; allowed: a list"),
        (
            {"guardrails": {"exemptions": ["FSX02"]}},
            "guardrails.exemptions[0] is 'FSX02'; allowed: a mapping with rule, resource, reason, expires",
        ),
        (
            {"guardrails": {"exemptions": [{**EXEMPTION, "until": "x"}]}},
            "exemptions[0].until: no such field; allowed: rule, resource, reason, expires",
        ),
        ({"guardrails": {"exemptions": [{**EXEMPTION, "rule": "FSX99"}]}}, "exemptions[0].rule is 'FSX99': there is no such rule"),
        ({"guardrails": {"exemptions": [{**EXEMPTION, "reason": " "}]}}, "exemptions[0].reason is ' '; allowed: a text that is not empty"),
        (
            {"guardrails": {"exemptions": [{**EXEMPTION, "expires": "31.1.2027"}]}},
            "expires is '31.1.2027'; allowed: a day such as 2027-01-31",
        ),
        (
            {"guardrails": {"exemptions": [{key: EXEMPTION[key] for key in ("rule", "resource", "reason")}]}},
            "exemptions[0].expires is 'unset'",
        ),
    ],
)
def test_a_bad_configuration_is_refused_with_field_value_and_what_is_allowed(values: dict, words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_configuration(values, FEW)
    assert words in str(raised.value)


def test_a_name_that_is_like_no_rule_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigurationError, match=r"^checkov: there is no such rule$"):
        read_configuration({"checkov": "advisory"}, FEW)


def test_all_sets_every_level_and_a_rule_s_own_wins() -> None:
    configuration = read_configuration({"all": "advisory", "FSX02": "mandatory"}, RULES)
    levels = {rule.id: configuration.level(rule) for rule in RULES}
    assert levels.pop("FSX02") is Level.MANDATORY
    assert set(levels.values()) == {Level.ADVISORY}


def test_the_engine_is_told_what_is_wrong_in_a_status_of_its_own() -> None:
    def abort(code: grpc.StatusCode, text: str) -> None:
        raise RuntimeError(f"{code.name}: {text}")

    context = mock.Mock(grpc.ServicerContext, abort=abort)
    request = analyzer_pb2.ConfigureAnalyzerRequest()
    request.policyConfig["krp99"].enforcementLevel = analyzer_pb2.DISABLED
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT: krp99: there is no such rule"):
        Service(RULES).Configure(request, context)


def test_the_pack_lists_every_rule_as_a_policy_of_its_own() -> None:
    info = Service(RULES).GetAnalyzerInfo(None, None)
    assert {rule.policy_name for rule in RULES} | {"guardrails"} == {policy.name for policy in info.policies}
    assert info.supportsConfig
    schema = next(policy for policy in info.policies if policy.name == "guardrails").configSchema
    assert "exemptions" in json_format.MessageToDict(schema)["properties"]
    assert json.dumps(json_format.MessageToDict(schema))
