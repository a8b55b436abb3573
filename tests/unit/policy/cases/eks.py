"""EKS clusters, entries, add-ons and node groups."""

import base64
import json
from dataclasses import replace
from typing import Any

from guardrails import tokens
from tests.unit.policy import builders as b
from tests.unit.policy.analyzer import UNKNOWN, Thing
from tests.unit.policy.case import invalid, valid

_CLUSTER = {
    "name": "training",
    "version": "1.36",
    "upgradePolicy": {"supportType": "STANDARD"},
    "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False},
    "vpcConfig": {"endpointPrivateAccess": True, "endpointPublicAccess": False, "subnetIds": ["subnet-1", "subnet-2"]},
    "enabledClusterLogTypes": ["api", "audit", "authenticator"],
}
MODE, CREATOR = "accessConfig/authenticationMode", "accessConfig/bootstrapClusterCreatorAdminPermissions"
PRIVATE, PUBLIC, RANGES = (f"vpcConfig/{key}" for key in ("endpointPrivateAccess", "endpointPublicAccess", "publicAccessCidrs"))
SERVICES, FAMILY = "kubernetesNetworkConfig/serviceIpv4Cidr", "kubernetesNetworkConfig/ipFamily"
SUBNETS = "vpcConfig/subnetIds"


def cluster(changes: dict[str, Any] | None = None, sources: dict[str, list[str]] | None = None) -> Thing:
    return Thing(type=tokens.CLUSTER, name="cluster", properties=b.changed(_CLUSTER, changes or {}), sources=sources or {})


def entry(kind: Any = "EC2_LINUX", name: str = "node", **properties: Any) -> Thing:
    principal = {"principalArn": f"arn:aws:iam::123456789012:role/{name}", **({"type": kind} if kind else {})}
    return Thing(type=tokens.ACCESS_ENTRY, name=name, properties={**principal, **properties})


def policy(principal: str = "node", scope: Any = None) -> Thing:
    properties = {
        "principalArn": f"arn:aws:iam::123456789012:role/{principal}",
        "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
        "accessScope": scope or {"type": "cluster"},
    }
    return Thing(type=tokens.ACCESS_POLICY, name="policy", properties=properties)


def addon(name: str, version: Any = "v1.22.4-eksbuild.3", **properties: Any) -> Thing:
    pinned = {"addonVersion": version} if version else {}
    return Thing(type=tokens.ADDON, name=name, properties={"addonName": name, **pinned, **properties})


def identity(account: str, namespace: str = "kube-system") -> Thing:
    return Thing(type=tokens.POD_IDENTITY, name=account, properties={"namespace": namespace, "serviceAccount": account})


def subnet(zone: str, name: str, network: str | None = None) -> Thing:
    where = {"availabilityZone": zone, **({"vpcId": UNKNOWN} if network else {})}
    return Thing(type=tokens.SUBNET, name=name, properties=where, sources={"vpcId": [network]} if network else {})


RESOLVING = {"enableDnsHostnames": True}


def vpc(block: str | None, name: str = "vpc", resolving: dict[str, Any] | None = None) -> Thing:
    return Thing(
        type=tokens.VPC,
        name=name,
        properties={
            **(RESOLVING if resolving is None else resolving),
            **({"cidrBlock": block} if block else {"ipv4IpamPoolId": "ipam-pool-1"}),
        },
    )


def group(image: Any = "AL2023_x86_64_NVIDIA", types: Any = ("p5.48xlarge",), **properties: Any) -> Thing:
    plain = {"amiType": image, "instanceTypes": list(types), "subnetIds": ["subnet-1"], **properties}
    given = {key: value for key, value in plain.items() if value not in (None, [])}
    return Thing(type=tokens.NODE_GROUP, name="gpu", properties=given, sources={"launchTemplate": ["template"]})


def template(**properties: Any) -> Thing:
    return Thing(type=tokens.LAUNCH_TEMPLATE, name="template", properties=properties)


def scaling_group() -> Thing:
    properties = {"launchTemplate": {"id": UNKNOWN, "version": "1"}}
    return Thing(type=tokens.SCALING_GROUP, name="own", properties=properties, sources={"launchTemplate": ["template"]})


JOINS = base64.b64encode(b"#!/bin/bash\nnodeadm init\n").decode()
TEMPLATED = {"launchTemplate": {"id": UNKNOWN, "version": "1"}}
# A template that another program makes.
ELSEWHERE = {"launchTemplate": {"id": "lt-0123456789abcdef0", "version": "3"}}
_NOT_OF_GROUPS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"iamInstanceProfile": {"name": "nodes"}}, "iamInstanceProfile is {name: nodes}; allowed: unset: EKS makes the profile"),
    ({"networkInterfaces": [{"deviceIndex": 0, "subnetId": "subnet-1"}]}, "networkInterfaces[0].subnetId is subnet-1"),
    ({"instanceMarketOptions": {"marketType": "spot"}}, "marketType is spot; allowed: unset, and capacityType SPOT in group"),
    ({"hibernationOptions": {"configured": True}}, "hibernationOptions.configured is true"),
)
EFA_CLASS = b.node_class(
    {
        "spec/networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
        ]
    }
)
EFA_TEMPLATE = Thing(
    type=tokens.LAUNCH_TEMPLATE,
    name="fabric",
    properties={"networkInterfaces": [{"interfaceType": "interface"}, {"networkCardIndex": 1, "interfaceType": "efa-only"}]},
)
# The role of a node group's entry is made beside it, so that preview does not know its ARN.
MADE_ROLE = Thing(type="aws:iam/role:Role", name="role", properties={})
MADE_ENTRY = Thing(
    type=tokens.ACCESS_ENTRY,
    name="node",
    properties={"principalArn": UNKNOWN, "type": "EC2_LINUX", "id": UNKNOWN},
    sources={"principalArn": ["role"]},
)


def policy_of(*sources: str) -> Thing:
    """A policy for a role that preview does not know."""
    return replace(policy(), properties={**policy().properties, "principalArn": UNKNOWN}, sources={"principalArn": list(sources)})


TRAINING, SERVING = (Thing(type=tokens.CLUSTER, name=name, properties={"name": name}) for name in ("training", "serving"))


def in_cluster(thing: Thing, name: Any) -> Thing:
    return replace(thing, properties={**thing.properties, "clusterName": name})


