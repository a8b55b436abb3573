"""The Cluster component: role, control plane, security groups, add-ons and access entries, as pulumi-eks makes them."""

import importlib.metadata
import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pulumi
import pulumi_aws as aws

from local.plugins.eks.access import create_access_entries
from local.plugins.eks.addons import VpcCniAddon, create_addon
from local.plugins.eks.arguments import check, merged_tags, subnet_ids
from local.plugins.eks.kubeconfig import kubeconfig
from local.plugins.eks.service_role import ServiceRole

# Both differ between what is asked for and what EKS answers, and can't be changed after creation.
_CREATION_ONLY = ["accessConfig.bootstrapClusterCreatorAdminPermissions", "bootstrapSelfManagedAddons"]


class Cluster(pulumi.ComponentResource):
    """An EKS cluster without node groups.

    Raises:
        InputPropertyError: an argument that is wrong, or that the stand-in does not know.
    """

    state: dict[str, Any]
    """The component's outputs by their names in the schema."""

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        check(inputs)
        super().__init__("eks:index:Cluster", name, dict(inputs), opts)
        child = pulumi.ResourceOptions(parent=self)
        role = None if inputs.get("serviceRole") is not None else _create_role(name, inputs, child)
        skip_groups = bool(inputs.get("skipDefaultSecurityGroups"))
        group = inputs.get("clusterSecurityGroup") or (None if skip_groups else _groups().create_cluster_group(name, inputs, child))
        cluster = _create_control_plane(name, inputs, role, group, child)
        provider = _create_kubernetes_provider(name, inputs, cluster, child)
        vpc_cni = _create_addons(name, inputs, cluster, provider, child)
        node_group, ingress = (None, None) if skip_groups else _groups().create_node_group(name, inputs, cluster, _id_of(group), child)
        core = _core(inputs, cluster, provider, group, role, vpc_cni)
        self.state = _outputs(cluster, core, group, node_group, ingress)
        self.register_outputs(self.state)


def _groups() -> ModuleType:
    """The module of the security groups, loaded when one is made: the EC2 part of the SDK takes longer to import than all else here."""
    from local.plugins.eks import security_groups

    return security_groups


def _create_role(name: str, inputs: Mapping[str, Any], child: pulumi.ResourceOptions) -> ServiceRole:
    partition = aws.get_partition_output(opts=pulumi.InvokeOutputOptions(parent=child.parent)).apply(lambda known: known.partition)
    return ServiceRole(
        f"{name}-eksRole",
        service="eks.amazonaws.com",
        description="Allows EKS to manage clusters on your behalf.",
        policies=["AmazonEKSClusterPolicy"],
        partition=partition,
        actions=["sts:AssumeRole", "sts:TagSession"],
        tags=inputs.get("tags"),
        opts=child,
    )


def _create_control_plane(
    name: str, inputs: Mapping[str, Any], role: ServiceRole | None, group: Any, child: pulumi.ResourceOptions
) -> aws.eks.Cluster:
    bootstrap = inputs.get("bootstrapSelfManagedAddons")
    options = pulumi.ResourceOptions(ignore_changes=_CREATION_ONLY, depends_on=[role.role, *role.attachments] if role else [])
    return aws.eks.Cluster(
        f"{name}-eksCluster",
        name=inputs.get("name"),
        role_arn=role.role.arn if role else pulumi.Output.from_input(inputs["serviceRole"]).apply(lambda given: given.arn),
        version=inputs.get("version"),
        bootstrap_self_managed_addons=True if bootstrap is None else bootstrap,
        vpc_config={
            "security_group_ids": [_id_of(group)] if group is not None else None,
            "subnet_ids": subnet_ids(inputs),
            "endpoint_private_access": inputs.get("endpointPrivateAccess"),
            "endpoint_public_access": inputs.get("endpointPublicAccess"),
            "public_access_cidrs": inputs.get("publicAccessCidrs"),
        },
        kubernetes_network_config=_service_network(inputs),
        enabled_cluster_log_types=inputs.get("enabledClusterLogTypes"),
        encryption_config=_encryption(inputs),
        access_config={"authentication_mode": inputs["authenticationMode"], "bootstrap_cluster_creator_admin_permissions": True},
        upgrade_policy=inputs.get("upgradePolicy"),
        deletion_protection=inputs.get("deletionProtection"),
        tags=merged_tags({"Name": f"{name}-eksCluster"}, inputs.get("clusterTags"), inputs.get("tags")),
        opts=pulumi.ResourceOptions.merge(child, options),
    )


def _service_network(inputs: Mapping[str, Any]) -> Any:
    cidr, family = inputs.get("kubernetesServiceIpAddressRange"), inputs.get("ipFamily")
    if not cidr and not family:
        return None

    def network(known: list[Any]) -> dict[str, Any]:
        chosen = known[1] or "ipv4"
        # The range can only be chosen for IPv4.
        return {"ip_family": chosen, **({"service_ipv4_cidr": known[0]} if known[0] and chosen == "ipv4" else {})}

    return pulumi.Output.all(cidr, family).apply(network)


def _encryption(inputs: Mapping[str, Any]) -> Any:
    key = inputs.get("encryptionConfigKeyArn")
    return {"provider": {"key_arn": key}, "resources": ["secrets"]} if key else None


