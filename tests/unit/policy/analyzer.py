"""Drive the pack through the analyzer service that the Pulumi engine talks to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from guardrails import RULES, Rule, StackRule
from guardrails.service import Service

UNKNOWN = UNKNOWN_STRING_VALUE


@dataclass(frozen=True)
class Diagnostic:
    """One line of the analyzer: a violation, advice, or that a rule could not run."""

    policy: str
    message: str
    mandatory: bool
    urn: str = ""


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A resource of a program; `sources` names, per property, the resources its value comes from."""

    type: str
    properties: Mapping[str, Any]
    name: str = "thing"
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def urn(self) -> str:
        return f"urn:pulumi:test::project::{self.type}::{self.name}"


def analyze(*things: Thing, rules: Sequence[Rule | StackRule] = RULES, service: Service | None = None) -> list[Diagnostic]:
    """What the pack says of a program: of each resource as it is registered, then of all together, as the engine asks."""
    service = service or Service(rules)
    urns = {thing.name: thing.urn for thing in things}
    last = analyzer_pb2.AnalyzeStackRequest()
    said: list[Diagnostic] = []
    for thing in things:
        said += registered(service, thing)
        resource = last.resources.add(type=thing.type, urn=thing.urn, name=thing.name)
        json_format.ParseDict(dict(thing.properties), resource.properties)
        for key, names in thing.sources.items():
            resource.propertyDependencies[key].urns.extend(urns.get(name, name) for name in names)
    return said + _diagnostics(service.AnalyzeStack(last, None))


def registered(service: Service, thing: Thing) -> list[Diagnostic]:
    """What the engine is told when `thing` is registered, before anything is made of it."""
    request = analyzer_pb2.AnalyzeRequest(type=thing.type, urn=thing.urn, name=thing.name)
    json_format.ParseDict(dict(thing.properties), request.properties)
    return _diagnostics(service.Analyze(request, None))


def violations(diagnostics: Sequence[Diagnostic], rule: str) -> list[str]:
    """Messages of the findings of `rule`, at whatever level."""
    return [d.message for d in diagnostics if _is_of(d, rule) and not d.message.startswith(f"{rule} not evaluated")]


def not_evaluated(diagnostics: Sequence[Diagnostic], rule: str) -> list[str]:
    """Messages that say `rule` could not run."""
    return [d.message for d in diagnostics if _is_of(d, rule) and d.message.startswith(f"{rule} not evaluated")]


def _is_of(diagnostic: Diagnostic, rule: str) -> bool:
    return diagnostic.policy.startswith(f"{rule.lower()}-")


def _diagnostics(response: Any) -> list[Diagnostic]:
    faults = [d.message for d in response.diagnostics if "could not judge" in d.message]
    assert not faults, f"a rule raised: {faults}"
    return [Diagnostic(d.policyName, d.message, d.enforcementLevel == analyzer_pb2.MANDATORY, d.urn) for d in response.diagnostics]
