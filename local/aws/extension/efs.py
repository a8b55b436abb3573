"""EFS: what moto lacks of it and what AWS refuses. Sources: botocore efs 2015-02-01; EFS user guide, "Performance", "Access points"."""

import re
from typing import Any

from moto.efs import urls
from moto.efs.models import efs_backends
from moto.efs.responses import EFSResponse

from local.aws.extension.hooks import Call, Params, Refusal, add_completions, add_guards, add_operations
from local.aws.extension.store import store_of

THROUGHPUT_MODES = ("bursting", "provisioned", "elastic")
PERFORMANCE_MODES = ("generalPurpose", "maxIO")
MIN_MIBPS, MAX_MIBPS = 1, 3414
MAX_PATH, MAX_DEPTH = 100, 4


def backend_of(call: Call) -> Any:
    """moto's EFS backend of the request's account and region."""
    return efs_backends[call.current_account][call.region]


def _bad(message: str) -> Refusal:
    return Refusal("BadRequest", message)


def check_create(call: Call, given: Params) -> None:
    """CreateFileSystem: throughput and performance modes that fit together."""
    mode, performance = given.get("ThroughputMode") or "bursting", given.get("PerformanceMode") or "generalPurpose"
    if performance not in PERFORMANCE_MODES:
        raise _bad(f"PerformanceMode {performance} is not valid: must be one of {', '.join(PERFORMANCE_MODES)}.")
    _check_throughput(mode, given.get("ProvisionedThroughputInMibps"))
    if performance == "maxIO" and (mode == "elastic" or given.get("AvailabilityZoneName")):
        raise _bad("PerformanceMode maxIO is supported neither with elastic throughput nor in One Zone file systems.")
    if given.get("KmsKeyId") and not given.get("Encrypted"):
        raise _bad("KmsKeyId can be specified only if Encrypted is true.")


def _check_throughput(mode: str, mibps: float | None) -> None:
    if mode not in THROUGHPUT_MODES:
        raise _bad(f"ThroughputMode {mode} is not valid: must be one of {', '.join(THROUGHPUT_MODES)}.")
    if mode == "provisioned" and mibps is None:
        raise _bad("ProvisionedThroughputInMibps is required with ThroughputMode provisioned.")
    if mode != "provisioned" and mibps is not None:
        raise _bad(f"ProvisionedThroughputInMibps can't be specified with ThroughputMode {mode}.")
    if mibps is not None and not MIN_MIBPS <= mibps <= MAX_MIBPS:
        raise Refusal("ThroughputLimitExceeded", f"ProvisionedThroughputInMibps ({mibps}) must be between {MIN_MIBPS} and {MAX_MIBPS}.")


def complete_create(call: Call, given: Params, result: Any) -> None:
    """A file system starts with overwrite protection on."""
    for file_system_id in backend_of(call).file_systems_by_id:
        store_of(call).efs_protection.setdefault(file_system_id, "ENABLED")


def _known(call: Call, file_system_id: str) -> Any:
    found = backend_of(call).file_systems_by_id.get(file_system_id)
    if found is None:
        raise Refusal("FileSystemNotFound", f"File system '{file_system_id}' does not exist.")
    return found


def describe(call: Call, given: Params) -> Params:
    """DescribeFileSystems, with overwrite protection."""
    backend = backend_of(call)
    if given.get("FileSystemId"):
        found = [_known(call, given["FileSystemId"])]
    else:
        token = given.get("CreationToken")
        found = [each for each in backend.file_systems_by_id.values() if token in (None, each.creation_token)]
    start, size = int(given.get("Marker") or 0), given.get("MaxItems") or 100
    answer: Params = {"FileSystems": [described(call, each) for each in found[start : start + size]]}
    if start + size < len(found):
        answer["NextMarker"] = str(start + size)
    return answer


def described(call: Call, file_system: Any) -> Params:
    """A file system as EFS describes it."""
    protection = store_of(call).efs_protection.get(file_system.file_system_id, "ENABLED")
    return file_system.info_json() | {"FileSystemProtection": {"ReplicationOverwriteProtection": protection}}


def update(call: Call, given: Params) -> Params:
    """UpdateFileSystem: throughput mode and provisioned throughput."""
    file_system = _known(call, given["FileSystemId"])
    mode = given.get("ThroughputMode") or file_system.throughput_mode
    mibps = given.get("ProvisionedThroughputInMibps")
    if mode == "provisioned" and mibps is None:
        mibps = file_system.provisioned_throughput_in_mibps
    _check_throughput(mode, mibps)
    if mode == "elastic" and file_system.performance_mode == "maxIO":
        raise _bad("PerformanceMode maxIO is not supported with elastic throughput.")
    file_system.throughput_mode, file_system.provisioned_throughput_in_mibps = mode, mibps
    return described(call, file_system) | {"LifeCycleState": "updating"}


