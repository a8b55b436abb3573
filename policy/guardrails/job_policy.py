"""What becomes of a Job's failed pods, as far as the API server takes it."""

from guardrails.node import Node
from guardrails.rule import Report, Resource

_INDEXED, _NEVER = "Indexed", "Never"
OF_INDICES = ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
"""What the API server takes beside `completionMode: Indexed` alone."""
_ON_FAILURE = "Failed"


def check(job: Resource, spec: Node, report: Report, *, indexed_unset: bool = False) -> None:
    """JOB01: judge the policies of a Job's `spec`; `indexed_unset` where a Job that names no mode is made Indexed."""
    with report.part():
        _needs_indices(job, spec, indexed_unset, report)
    with report.part():
        _needs_new_pods(job, spec, report)
    with report.part():
        _failed_indices(job, spec, report)
    with report.part():
        _replacement(job, spec, report)
    for rule in spec.at("podFailurePolicy", "rules").elements():
        with report.part():
            _rule(job, spec, rule, report)


def _needs_indices(job: Resource, spec: Node, indexed_unset: bool, report: Report) -> None:
    mode = spec.at("completionMode")
    if mode.text() == _INDEXED or (indexed_unset and not mode.present):
        return
    for key in OF_INDICES:
        if spec.at(key).present:
            report.refuse(job, mode, allowed=f"{_INDEXED} beside {key}")
            return


def _needs_new_pods(job: Resource, spec: Node, report: Report) -> None:
    """A failure is only seen by the Job where the kubelet does not start the container again."""
    policy = spec.at("template", "spec", "restartPolicy")
    for key in ("podFailurePolicy", "backoffLimitPerIndex"):
        if spec.at(key).present and policy.text() != _NEVER:
            report.refuse(job, policy, allowed=f"{_NEVER} beside {key}")
            return


def _failed_indices(job: Resource, spec: Node, report: Report) -> None:
    most, completions = spec.at("maxFailedIndexes"), spec.at("completions").integer()
    if not most.present:
        return
    if not spec.at("backoffLimitPerIndex").present:
        report.refuse(job, spec.at("backoffLimitPerIndex"), allowed="set beside maxFailedIndexes: no index fails by itself without")
    elif completions is not None and (most.integer() or 0) > completions:
        report.refuse(job, most, allowed=f"at most {completions}, the completions")


def _replacement(job: Resource, spec: Node, report: Report) -> None:
    place = spec.at("podReplacementPolicy")
    if place.present and place.text() != _ON_FAILURE and spec.at("podFailurePolicy").present:
        report.refuse(job, place, allowed=f"{_ON_FAILURE} beside podFailurePolicy")


def _rule(job: Resource, spec: Node, rule: Node, report: Report) -> None:
    action, codes = rule.at("action"), rule.at("onExitCodes")
    if action.text() == "FailIndex" and not spec.at("backoffLimitPerIndex").present:
        report.refuse(job, action, allowed="FailJob, Ignore or Count, or FailIndex beside backoffLimitPerIndex")
    conditions = any(True for _ in rule.at("onPodConditions").elements())
    if codes.present == conditions:
        found = "with both" if conditions else "with neither"
        report.refuse(job, rule, allowed="onExitCodes or onPodConditions, one of both", found=found)
    if codes.at("operator").text() == "In":
        for value in codes.at("values").elements():
            if value.integer() == 0:
                report.refuse(job, value, allowed="another code than 0, which is no failure")
