"""What the engine asks of the plug-in: construct a Cluster, and nothing else."""

import importlib.metadata
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.provider import CallResult, ConstructResult, Provider

from local.plugins.eks.cluster import Cluster

CLUSTER_TYPE = "eks:index:Cluster"


class EksProvider(Provider):
    """The component provider. Its version is that of the SDK whose component it stands in for."""

    def __init__(self) -> None:
        super().__init__(importlib.metadata.version("pulumi-eks"))

    def construct(
        self, name: str, resource_type: str, inputs: Mapping[str, pulumi.Input[Any]], options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Make the component and its children.

        Raises:
            InputPropertyError: an argument that is wrong, or that the stand-in does not know; the engine shows its name.
            RunError: another component than Cluster was asked for.
        """
        if resource_type != CLUSTER_TYPE:
            raise pulumi.RunError(
                f"the stand-in for the eks plug-in has no {resource_type}; it has {CLUSTER_TYPE} (the genuine one: make status)"
            )
        cluster = Cluster(name, inputs, options)
        return ConstructResult(cluster.urn, cluster.state)

    def call(self, token: str, args: Mapping[str, pulumi.Input[Any]]) -> CallResult:
        """Refuse: the kubeconfig is there as an output.

        Raises:
            RunError: always.
        """
        raise pulumi.RunError(f"the stand-in for the eks plug-in has no method {token}; the kubeconfig is the output kubeconfigJson")
