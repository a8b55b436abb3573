"""The kubeconfig of an EKS cluster, whose credentials come from the AWS CLI."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws


def kubeconfig(cluster: aws.eks.Cluster, credentials: Any, *, with_profile: bool) -> pulumi.Output[dict[str, Any]]:
    """The kubeconfig as a table. The form for other users leaves the profile out (`with_profile` false)."""
    parts = pulumi.Output.all(cluster.name, cluster.endpoint, cluster.certificate_authority, cluster.arn, credentials)
    return parts.apply(lambda known: _document(*known, with_profile=with_profile))


def _document(
    name: str, endpoint: str, authority: Any, arn: str, credentials: Mapping[str, str] | None, *, with_profile: bool
) -> dict[str, Any]:
    # arn:partition:eks:region:account:cluster/name
    arguments = ["--region", arn.split(":")[3], "eks", "get-token", "--cluster-name", name, "--output", "json"]
    if credentials and credentials.get("roleArn"):
        arguments += ["--role", credentials["roleArn"]]
    if with_profile and credentials and credentials.get("profileName"):
        arguments += ["--profile", credentials["profileName"]]
    execution = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": arguments,
        "env": [{"name": "KUBERNETES_EXEC_INFO", "value": '{"apiVersion": "client.authentication.k8s.io/v1beta1"}'}],
    }
    data = authority.data if hasattr(authority, "data") else (authority or {}).get("data")
    return {
        "apiVersion": "v1",
        "clusters": [{"cluster": {"server": endpoint, "certificate-authority-data": data}, "name": "kubernetes"}],
        "contexts": [{"context": {"cluster": "kubernetes", "user": "aws"}, "name": "aws"}],
        "current-context": "aws",
        "kind": "Config",
        "users": [{"name": "aws", "user": {"exec": execution}}],
    }
