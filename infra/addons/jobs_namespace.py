"""The namespace that training jobs run in, and who they are there."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
from pulumi_kubernetes.core.v1 import LimitRange, LimitRangeItemArgs, LimitRangeSpecArgs, Namespace, ServiceAccount
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra import labels
from infra.component import child_options, token
from infra.iam import PodRole, PodRoleArgs, ServiceAccountRef, documents
from infra.settings import JobsSettings

# Pods drain their checkpoints when the namespace goes.
_DELETE_TIMEOUT = "30m"


@dataclass(frozen=True, kw_only=True)
class JobsNamespaceArgs:
    """What JobsNamespace needs to know."""

    settings: JobsSettings
    """Names of namespace and service account."""
    cluster_name: pulumi.Input[str]
    """The EKS cluster."""
    bucket_arn: pulumi.Input[str] | None
    """The checkpoint bucket that training pods may use, or None where there is none."""
    after: Sequence[pulumi.Resource] = ()
    """What outlives the namespace: pools and job controllers, so that a destroy ends the jobs before what they run on."""


class JobsNamespace(pulumi.ComponentResource):
    """Namespace, service account and defaults of training jobs."""

    namespace: Namespace
    namespace_name: pulumi.Output[str]
    service_account_name: pulumi.Output[str]

    def __init__(self, name: str, args: JobsNamespaceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        settings = args.settings
        super().__init__(token("addons", "JobsNamespace"), name, {"namespace": settings.namespace}, opts)
        metadata = ObjectMetaArgs(
            name=settings.namespace,
            labels={**labels.object_labels(settings.namespace), labels.POD_SECURITY_ENFORCE: "baseline"},
        )
        self.namespace = Namespace(
            name,
            metadata=metadata,
            # Made last and so deleted first: its pods end while their nodes and controllers are still there.
            opts=child_options(self, depends_on=args.after, custom_timeouts=pulumi.CustomTimeouts(delete=_DELETE_TIMEOUT)),
        )
        self.namespace_name = self.namespace.metadata.name.apply(lambda made: made or "")
        account = ServiceAccount(
            f"{name}-trainer",
            metadata=ObjectMetaArgs(
                name=settings.service_account, namespace=self.namespace_name, labels=labels.object_labels(settings.service_account)
            ),
            opts=child_options(self),
        )
        self.service_account_name = account.metadata.name.apply(lambda made: made or "")
        LimitRange(
            f"{name}-defaults",
            metadata=ObjectMetaArgs(name="defaults", namespace=self.namespace_name, labels=labels.object_labels("defaults")),
            spec=LimitRangeSpecArgs(limits=[LimitRangeItemArgs(type="Container", default_request={"cpu": "100m", "memory": "128Mi"})]),
            opts=child_options(self),
        )
        if args.bucket_arn is not None:
            self._give_bucket(name, args, args.bucket_arn)
        self.register_outputs({"namespace_name": self.namespace_name, "service_account_name": self.service_account_name})

    def _give_bucket(self, name: str, args: JobsNamespaceArgs, bucket_arn: pulumi.Input[str]) -> None:
        policy = pulumi.Output.from_input(bucket_arn).apply(documents.checkpoint_access)
        account = ServiceAccountRef(namespace=args.settings.namespace, name=args.settings.service_account)
        PodRole(
            f"{name}-trainer",
            PodRoleArgs(
                cluster_name=args.cluster_name, service_accounts=[account], policies={"checkpoints": pulumi.Output.json_dumps(policy)}
            ),
            child_options(self),
        )
