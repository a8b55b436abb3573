"""Rules that stop an invalid training platform or job at preview.

Each domain module ends in `RULES`. The pack imports nothing of the rest of the repository, so another team can use the folder
as it is: with Pulumi (`pulumi preview --policy-pack policy`) or on plain files (`python -m guardrails`).
"""

from collections.abc import Mapping

from guardrails import job, karpenter, network, pod, release, storage
from guardrails.rule import Example, Rule, StackRule

_MODULES = (storage, network, karpenter, pod, job, release)

DOMAINS: Mapping[str, tuple[Rule | StackRule, ...]] = {(module.__doc__ or "").splitlines()[0]: module.RULES for module in _MODULES}
"""What a domain is about -> its rules."""
RULES: tuple[Rule | StackRule, ...] = tuple(rule for rules in DOMAINS.values() for rule in rules)

__all__ = ["DOMAINS", "RULES", "Example", "Rule", "StackRule"]
