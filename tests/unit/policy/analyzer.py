"""Drive the pack through the analyzer service that the Pulumi engine talks to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy import EnforcementLevel
from pulumi_policy.policy import _PolicyAnalyzerServicer
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from guardrails import PACK_NAME, policies

UNKNOWN = UNKNOWN_STRING_VALUE


@dataclass(frozen=True)
class Diagnostic:
    """One line of the analyzer: a violation, or that a rule could not run."""

    policy: str
    message: str
    mandatory: bool


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


def service() -> _PolicyAnalyzerServicer:
    return _PolicyAnalyzerServicer(PACK_NAME, "0.0.1", policies(), EnforcementLevel.ADVISORY)


def analyze(thing: Thing) -> list[Diagnostic]:
    """What the resource rules say of one resource."""
    request = analyzer_pb2.AnalyzeRequest(type=thing.type, urn=thing.urn, name=thing.name)
    json_format.ParseDict(dict(thing.properties), request.properties)
    return _diagnostics(service().Analyze(request, None))


def analyze_stack(things: Sequence[Thing]) -> list[Diagnostic]:
    """What the stack rules say of a whole program."""
    urns = {thing.name: thing.urn for thing in things}
    request = analyzer_pb2.AnalyzeStackRequest()
    for thing in things:
        resource = request.resources.add(type=thing.type, urn=thing.urn, name=thing.name)
        json_format.ParseDict(dict(thing.properties), resource.properties)
        for key, names in thing.sources.items():
            resource.propertyDependencies[key].urns.extend(urns[name] for name in names)
    return _diagnostics(service().AnalyzeStack(request, None))


def violations(diagnostics: Sequence[Diagnostic], rule: str) -> list[str]:
    """Messages of the mandatory findings of `rule`."""
    return [d.message for d in diagnostics if d.policy.startswith(rule.lower()) and d.mandatory]


def not_evaluated(diagnostics: Sequence[Diagnostic], rule: str) -> list[str]:
    """Messages that say `rule` could not run."""
    return [d.message for d in diagnostics if d.policy.startswith(rule.lower()) and not d.mandatory]


def _diagnostics(response: Any) -> list[Diagnostic]:
    faults = [d.message for d in response.diagnostics if "could not judge" in d.message]
    assert not faults, f"a rule raised: {faults}"
    return [Diagnostic(d.policyName, d.message, d.enforcementLevel == analyzer_pb2.MANDATORY) for d in response.diagnostics]
