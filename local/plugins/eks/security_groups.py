"""The security groups and rules inside eks.Cluster."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from local.plugins.eks.arguments import merged_tags

_ALL: dict[str, Any] = {"from_port": 0, "to_port": 0, "protocol": "-1"}
_ANYWHERE = ["0.0.0.0/0"]


def create_cluster_group(name: str, inputs: Mapping[str, Any], child: pulumi.ResourceOptions) -> aws.ec2.SecurityGroup:
    """The group of the control plane's interfaces, open outwards."""
    group = aws.ec2.SecurityGroup(
        f"{name}-eksClusterSecurityGroup",
        vpc_id=inputs["vpcId"],
        revoke_rules_on_delete=True,
        tags=merged_tags({"Name": f"{name}-eksClusterSecurityGroup"}, inputs.get("clusterSecurityGroupTags"), inputs.get("tags")),
        opts=child,
    )
    aws.ec2.SecurityGroupRule(
        f"{name}-eksClusterInternetEgressRule",
        description="Allow internet access.",
        type="egress",
        cidr_blocks=_ANYWHERE,
        security_group_id=group.id,
        opts=child,
        **_ALL,
    )
    return group


def create_node_group(
    name: str, inputs: Mapping[str, Any], cluster: aws.eks.Cluster, cluster_group_id: pulumi.Output[str], child: pulumi.ResourceOptions
) -> tuple[aws.ec2.SecurityGroup, aws.ec2.SecurityGroupRule]:
    """The group of nodes with its rules, and the rule that lets nodes reach the API server."""
    owned = cluster.name.apply(lambda cluster_name: {f"kubernetes.io/cluster/{cluster_name}": "owned"})
    group = aws.ec2.SecurityGroup(
        f"{name}-nodeSecurityGroup",
        vpc_id=inputs["vpcId"],
        revoke_rules_on_delete=True,
        tags=merged_tags({"Name": f"{name}-nodeSecurityGroup"}, owned, inputs.get("nodeSecurityGroupTags"), inputs.get("tags")),
        opts=child,
    )
    from_cluster = {"type": "ingress", "protocol": "tcp", "security_group_id": group.id, "source_security_group_id": cluster_group_id}
    rules: dict[str, dict[str, Any]] = {
        "eksNodeIngressRule": {
            "description": "Allow nodes to communicate with each other",
            "type": "ingress",
            "security_group_id": group.id,
            "self": True,
            **_ALL,
        },
        "eksNodeClusterIngressRule": {
            "description": "Allow worker Kubelets and pods to receive communication from the cluster control plane",
            "from_port": 1025,
            "to_port": 65535,
            **from_cluster,
        },
        "eksExtApiServerClusterIngressRule": {
            "description": "Allow pods running extension API servers on port 443 to receive communication from cluster control plane",
            "from_port": 443,
            "to_port": 443,
            **from_cluster,
        },
        "eksNodeInternetEgressRule": {
            "description": "Allow internet access.",
            "type": "egress",
            "cidr_blocks": _ANYWHERE,
            "security_group_id": group.id,
            **_ALL,
        },
    }
    for role, rule in rules.items():
        aws.ec2.SecurityGroupRule(f"{name}-{role}", opts=child, **rule)
    ingress = aws.ec2.SecurityGroupRule(
        f"{name}-eksClusterIngressRule",
        description="Allow pods to communicate with the cluster API Server",
        type="ingress",
        from_port=443,
        to_port=443,
        protocol="tcp",
        security_group_id=cluster_group_id,
        source_security_group_id=group.id,
        opts=child,
    )
    return group, ingress
