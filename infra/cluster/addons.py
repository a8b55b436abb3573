"""EKS managed add-ons at pinned versions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_aws as aws

from infra import labels, versions
from infra.component import child_options, token
from infra.iam import PodRole, PodRoleArgs, ServiceAccountRef, documents

# What a node needs to become ready. The others need nodes, or they never become active.
BEFORE_NODES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
AFTER_NODES = ("coredns", "aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-fsx-csi-driver")

_NAMESPACE = "kube-system"
_ACCOUNTS = {
    "vpc-cni": ("aws-node",),
    "aws-ebs-csi-driver": ("ebs-csi-controller-sa",),
    "aws-efs-csi-driver": ("efs-csi-controller-sa", "efs-csi-node-sa"),
    "aws-fsx-csi-driver": ("fsx-csi-controller-sa", "fsx-csi-node-sa"),
}
_MANAGED_POLICIES = {
    "vpc-cni": "AmazonEKS_CNI_Policy",
    "aws-ebs-csi-driver": "service-role/AmazonEBSCSIDriverPolicy",
    "aws-efs-csi-driver": "service-role/AmazonEFSCSIDriverPolicy",
}


@dataclass(frozen=True, kw_only=True)
class ManagedAddonsArgs:
    """What ManagedAddons needs to know."""

    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    region: str
    """AWS region; its partition is part of policy ARNs."""
    addons: Sequence[str]
    """Names of the add-ons."""
    version_overrides: Mapping[str, str] = field(default_factory=dict)
    """Versions that differ from the pinned ones."""
    after: Sequence[pulumi.Resource] = ()
    """What has to exist first: nodes, for add-ons that run on them."""


class ManagedAddons(pulumi.ComponentResource):
    """Add-ons that EKS installs, each with a role of its own where it calls AWS."""

    ready: list[pulumi.Resource]
    """The add-ons, for what needs them running."""

    def __init__(self, name: str, args: ManagedAddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pinned = {addon: args.version_overrides.get(addon, versions.EKS_ADDONS[addon]) for addon in args.addons}
        super().__init__(token("cluster", "ManagedAddons"), name, {"versions": pinned}, opts)
        self.ready = [self._create_addon(name, addon, version, args) for addon, version in pinned.items()]
        self.register_outputs({"versions": pinned})

    def _create_addon(self, name: str, addon: str, version: str, args: ManagedAddonsArgs) -> aws.eks.Addon:
        role = self._create_role(name, addon, args)
        configuration = addon_configuration(addon)
        return aws.eks.Addon(
            f"{name}-{addon}",
            cluster_name=args.cluster_name,
            addon_name=addon,
            addon_version=version,
            configuration_values=pulumi.Output.json_dumps(configuration, sort_keys=True) if configuration else None,
            resolve_conflicts_on_create="NONE",
            resolve_conflicts_on_update="PRESERVE",
            # Pods read their credentials when they start, so the role has to be theirs before the add-on is.
            opts=child_options(self, depends_on=[*args.after, *(role.ready if role else [])]),
        )

    def _create_role(self, name: str, addon: str, args: ManagedAddonsArgs) -> PodRole | None:
        if addon not in _ACCOUNTS:
            return None
        managed = [documents.managed_policy(args.region, _MANAGED_POLICIES[addon])] if addon in _MANAGED_POLICIES else []
        policies = {"lookup": pulumi.Output.json_dumps(documents.fsx_csi())} if addon == "aws-fsx-csi-driver" else {}
        return PodRole(
            f"{name}-{addon}",
            PodRoleArgs(
                cluster_name=args.cluster_name,
                service_accounts=[ServiceAccountRef(namespace=_NAMESPACE, name=account) for account in _ACCOUNTS[addon]],
                managed_policy_arns=managed,
                policies=policies,
            ),
            child_options(self),
        )


def addon_configuration(addon: str) -> dict[str, Any]:
    """Return the configuration values of an add-on: its node pods run on every pool whatever its taints."""
    if addon.endswith("-csi-driver"):
        return {"node": {"tolerations": labels.agent_tolerations()}}
    return {}
