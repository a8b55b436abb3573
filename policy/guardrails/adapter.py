"""From our rules to CrossGuard policies.

An unknown value must not pass in silence: once a rule has reported what it could decide, `UnknownValueError` is raised for the
rest, which the SDK prints as "can't run policy ... during preview" and the engine enforces at update.
"""

from collections.abc import Callable

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError

from guardrails.node import Node, plain
from guardrails.rule import Report, Resource, Rule, StackRule

PACK_NAME = "trainyard-guardrails"


def to_policy(rule: Rule | StackRule) -> Policy:
    """The CrossGuard policy that runs `rule`."""
    level = EnforcementLevel.MANDATORY if rule.mandatory else EnforcementLevel.ADVISORY
    if isinstance(rule, Rule):
        return ResourceValidationPolicy(
            name=rule.policy_name, description=rule.title, enforcement_level=level, validate=_resource_check(rule)
        )
    return StackValidationPolicy(name=rule.policy_name, description=rule.title, enforcement_level=level, validate=_stack_check(rule))


def _resource_check(rule: Rule):  # noqa: ANN202 - the SDK's own callable types name the arguments
    def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
        if args.resource_type in rule.types:
            resource = Resource(type=args.resource_type, name=args.name, urn=args.urn, properties=Node(plain(args.props)))
            _tell(rule, lambda: rule.run(resource), report_violation)

    return validate


def _stack_check(rule: StackRule):  # noqa: ANN202
    def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
        _tell(rule, lambda: rule.run([_stack_resource(resource) for resource in args.resources]), report_violation)

    return validate


def _stack_resource(resource: PolicyResource) -> Resource:
    sources = {key: [dependency.urn for dependency in values] for key, values in resource.property_dependencies.items()}
    return Resource(
        type=resource.resource_type, name=resource.name, urn=resource.urn, properties=Node(plain(resource.props)), sources=sources
    )


def _tell(rule: Rule | StackRule, run: Callable[[], Report], report_violation: ReportViolation) -> None:
    try:
        report = run()
    except Exception as error:
        said = f"{rule.id} could not judge the resource ({type(error).__name__}: {error}); please report this as a fault."
        report_violation(said, None)
        return
    for finding in report.findings:
        report_violation(rule.message(finding), finding.resource.urn or None)
    if report.undecided:
        raise UnknownValueError(UNKNOWN_STRING_VALUE, [", ".join(report.undecided)])
