"""The analyzer service that the Pulumi engine calls.

Every rule is a named CrossGuard policy with a level of its own, as the SDK would serve it. The SDK's servicer however converts
all properties of a resource once for each policy and calls every policy for every resource; with a hundred rules that costs
more than the preview itself. Here a resource is converted once, and only the rules of its type see it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import grpc
from google.protobuf import empty_pb2 as _empty_pb2
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2 as messages
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ResourceValidationPolicy,
    StackValidationPolicy,
)
from pulumi_policy.policy import _PolicyAnalyzerServicer

from guardrails.configuration import PACK_POLICY, Configuration, ConfigurationError, Level, read_configuration
from guardrails.decode import plain_properties
from guardrails.judge import AnyRule, Judge, Verdict
from guardrails.node import Node
from guardrails.pack import PACK_NAME, VERSION
from guardrails.program import Program
from guardrails.rule import Resource, Rule
from guardrails.view import canonical, views

# The type checker does not see what protobuf makes at import.
empty_pb2: Any = _empty_pb2
_LEVELS = {Level.MANDATORY: messages.MANDATORY, Level.ADVISORY: messages.ADVISORY, Level.DISABLED: messages.DISABLED}
_NAMES = {messages.MANDATORY: "mandatory", messages.ADVISORY: "advisory", messages.DISABLED: "disabled", messages.REMEDIATE: "mandatory"}
_EXEMPTION_SCHEMA = {
    "exemptions": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["rule", "resource", "reason", "expires"],
            "additionalProperties": False,
            "properties": {key: {"type": "string", "minLength": 1} for key in ("rule", "resource", "reason", "expires")},
        },
    }
}


class Service(_PolicyAnalyzerServicer):
    """Serves `rules`; one instance serves one run of the engine."""

    def __init__(self, rules: Sequence[AnyRule], *, version: str = VERSION) -> None:
        super().__init__(PACK_NAME, version, [*map(_policy, rules), _pack_policy()], EnforcementLevel.ADVISORY)
        self._rules = rules
        self._pack_version = version
        self._start(Configuration())

    def Configure(self, request: messages.ConfigureAnalyzerRequest, _context: grpc.ServicerContext | None) -> Any:
        """Take the policy configuration; a bad one ends the run with what is wrong with it."""
        values = {name: _setting(config) for name, config in request.policyConfig.items()}
        try:
            self._start(read_configuration(values, self._rules))
        except ConfigurationError as error:
            if _context is None:
                raise
            _context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return empty_pb2.Empty()

    def Analyze(self, request: messages.AnalyzeRequest, _context: grpc.ServicerContext | None) -> messages.AnalyzeResponse:
        """What the rules over one resource say."""
        response = messages.AnalyzeResponse()
        if self._looks_at(request.type):
            parts = views(_resource(request))
            if self._stack_types is None or any(part.type in self._stack_types for part in parts):
                self._seen[request.urn] = parts
            self._write(response, [*self._judge.parts(parts), *self._judge.so_far(parts, lambda: self._program(parts))])
        return response

    def AnalyzeStack(self, request: messages.AnalyzeStackRequest, _context: grpc.ServicerContext | None) -> messages.AnalyzeResponse:
        """What the rules over several resources say, then what could not be evaluated, once for each rule."""
        response = messages.AnalyzeResponse()
        parts = [part for resource in request.resources if self._stacked(resource.type) for part in self._parts(resource)]
        self._write(response, self._judge.whole(Program(parts)))
        return response

    def Remediate(self, request: messages.AnalyzeRequest, _context: grpc.ServicerContext | None) -> messages.RemediateResponse:
        """No rule changes a resource."""
        return messages.RemediateResponse()

    def _start(self, configuration: Configuration) -> None:
        self._judge = Judge(self._rules, configuration)
        self._stack_types = self._judge.stack_types()
        # What was judged as the program wrote it. At `up` the engine's last call has the outputs instead, with every default
        # of the provider in them, and a rule must not say one thing at preview and another at `up`.
        self._seen: dict[str, list[Resource]] = {}

    def _program(self, news: Sequence[Resource]) -> Program:
        """What has come so far, `news` last."""
        return Program((part for parts in self._seen.values() for part in parts), whole=False, news=news)

    def _looks_at(self, kind: str) -> bool:
        # A Kubernetes object may carry others, so its own type does not decide.
        return kind.startswith("kubernetes:") or self._judge.judges(canonical(kind)) or self._stacked(kind)

    def _stacked(self, kind: str) -> bool:
        return self._stack_types is None or canonical(kind) in self._stack_types or kind.startswith("kubernetes:")

    def _parts(self, message: messages.AnalyzerResource) -> list[Resource]:
        sources = {key: list(value.urns) for key, value in message.propertyDependencies.items()}
        seen = self._seen.get(message.urn)
        parts = views(_resource(message)) if seen is None else seen
        return [_with_sources(part, sources) for part in parts] if sources else parts

    def _write(self, response: messages.AnalyzeResponse, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            response.diagnostics.add(
                policyName=verdict.policy,
                policyPackName=PACK_NAME,
                policyPackVersion=self._pack_version,
                description=verdict.rule.title if verdict.rule else "",
                message=verdict.message,
                urn=verdict.urn,
                enforcementLevel=_LEVELS[verdict.level],
            )


def _policy(rule: AnyRule) -> Policy:
    """The policy as the engine lists it; it is not run through the SDK."""
    level = EnforcementLevel.MANDATORY if rule.mandatory else EnforcementLevel.ADVISORY
    kind = ResourceValidationPolicy if isinstance(rule, Rule) else StackValidationPolicy
    return kind(name=rule.policy_name, description=rule.title, validate=_nothing, enforcement_level=level, remediation_steps=rule.fix)


def _pack_policy() -> Policy:
    return StackValidationPolicy(
        name=PACK_POLICY,
        description="Exemptions from the rules; each names a rule, a resource, a reason and its last day",
        validate=_nothing,
        enforcement_level=EnforcementLevel.ADVISORY,
        config_schema=PolicyConfigSchema(_EXEMPTION_SCHEMA),
    )


def _nothing(*_: Any) -> None:
    """Stands for the check in the SDK's metadata."""


def _setting(config: messages.PolicyConfig) -> Mapping[str, Any]:
    return {**json_format.MessageToDict(config.properties), "enforcementLevel": _NAMES[config.enforcementLevel]}


def _resource(message: messages.AnalyzeRequest | messages.AnalyzerResource) -> Resource:
    properties, secrets = plain_properties(message.properties)
    node = Node(properties, owner=message.name)
    return Resource(type=message.type, name=message.name, urn=message.urn, properties=node, secrets=secrets)


def _with_sources(part: Resource, sources: Mapping[str, Sequence[str]]) -> Resource:
    sourced = replace(part, sources=sources)
    sourced.memo.update(part.memo)
    return sourced
