"""Rules that stop an invalid training platform or job at preview.

Each domain module ends in `RULES`. The pack imports nothing of the rest of the repository, so another team can use the folder
as it is: with Pulumi (`pulumi preview --policy-pack policy`) or on plain files (`python -m guardrails`).
"""

from guardrails import job, karpenter, network, pod, storage
from guardrails.rule import Example, Rule, StackRule

RULES: tuple[Rule | StackRule, ...] = (*storage.RULES, *network.RULES, *karpenter.RULES, *pod.RULES, *job.RULES)

__all__ = ["RULES", "Example", "Rule", "StackRule"]
