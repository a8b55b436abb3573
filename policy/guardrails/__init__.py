"""Rules that stop an invalid training platform or job at preview.

Each domain module ends in `RULES`. The pack imports nothing of the rest of the repository, so another team can use the folder
as it is: with Pulumi (`pulumi preview --policy-pack policy`) or on plain files (`python -m guardrails`).
"""

from collections.abc import Mapping

from guardrails import (
    argo,
    batch_job,
    checkpointing,
    custom_resource,
    deepspeed,
    eks,
    hub,
    images,
    karpenter,
    karpenter_admission,
    mpi,
    network,
    parallelism,
    pod,
    pod_devices,
    pod_memory,
    pod_parts,
    pod_security,
    pytorch_job,
    ray,
    ray_admission,
    release,
    security,
    slurm,
    storage,
    volcano,
    volcano_admission,
)
from guardrails.rule import Example, Rule, StackRule

_PLATFORM = (storage, network, karpenter, eks, security)
_PODS = (pod, pod_security, images, pod_devices, pod_memory, pod_parts)
_JOBS = (mpi, pytorch_job, volcano, volcano_admission, batch_job, ray, ray_admission, slurm, hub, argo)
_TRAINING = (deepspeed, parallelism, checkpointing)
_MODULES = (custom_resource, karpenter_admission, *_PLATFORM, *_PODS, *_JOBS, *_TRAINING, release)

DOMAINS: Mapping[str, tuple[Rule | StackRule, ...]] = {(module.__doc__ or "").splitlines()[0]: module.RULES for module in _MODULES}
"""What a domain is about -> its rules."""
RULES: tuple[Rule | StackRule, ...] = tuple(rule for rules in DOMAINS.values() for rule in rules)

__all__ = ["DOMAINS", "RULES", "Example", "Rule", "StackRule"]
