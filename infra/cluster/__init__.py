"""The EKS cluster: control plane, who gets in, system nodes and managed add-ons."""

from infra.cluster.access import ClusterAccess, ClusterAccessArgs
from infra.cluster.addons import ManagedAddons, ManagedAddonsArgs
from infra.cluster.base import ClusterBase, ClusterBaseArgs
from infra.cluster.eks import EksCluster, EksClusterArgs
from infra.cluster.system_nodes import SystemNodes, SystemNodesArgs

__all__ = [
    "ClusterAccess",
    "ClusterAccessArgs",
    "ClusterBase",
    "ClusterBaseArgs",
    "EksCluster",
    "EksClusterArgs",
    "ManagedAddons",
    "ManagedAddonsArgs",
    "SystemNodes",
    "SystemNodesArgs",
]