def _create_kubernetes_provider(
    name: str, inputs: Mapping[str, Any], cluster: aws.eks.Cluster, child: pulumi.ResourceOptions
) -> pulumi.ProviderResource:
    text = kubeconfig(cluster, inputs.get("providerCredentialOpts"), with_profile=True).apply(json.dumps)
    # Not the SDK's class: importing that SDK takes longer than all the rest of this plug-in.
    version = pulumi.ResourceOptions(version=importlib.metadata.version("pulumi-kubernetes"))
    props = {"kubeconfig": text, "enableConfigMapMutable": inputs.get("enableConfigMapMutable")}
    return pulumi.ProviderResource("kubernetes", f"{name}-eks-k8s", props, pulumi.ResourceOptions.merge(child, version))


def _create_addons(
    name: str, inputs: Mapping[str, Any], cluster: aws.eks.Cluster, provider: pulumi.ProviderResource, child: pulumi.ResourceOptions
) -> VpcCniAddon | None:
    tags = inputs.get("tags")
    proxy, dns = inputs.get("kubeProxyAddonOptions") or {}, inputs.get("corednsAddonOptions") or {}
    if proxy.get("enabled", True):
        create_addon(name, "kube-proxy", proxy, cluster, tags, child)
    entries = create_access_entries(name, inputs.get("accessEntries") or {}, cluster, child)
    # CoreDNS needs nodes, and there are none by default: only who asks for it gets it.
    if dns.get("enabled") is True or dns.get("configurationValues"):
        create_addon(name, "coredns", dns, cluster, tags, child)
    if inputs.get("useDefaultVpcCni"):
        return None
    options = pulumi.ResourceOptions(depends_on=entries, providers=[provider])
    return VpcCniAddon(f"{name}-vpc-cni", inputs.get("vpcCniOptions") or {}, cluster, tags, pulumi.ResourceOptions.merge(child, options))


def _core(
    inputs: Mapping[str, Any],
    cluster: aws.eks.Cluster,
    provider: pulumi.ProviderResource,
    group: Any,
    role: ServiceRole | None,
    vpc_cni: VpcCniAddon | None,
) -> dict[str, Any]:
    core = {
        "accessEntries": list((inputs.get("accessEntries") or {}).values()),
        "cluster": cluster,
        "clusterIamRole": role.role if role else inputs["serviceRole"],
        "clusterSecurityGroup": group,
        "encryptionConfig": _core_encryption(inputs),
        "endpoint": cluster.endpoint,
        "instanceRoles": [],
        "kubeconfig": kubeconfig(cluster, inputs.get("providerCredentialOpts"), with_profile=False),
        "nodeGroupOptions": {"version": inputs.get("version")},
        "nodeSecurityGroupTags": inputs.get("nodeSecurityGroupTags"),
        "privateSubnetIds": inputs.get("privateSubnetIds"),
        "provider": provider,
        "publicSubnetIds": inputs.get("publicSubnetIds"),
        "storageClasses": {},
        "subnetIds": subnet_ids(inputs),
        "tags": inputs.get("tags"),
        "vpcCni": vpc_cni,
        "vpcId": inputs["vpcId"],
    }
    return {key: value for key, value in core.items() if value is not None}


def _core_encryption(inputs: Mapping[str, Any]) -> dict[str, Any] | None:
    key = inputs.get("encryptionConfigKeyArn")
    return {"provider": {"keyArn": key}, "resources": ["secrets"]} if key else None


def _outputs(cluster: aws.eks.Cluster, core: dict[str, Any], group: Any, node_group: Any, ingress: Any) -> dict[str, Any]:
    # Without groups of its own the component hands out the one that EKS makes for control plane and nodes.
    own_group_id = cluster.vpc_config.apply(lambda known: known.cluster_security_group_id)
    issuer = cluster.identities.apply(_issuer)
    outputs = {
        "kubeconfig": core["kubeconfig"],
        "kubeconfigJson": core["kubeconfig"].apply(lambda known: json.dumps(known, separators=(",", ":"))),
        "clusterSecurityGroup": group,
        "instanceRoles": [],
        "nodeSecurityGroup": node_group,
        "eksClusterIngressRule": ingress,
        "eksCluster": cluster,
        "core": core,
        "clusterSecurityGroupId": _id_of(group) if group is not None else own_group_id,
        "nodeSecurityGroupId": node_group.id if node_group is not None else own_group_id,
        "clusterIngressRuleId": ingress.security_group_rule_id if ingress is not None else "",
        "defaultNodeGroupAsgName": "",
        "fargateProfileId": "",
        "fargateProfileStatus": "",
        "oidcProviderArn": "",
        "oidcProviderUrl": issuer,
        "oidcIssuer": issuer.apply(lambda url: url.removeprefix("https://")),
        "autoModeNodeRoleName": "",
    }
    return {key: value for key, value in outputs.items() if value is not None}


def _issuer(identities: Any) -> str:
    for identity in identities or []:
        for oidc in identity.oidcs or []:
            return oidc.issuer or ""
    return ""


def _id_of(group: Any) -> pulumi.Output[str]:
    return pulumi.Output.from_input(group).apply(lambda known: known.id)
