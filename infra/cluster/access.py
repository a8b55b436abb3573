"""Access entries: who gets into the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import child_options, token
from infra.iam.documents import partition
from infra.settings import AdminSettings


@dataclass(frozen=True, kw_only=True)
class ClusterAccessArgs:
    """What a ClusterAccess needs to know."""

    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    region: str
    """AWS region; its partition is part of policy ARNs."""
    admins: Sequence[AdminSettings]
    """Principals with full rights."""


class ClusterAccess(pulumi.ComponentResource):
    """Access entries of the administrators.

    They are made here and not by the cluster component, so that everything in the cluster can wait for them, and is deleted before them.
    """

    ready: list[pulumi.Resource]
    """What has to exist before the cluster answers its administrators."""

    def __init__(self, name: str, args: ClusterAccessArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("cluster", "ClusterAccess"), name, {"admins": [admin.name for admin in args.admins]}, opts)
        self.ready = [self._admit(f"{name}-{admin.name}", admin, args) for admin in args.admins]
        self.register_outputs({})

    def _admit(self, name: str, admin: AdminSettings, args: ClusterAccessArgs) -> aws.eks.AccessPolicyAssociation:
        entry = aws.eks.AccessEntry(
            name, cluster_name=args.cluster_name, principal_arn=admin.principal_arn, type="STANDARD", opts=child_options(self)
        )
        return aws.eks.AccessPolicyAssociation(
            name,
            cluster_name=args.cluster_name,
            principal_arn=entry.principal_arn,
            policy_arn=f"arn:{partition(args.region)}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
            access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=child_options(self),
        )