def of_cluster(thing: Thing, *sources: str) -> Thing:
    """An entry or policy of a cluster whose name preview does not know."""
    return replace(in_cluster(thing, UNKNOWN), sources={**thing.sources, "clusterName": list(sources)})


ASSOCIATED = {"podIdentityAssociations": [{"serviceAccount": "ebs-csi-controller-sa", "roleArn": "arn:aws:iam::123456789012:role/ebs"}]}
AGENT = addon("eks-pod-identity-agent", "v1.3.10-eksbuild.3")
ZONED = {"vpcConfig": ["private-a", "private-b"]}
AUTO = {"computeConfig/enabled": True, "computeConfig/nodePools": ["general-purpose"]}
# The subnets of the cluster are in `main`; `other` is there too.
NETWORK = (subnet("us-east-1a", "private-a", "main"), subnet("us-east-1b", "private-b", "main"))
# The same as a later preview sees them, with all ids.
MADE_NETWORK = tuple(
    Thing(
        type=tokens.SUBNET,
        name=f"private-{number}",
        properties={"id": f"subnet-{number}", "availabilityZone": f"us-east-1{letter}", "vpcId": "vpc-1"},
    )
    for number, letter in ((1, "a"), (2, "b"))
)


def made_vpc(block: str, number: int, name: str) -> Thing:
    return Thing(type=tokens.VPC, name=name, properties={"id": f"vpc-{number}", "cidrBlock": block, **RESOLVING})


def with_role(thing: Thing, key: str, value: Any, *sources: str) -> Thing:
    """A node group or class whose role is `value`, taken from `sources`."""
    top = key.partition("/")[0]
    return replace(thing, properties=b.changed(thing.properties, {key: value}), sources={top: list(sources)})


def nodes_role(value: Any, *sources: str) -> Thing:
    return with_role(group("AL2023_x86_64_STANDARD", ["m7i.large"]), "nodeRoleArn", value, *sources)


def sized(least: Any, wanted: Any, most: Any) -> Thing:
    return group(scalingConfig={"minSize": least, "desiredSize": wanted, "maxSize": most})


def booted(text: str, image: Any = "AL2023_x86_64_NVIDIA", **properties: Any) -> tuple[Thing, Thing]:
    """A group whose template has this user data."""
    return group(image, **TEMPLATED), template(userData=base64.b64encode(text.encode()).decode(), **properties)


def tainted(effect: Any) -> Thing:
    return group(taints=[{"key": "nvidia.com/gpu", "value": "true", "effect": effect}])


MULTIPART = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="B"\n\n--B\n'
# What EKS takes of a managed node group and of its launch template.
MANAGED = (
    valid("EKS08", sized(0, 0, 1), edge=True),
    valid("EKS08", sized(2, 2, 2), edge=True),
    valid("EKS08", group(scalingConfig={"minSize": 1, "maxSize": 4}, capacityType="SPOT")),
    invalid("EKS08", sized(0, 0, 0), says="maxSize is 0; allowed: at least 1", edge=True),
    invalid("EKS08", sized(2, 1, 4), says="desiredSize is 1; allowed: at least minSize, 2", edge=True),
    invalid("EKS08", sized(0, 5, 4), says="desiredSize is 5; allowed: at most maxSize, 4", edge=True),
    invalid("EKS08", group(capacityType="on-demand"), says="capacityType is on-demand; allowed: ON_DEMAND, SPOT, CAPACITY_BLOCK"),
    valid("EKS08", group(updateConfig={"maxUnavailablePercentage": 33})),
    invalid("EKS08", group(updateConfig={"maxUnavailable": 1, "maxUnavailablePercentage": 33}), says="EKS takes one of the two"),
    valid("EKS08", tainted("PREFER_NO_SCHEDULE")),
    invalid("EKS08", tainted("NoSchedule"), says="effect is NoSchedule; allowed: NO_SCHEDULE, as EKS writes it", edge=True),
    invalid("EKS08", tainted("Never"), says="allowed: NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE"),
    valid("EKS08", group(labels={"node.kubernetes.io/pool": "p5", "topology.kubernetes.io/zone": "us-east-1a", "ml.example/pool": "p5"})),
    valid("EKS08", group(labels={"notkubernetes.io/pool": "p5", "karpenter.sh/nodepool": "p5"}), edge=True),
    invalid("EKS08", group(labels={"node-role.kubernetes.io/gpu": "true"}), says="a kubelet told to set it does not start", edge=True),
    invalid("EKS08", group(labels={"kubernetes.io/role": "gpu"}), says='labels["kubernetes.io/role"] is set'),
    invalid("EKS08", group(labels={"sig.k8s.io/pool": "gpu"}), says="a label outside kubernetes.io and k8s.io"),
    valid("EKS08", template(iamInstanceProfile={"name": "self-managed"}, instanceMarketOptions={"marketType": "spot"})),
    valid("EKS08", group(**TEMPLATED), template(networkInterfaces=[{"deviceIndex": 0}], hibernationOptions={"configured": False})),
    invalid("EKS08", group(**TEMPLATED), template(iamInstanceProfile={"name": "nodes"}), says="of the role of group gpu"),
    invalid("EKS08", group(**TEMPLATED), template(instanceInitiatedShutdownBehavior="stop"), says="EKS ends the nodes of group gpu"),
    invalid("EKS08", group(**TEMPLATED), template(hibernationOptions={"configured": True}), says="nodes of group gpu can't hibernate"),
    invalid(
        "EKS08",
        group(**TEMPLATED),
        template(instanceMarketOptions={"marketType": "spot"}),
        says="unset, and capacityType SPOT in group gpu",
    ),
    invalid(
        "EKS08",
        group(**TEMPLATED),
        template(networkInterfaces=[{"deviceIndex": 0, "subnetId": "subnet-1"}]),
        says="networkInterfaces[0].subnetId is subnet-1; allowed: unset: the subnets are those of group gpu",
    ),
    valid("EKS08", *booted(MULTIPART)),
    valid("EKS08", *booted("[settings.kubernetes]\n", "BOTTLEROCKET_x86_64_NVIDIA")),
    valid("EKS08", *booted("#!/bin/bash\nnodeadm init\n", None, imageId="ami-1"), edge=True),
    valid("EKS08", group(**TEMPLATED), template(userData="")),
    invalid("EKS08", *booted("#!/bin/bash\necho hi\n"), says="a MIME multi-part document, to which EKS adds its own part", edge=True),
    invalid("EKS08", *booted("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"), says="userData is another text"),
    invalid("EKS08", template(userData="#!/bin/bash\necho hi\n"), says="userData is plain text; allowed: the user data in base64"),
    invalid("EKS08", template(userData="echo hi"), says="userData is plain text", edge=True),
    invalid("EKS08", template(userData="A=B"), says="userData is plain text", edge=True),
    valid("EKS08", template(userData=f"{JOINS}\n"), edge=True),
    invalid(
        "EKS08", group(None, **TEMPLATED), template(imageId="ami-1"), says="EKS adds nothing to the user data of an image of one's own"
    ),
)


