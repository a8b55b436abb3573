"""EFS file systems, mount targets, access points and their policies."""

from collections.abc import Mapping
from typing import Any

from local.plugins.aws.errors import AwsError
from local.plugins.aws.row import Call, Described, Prop, Row, Tags, Update, Wait, fixed
from local.plugins.aws.run import Run

_STATE = "LifeCycleState"


def _efs_tags() -> Tags:
    return Tags(add=Call(op="TagResource", by={"ResourceId": "$id"}), remove=Call(op="UntagResource", by={"ResourceId": "$id"}))


_CREATE = Call(op="CreateFileSystem", token="CreationToken")


def _create_file_system(run: Run) -> dict[str, Any]:
    """EFS refuses a creation token it has seen: that file system is the one which an interrupted run of ours made."""
    params, sources = run.params(_CREATE, creating=True)
    try:
        return run.call(_CREATE.op, params, sources)
    except AwsError as error:
        if error.code != "FileSystemAlreadyExists" or run.inputs.get("creationToken"):
            raise
    return run.call("DescribeFileSystems", {"CreationToken": params["CreationToken"]})["FileSystems"][0]


def _describe_file_system(run: Run) -> dict[str, Any] | None:
    found = run.call("DescribeFileSystems", {"FileSystemId": run.resource_id})["FileSystems"]
    if not found:
        return None
    lifecycle = run.call("DescribeLifecycleConfiguration", {"FileSystemId": run.resource_id})
    return {**found[0], "LifecyclePolicies": lifecycle.get("LifecyclePolicies") or []}


FILE_SYSTEM = Row(
    token="aws:efs/fileSystem:FileSystem",
    service="efs",
    create=_create_file_system,
    form=_CREATE,
    id="FileSystemId",
    read=_describe_file_system,
    delete=Call(op="DeleteFileSystem", by={"FileSystemId": "$id"}),
    retry_delete=("FileSystemInUse",),
    created=Wait(at=_STATE, done=("available",), failed=("error",), seconds=600),
    updated=Wait(at=_STATE, done=("available",), failed=("error",), seconds=600),
    deleted=Wait(at=_STATE, done=("deleted",), failed=("error",), seconds=600),
    props={
        **fixed("creationToken", "performanceMode", "encrypted", "kmsKeyId", computed=True),
        **fixed("availabilityZoneName"),
        "throughputMode": Prop(default="bursting"),
        "provisionedThroughputInMibps": Prop(),
        "lifecyclePolicies": Prop(param=""),
    },
    updates=[
        Call(
            op="UpdateFileSystem",
            by={"FileSystemId": "$id"},
            takes=("throughputMode", "provisionedThroughputInMibps"),
        ),
        Call(op="PutLifecycleConfiguration", by={"FileSystemId": "$id"}, takes=("lifecyclePolicies",)),
    ],
    outputs={
        "arn": "FileSystemArn",
        "availabilityZoneId": "AvailabilityZoneId",
        "dnsName": "{id}.efs.{region}.amazonaws.com",
        "name": "Name",
        "numberOfMountTargets": "NumberOfMountTargets",
        "ownerId": "OwnerId",
        "sizeInBytes": lambda run, system: _sizes(system),
    },
    tags=_efs_tags(),
)


def _sizes(system: Described) -> list[dict[str, Any]]:
    size = system.get("SizeInBytes") or {}
    fields = {"value": "Value", "valueInIa": "ValueInIA", "valueInStandard": "ValueInStandard"}
    return [{name: size[field] for name, field in fields.items() if field in size}]


def _describe_target(run: Run) -> dict[str, Any] | None:
    found = run.call("DescribeMountTargets", {"MountTargetId": run.resource_id})["MountTargets"]
    if not found:
        return None
    groups = run.call("DescribeMountTargetSecurityGroups", {"MountTargetId": run.resource_id}).get("SecurityGroups") or []
    return {**found[0], "SecurityGroups": groups}


