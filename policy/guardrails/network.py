"""The fabric: EFA, placement, reserved capacity, and the environment that NCCL and libfabric read."""

from guardrails import capacity, efa, environment, placement

RULES = (*efa.RULES, *environment.RULES, *placement.RULES, *capacity.RULES)
