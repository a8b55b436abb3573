"""The fabric: EFA, placement, reserved capacity, endpoints, and the environment that NCCL and libfabric read."""

from guardrails import capacity, device_plugin, efa, efa_group, endpoint, environment, placement

RULES = (*efa.RULES, *efa_group.RULES, *device_plugin.RULES, *environment.RULES, *placement.RULES, *capacity.RULES, *endpoint.RULES)
