"""Values of a chart that are where no rule can read them are listed, not passed over."""

from collections.abc import Mapping
from typing import Any

import pytest

from guardrails import RULES
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import analyze

pytestmark = pytest.mark.policy

RULE = [rule for rule in RULES if rule.id == "JUP01"]


@pytest.mark.parametrize(
    ("helm", "place"),
    [
        ({"valueFiles": ["values.yaml"]}, "app.spec.source.helm.valueFiles[0]"),
        ({"parameters": [{"name": "hub.config.Authenticator.allowed_users[0]", "value": "ada"}]}, "app.spec.source.helm.parameters[0]"),
        ({"fileParameters": [{"name": "hub.config", "path": "config.yaml"}]}, "app.spec.source.helm.fileParameters[0]"),
        (
            {"fileParameters": [{"name": "hub.config.Authenticator.allowed_users", "path": "users"}]},
            "app.spec.source.helm.fileParameters[0]",
        ),
        ({"parameters": [{"name": "hub.config.Authenticator[0]", "value": "ada"}]}, "app.spec.source.helm.parameters[0]"),
    ],
)
def test_what_only_argo_cd_reads_is_listed(helm: Mapping[str, Any], place: str) -> None:
    said = [each.message for each in analyze(b.application_of("jupyterhub", helm), rules=RULE)]
    assert any("not evaluated" in message and place in message for message in said), said


def test_a_parameter_of_another_name_decides_nothing() -> None:
    helm = {"parameters": [{"name": "hub.configuration", "value": "x"}]}
    said = [each.message for each in analyze(b.application_of("jupyterhub", helm), rules=RULE)]
    assert not any("not evaluated" in message for message in said), said
    assert any("without allowed users or groups" in message for message in said), said
