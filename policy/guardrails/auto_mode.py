"""EKS Auto Mode: nodes that EKS makes itself, with device plug-ins and the agent of Pod Identity built in."""

from guardrails.lustre import flag
from guardrails.placing import alternatives
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.template import PodTemplate
from guardrails.tokens import CLUSTER, NODE_CLASS, NODE_GROUP, NODE_POOL, SCALING_GROUP

_GROUP = "eks.amazonaws.com"
_COMPUTE = f"{_GROUP}/compute-type"
_TYPES = f"{_GROUP}/instance-"
"""Labels that tell instance types apart; Karpenter's begin with karpenter.k8s.aws."""


def is_auto(program: Program) -> bool:
    """Whether the clusters of the program make nodes themselves; False where there is none."""
    enabled = [flag(cluster.at("computeConfig", "enabled")) is True for cluster in program.of(CLUSTER)]
    return bool(enabled) and all(enabled)


def is_auto_pool(pool: Resource) -> bool:
    """Whether a NodePool is of EKS, and not of a Karpenter of one's own."""
    return pool.at("spec", "template", "spec", "nodeClassRef", "group").text() == _GROUP


def has_other_nodes(program: Program) -> bool:
    """Whether the program makes nodes that EKS Auto Mode doesn't."""
    return program.has({NODE_GROUP, SCALING_GROUP, NODE_CLASS}) or any(not is_auto_pool(pool) for pool in program.of(NODE_POOL))


def wants_auto(template: PodTemplate) -> bool:
    """Whether the pod demands labels that only nodes of EKS Auto Mode have."""
    ways = alternatives(template)
    return all(way.get(_COMPUTE) == ["auto"] or any(key.startswith(_TYPES) for key in way) for way in ways)
