"""FSx for Lustre file systems and their links to S3."""

from typing import Any

from local.plugins.aws.row import Call, Prop, Row, Tags, Wait, fixed, plain
from local.plugins.aws.run import Run

_LUSTRE = "LustreConfiguration"
_REPOSITORY = f"{_LUSTRE}.DataRepositoryConfiguration"
_TOKEN = "ClientRequestToken"


def fsx_tags() -> Tags:
    """Tags of an FSx resource."""
    return Tags(add=Call(op="TagResource", by={"ResourceARN": "$arn"}), remove=Call(op="UntagResource", by={"ResourceARN": "$arn"}))


def _delete_lustre(run: Run) -> None:
    params: dict[str, Any] = {"FileSystemId": run.resource_id}
    # Scratch file systems have no backups, and AWS refuses the setting for them.
    if str(run.value("deploymentType")).startswith("PERSISTENT"):
        options: dict[str, Any] = {"SkipFinalBackup": run.inputs.get("skipFinalBackup", True)}
        if run.inputs.get("finalBackupTags"):
            options["FinalBackupTags"] = [{"Key": key, "Value": value} for key, value in run.inputs["finalBackupTags"].items()]
        params[_LUSTRE] = options
    run.call("DeleteFileSystem", params)


_CHANGEABLE = (
    "storageCapacity",
    "perUnitStorageThroughput",
    "throughputCapacity",
    "automaticBackupRetentionDays",
    "dailyAutomaticBackupStartTime",
    "weeklyMaintenanceStartTime",
    "autoImportPolicy",
    "dataCompressionType",
    "logConfiguration",
    "rootSquashConfiguration",
    "metadataConfiguration",
    "dataReadCacheConfiguration",
)

LUSTRE_FILE_SYSTEM = Row(
    token="aws:fsx/lustreFileSystem:LustreFileSystem",
    service="fsx",
    create=Call(op="CreateFileSystem", by={"FileSystemType": "LUSTRE"}, inside=_LUSTRE, result="FileSystem", token=_TOKEN),
    id="FileSystemId",
    read=Call(op="DescribeFileSystems", by={"FileSystemIds": ["$id"]}, result="FileSystems[0]"),
    delete=_delete_lustre,
    retry_delete=("BadRequest.DependencyViolation",),
    created=Wait(at="Lifecycle", done=("AVAILABLE",), failed=("FAILED", "MISCONFIGURED"), reason="FailureDetails.Message", seconds=1800),
    updated=Wait(
        at="Lifecycle", done=("AVAILABLE", "UPDATING"), failed=("FAILED", "MISCONFIGURED"), reason="FailureDetails.Message", seconds=1800
    ),
    deleted=Wait(at="Lifecycle", done=(), failed=("FAILED",), reason="FailureDetails.Message", seconds=1800),
    props={
        **fixed("subnetIds", ordered=True),
        **fixed("securityGroupIds", read=""),
        **fixed("driveCacheType"),
        **fixed("efaEnabled", "fileSystemTypeVersion", "kmsKeyId", computed=True),
        **fixed("storageType", default="SSD"),
        **fixed("deploymentType", default="SCRATCH_1"),
        **fixed("copyTagsToBackups", default=False),
        "importPath": Prop(replace=True, read=f"{_REPOSITORY}.ImportPath"),
        "exportPath": Prop(replace=True, computed=True, read=f"{_REPOSITORY}.ExportPath"),
        "importedFileChunkSize": Prop(replace=True, computed=True, read=f"{_REPOSITORY}.ImportedFileChunkSize"),
        **plain("storageCapacity", "perUnitStorageThroughput", "rootSquashConfiguration", "throughputCapacity"),
        **plain(
            "automaticBackupRetentionDays",
            "dailyAutomaticBackupStartTime",
            "weeklyMaintenanceStartTime",
            "metadataConfiguration",
            computed=True,
        ),
        "dataReadCacheConfiguration": Prop(computed=True, names={"size": "SizeGiB"}),
        "autoImportPolicy": Prop(computed=True, read=f"{_REPOSITORY}.AutoImportPolicy"),
        "dataCompressionType": Prop(default="NONE"),
        "logConfiguration": Prop(computed=True),
        "skipFinalBackup": Prop(write_only=True, default=True),
        "finalBackupTags": Prop(write_only=True),
    },
    updates=[Call(op="UpdateFileSystem", by={"FileSystemId": "$id"}, inside=_LUSTRE, takes=_CHANGEABLE, token=_TOKEN)],
    outputs={
        "arn": "ResourceARN",
        "dnsName": "DNSName",
        "mountName": f"{_LUSTRE}.MountName",
        "networkInterfaceIds": "NetworkInterfaceIds",
        "ownerId": "OwnerId",
        "vpcId": "VpcId",
    },
    tags=fsx_tags(),
)

DATA_REPOSITORY_ASSOCIATION = Row(
    token="aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    service="fsx",
    create=Call(op="CreateDataRepositoryAssociation", result="Association", token=_TOKEN),
    id="AssociationId",
    read=Call(op="DescribeDataRepositoryAssociations", by={"AssociationIds": ["$id"]}, result="Associations[0]"),
    delete=Call(
        op="DeleteDataRepositoryAssociation",
        by={"AssociationId": "$id", "DeleteDataInFileSystem": "$deleteDataInFilesystem"},
        token=_TOKEN,
    ),
    created=Wait(at="Lifecycle", done=("AVAILABLE",), failed=("FAILED", "MISCONFIGURED"), reason="FailureDetails.Message", seconds=1200),
    updated=Wait(at="Lifecycle", done=("AVAILABLE",), failed=("FAILED", "MISCONFIGURED"), reason="FailureDetails.Message", seconds=1200),
    deleted=Wait(at="Lifecycle", done=(), failed=("FAILED",), reason="FailureDetails.Message", seconds=1200),
    props={
        **fixed("fileSystemId", "fileSystemPath", "dataRepositoryPath"),
        **fixed("batchImportMetaDataOnCreate", default=False),
        "importedFileChunkSize": Prop(computed=True),
        "s3": Prop(computed=True),
        "deleteDataInFilesystem": Prop(write_only=True, default=False),
    },
    updates=[Call(op="UpdateDataRepositoryAssociation", by={"AssociationId": "$id"}, takes=("importedFileChunkSize", "s3"), token=_TOKEN)],
    outputs={"arn": "ResourceARN", "associationId": "AssociationId"},
    tags=fsx_tags(),
)

ROWS = (LUSTRE_FILE_SYSTEM, DATA_REPOSITORY_ASSOCIATION)