def trusting(*services: str, actions: Any = ("sts:AssumeRole", "sts:TagSession"), name: Any = "made") -> Thing:
    """A role that services may take."""
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": list(services)},
        "Action": actions if isinstance(actions, str) else list(actions),
    }
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    properties = {"assumeRolePolicy": trust, **({"name": name} if name else {})}
    return Thing(type=tokens.IAM_ROLE, name="role", properties=properties)


def taking(thing: Thing, key: str, role: Any = UNKNOWN, *sources: str) -> Thing:
    """Something whose role is a literal, or comes from `sources`."""
    return with_role(thing, key, role, *(sources or ["role"]))


PODS, EC2, EKS = (f"{name}.amazonaws.com" for name in ("pods.eks", "ec2", "eks"))
PODS_ROLE = "arn:aws:iam::123456789012:role/ml/made"
IDENTITY = identity("trainer", "jobs")


def of_account(number: str) -> Thing:
    """A role of nodes that is made."""
    role = trusting(EC2)
    return replace(role, properties={**role.properties, "arn": f"arn:aws:iam::{number}:role/ml/made"})


# Roles and the services that take them.
TRUSTS = (
    valid("EKS09", trusting(PODS), taking(IDENTITY, "roleArn")),
    valid("EKS09", trusting(EC2), taking(group(), "nodeRoleArn")),
    valid("EKS09", trusting(EC2), taking(b.node_class(), "spec/role")),
    valid("EKS09", trusting(EKS), taking(cluster(), "roleArn")),
    valid("EKS09", trusting("ec2.amazonaws.com.cn"), taking(group(), "nodeRoleArn"), edge=True),
    invalid("EKS09", trusting("ec2.amazonaws.com.example"), taking(group(), "nodeRoleArn"), says="a role that ec2.amazonaws.com may take"),
    # Of two accounts each may have a role of the name.
    valid("EKS09", trusting(EC2), replace(trusting(PODS), name="second"), taking(IDENTITY, "roleArn", PODS_ROLE), edge=True),
    valid("EKS09", of_account("999999999999"), taking(IDENTITY, "roleArn", PODS_ROLE), edge=True),
    invalid(
        "EKS09", of_account("123456789012"), taking(IDENTITY, "roleArn", PODS_ROLE), says="roleArn is role role, whose trust", edge=True
    ),
    valid("EKS09", trusting(EC2), taking(IDENTITY, "roleArn", "arn:aws:iam::123456789012:role/other")),
    valid("EKS09", trusting(EKS, EC2, actions="sts:AssumeRole", name=None), taking(group(), "nodeRoleArn")),
    valid(
        "EKS09", trusting(EC2), replace(trusting(PODS), name="second"), taking(IDENTITY, "roleArn", UNKNOWN, "role", "second"), edge=True
    ),
    valid("EKS09", Thing(type=tokens.IAM_ROLE, name="role", properties={"name": "made"}), taking(IDENTITY, "roleArn"), edge=True),
    valid("EKS09", trusting(PODS, actions="sts:*"), taking(IDENTITY, "roleArn", PODS_ROLE), edge=True),
    invalid("EKS09", trusting(EC2), taking(IDENTITY, "roleArn"), says="roleArn is role role, whose trust does not let it sts:AssumeRole"),
    # SEC03 says it of the role.
    valid("EKS09", trusting(PODS, actions="sts:AssumeRole"), taking(IDENTITY, "roleArn"), edge=True),
    invalid("EKS09", trusting(EC2, PODS, actions="sts:TagSession"), taking(group(), "nodeRoleArn"), says="sts:AssumeRole", edge=True),
    invalid("EKS09", trusting(EKS), taking(group(), "nodeRoleArn"), says="a role that ec2.amazonaws.com may take (sts:AssumeRole)"),
    invalid("EKS09", trusting(PODS), taking(b.node_class(), "spec/role", "made"), says="spec.role is role role, whose trust"),
    invalid("EKS09", trusting(EC2), taking(cluster(), "roleArn"), says="a role that eks.amazonaws.com may take"),
    invalid(
        "EKS09",
        trusting(EC2),
        taking(addon("aws-ebs-csi-driver", **ASSOCIATED), "podIdentityAssociations/0/roleArn"),
        says="podIdentityAssociations[0].roleArn is role role",
    ),
)


def settled(values: Any, name: str = "vpc-cni") -> Thing:
    return addon(name, configurationValues=values)