MOUNT_TARGET = Row(
    token="aws:efs/mountTarget:MountTarget",
    service="efs",
    create=Call(op="CreateMountTarget"),
    id="MountTargetId",
    read=_describe_target,
    delete=Call(op="DeleteMountTarget", by={"MountTargetId": "$id"}),
    created=Wait(at=_STATE, done=("available",), failed=("error",), seconds=600),
    deleted=Wait(at=_STATE, done=("deleted",), failed=("error",), seconds=600),
    retry_create=("IncorrectFileSystemLifeCycleState",),
    props={
        **fixed("fileSystemId", "subnetId"),
        **fixed("ipAddress", "ipAddressType", computed=True),
        "securityGroups": Prop(computed=True),
    },
    updates=[Call(op="ModifyMountTargetSecurityGroups", by={"MountTargetId": "$id"}, takes=("securityGroups",))],
    outputs={
        "availabilityZoneId": "AvailabilityZoneId",
        "availabilityZoneName": "AvailabilityZoneName",
        "networkInterfaceId": "NetworkInterfaceId",
        "ownerId": "OwnerId",
        "dnsName": "{fileSystemId}.efs.{region}.amazonaws.com",
        "fileSystemArn": "arn:{partition}:elasticfilesystem:{region}:{account}:file-system/{fileSystemId}",
        "mountTargetDnsName": lambda run, target: (
            run.filled(f"{target['AvailabilityZoneName']}.{{fileSystemId}}.efs.{{region}}.amazonaws.com")
            if target.get("AvailabilityZoneName")
            else None
        ),
    },
    # AWS has one target in a zone, so the old one has to make room.
    delete_before_replace=True,
)

ACCESS_POINT = Row(
    token="aws:efs/accessPoint:AccessPoint",
    service="efs",
    create=Call(op="CreateAccessPoint", token="ClientToken"),
    id="AccessPointId",
    read=Call(op="DescribeAccessPoints", by={"AccessPointId": "$id"}, result="AccessPoints[0]"),
    delete=Call(op="DeleteAccessPoint", by={"AccessPointId": "$id"}),
    created=Wait(at=_STATE, done=("available",), failed=("error",)),
    deleted=Wait(at=_STATE, done=("deleted",), failed=("error",)),
    retry_create=("IncorrectFileSystemLifeCycleState",),
    props={
        **fixed("fileSystemId", "posixUser"),
        **fixed("rootDirectory", computed=True),
    },
    outputs={
        "arn": "AccessPointArn",
        "ownerId": "OwnerId",
        "fileSystemArn": "arn:{partition}:elasticfilesystem:{region}:{account}:file-system/{fileSystemId}",
    },
    tags=_efs_tags(),
)

_BY_FILE_SYSTEM = {"FileSystemId": "$id"}

FILE_SYSTEM_POLICY = Row(
    token="aws:efs/fileSystemPolicy:FileSystemPolicy",
    service="efs",
    create=Call(op="PutFileSystemPolicy"),
    id="{fileSystemId}",
    read=Call(op="DescribeFileSystemPolicy", by=_BY_FILE_SYSTEM),
    delete=Call(op="DeleteFileSystemPolicy", by=_BY_FILE_SYSTEM),
    props={
        **fixed("fileSystemId"),
        "policy": Prop(json=True),
        "bypassPolicyLockoutSafetyCheck": Prop(read="", default=False),
    },
    updates=[
        Call(
            op="PutFileSystemPolicy",
            by=_BY_FILE_SYSTEM,
            takes=("policy", "bypassPolicyLockoutSafetyCheck"),
            all=True,
        )
    ],
    delete_before_replace=True,
)


def _backup_policy(run: Run) -> Mapping[str, Any]:
    """A file system without a policy has its backups off, which is what a policy can say too."""
    try:
        found = run.call("DescribeBackupPolicy", {"FileSystemId": run.resource_id})
    except AwsError as error:
        if error.code != "PolicyNotFound":
            raise
        found = {"BackupPolicy": {"Status": "DISABLED"}}
    return {"FileSystemId": run.resource_id, **found}


BACKUP_POLICY = Row(
    token="aws:efs/backupPolicy:BackupPolicy",
    service="efs",
    create=Call(op="PutBackupPolicy"),
    id="{fileSystemId}",
    read=_backup_policy,
    # There is no "no policy": off is what a file system starts with.
    delete=Call(op="PutBackupPolicy", by={**_BY_FILE_SYSTEM, "BackupPolicy": {"Status": "DISABLED"}}),
    props={**fixed("fileSystemId"), "backupPolicy": Prop()},
    updates=[
        Update(takes=("backupPolicy",), run=lambda run: run.do(Call(op="PutBackupPolicy", by=_BY_FILE_SYSTEM), only=["backupPolicy"]))
    ],
    delete_before_replace=True,
)

ROWS = (FILE_SYSTEM, MOUNT_TARGET, ACCESS_POINT, FILE_SYSTEM_POLICY, BACKUP_POLICY)
