"""The EKS control plane, through the pulumi-eks component."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from infra.component import child_options, token
from infra.settings import ClusterSettings

_CLUSTER_TYPE = "aws:eks/cluster:Cluster"


@dataclass(frozen=True, kw_only=True)
class EksClusterArgs:
    """What an EksCluster needs to know."""

    settings: ClusterSettings
    """Name, version, endpoint and logs."""
    vpc_id: pulumi.Input[str]
    """The VPC."""
    subnet_ids: Sequence[pulumi.Input[str]]
    """Private subnets, one a zone, that the control plane puts its interfaces in."""


class EksCluster(pulumi.ComponentResource):
    """A control plane that only access entries open: no aws-auth map, no rights for its creator, private endpoint.

    The pulumi-eks component makes role and control plane. What it would choose for itself is switched off and made by us at pinned
    versions: node groups, security groups (EKS makes one that nodes share), CNI, kube-proxy and CoreDNS.
    """

    cluster_name: pulumi.Output[str]
    cluster_arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    """Kubeconfig as JSON text; it gets its token from the AWS CLI."""
    security_group_id: pulumi.Output[str]
    """The group EKS makes for the control plane and all nodes."""

    def __init__(self, name: str, args: EksClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("cluster", "EksCluster"), name, {"name": args.settings.name, "version": args.settings.version}, opts)
        cluster = self._create_cluster(name, args)
        control_plane = cluster.eks_cluster
        self.cluster_name = control_plane.apply(lambda made: made.name)
        self.cluster_arn = control_plane.apply(lambda made: made.arn)
        self.endpoint = control_plane.apply(lambda made: made.endpoint)
        self.security_group_id = control_plane.apply(lambda made: made.vpc_config).apply(lambda vpc: vpc.cluster_security_group_id or "")
        self.kubeconfig = pulumi.Output.secret(cluster.kubeconfig_json)
        self.register_outputs(
            {
                "cluster_name": self.cluster_name,
                "cluster_arn": self.cluster_arn,
                "endpoint": self.endpoint,
                "kubeconfig": self.kubeconfig,
                "security_group_id": self.security_group_id,
            }
        )

    def _create_cluster(self, name: str, args: EksClusterArgs) -> eks.Cluster:
        settings = args.settings
        public = list(settings.endpoint.public_cidrs)
        return eks.Cluster(
            name,
            name=settings.name,
            version=settings.version,
            vpc_id=args.vpc_id,
            private_subnet_ids=list(args.subnet_ids),
            authentication_mode=eks.AuthenticationMode.API,
            endpoint_private_access=True,
            endpoint_public_access=bool(public),
            public_access_cidrs=public or None,
            enabled_cluster_log_types=list(settings.log_types),
            encryption_config_key_arn=settings.secrets_key_arn,
            deletion_protection=settings.deletion_protection,
            # The default, EXTENDED, charges for a version that standard support has ended for.
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(support_type="STANDARD"),
            skip_default_node_group=True,
            # With Pod Identity no OIDC provider is needed, and making one calls the issuer over the network.
            create_oidc_provider=False,
            skip_default_security_groups=True,
            bootstrap_self_managed_addons=False,
            use_default_vpc_cni=True,
            kube_proxy_addon_options=eks.KubeProxyAddonOptionsArgs(enabled=False),
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            # The component gives the creator admin rights and has no option against it.
            opts=child_options(self, transforms=[refuse_creator_admin]),
        )


def refuse_creator_admin(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """Set `bootstrapClusterCreatorAdminPermissions` to false on the control plane, and leave every other resource as it is."""
    if args.type_ != _CLUSTER_TYPE:
        return None
    props = dict(args.props)
    access = pulumi.Output.from_input(props.get("accessConfig"))
    props["accessConfig"] = access.apply(lambda known: {**(known or {}), "bootstrapClusterCreatorAdminPermissions": False})
    return pulumi.ResourceTransformResult(props, args.opts)
