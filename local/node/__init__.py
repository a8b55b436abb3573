"""A real one-node Kubernetes cluster of one copy of the repository, in namespaces of its own."""

from local.node.api import ApiError, KubernetesApi
from local.node.fake_nodes import add_fake_nodes, remove_fake_nodes
from local.node.node import Node

__all__ = ["ApiError", "KubernetesApi", "Node", "add_fake_nodes", "remove_fake_nodes"]
