"""The cluster: only access entries open it, everything is pinned, and nodes come when what they need is there."""

import json

import pulumi
import pytest

from infra import labels, versions
from infra.cluster import EksCluster, EksClusterArgs
from infra.cluster.addons import addon_configuration
from infra.cluster.eks import refuse_creator_admin
from tests.recording import record
from tests.unit.infra.builders import platform, settings

pytestmark = pytest.mark.unit

ADDON = "aws:eks/addon:Addon"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
ASSOCIATION = "aws:eks/podIdentityAssociation:PodIdentityAssociation"


def test_the_cluster_takes_access_entries_only_and_answers_in_the_vpc_only():
    inputs = platform().one("eks:index:Cluster").inputs
    assert inputs["authenticationMode"] == "API"
    assert (inputs["endpointPrivateAccess"], inputs["endpointPublicAccess"]) == (True, False)
    assert inputs["version"] == versions.KUBERNETES
    assert inputs["upgradePolicy"] == {"supportType": "STANDARD"}
    assert "publicAccessCidrs" not in inputs


def test_the_component_makes_nothing_that_we_pin_ourselves():
    inputs = platform().one("eks:index:Cluster").inputs
    assert inputs["skipDefaultNodeGroup"]
    assert inputs["skipDefaultSecurityGroups"]
    assert not inputs["bootstrapSelfManagedAddons"]
    assert inputs["useDefaultVpcCni"]
    assert not inputs["createOidcProvider"]
    assert [inputs[f"{addon}AddonOptions"]["enabled"] for addon in ("kubeProxy", "coredns")] == [False, False]


def test_public_access_is_for_named_ranges():
    found = settings(lambda raw: raw["cluster"].update(endpoint={"publicCidrs": ["198.51.100.0/24"]})).cluster
    recording = record(lambda: EksCluster("c", EksClusterArgs(settings=found, vpc_id="vpc-1", subnet_ids=["subnet-1"])))
    inputs = recording.one("eks:index:Cluster").inputs
    assert (inputs["endpointPublicAccess"], inputs["publicAccessCidrs"]) == (True, ["198.51.100.0/24"])


def test_the_cluster_carries_the_transform_against_its_creator_s_rights():
    assert platform().one("eks:index:Cluster").num_transforms == 1


def transformed(type_, props):
    args = pulumi.ResourceTransformArgs(custom=True, type_=type_, name="c", props=props, opts=pulumi.ResourceOptions())
    return refuse_creator_admin(args)


@pytest.mark.parametrize("access", [{"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}, None])
def test_the_creator_gets_no_rights(access):
    got = {}

    def program():
        result = transformed("aws:eks/cluster:Cluster", {"name": "c", **({"accessConfig": access} if access else {})})
        assert result is not None
        pulumi.Output.from_input(result.props["accessConfig"]).apply(got.update)
        assert result.props["name"] == "c"

    record(program)
    assert got["bootstrapClusterCreatorAdminPermissions"] is False
    assert got.get("authenticationMode") == (access or {}).get("authenticationMode")


def test_the_transform_leaves_other_resources_as_they_are():
    assert transformed("aws:iam/role:Role", {}) is None


def test_nodes_wait_for_network_plug_in_and_way_out_and_dns_waits_for_nodes():
    recording = platform()
    (nodes,) = recording.of_type(NODE_GROUP)
    addons = {entry.inputs["addonName"]: entry for entry in recording.of_type(ADDON)}
    for before in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent"):
        assert recording.waits_for(nodes, addons[before]), before
    for after in ("coredns", "aws-fsx-csi-driver"):
        assert recording.waits_for(addons[after], nodes), after
    assert all(recording.waits_for(nodes, route) for route in recording.of_type("aws:ec2/route:Route") if "-private-" in route.name)


def test_add_ons_that_call_aws_have_roles_of_their_own_before_they_start():
    recording = platform()
    accounts = {(entry.inputs["namespace"], entry.inputs["serviceAccount"]): entry for entry in recording.of_type(ASSOCIATION)}
    for addon, account in [
        ("vpc-cni", "aws-node"),
        ("aws-ebs-csi-driver", "ebs-csi-controller-sa"),
        ("aws-efs-csi-driver", "efs-csi-controller-sa"),
        ("aws-efs-csi-driver", "efs-csi-node-sa"),
        ("aws-fsx-csi-driver", "fsx-csi-controller-sa"),
    ]:
        (made,) = [entry for entry in recording.of_type(ADDON) if entry.inputs["addonName"] == addon]
        assert recording.waits_for(made, accounts["kube-system", account]), account


@pytest.mark.parametrize("addon", ["aws-ebs-csi-driver", "aws-efs-csi-driver", "aws-fsx-csi-driver"])
def test_csi_nodes_run_on_every_pool(addon):
    tolerated = {toleration["key"] for toleration in addon_configuration(addon)["node"]["tolerations"]}
    assert tolerated >= {taint["key"] for kind in ("nvidia", "neuron") for taint in labels.pool_taints(kind)}


def test_no_add_on_overwrites_what_it_did_not_make():
    assert {entry.inputs["resolveConflictsOnCreate"] for entry in platform().of_type(ADDON)} == {"NONE"}


def test_system_nodes_are_closed_encrypted_and_pinned():
    recording = platform()
    template = recording.one("aws:ec2/launchTemplate:LaunchTemplate").inputs
    assert template["metadataOptions"] == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1}
    assert template["blockDeviceMappings"][0]["ebs"]["encrypted"] == "true"
    assert template["blockDeviceMappings"][0]["ebs"]["volumeType"] == "gp3"
    group = recording.one(NODE_GROUP).inputs
    assert group["releaseVersion"] == versions.AL2023_NODE_GROUP_RELEASE
    assert group["launchTemplate"]["version"] == "1"
    assert "diskSize" not in group, "EKS refuses it beside a launch template"
    assert group["labels"][labels.POOL] == "system"


def test_administrators_are_entries_with_the_cluster_admin_policy():
    recording = platform()
    entry = recording.one("aws:eks/accessEntry:AccessEntry", "trainyard-access-admin").inputs
    assert (entry["principalArn"], entry["type"]) == ("arn:aws:iam::123456789012:role/admin", "STANDARD")
    policy = recording.one("aws:eks/accessPolicyAssociation:AccessPolicyAssociation").inputs
    assert policy["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def test_karpenter_s_nodes_join_by_an_entry_without_groups():
    entry = platform().one("aws:eks/accessEntry:AccessEntry", "trainyard-karpenter-node").inputs
    assert entry["type"] == "EC2_LINUX"
    assert "kubernetesGroups" not in entry


def test_pod_roles_are_for_pods_alone():
    roles = {entry.name: json.loads(entry.inputs["assumeRolePolicy"]) for entry in platform().of_type("aws:iam/role:Role")}
    nodes = {name for name, trust in roles.items() if "ec2.amazonaws.com" in str(trust)}
    assert nodes == {"trainyard-base-system", "trainyard-karpenter-node"}
    assert all("pods.eks.amazonaws.com" in str(trust) for name, trust in roles.items() if name not in nodes)