def update_protection(call: Call, given: Params) -> Params:
    """UpdateFileSystemProtection."""
    _known(call, given["FileSystemId"])
    wanted = given.get("ReplicationOverwriteProtection") or "ENABLED"
    if wanted not in ("ENABLED", "DISABLED"):
        raise _bad(f"ReplicationOverwriteProtection {wanted} is not valid: must be ENABLED or DISABLED.")
    store_of(call).efs_protection[given["FileSystemId"]] = wanted
    return {"ReplicationOverwriteProtection": wanted}


def delete_policy(call: Call, given: Params) -> None:
    """DeleteFileSystemPolicy."""
    _known(call, given["FileSystemId"]).file_system_policy = None


def describe_replications(call: Call, given: Params) -> Params:
    """DescribeReplicationConfigurations: there are none."""
    if given.get("FileSystemId"):
        raise Refusal("ReplicationNotFound", f"No replication configuration found for {given['FileSystemId']}.")
    return {"Replications": []}


def put_backup_policy(call: Call, given: Params) -> Params:
    """PutBackupPolicy."""
    file_system = _known(call, given["FileSystemId"])
    status = given["BackupPolicy"]["Status"]
    if status not in ("ENABLED", "DISABLED"):
        raise Refusal("ValidationException", f"BackupPolicy status {status} is not valid: must be ENABLED or DISABLED.")
    file_system._backup = status == "ENABLED"
    return {"BackupPolicy": {"Status": status}}


def check_mount_target(call: Call, given: Params) -> None:
    """CreateMountTarget: a One Zone file system takes one in its own zone only."""
    file_system = _known(call, given["FileSystemId"])
    subnet = next((zone[given["SubnetId"]] for zone in backend_of(call).ec2_backend.subnets.values() if given["SubnetId"] in zone), None)
    if subnet is not None and file_system.availability_zone_name not in (None, "", subnet.availability_zone):
        raise Refusal(
            "AvailabilityZonesMismatch",
            f"The file system is in {file_system.availability_zone_name}, the subnet in {subnet.availability_zone}.",
        )


def complete_mount_target(call: Call, given: Params, result: Any) -> None:
    """The network interface of a mount target belongs to EFS and has EFS's groups."""
    ec2 = backend_of(call).ec2_backend
    for target in backend_of(call).mount_targets_by_id.values():
        interface = ec2.enis.get(target.network_interface_id)
        if interface is not None and not interface.requester_managed:
            interface.requester_managed = True
            interface.description = f"EFS mount target for {target.file_system_id} ({target.mount_target_id})"


def check_access_point(call: Call, given: Params) -> None:
    """CreateAccessPoint: path depth and length, and how a missing directory is made."""
    _known(call, given["FileSystemId"])
    root = given.get("RootDirectory") or {}
    path, creation = root.get("Path") or "/", root.get("CreationInfo")
    if not path.startswith("/") or len(path) > MAX_PATH or len([part for part in path.split("/") if part]) > MAX_DEPTH:
        raise Refusal(
            "ValidationException",
            f"RootDirectory path {path} is not valid: it starts with / and has at most {MAX_DEPTH} levels and {MAX_PATH} characters.",
        )
    if creation is not None:
        permissions = str(creation.get("Permissions"))
        if not re.fullmatch(r"[0-7]{3,4}", permissions):
            raise Refusal("ValidationException", f"CreationInfo permissions {permissions} are not valid: three or four octal digits.")
        if creation.get("OwnerUid") is None or creation.get("OwnerGid") is None:
            raise Refusal("ValidationException", "CreationInfo needs OwnerUid, OwnerGid and Permissions.")


def forget(call: Call, given: Params, result: Any) -> None:
    """After DeleteFileSystem: its access points and its protection go with it."""
    backend = backend_of(call)
    store_of(call).efs_protection.pop(given["FileSystemId"], None)
    for access_point_id in [key for key, each in backend.access_points.items() if each.file_system_id == given["FileSystemId"]]:
        backend.delete_access_point(access_point_id)


def install() -> None:
    """Add operations, guards and completions to EFS."""
    for path in ("<file_system_id>/protection", "replication-configurations"):
        urls.url_paths[f"/2015-02-01/file-systems/{path}"] = urls.response.dispatch
    add_operations(
        EFSResponse,
        {
            "describe_file_systems": describe,
            "update_file_system": update,
            "update_file_system_protection": update_protection,
            "put_backup_policy": put_backup_policy,
            "delete_file_system_policy": delete_policy,
            "describe_replication_configurations": describe_replications,
        },
    )
    add_guards(
        EFSResponse,
        {"create_file_system": check_create, "create_mount_target": check_mount_target, "create_access_point": check_access_point},
    )
    add_completions(
        EFSResponse,
        {"create_file_system": complete_create, "create_mount_target": complete_mount_target, "delete_file_system": forget},
    )
