"""What AWS refuses, the emulator refuses, with AWS's own error code. Each row is one change of a request that is fine."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.emulated.landscape import (
    REGION,
    Clients,
    Network,
    cluster_request,
    lustre_request,
    make_cluster,
    make_network,
    make_role,
    unique,
)

pytestmark = pytest.mark.emulated


@pytest.fixture(scope="module")
def network(aws: Clients) -> Network:
    """One for all rows: nothing in this module deletes from it."""
    return make_network(aws)


def code_of(call: Callable[..., Any], /, **given: Any) -> str:
    """The error code that a call is answered with; fails the test where it succeeds."""
    with pytest.raises(ClientError) as caught:
        call(**given)
    return caught.value.response["Error"]["Code"]


THROUGHPUT = "InvalidPerUnitStorageThroughput"
AUTOMATIC = {"Mode": "AUTOMATIC"}

LUSTRE_REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("scratch with throughput", {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": 200}, {}, THROUGHPUT),
    ("no type is SCRATCH_1", {"DeploymentType": None}, {}, THROUGHPUT),
    ("persistent 2 without throughput", {"PerUnitStorageThroughput": None}, {}, THROUGHPUT),
    ("persistent 2 with 200", {"PerUnitStorageThroughput": 200}, {}, THROUGHPUT),
    ("persistent 1 SSD with 125", {"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 125}, {}, THROUGHPUT),
    ("unknown type", {"DeploymentType": "SCRATCH_3"}, {}, "BadRequest"),
    ("capacity off the grid", {}, {"StorageCapacity": 3600}, "BadRequest"),
    ("capacity 1300", {}, {"StorageCapacity": 1300}, "BadRequest"),
    ("scratch 1 off its grid", {"DeploymentType": "SCRATCH_1", "PerUnitStorageThroughput": None}, {"StorageCapacity": 4800}, "BadRequest"),
    ("HDD on persistent 2", {}, {"StorageType": "HDD"}, "BadRequest"),
    ("drive cache on SSD", {"DriveCacheType": "READ"}, {}, "BadRequest"),
    ("EFA without metadata", {"EfaEnabled": True}, {"StorageCapacity": 19200}, "BadRequest"),
    ("EFA off its grid", {"EfaEnabled": True, "MetadataConfiguration": AUTOMATIC}, {"StorageCapacity": 4800}, "BadRequest"),
    (
        "metadata on scratch",
        {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, "MetadataConfiguration": AUTOMATIC},
        {},
        "BadRequest",
    ),
    ("automatic with IOPS", {"MetadataConfiguration": {"Mode": "AUTOMATIC", "Iops": 1500}}, {}, "BadRequest"),
    ("odd IOPS", {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 5000}}, {}, "BadRequest"),
    ("import path on persistent 2", {"ImportPath": "s3://b"}, {}, "BadRequest"),
    (
        "import path elsewhere",
        {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, "ImportPath": "https://b"},
        {},
        "InvalidImportPath",
    ),
    (
        "export to another bucket",
        {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, "ImportPath": "s3://bucket", "ExportPath": "s3://other/x"},
        {},
        "InvalidExportPath",
    ),
    (
        "export without import",
        {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, "ExportPath": "s3://b/x"},
        {},
        "BadRequest",
    ),
    ("own key on scratch", {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None}, {"KmsKeyId": "key"}, "BadRequest"),
    (
        "backups on scratch",
        {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, "AutomaticBackupRetentionDays": 7},
        {},
        "BadRequest",
    ),
    ("backup time without retention", {"DailyAutomaticBackupStartTime": "05:00"}, {}, "BadRequest"),
    ("metadata on old Lustre", {"MetadataConfiguration": AUTOMATIC}, {"FileSystemTypeVersion": "2.12"}, "BadRequest"),
    ("tiering with capacity", {"PerUnitStorageThroughput": None}, {"StorageType": "INTELLIGENT_TIERING"}, "BadRequest"),
]


@pytest.mark.parametrize(("lustre", "changes", "code"), [row[1:] for row in LUSTRE_REFUSED], ids=[row[0] for row in LUSTRE_REFUSED])
def test_lustre_shapes_that_fsx_does_not_make(
    aws: Clients, network: Network, lustre: dict[str, Any], changes: dict[str, Any], code: str
) -> None:
    assert code_of(aws("fsx").create_file_system, **lustre_request(network, lustre, **changes)) == code


@pytest.mark.parametrize(
    ("lustre", "changes"),
    [
        ({}, {}),
        ({"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None}, {}),
        ({"DeploymentType": "SCRATCH_1", "PerUnitStorageThroughput": None}, {"StorageCapacity": 3600}),
        ({"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 100}, {"StorageCapacity": 2400}),
        (
            {"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 12, "DriveCacheType": "NONE"},
            {"StorageType": "HDD", "StorageCapacity": 6000},
        ),
        ({"PerUnitStorageThroughput": 1000, "EfaEnabled": True, "MetadataConfiguration": AUTOMATIC}, {"StorageCapacity": 4800}),
        ({"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 24000}}, {}),
        (
            {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, "ImportPath": "s3://bucket", "ExportPath": "s3://bucket/out"},
            {},
        ),
    ],
)
def test_lustre_shapes_that_fsx_makes_are_described_whole(
    aws: Clients, network: Network, lustre: dict[str, Any], changes: dict[str, Any]
) -> None:
    request = lustre_request(network, lustre, **changes)
    made = aws("fsx").create_file_system(**request)["FileSystem"]
    assert made["Lifecycle"] == "CREATING"
    found = aws("fsx").describe_file_systems(FileSystemIds=[made["FileSystemId"]])["FileSystems"][0]
    assert found["Lifecycle"] == "AVAILABLE"
    assert found["DNSName"] == f"{made['FileSystemId']}.fsx.{REGION}.amazonaws.com"
    kind = request["LustreConfiguration"]["DeploymentType"]
    mount = found["LustreConfiguration"]["MountName"]
    assert mount == "fsx" if kind == "SCRATCH_1" else len(mount) == 8
    assert found["LustreConfiguration"]["DeploymentType"] == kind
    assert ("KmsKeyId" in found) == kind.startswith("PERSISTENT")
    interface = aws("ec2").describe_network_interfaces(NetworkInterfaceIds=found["NetworkInterfaceIds"])["NetworkInterfaces"][0]
    assert (interface["SubnetId"], interface["Groups"][0]["GroupId"]) == (network.subnets[0], network.group)
    aws("fsx").delete_file_system(FileSystemId=made["FileSystemId"])


def test_lustre_takes_one_subnet_and_a_group_that_lets_lustre_through(aws: Clients, network: Network) -> None:
    ec2, create = aws("ec2"), aws("fsx").create_file_system
    closed = ec2.create_security_group(GroupName=unique("closed"), Description="no rules in", VpcId=network.vpc)["GroupId"]
    assert code_of(create, **lustre_request(network, SubnetIds=list(network.subnets[:2]))) == "BadRequest"
    assert code_of(create, **lustre_request(network, SubnetIds=["subnet-0123456789abcdef0"])) == "InvalidNetworkSettings"
    assert code_of(create, **lustre_request(network, SecurityGroupIds=[closed])) == "InvalidNetworkSettings"


def test_lustre_grows_but_does_not_shrink_and_keeps_its_mount_name(aws: Clients, network: Network) -> None:
    fsx = aws("fsx")
    made = fsx.create_file_system(**lustre_request(network, StorageCapacity=2400))["FileSystem"]
    identity = made["FileSystemId"]
    assert code_of(fsx.update_file_system, FileSystemId=identity, StorageCapacity=1200) == "BadRequest"
    assert code_of(fsx.update_file_system, FileSystemId=identity, StorageCapacity=3600) == "BadRequest"
    fsx.update_file_system(FileSystemId=identity, StorageCapacity=4800, LustreConfiguration={"PerUnitStorageThroughput": 500})
    found = fsx.describe_file_systems(FileSystemIds=[identity])["FileSystems"][0]
    assert (found["StorageCapacity"], found["LustreConfiguration"]["PerUnitStorageThroughput"]) == (4800, 500)
    assert found["LustreConfiguration"]["MountName"] == made["LustreConfiguration"]["MountName"]


def test_associations_do_not_overlap_and_are_eight_at_most(aws: Clients, network: Network) -> None:
    fsx = aws("fsx")
    parent = fsx.create_file_system(**lustre_request(network))["FileSystem"]["FileSystemId"]

    def associate(path: str, source: str, **given: Any) -> dict[str, Any]:
        return fsx.create_data_repository_association(FileSystemId=parent, FileSystemPath=path, DataRepositoryPath=source, **given)[
            "Association"
        ]

    first = associate("/ns1", "s3://bucket/one", S3={"AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}})
    assert fsx.describe_data_repository_associations(AssociationIds=[first["AssociationId"]])["Associations"][0]["Lifecycle"] == "AVAILABLE"
    assert code_of(associate, path="/ns1/ns2", source="s3://bucket/two") == "BadRequest"
    assert code_of(associate, path="/", source="s3://bucket/two") == "BadRequest"
    assert code_of(associate, path="/ns2", source="s3://bucket/one") == "BadRequest"
    assert code_of(associate, path="data", source="s3://bucket/two") == "BadRequest"
    assert code_of(associate, path="/ns2", source="bucket/two") == "BadRequest"
    for number in range(7):
        associate(f"/more{number}", f"s3://more/{number}")
    assert code_of(associate, path="/ninth", source="s3://more/ninth") == "ServiceLimitExceeded"
    updated = fsx.update_data_repository_association(AssociationId=first["AssociationId"], S3={"AutoImportPolicy": {"Events": ["NEW"]}})
    assert updated["Association"]["S3"] == {"AutoImportPolicy": {"Events": ["NEW"]}, "AutoExportPolicy": {"Events": ["NEW", "CHANGED"]}}
    fsx.delete_data_repository_association(AssociationId=first["AssociationId"])
    assert (
        code_of(fsx.describe_data_repository_associations, AssociationIds=[first["AssociationId"]]) == "DataRepositoryAssociationNotFound"
    )
    scratch = lustre_request(network, {"DeploymentType": "SCRATCH_1", "PerUnitStorageThroughput": None})
    parent = fsx.create_file_system(**scratch)["FileSystem"]["FileSystemId"]
    assert code_of(associate, path="/ns1", source="s3://bucket/three") == "UnsupportedOperation"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"ThroughputMode": "provisioned"}, "BadRequest"),
        ({"ThroughputMode": "elastic", "ProvisionedThroughputInMibps": 10}, "BadRequest"),
        ({"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 9000}, "ThroughputLimitExceeded"),
        ({"ThroughputMode": "turbo"}, "BadRequest"),
        ({"ThroughputMode": "elastic", "PerformanceMode": "maxIO"}, "BadRequest"),
        ({"KmsKeyId": "alias/x"}, "BadRequest"),
    ],
)
def test_efs_modes_that_do_not_go_together(aws: Clients, given: dict[str, Any], code: str) -> None:
    assert code_of(aws("efs").create_file_system, CreationToken=unique("efs"), **given) == code


def test_efs_has_one_mount_target_a_zone_and_access_points_of_four_levels(aws: Clients, network: Network) -> None:
    efs = aws("efs")
    identity = efs.create_file_system(CreationToken=unique("efs"), Encrypted=True, ThroughputMode="elastic")["FileSystemId"]
    efs.create_mount_target(FileSystemId=identity, SubnetId=network.subnets[0], SecurityGroups=[network.group])
    assert code_of(efs.create_mount_target, FileSystemId=identity, SubnetId=network.subnets[0]) == "MountTargetConflict"
    efs.create_mount_target(FileSystemId=identity, SubnetId=network.subnets[1])
    assert code_of(efs.create_access_point, FileSystemId=identity, RootDirectory={"Path": "/a/b/c/d/e"}) == "ValidationException"
    bad = {"Path": "/a", "CreationInfo": {"OwnerUid": 1, "OwnerGid": 1, "Permissions": "0999"}}
    assert code_of(efs.create_access_point, FileSystemId=identity, RootDirectory=bad) == "ValidationException"
    assert code_of(efs.delete_file_system, FileSystemId=identity) == "FileSystemInUse"
    efs.update_file_system(FileSystemId=identity, ThroughputMode="provisioned", ProvisionedThroughputInMibps=64)
    found = efs.describe_file_systems(FileSystemId=identity)["FileSystems"][0]
    assert (found["ThroughputMode"], found["ProvisionedThroughputInMibps"], found["NumberOfMountTargets"]) == ("provisioned", 64.0, 2)


def _vpc_config(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda request: request | {"resourcesVpcConfig": request["resourcesVpcConfig"] | changes}


CLUSTER_REFUSED: list[tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = [
    ("one subnet", lambda request: _vpc_config(subnetIds=request["resourcesVpcConfig"]["subnetIds"][:1])(request)),
    ("no way in", _vpc_config(endpointPrivateAccess=False, endpointPublicAccess=False)),
    ("unknown group", _vpc_config(securityGroupIds=["sg-0123456789abcdef0"])),
    ("old version", lambda request: request | {"version": "1.12"}),
    ("unknown mode", lambda request: request | {"accessConfig": {"authenticationMode": "BOTH"}}),
    ("no such role", lambda request: request | {"roleArn": "arn:aws:iam::123456789012:role/absent"}),
    ("services in the VPC", lambda request: request | {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.0.0.0/16"}}),
    ("public services", lambda request: request | {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "8.0.0.0/16"}}),
    ("unknown log", lambda request: request | {"logging": {"clusterLogging": [{"types": ["kubelet"], "enabled": True}]}}),
]


@pytest.mark.parametrize("change", [row[1] for row in CLUSTER_REFUSED], ids=[row[0] for row in CLUSTER_REFUSED])
def test_clusters_that_eks_does_not_make(aws: Clients, network: Network, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    assert code_of(aws("eks").create_cluster, **change(cluster_request(aws, network))) == "InvalidParameterException"


def test_efa_interfaces_are_held_against_the_instance_type_at_launch(aws: Clients, network: Network) -> None:
    ec2 = aws("ec2")
    image = ec2.describe_images()["Images"][0]["ImageId"]

    def interfaces(number: int) -> list[dict[str, Any]]:
        return [
            {"DeviceIndex": min(card, 1), "NetworkCardIndex": card, "InterfaceType": "efa", "SubnetId": network.subnets[0]}
            for card in range(number)
        ]

    def launch(kind: str, nics: list[dict[str, Any]]) -> Any:
        return ec2.run_instances(ImageId=image, InstanceType=kind, MinCount=1, MaxCount=1, NetworkInterfaces=nics)

    launch("p5.48xlarge", interfaces(32))
    launch("p4d.24xlarge", interfaces(4))
    assert code_of(launch, kind="p4d.24xlarge", nics=interfaces(5)) == "AttachmentLimitExceeded"
    assert code_of(launch, kind="g6.xlarge", nics=interfaces(1)) == "InvalidParameterCombination"
    primary = [{"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa-only"}]
    template = {"LaunchTemplateName": unique("template"), "LaunchTemplateData": {"NetworkInterfaces": primary}}
    assert code_of(ec2.create_launch_template, **template) == "InvalidParameterCombination"
    twice = [{"DeviceIndex": 0, "InterfaceType": "efa"}, {"DeviceIndex": 0, "InterfaceType": "efa"}]
    assert code_of(ec2.create_launch_template, **template | {"LaunchTemplateData": {"NetworkInterfaces": twice}}) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"Strategy": "packed"}, "InvalidParameterValue"),
        ({"Strategy": "cluster", "PartitionCount": 3}, "InvalidParameterCombination"),
        ({"Strategy": "partition", "PartitionCount": 8}, "InvalidParameterValue"),
        ({"Strategy": "cluster", "SpreadLevel": "rack"}, "InvalidParameterCombination"),
        ({"Strategy": "spread", "SpreadLevel": "host"}, "InvalidParameterValue"),
        ({}, "MissingParameter"),
    ],
)
def test_placement_groups_that_ec2_does_not_make(aws: Clients, given: dict[str, Any], code: str) -> None:
    names = {"GroupName": unique("group")} if given else {}
    assert code_of(aws("ec2").create_placement_group, **names, **given) == code


def test_access_entries_need_the_right_mode_type_and_scope(aws: Clients, network: Network) -> None:
    eks, role = aws("eks"), make_role(aws)
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    old = make_cluster(aws, network, accessConfig={"authenticationMode": "CONFIG_MAP"})
    assert code_of(eks.create_access_entry, clusterName=old, principalArn=role) == "InvalidRequestException"
    new = make_cluster(aws, network)
    entry = {"clusterName": new, "principalArn": role}
    assert code_of(eks.create_access_entry, **entry, type="EC2_LINUX", kubernetesGroups=["x"]) == "InvalidParameterException"
    assert code_of(eks.create_access_entry, **entry, kubernetesGroups=["system:masters"]) == "InvalidParameterException"
    eks.create_access_entry(**entry)
    assert code_of(eks.create_access_entry, **entry) == "ResourceInUseException"
    assert code_of(eks.associate_access_policy, **entry, policyArn=policy, accessScope={"type": "namespace"}) == "InvalidParameterException"
    wrong = policy.replace("ClusterAdmin", "Root")
    assert code_of(eks.associate_access_policy, **entry, policyArn=wrong, accessScope={"type": "cluster"}) == "InvalidParameterException"
    eks.associate_access_policy(**entry, policyArn=policy, accessScope={"type": "cluster"})
    assert eks.list_associated_access_policies(**entry)["associatedAccessPolicies"][0]["policyArn"] == policy
    back = {"name": new, "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}}
    assert code_of(eks.update_cluster_config, **back) == "InvalidRequestException"


def test_pod_identity_needs_a_role_that_trusts_it_and_one_service_account(aws: Clients, network: Network) -> None:
    eks, cluster = aws("eks"), make_cluster(aws, network)
    account = {"clusterName": cluster, "namespace": "kube-system", "serviceAccount": "fsx-csi-controller-sa"}
    assert code_of(eks.create_pod_identity_association, **account, roleArn=make_role(aws)) == "InvalidParameterException"
    role = make_role(aws, "pods.eks.amazonaws.com")
    made = eks.create_pod_identity_association(**account, roleArn=role)["association"]
    assert code_of(eks.create_pod_identity_association, **account, roleArn=role) == "ResourceInUseException"
    assert eks.list_pod_identity_associations(clusterName=cluster)["associations"][0]["associationId"] == made["associationId"]


def test_a_node_group_in_a_cluster_placement_group_over_zones_is_made_but_not_updated(aws: Clients, network: Network) -> None:
    ec2, eks = aws("ec2"), aws("eks")
    group, name = unique("group"), unique("template")
    ec2.create_placement_group(GroupName=group, Strategy="cluster")
    ec2.create_launch_template(
        LaunchTemplateName=name, LaunchTemplateData={"InstanceType": "p5.48xlarge", "Placement": {"GroupName": group}}
    )
    cluster, role = make_cluster(aws, network, version="1.35"), make_role(aws)

    def outcome(subnets: list[str]) -> str:
        node_group = {"clusterName": cluster, "nodegroupName": unique("nodes")}
        eks.create_nodegroup(**node_group, subnets=subnets, nodeRole=role, launchTemplate={"name": name})
        assert eks.describe_nodegroup(**node_group)["nodegroup"]["status"] == "ACTIVE"
        update = eks.update_nodegroup_version(**node_group)["update"]["id"]
        return eks.describe_update(name=cluster, updateId=update, nodegroupName=node_group["nodegroupName"])["update"]["status"]

    assert outcome(list(network.subnets)) == "Failed"
    assert outcome([network.subnets[0]]) == "Successful"


@pytest.mark.parametrize(
    "change",
    [
        {"amiType": "AL2_x86_64"},
        {"version": "1.37"},
        {"capacityType": "CHEAP"},
        {"capacityType": "CAPACITY_BLOCK"},
        {"scalingConfig": {"minSize": 2, "maxSize": 1, "desiredSize": 2}},
        {"launchTemplate": {"name": "absent"}},
        {"nodeRole": "arn:aws:iam::123456789012:role/absent"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_node_groups_that_eks_does_not_make(aws: Clients, network: Network, change: dict[str, Any]) -> None:
    request = {
        "clusterName": make_cluster(aws, network),
        "nodegroupName": unique("nodes"),
        "subnets": [network.subnets[0]],
        "nodeRole": make_role(aws),
    }
    assert code_of(aws("eks").create_nodegroup, **request | change) == "InvalidParameterException"


def test_addons_are_of_known_name_and_version(aws: Clients, network: Network) -> None:
    eks, cluster = aws("eks"), make_cluster(aws, network)
    versions = eks.describe_addon_versions(addonName="vpc-cni", kubernetesVersion="1.36")["addons"][0]["addonVersions"]
    assert (
        code_of(eks.create_addon, clusterName=cluster, addonName="vpc-cni", addonVersion="v0.0.1-eksbuild.1") == "InvalidParameterException"
    )
    assert code_of(eks.create_addon, clusterName=cluster, addonName="no-such-addon") == "InvalidParameterException"
    made = eks.create_addon(clusterName=cluster, addonName="vpc-cni", addonVersion=versions[-1]["addonVersion"])["addon"]
    assert made["status"] == "CREATING"
    eks.update_addon(clusterName=cluster, addonName="vpc-cni", addonVersion=versions[0]["addonVersion"])
    found = eks.describe_addon(clusterName=cluster, addonName="vpc-cni")["addon"]
    assert (found["status"], found["addonVersion"]) == ("ACTIVE", versions[0]["addonVersion"])
