"""Where training runs: placement, Karpenter, training pools."""

from infra.compute.karpenter import Karpenter, KarpenterArgs
from infra.compute.placement import Placement, PlacementArgs
from infra.compute.training_pool import NodeLaunch, TrainingPool, TrainingPoolArgs

__all__ = ["Karpenter", "KarpenterArgs", "NodeLaunch", "Placement", "PlacementArgs", "TrainingPool", "TrainingPoolArgs"]
