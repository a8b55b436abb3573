"""Rules that stop an invalid training platform or job at preview.

Each domain module ends in `RULES`; `policies()` turns them into what the Pulumi engine runs. The pack imports nothing of the
rest of the repository, so another team can use the folder as it is.
"""

from pulumi_policy import Policy

from guardrails import job, karpenter, network, pod, storage
from guardrails.adapter import PACK_NAME, to_policy
from guardrails.rule import Rule, StackRule

RULES: tuple[Rule | StackRule, ...] = (*storage.RULES, *network.RULES, *karpenter.RULES, *pod.RULES, *job.RULES)


def policies() -> list[Policy]:
    """One CrossGuard policy for each rule, in the order of the domains."""
    return [to_policy(rule) for rule in RULES]


__all__ = ["PACK_NAME", "RULES", "Rule", "StackRule", "policies"]
