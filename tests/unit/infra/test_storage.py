"""Storage: file systems beside the nodes that use them, reachable, and mounted by volumes that say all they have to."""

import json

import pytest

from infra.settings import LustreSettings
from infra.storage import Efs, EfsArgs, Lustre, LustreArgs
from infra.storage.lustre import shape
from tests.recording import record
from tests.unit.infra.builders import platform, settings

pytestmark = pytest.mark.unit

INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
SUBNETS = {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b", "us-east-1c": "subnet-c"}
COMMON = {"zone": "us-east-1a", "storageCapacityGib": 1200}
KINDS = {
    "SCRATCH_2": {**COMMON, "deploymentType": "SCRATCH_2"},
    "PERSISTENT_1": {**COMMON, "deploymentType": "PERSISTENT_1", "perUnitStorageThroughput": 100},
    "PERSISTENT_2": {**COMMON, "deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 250, "metadataIops": 1500},
}


def lustre_settings(raw) -> LustreSettings:
    found = settings(lambda all_: all_["storage"].update(lustre=raw)).storage.lustre
    assert found is not None
    return found


def lustre(raw):
    args = LustreArgs(settings=lustre_settings(raw), vpc_id="vpc-1", subnet_ids=SUBNETS, node_security_group_id="sg-nodes", protect=False)
    return record(lambda: Lustre("fs", args))


OWN = {
    "SCRATCH_2": set(),
    "PERSISTENT_1": {"storage_type", "per_unit_storage_throughput", "automatic_backup_retention_days", "copy_tags_to_backups"},
    "PERSISTENT_2": {
        "storage_type", "per_unit_storage_throughput", "automatic_backup_retention_days", "copy_tags_to_backups", "metadata_configuration",
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_lustre_writes_its_own_fields_and_no_other(kind):
    assert set(shape(lustre_settings(KINDS[kind]))) == OWN[kind]


# Neither what the keys above set nor what comes from the zone: what is written although nobody said it.
NOT_DEFAULTS = {"subnetIds", "securityGroupIds", "tags", "deploymentType", "storageCapacity", "perUnitStorageThroughput"}
DEFAULTS = {"fileSystemTypeVersion": "2.15", "dataCompressionType": "LZ4"}
PERSISTENT = {**DEFAULTS, "storageType": "SSD", "automaticBackupRetentionDays": 7, "copyTagsToBackups": True}


@pytest.mark.parametrize(
    ("kind", "defaults"),
    [
        ("SCRATCH_2", DEFAULTS),
        ("PERSISTENT_1", PERSISTENT),
        ("PERSISTENT_2", {**PERSISTENT, "metadataConfiguration": {"mode": "AUTOMATIC"}}),
    ],
)
def test_what_lustre_s_settings_leave_out_is_written_as_documented(kind, defaults):
    bare = {key: value for key, value in KINDS[kind].items() if key != "metadataIops"}
    inputs = lustre(bare).one(FILE_SYSTEM).inputs
    assert {key: value for key, value in inputs.items() if key not in NOT_DEFAULTS} == defaults


def test_a_file_system_without_backups_has_no_tags_to_copy_to_them():
    inputs = lustre({**KINDS["PERSISTENT_2"], "backupRetentionDays": 0, "compression": "NONE"}).one(FILE_SYSTEM).inputs
    assert (inputs["automaticBackupRetentionDays"], inputs["copyTagsToBackups"], inputs["dataCompressionType"]) == (0, False, "NONE")


@pytest.mark.parametrize("kind", KINDS)
def test_lustre_stands_in_the_subnet_of_its_zone_behind_a_group_of_its_own(kind):
    inputs = lustre(KINDS[kind]).one(FILE_SYSTEM).inputs
    assert inputs["subnetIds"] == "subnet-a"
    assert inputs["securityGroupIds"] == ["fs-id"]
    assert inputs["deploymentType"] == kind


def test_lustre_and_nodes_speak_both_ways_on_both_port_ranges():
    recording = lustre(KINDS["PERSISTENT_2"])
    for type_, pairs in [
        (INGRESS, {("fs-id", "fs-id"), ("fs-id", "sg-nodes"), ("sg-nodes", "fs-id")}),
        (EGRESS, {("fs-id", "fs-id"), ("fs-id", "sg-nodes")}),
    ]:
        for ports in [(988, 988), (1018, 1023)]:
            found = {
                (rule.inputs["securityGroupId"], rule.inputs["referencedSecurityGroupId"])
                for rule in recording.of_type(type_)
                if (rule.inputs["fromPort"], rule.inputs["toPort"]) == ports
            }
            assert found == pairs, (type_, ports)
    file_system = recording.one(FILE_SYSTEM)
    assert all(recording.waits_for(file_system, rule) for rule in recording.of_type(INGRESS))


def test_a_repository_is_an_association_that_leaves_the_files():
    repositories = [{"path": "/data/train", "bucketUri": "s3://corpus/train", "autoExport": []}]
    inputs = (
        lustre({**KINDS["SCRATCH_2"], "repositories": repositories})
        .one("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation")
        .inputs
    )
    assert (inputs["fileSystemPath"], inputs["dataRepositoryPath"]) == ("/data/train", "s3://corpus/train")
    assert inputs["deleteDataInFilesystem"] is False
    assert inputs["s3"]["autoImportPolicy"] == {"events": ["NEW", "CHANGED"]}


def test_a_static_lustre_volume_carries_its_options_itself():
    recording = platform()
    spec = recording.one(VOLUME, "trainyard-volumes-checkpoints").inputs["spec"]
    assert spec["mountOptions"] == ["flock"]
    assert spec["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "trainyard-volumes-lustre-id",
        "volumeAttributes": {"dnsname": "trainyard-volumes-lustre.mock", "mountname": "mnt"},
    }
    assert (spec["persistentVolumeReclaimPolicy"], spec["storageClassName"], spec["accessModes"]) == ("Retain", "", ["ReadWriteMany"])
    assert not recording.of_type("kubernetes:storage.k8s.io/v1:StorageClass")


def test_a_claim_takes_its_volume_and_goes_with_its_namespace():
    recording = platform()
    claim = recording.one(CLAIM, "trainyard-volumes-checkpoints")
    assert claim.inputs["spec"]["volumeName"] == "training-checkpoints"
    assert claim.inputs["spec"]["resources"] == {"requests": {"storage": "1Gi"}}, "a static claim cannot be resized when the volume grows"
    assert claim.inputs["metadata"]["namespace"] == "training"
    assert claim.deleted_with == recording.one("kubernetes:core/v1:Namespace", "trainyard-jobs").urn


def test_efs_has_one_mount_target_in_every_zone_and_no_second():
    efs = settings().storage.efs
    assert efs is not None
    args = EfsArgs(settings=efs, vpc_id="vpc-1", subnet_ids=SUBNETS, node_security_group_id="sg-nodes", protect=False)
    recording = record(lambda: Efs("home", args))
    targets = recording.of_type("aws:efs/mountTarget:MountTarget")
    assert sorted(entry.inputs["subnetId"] for entry in targets) == sorted(SUBNETS.values())
    (rule,) = recording.of_type(INGRESS)
    assert (rule.inputs["fromPort"], rule.inputs["referencedSecurityGroupId"]) == (2049, "sg-nodes")


def test_an_efs_volume_is_an_access_point_and_waits_for_the_mount_targets():
    recording = platform()
    volume = recording.one(VOLUME, "trainyard-volumes-home")
    assert volume.inputs["spec"]["csi"]["volumeHandle"] == "trainyard-volumes-efs-id::trainyard-volumes-efs-home-id"
    assert all(recording.waits_for(volume, target) for target in recording.of_type("aws:efs/mountTarget:MountTarget"))


def test_an_access_point_makes_its_folder_for_its_user():
    inputs = platform().one("aws:efs/accessPoint:AccessPoint").inputs
    assert inputs["posixUser"] == {"uid": 1000, "gid": 1000}
    assert inputs["rootDirectory"]["creationInfo"] == {"ownerUid": 1000, "ownerGid": 1000, "permissions": "0750"}


def test_the_bucket_is_private_versioned_encrypted_and_never_emptied():
    recording = platform()
    assert recording.one("aws:s3/bucket:Bucket").inputs["forceDestroy"] is False
    block = recording.one("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock").inputs
    switches = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    assert all(block[switch] for switch in switches)
    versioning = recording.one("aws:s3/bucketVersioning:BucketVersioning").inputs
    assert versioning["versioningConfiguration"] == {"status": "Enabled"}
    assert recording.of_type("aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration")
    policy = json.loads(recording.one("aws:s3/bucketPolicy:BucketPolicy").inputs["policy"])
    assert policy["Statement"][0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    rules = recording.one("aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration").inputs["rules"]
    assert {"abortIncompleteMultipartUpload", "noncurrentVersionExpiration"} <= {key for rule in rules for key in rule}