IN_MAIN = (cluster({SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED), *NETWORK)


def in_zone_id(zone: str) -> tuple[Thing, ...]:
    subnets = [replace(subnet("", f"private-{each}"), properties={"availabilityZoneId": each}) for each in ("use1-az1", zone)]
    return (cluster({SUBNETS: [UNKNOWN, UNKNOWN]}, {"vpcConfig": [each.name for each in subnets]}), *subnets)


# What EKS takes of principals, policies, add-ons and networks.
FORMS = (
    valid("EKS02", entry("STANDARD", principalArn="arn:aws-us-gov:iam::123456789012:user/team/ada")),
    valid("EKS02", entry("STANDARD", principalArn="arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Admin_1")),
    invalid(
        "EKS02",
        entry("STANDARD", principalArn="arn:aws:sts::123456789012:assumed-role/Admin/ada"),
        says="a session or an account is none",
        edge=True,
    ),
    invalid(
        "EKS02", entry("STANDARD", principalArn="arn:aws:iam::123456789012:root"), says="principalArn is arn:aws:iam::123456789012:root"
    ),
    invalid("EKS02", entry("STANDARD", principalArn="Admin"), says="principalArn is Admin; allowed: the ARN of an IAM role or user"),
    invalid(
        "EKS02",
        replace(policy(), properties={**policy().properties, "policyArn": "arn:aws:iam::aws:policy/AmazonEKSViewPolicy"}),
        says="allowed: an access policy of EKS, such as arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
    ),
    invalid(
        "EKS02", policy(scope={"type": "namespaces", "namespaces": ["jobs"]}), says="type is namespaces; allowed: cluster or namespace"
    ),
    valid("EKS06", addon("adot", "v0.102.1")),
    invalid("EKS06", addon("vpc-cni", "1.22.4"), says="addonVersion is 1.22.4; allowed: a release as EKS names it", edge=True),
    invalid("EKS06", addon("coredns", "v1.13.2"), says="such as v1.22.4-eksbuild.3"),
    valid("EKS06", settled(json.dumps({"env": {"WARM_IP_TARGET": "5"}}))),
    valid("EKS06", settled("env:\n  WARM_IP_TARGET: '5'\n"), edge=True),
    valid("EKS06", settled("")),
    valid("EKS06", settled("replicaCount: 3\n", "coredns")),
    invalid("EKS06", settled('{"env": {"WARM_IP_TARGET": 5}}'), says='text for each variable, WARM_IP_TARGET: "5"', edge=True),
    invalid("EKS06", settled("{env: [}"), says="configurationValues is another text; allowed: a mapping in JSON or YAML"),
    invalid("EKS06", settled("replicas", "coredns"), says="a mapping in JSON or YAML"),
    valid("EKS07", *in_zone_id("use1-az2"), edge=True),
    invalid("EKS07", *in_zone_id("use1-az3"), says="private-use1-az3 in use1-az3 among them", edge=True),
    valid("EKS07", *IN_MAIN, vpc("10.0.0.0/16", "main")),
    valid("EKS07", *IN_MAIN, vpc("10.0.0.0/16", "main"), vpc("10.1.0.0/16", "other", {"enableDnsSupport": False})),
    invalid("EKS07", *IN_MAIN, vpc("10.0.0.0/16", "main", {}), says="enableDnsHostnames is unset (EC2 takes false); allowed: true, as EKS"),
    invalid(
        "EKS07",
        *IN_MAIN,
        vpc("10.0.0.0/16", "main", {"enableDnsSupport": False, "enableDnsHostnames": True}),
        says="enableDnsSupport is false; allowed: true: nothing in the VPC resolves the endpoint of cluster",
    ),
)

_CASES = (
    valid("EKS01", cluster()),
    valid("EKS01", cluster({MODE: "API_AND_CONFIG_MAP"}), edge=True),
    valid("EKS01", cluster({"version": "1.35"})),
    valid("EKS01", cluster({CREATOR: "false"})),
    valid("EKS01", cluster({PUBLIC: True})),
    invalid("EKS01", cluster({"accessConfig": b.DELETE}), says="authenticationMode is unset (EKS takes CONFIG_MAP)"),
    invalid("EKS01", cluster({MODE: "CONFIG_MAP"}), says="authenticationMode is CONFIG_MAP"),
    invalid("EKS01", cluster({MODE: "BOTH"}), says="authenticationMode is BOTH"),
    invalid("EKS01", cluster({CREATOR: True}), says="bootstrapClusterCreatorAdminPermissions is true"),
    invalid("EKS01", cluster({CREATOR: b.DELETE}), says="unset (EKS takes true)", edge=True),
    invalid(
        "EKS02",
        cluster(),
        b.node_class({"spec/role": b.DELETE, "spec/instanceProfile": "nodes"}),
        says="spec.instanceProfile is a role without an entry",
    ),
    valid("EKS02", cluster(), entry(), EFA_CLASS),
    valid("EKS02", entry("STANDARD", kubernetesGroups=["viewers"]), policy()),
    valid("EKS02", policy(scope={"type": "namespace", "namespaces": ["jobs"]}), entry(None)),
    valid("EKS02", cluster()),
    valid("EKS02", entry(), policy("admin"), edge=True),
    valid("EKS02", cluster({MODE: "API_AND_CONFIG_MAP"}), EFA_CLASS, edge=True),
    invalid("EKS02", entry(kubernetesGroups=["admins"]), says="kubernetesGroups is [admins]; allowed: unset, because type is EC2_LINUX"),
    invalid("EKS02", entry(), policy(), says="no policy for node, which is of type EC2_LINUX"),
    invalid("EKS02", entry("EC2_WINDOWS", kubernetesGroups=["a"]), says="type is EC2_WINDOWS", edge=True),
    invalid("EKS02", entry("LINUX"), says="type is LINUX; allowed: STANDARD"),
    invalid("EKS02", policy(scope={"type": "namespace"}), says="at least one namespace"),
    invalid("EKS02", cluster(), EFA_CLASS, says="cluster lets nobody in by aws-auth"),
    invalid("EKS02", cluster(), entry("STANDARD"), EFA_CLASS, says="a role with an access entry of type EC2_LINUX"),
    valid("EKS03", cluster()),
    valid("EKS03", cluster({PUBLIC: True, RANGES: ["203.0.113.0/24"]})),
    valid("EKS03", cluster({PUBLIC: True, RANGES: ["203.0.113.7/32", "198.51.100.0/24"]})),
    valid("EKS03", cluster({RANGES: ["203.0.113.0/24"]})),
    valid("EKS03", cluster({PUBLIC: True, RANGES: ["0.0.0.0/1"]}), edge=True),
    invalid("EKS03", cluster({PUBLIC: True}), says="publicAccessCidrs is unset (EKS takes 0.0.0.0/0)"),
    invalid("EKS03", cluster({PUBLIC: b.DELETE}), says="publicAccessCidrs is unset"),
    invalid("EKS03", cluster({PUBLIC: True, RANGES: ["203.0.113.0/24", "0.0.0.0/0"]}), says="publicAccessCidrs[1] is 0.0.0.0/0"),
    # Ranges that are the whole internet together, and what all of it is beside private addresses.
    *(
        invalid("EKS03", cluster({PUBLIC: True, RANGES: ranges}), says=f"publicAccessCidrs[{place}] is {found}; allowed", edge=True)
        for ranges, place, found in (
            (["0.0.0.0/1", "128.0.0.0/1"], 0, "0.0.0.0/1, 128.0.0.0/1 (together the whole internet)"),
            (["10.0.0.0/8", "128.0.0.0/1", "0.0.0.0/1", "0.0.0.0/1"], 1, "128.0.0.0/1, 0.0.0.0/1, 0.0.0.0/1 (together the whole internet)"),
            (
                ["128.0.0.0/1", "0.0.0.0/2", "64.0.0.0/3", "96.0.0.0/3"],
                0,
                "128.0.0.0/1, 0.0.0.0/2, 64.0.0.0/3 and 1 more (together the whole internet)",
            ),
            (["203.0.113.0/24", "8000::/1", "::/1"], 1, "8000::/1, ::/1 (together the whole internet)"),
            (["2000::/3"], 0, "2000::/3 (the whole internet)"),
            (["0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3"], 0, "0.0.0.0/1, 128.0.0.0/2, 192.0.0.0/3 (together the whole internet)"),
            ([UNKNOWN, "128.0.0.0/1", "0.0.0.0/1"], 1, "128.0.0.0/1, 0.0.0.0/1 (together the whole internet)"),
            ([UNKNOWN, "::/0"], 1, "::/0"),
            (["10.0.0.7/32", "0.0.0.0/1", "128.0.0.0/1", "192.0.0.0/3"], 1, "0.0.0.0/1, 128.0.0.0/1 (together the whole internet)"),
        )
    ),
    *(
        valid("EKS03", cluster({PUBLIC: True, RANGES: ranges}), edge=True)
        for ranges in (
            ["0.0.0.0/1", "128.0.0.0/2"],
            ["0.0.0.0/1", "8000::/1"],
            ["0.0.0.0/1", "0.0.0.0/1"],
            ["2000::/4"],
            ["::/3", "4000::/2", "8000::/1"],
            ["0.0.0.0/1", "pl-0123"],
        )
    ),
    invalid("EKS03", cluster({PRIVATE: False}), says="endpointPrivateAccess is false"),
    invalid("EKS03", cluster({PRIVATE: b.DELETE}), says="unset (EKS takes false)"),
    invalid("EKS03", cluster({PUBLIC: True, RANGES: []}), says="unset (EKS takes 0.0.0.0/0)", edge=True),
    valid("EKS04", cluster()),
    valid("EKS04", cluster({"version": "1.35"})),
    valid("EKS04", cluster({"version": "1.37"})),
    valid("EKS04", cluster({"upgradePolicy/supportType": "EXTENDED"})),
    # Two days before the end of its standard support.
    valid("EKS04", cluster({"version": "1.34"}), edge=True),
    invalid("EKS04", cluster({"version": "1.33"}), says="1.33, whose standard support ended 2026-07-29; allowed: 1.34, 1.35, 1.36"),
    invalid("EKS04", cluster({"version": "1.32"}), says="ended 2026-03-23"),
    invalid("EKS04", cluster({"version": "1.12"}), says="version is 1.12;", edge=True),
    invalid("EKS04", cluster({"version": b.DELETE}), says="version is unset"),
    invalid("EKS04", cluster({"version": "latest"}), says="version is latest"),
    invalid("EKS04", cluster({"upgradePolicy": b.DELETE}), says="supportType is unset (EKS takes EXTENDED, at a surcharge)"),
    invalid("EKS04", cluster({"upgradePolicy/supportType": "standard"}), says="supportType is standard"),
    valid("EKS05", cluster()),
    valid("EKS05", cluster({"enabledClusterLogTypes": ["api", "audit", "authenticator", "controllerManager", "scheduler"]})),
    valid("EKS05", cluster({"encryptionConfig": {"resources": ["secrets"], "provider": {"keyArn": "arn"}}})),
    valid("EKS05", cluster({"name": "product"}), edge=True),
    valid("EKS05", cluster({"name": "prod", "deletionProtection": True})),
    invalid("EKS05", cluster({"enabledClusterLogTypes": ["kubelet"]}), says="enabledClusterLogTypes[0] is kubelet"),
    invalid("EKS05", cluster({"enabledClusterLogTypes": b.DELETE}), says="enabledClusterLogTypes is unset; allowed: audit"),
    invalid("EKS05", cluster({"enabledClusterLogTypes": ["api"]}), says="audit among them"),
    invalid("EKS05", cluster({"enabledClusterLogTypes": ["audit"]}), says="api and authenticator too", edge=True),
    invalid("EKS05", cluster({"encryptionConfig": {"resources": ["configmaps"]}}), says="allowed: [secrets]"),
    invalid("EKS05", cluster({"name": "train-prod"}), says="true for a cluster in production"),
    valid("EKS06", addon("vpc-cni")),
    valid("EKS06", addon("vpc-cni", "v1.18.5-eksbuild.1"), EFA_CLASS, edge=True),
    valid("EKS06", cluster(), addon("aws-ebs-csi-driver"), identity("ebs-csi-controller-sa"), AGENT),
    valid("EKS06", addon("aws-fsx-csi-driver", serviceAccountRoleArn="arn:aws:iam::123456789012:role/fsx")),
    valid("EKS06", identity("trainer")),
    valid("EKS06", addon("coredns", resolveConflictsOnUpdate="PRESERVE")),
    invalid("EKS06", addon("vpc-cni", None), says="addonVersion is unset"),
    invalid("EKS06", addon("coredns", resolveConflictsOnUpdate="OVERWRITE"), says="undoes changes made in the cluster"),
    invalid("EKS06", addon("vpc-cni", "v1.18.4-eksbuild.9"), EFA_CLASS, says="v1.18.5 or later, because p5-class", edge=True),
    invalid("EKS06", addon("aws-efs-csi-driver"), says="a Pod Identity association of efs-csi-controller-sa"),
    invalid("EKS06", addon("aws-ebs-csi-driver"), identity("fsx-csi-controller-sa"), says="of ebs-csi-controller-sa"),
    invalid("EKS06", cluster(), identity("trainer"), says="without the agent"),
    valid("EKS07", cluster()),
    valid("EKS07", cluster({SERVICES: "172.20.0.0/16"}), vpc("10.0.0.0/16")),
    valid("EKS07", cluster({SERVICES: "10.0.0.0/12"}), edge=True),
    valid("EKS07", cluster({SERVICES: "192.168.1.0/24"}), edge=True),
    valid("EKS07", cluster({"name": "a" * 100}), edge=True),
    valid("EKS07", cluster({SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED), subnet("us-east-1a", "private-a"), subnet("us-east-1b", "private-b")),
    valid("EKS07", cluster({"vpcConfig/securityGroupIds": [f"sg-{n}" for n in range(5)]}), edge=True),
    valid("EKS07", cluster({"name": b.DELETE})),
    invalid("EKS07", cluster({SERVICES: "10.0.64.0/20"}), vpc("10.0.0.0/16"), says="a block outside 10.0.0.0/16, the range of vpc"),
    invalid("EKS07", cluster({SERVICES: "8.8.0.0/16"}), says="a private block"),
    invalid("EKS07", cluster({SERVICES: "10.0.0.0/11"}), says="between /12 and /24", edge=True),
    invalid("EKS07", cluster({SERVICES: "10.0.0.0/25"}), says="between /12 and /24", edge=True),
    invalid("EKS07", cluster({SERVICES: "services"}), says="serviceIpv4Cidr is services"),
    invalid("EKS07", cluster({SUBNETS: ["subnet-1"]}), says="1 subnets", edge=True),
    invalid("EKS07", cluster({"vpcConfig/securityGroupIds": [f"sg-{n}" for n in range(6)]}), says="6 groups", edge=True),
    invalid("EKS07", cluster({"name": "-training"}), says="name is -training"),
    invalid("EKS07", cluster({"name": "a" * 101}), says="up to 100 letters", edge=True),
    invalid(
        "EKS07",
        cluster({SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED),
        subnet("us-east-1a", "private-a"),
        subnet("us-east-1a", "private-b"),
        says="subnets in us-east-1a only",
    ),
    valid("EKS08", group()),
    valid("EKS08", group("AL2023_x86_64_NEURON", ["trn1.32xlarge"])),
    valid("EKS08", group("BOTTLEROCKET_x86_64_NVIDIA_FIPS"), edge=True),
    valid("EKS08", group("AL2023_x86_64_STANDARD", ["m7i.2xlarge"], **TEMPLATED), template(name="t")),
    valid("EKS08", group("AL2023_ARM_64_STANDARD", ["c7g.4xlarge"])),
    valid("EKS08", group(None, [], **TEMPLATED), template(imageId="ami-1", instanceType="p5.48xlarge", userData=JOINS)),
    valid("EKS08", group("AL2_x86_64_GPU"), cluster({"version": "1.32"}), edge=True),
    invalid("EKS08", group("AL2023_x86_64_STANDARD"), says="_NVIDIA or _GPU, because p5.48xlarge has accelerators"),
    invalid("EKS08", group(None), says="unset (EKS takes AL2023_x86_64_STANDARD)"),
    invalid("EKS08", group("AL2023_x86_64_NVIDIA", ["trn1.32xlarge"]), says="_NEURON"),
    invalid("EKS08", group("AL2023_x86_64_STANDARD", ["c7g.4xlarge"]), says="an image for the processor of c7g.4xlarge"),
    invalid("EKS08", group("AL2023_ARM_64_STANDARD", ["m7i.2xlarge"]), says="the processor of m7i.2xlarge"),
    invalid("EKS08", group(diskSize=200, **TEMPLATED), template(name="t"), says="diskSize is 200"),
    invalid("EKS08", group(**TEMPLATED), template(instanceType="p5.48xlarge"), says="names p5.48xlarge"),
    invalid("EKS08", group(types=[], **TEMPLATED), template(imageId="ami-1", instanceType="p5.48xlarge"), says="names an image"),
    invalid("EKS08", group("AL2023_x86_64_STANDARD", []), says="instanceTypes is unset (EKS takes t3.medium)"),
    invalid("EKS08", group("AL2_x86_64_GPU"), cluster({"version": "1.33"}), says="Amazon Linux 2 ends with 1.32", edge=True),
    valid("EKS08", group(None, **TEMPLATED), template(imageId="ami-1", userData=JOINS)),
    valid("EKS08", group("CUSTOM", **TEMPLATED), template(imageId="ami-1", userData=JOINS)),
    valid("EKS08", group("CUSTOM", ["c7g.4xlarge"], **ELSEWHERE)),
    valid("EKS08", group("CUSTOM", **ELSEWHERE)),
    valid("EKS08", group(None, [], **ELSEWHERE)),
    valid("EKS08", group(None, **ELSEWHERE), edge=True),
    valid("EKS08", group("AL2023_x86_64_STANDARD", [], **TEMPLATED), template(instanceRequirements={"vcpuCount": {"min": 8}})),
    valid("EKS08", group("AL2_x86_64_GPU", version="1.32"), cluster({"version": "1.33"}), edge=True),
    invalid("EKS08", group("AL2023_x86_64_STANDARD", **ELSEWHERE), says="because p5.48xlarge has accelerators", edge=True),
    invalid("EKS08", group(None, [], **TEMPLATED), template(instanceType="p5.48xlarge"), says="unset (EKS takes AL2023_x86_64_STANDARD)"),
    invalid("EKS08", group(remoteAccess={"ec2SshKey": "ops"}, **TEMPLATED), template(name="t"), says="remoteAccess is {ec2SshKey: ops}"),
    invalid("EKS08", group(None, ["c7g.4xlarge"]), says="unset (EKS takes AL2023_x86_64_STANDARD); allowed: an image for the processor"),
    invalid("EKS08", group("AL2_x86_64_GPU", version="1.33"), says="and this is 1.33"),
    # A template with an image of its own leaves no room for a version of EKS's.
    invalid("EKS08", group(None, version="1.36", **TEMPLATED), template(imageId="ami-1"), says="version is 1.36; allowed: unset"),
    invalid(
        "EKS08",
        group("CUSTOM", releaseVersion="1.36.1-20261120", **TEMPLATED),
        template(imageId="ami-1"),
        says="releaseVersion is 1.36.1-20261120; allowed: unset, because template template names an image",
    ),
    valid("EKS08", group(version="1.36", releaseVersion="1.36.1-20261120", **TEMPLATED), template(name="t"), edge=True),
    # What EKS refuses in the template of a group, and takes in that of an Auto Scaling group.
    *(
        case
        for setting, says in _NOT_OF_GROUPS
        for case in (
            invalid("EKS08", group(**TEMPLATED), template(**setting), says=says),
            valid("EKS08", scaling_group(), template(**setting), edge=True),
        )
    ),
    valid("EKS08", group(**TEMPLATED), template(instanceMarketOptions={"marketType": "capacity-block"}), edge=True),
    valid("EKS08", group(**TEMPLATED), template(hibernationOptions={"configured": False}), edge=True),
    *(valid("EKS08", group(scalingConfig={"minSize": least, "desiredSize": 2, "maxSize": 2}), edge=True) for least in (0, 2)),
    valid("EKS08", group(scalingConfig={"minSize": "4", "desiredSize": "4"})),
    invalid(
        "EKS08",
        group(scalingConfig={"minSize": 4, "desiredSize": 2, "maxSize": 5}),
        says="scalingConfig.desiredSize is 2; allowed: at least minSize, 4",
    ),
    invalid("EKS08", group(scalingConfig={"minSize": 0, "desiredSize": 3, "maxSize": 2}), says="allowed: at most maxSize, 2", edge=True),
    valid("EKS08", group(**TEMPLATED), template(networkInterfaces=[{"deviceIndex": 0, "securityGroups": ["sg-1"]}])),
    invalid("EKS07", cluster({SERVICES: "172.20.0.0/16", FAMILY: "ipv6"}), says="allowed: unset, because ipFamily is ipv6"),
    valid("EKS07", cluster({SERVICES: "172.20.0.0/16", FAMILY: "ipv4"}), edge=True),
    valid("EKS07", cluster({FAMILY: "ipv6"})),
    valid("EKS02", MADE_ROLE, MADE_ENTRY, policy("admin")),
    *(
        invalid("EKS02", MADE_ROLE, MADE_ENTRY, policy_of(*sources), says="no policy for node, which is of type EC2_LINUX")
        for sources in (["node"], ["role", "node"], ["role"])
    ),
    valid("EKS02", MADE_ROLE, replace(MADE_ROLE, name="admin"), MADE_ENTRY, policy_of("admin"), edge=True),
    # Another role, by the name that it is given; a policy takes its role from the entry that is made for it.
    valid("EKS02", replace(MADE_ROLE, properties={"name": "nodes"}), MADE_ENTRY, policy("admin")),
    valid("EKS02", entry("STANDARD", "admin"), entry(), policy_of("admin")),
    valid("EKS02", MADE_ROLE, entry("STANDARD", "admin"), MADE_ENTRY, policy_of("admin"), edge=True),
    valid("EKS02", MADE_ROLE, entry(), policy_of("role")),
    # Entries and policies are those of one cluster.
    valid("EKS02", entry(clusterName="a"), in_cluster(policy(), "b")),
    valid("EKS02", entry(clusterName="a"), in_cluster(policy_of("node"), "b")),
    valid("EKS02", TRAINING, SERVING, of_cluster(entry(), "training"), of_cluster(policy(), "serving")),
    valid("EKS02", TRAINING, of_cluster(entry(), "training"), in_cluster(policy(), "serving"), edge=True),
    valid("EKS02", TRAINING, in_cluster(entry(), "serving"), of_cluster(policy_of(), "training"), edge=True),
    invalid("EKS02", entry(clusterName="a"), in_cluster(policy(), "a"), says="no policy for node, which is of type EC2_LINUX", edge=True),
    invalid("EKS02", entry(clusterName="a"), in_cluster(policy_of("node"), "a"), says="no policy for node, which is of type EC2_LINUX"),
    invalid(
        "EKS02",
        *(TRAINING, SERVING, of_cluster(entry(), "training"), of_cluster(policy(), "training")),
        says="no policy for node, which is of type EC2_LINUX",
    ),
    invalid("EKS05", cluster({"tags": {"environment": "production"}}), says="true for a cluster in production"),
    valid("EKS06", cluster(), addon("aws-ebs-csi-driver", **ASSOCIATED), AGENT),
    valid("EKS06", addon("vpc-cni", "v1.18.4-eksbuild.9"), template(networkInterfaces=[{"interfaceType": "efa"}]), edge=True),
    invalid("EKS06", addon("vpc-cni", "v1.18.4-eksbuild.9"), EFA_TEMPLATE, says="because fabric has efa-only interfaces"),
    invalid("EKS06", cluster(), addon("aws-ebs-csi-driver", **ASSOCIATED), says="podIdentityAssociations is without the agent"),
    invalid("EKS06", cluster(), identity("trainer"), addon("vpc-cni"), says="serviceAccount is without the agent"),
    valid(
        "EKS07",
        cluster({SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED),
        *(Thing(type=tokens.SUBNET, name=f"private-{zone}", properties={"availabilityZoneId": f"use1-az{zone}"}) for zone in "ab"),
    ),
    valid(
        "EKS07",
        cluster({SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED),
        *(Thing(type=tokens.SUBNET, name=f"private-{zone}", properties={"cidrBlock": "10.0.0.0/20"}) for zone in "ab"),
    ),
    invalid(
        "EKS07",
        cluster(),
        *(
            Thing(type=tokens.SUBNET, name=f"private-{n}", properties={"id": f"subnet-{n}", "availabilityZone": "us-east-1a"})
            for n in (1, 2)
        ),
        says="subnets in us-east-1a only",
    ),
    # AWS clears the host bits of a range; the range of the other VPC comes from a pool.
    invalid("EKS07", cluster({SERVICES: "10.0.64.0/20"}), vpc(None, "pooled"), vpc("10.0.5.0/16"), says="the range of vpc"),
    # EKS makes the entry of a managed node group's role itself.
    valid("EKS02", cluster(), nodes_role("arn:aws:iam::123456789012:role/node"), EFA_CLASS),
    valid("EKS02", cluster(), nodes_role("arn:aws:iam::123456789012:role/cluster/node"), EFA_CLASS, edge=True),
    valid("EKS02", cluster(), MADE_ROLE, nodes_role(UNKNOWN, "role"), with_role(EFA_CLASS, "spec/role", UNKNOWN, "role")),
    valid(
        "EKS02",
        cluster(),
        nodes_role("arn:aws:iam::123456789012:role/node"),
        b.node_class({"spec/role": b.DELETE, "spec/instanceProfile": "a"}),
    ),
    invalid(
        "EKS02", cluster(), nodes_role("arn:aws:iam::123456789012:role/system"), EFA_CLASS, says="spec.role is a role without an entry"
    ),
    valid(
        "EKS02", cluster(), nodes_role("arn:aws:iam::123456789012:role/nodes/node"), b.node_class({"spec/role": "nodes/node"}), edge=True
    ),
    valid("EKS02", cluster(), group(nodeRoleArn="arn:aws:iam::123456789012:role/node"), EFA_CLASS),
    # Both roles are made here, and they are two.
    invalid(
        "EKS02",
        cluster(),
        MADE_ROLE,
        replace(MADE_ROLE, name="system"),
        nodes_role("arn:aws:iam::123456789012:role/system", "system"),
        with_role(EFA_CLASS, "spec/role", "node", "role"),
        says="spec.role is a role without an entry",
    ),
    # What is not known of one resource hides nothing of another.
    invalid("EKS02", entry(kubernetesGroups=UNKNOWN), policy(), says="no policy for node, which is of type EC2_LINUX"),
    invalid(
        "EKS02",
        entry(),
        replace(policy_of(), name="made"),
        policy(),
        says="no policy for node, which is of type EC2_LINUX",
    ),
    invalid(
        "EKS02",
        cluster(),
        nodes_role("arn:aws:iam::123456789012:role/system"),
        replace(with_role(EFA_CLASS, "spec/role", UNKNOWN), name="other"),
        EFA_CLASS,
        says="p5-class: spec.role is a role without an entry",
    ),
    invalid(
        "EKS02", entry(), entry("STANDARD", "ops", kubernetesGroups=["system:masters"]), says="ops: kubernetesGroups[0] is system:masters"
    ),
    # What EKS takes as groups of an entry.
    *(
        invalid("EKS02", entry(kind, kubernetesGroups=["a"]), says=f"allowed: unset, because type is {kind}")
        for kind in ("HYBRID_LINUX", "HYPERPOD_LINUX")
    ),
    invalid("EKS02", entry("HYBRID_LINUX"), policy(), says="no policy for node, which is of type HYBRID_LINUX"),
    invalid("EKS02", entry("STANDARD", kubernetesGroups=["viewers", "system:masters"]), says="kubernetesGroups[1] is system:masters"),
    invalid("EKS02", entry(None, kubernetesGroups=["system:nodes"]), says="no group of Kubernetes itself"),
    valid("EKS02", entry("STANDARD", kubernetesGroups=["systems", "team:system:a"]), edge=True),
    # EKS takes major and minor, and nothing else.
    *(
        invalid("EKS04", cluster({"version": text}), says=f"version is {text}; allowed: major and minor alone", edge=text == "1.36.")
        for text in ("v1.36", "1.36.1", "1.32.5", "1", "1.036", "1.36.", "1.36-eks")
    ),
    # Nodes of EKS Auto Mode have the agent built in.
    valid("EKS06", cluster(AUTO), identity("trainer")),
    valid("EKS06", cluster(AUTO), identity("trainer"), group(), AGENT),
    invalid("EKS06", cluster({**AUTO, "computeConfig/enabled": False}), identity("trainer"), says="without the agent", edge=True),
    invalid("EKS06", cluster(AUTO), identity("trainer"), group(), says="on nodes that EKS Auto Mode does not make"),
    invalid("EKS06", cluster(AUTO), identity("trainer"), EFA_CLASS, says="on nodes that EKS Auto Mode does not make"),
    invalid("EKS06", addon("vpc-cni", None, addonVersion=""), says="unset (whatever is the default that day)", edge=True),
    valid("EKS06", addon("aws-mountpoint-s3-csi-driver"), identity("s3-csi-driver-sa")),
    invalid("EKS06", addon("aws-mountpoint-s3-csi-driver"), says="a Pod Identity association of s3-csi-driver-sa in kube-system"),
    invalid(
        "EKS06", addon("aws-ebs-csi-driver"), identity("ebs-csi-controller-sa", "default"), says="ebs-csi-controller-sa in kube-system"
    ),
    valid("EKS06", addon("aws-ebs-csi-driver", namespaceConfig={"namespace": "csi"}), identity("ebs-csi-controller-sa", "csi"), edge=True),
    # The VPC of the cluster is that of its subnets.
    valid(
        "EKS07",
        cluster({SERVICES: "172.20.0.0/16", SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED),
        *(*NETWORK, vpc("10.0.0.0/16", "main"), vpc("172.20.0.0/16", "other")),
    ),
    invalid(
        "EKS07",
        cluster({SERVICES: "10.0.64.0/20", SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED),
        *(*NETWORK, vpc("172.20.0.0/16", "other"), vpc("10.0.0.0/16", "main")),
        says="a block outside 10.0.0.0/16, the range of main",
    ),
    valid(
        "EKS07",
        cluster({SERVICES: "172.20.0.0/16"}),
        *MADE_NETWORK,
        made_vpc("10.0.0.0/16", 1, "main"),
        made_vpc("172.20.0.0/16", 2, "other"),
    ),
    invalid(
        "EKS07",
        cluster({SERVICES: "10.0.64.0/20"}),
        *(*MADE_NETWORK, made_vpc("10.0.0.0/8", 2, "other"), made_vpc("10.0.0.0/16", 1, "main")),
        says="a block outside 10.0.0.0/16, the range of main",
    ),
    invalid(
        "EKS07",
        cluster({SUBNETS: [UNKNOWN, UNKNOWN]}, ZONED),
        *(Thing(type=tokens.SUBNET, name=f"private-{name}", properties={"availabilityZoneId": "use1-az1"}) for name in "ab"),
        says="subnets in use1-az1 only",
    ),
    # The plain Bottlerocket has the drivers of Neuron, AL2's image with GPU has both.
    *(
        valid("EKS08", group(image, ["trn1.32xlarge"]), edge=True)
        for image in ("BOTTLEROCKET_x86_64", "BOTTLEROCKET_x86_64_FIPS", "AL2_x86_64_GPU")
    ),
    invalid("EKS08", group("BOTTLEROCKET_x86_64"), says="because p5.48xlarge has accelerators"),
    invalid("EKS08", group("BOTTLEROCKET_x86_64_NVIDIA", ["trn1.32xlarge"]), says="because trn1.32xlarge has accelerators"),
    valid("EKS08", group("AL2023_ARM_64_NVIDIA", ["p6e-gb200.36xlarge"])),
    invalid("EKS08", group("AL2023_x86_64_NVIDIA", ["p6e-gb200.36xlarge"]), says="an image for the processor of p6e-gb200.36xlarge"),
    invalid("EKS08", group("al2023_x86_64_nvidia"), says="amiType is al2023_x86_64_nvidia; allowed: AL2023_x86_64_NVIDIA", edge=True),
    invalid("EKS08", group("AL2023_x86_64_NVIDA", ["m7i.2xlarge"]), says="allowed: one of AL2_x86_64, "),
    invalid("EKS08", group("BOTTLEROCKET_x86_64_NEURON", ["trn1.32xlarge"]), says="amiType is BOTTLEROCKET_x86_64_NEURON"),
)

CASES = (*_CASES, *MANAGED, *TRUSTS, *FORMS)
