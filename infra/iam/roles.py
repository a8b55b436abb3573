"""Roles: of pods, through EKS Pod Identity, and of nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from infra.component import child_options, token
from infra.iam import documents


@dataclass(frozen=True, kw_only=True)
class ServiceAccountRef:
    """A Kubernetes service account by name."""

    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True)
class PodRoleArgs:
    """What a PodRole needs to know."""

    cluster_name: pulumi.Input[str]
    """The EKS cluster whose pods take the role on."""
    service_accounts: Sequence[ServiceAccountRef]
    """Whose pods take it on."""
    managed_policy_arns: Sequence[str] = ()
    """Policies of AWS that the role carries."""
    policies: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Policies of ours, as JSON text by short name."""


class PodRole(pulumi.ComponentResource):
    """An IAM role, its policies, and the associations that give it to pods of service accounts."""

    role_arn: pulumi.Output[str]
    ready: list[pulumi.Resource]
    """What has to exist before a pod can use the role: associations and policies."""

    def __init__(self, name: str, args: PodRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        accounts = [f"{account.namespace}/{account.name}" for account in args.service_accounts]
        super().__init__(token("iam", "PodRole"), name, {"service_accounts": accounts}, opts)
        child = child_options(self)
        role = aws.iam.Role(name, assume_role_policy=pulumi.Output.json_dumps(documents.pod_identity_trust()), opts=child)
        self.role_arn = role.arn
        policies = _attach(name, role, args.managed_policy_arns, args.policies, child)
        associations = [
            aws.eks.PodIdentityAssociation(
                f"{name}-{account.namespace}-{account.name}",
                cluster_name=args.cluster_name,
                namespace=account.namespace,
                service_account=account.name,
                role_arn=role.arn,
                opts=child,
            )
            for account in args.service_accounts
        ]
        self.ready = [*policies, *associations]
        self.register_outputs({"role_arn": self.role_arn})


@dataclass(frozen=True, kw_only=True)
class NodeRoleArgs:
    """What a NodeRole needs to know."""

    region: str
    """AWS region; its partition is part of policy ARNs."""


class NodeRole(pulumi.ComponentResource):
    """The role of EC2 nodes, with what a node itself needs: joining the cluster and pulling images. Pods have roles of their own."""

    role_arn: pulumi.Output[str]
    role_name: pulumi.Output[str]
    ready: list[pulumi.Resource]
    """The policies a node needs before it starts."""

    def __init__(self, name: str, args: NodeRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("iam", "NodeRole"), name, {"region": args.region}, opts)
        child = child_options(self)
        role = aws.iam.Role(name, assume_role_policy=pulumi.Output.json_dumps(documents.service_trust("ec2.amazonaws.com")), opts=child)
        self.role_arn, self.role_name = role.arn, role.name
        names = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore")
        self.ready = _attach(name, role, [documents.managed_policy(args.region, policy) for policy in names], {}, child)
        self.register_outputs({"role_arn": self.role_arn, "role_name": self.role_name})


def _attach(
    name: str,
    role: aws.iam.Role,
    managed_policy_arns: Sequence[str],
    policies: Mapping[str, pulumi.Input[str]],
    child: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    attached: list[pulumi.Resource] = [
        aws.iam.RolePolicyAttachment(f"{name}-{arn.rpartition('/')[2]}", role=role.name, policy_arn=arn, opts=child)
        for arn in managed_policy_arns
    ]
    attached += [aws.iam.RolePolicy(f"{name}-{key}", role=role.name, policy=text, opts=child) for key, text in policies.items()]
    return attached
