"""FSx for Lustre file systems. Source: botocore fsx 2018-03-01. moto's has no life cycle, no update, no computed members."""

from datetime import UTC, datetime
from typing import Any

from moto.fsx.models import fsx_backends
from moto.fsx.responses import FSxResponse

from local.aws.extension import lustre_network, lustre_shape
from local.aws.extension.hooks import Call, Params, Refusal, add_operations
from local.aws.extension.store import new_id, random_hex, store_of


class LustreFileSystem:
    """One file system in moto's FSx: its record as FSx describes it, and what moto's tagging asks for."""

    def __init__(self, record: Params, token: str | None, request: Params) -> None:
        self.record = record
        self.token = token
        # The request it was made by, so that an update is checked as a whole.
        self.request = request
        self.resource_arn = record["ResourceARN"]
        self.file_system_id = record["FileSystemId"]
        self.file_system_type = "LUSTRE"


def backend_of(call: Call) -> Any:
    """moto's FSx backend of the request's account and region."""
    return fsx_backends[call.current_account][call.region]


def find(call: Call, file_system_id: str) -> LustreFileSystem:
    """The file system. FileSystemNotFound where there is none."""
    found = backend_of(call).file_systems.get(file_system_id)
    if found is None:
        raise Refusal("FileSystemNotFound", f"File system '{file_system_id}' does not exist.")
    return found


def create(call: Call, given: Params) -> Params:
    """CreateFileSystem: CREATING in the answer, AVAILABLE from then on."""
    backend, token = backend_of(call), given.get("ClientRequestToken")
    if given["FileSystemType"] != "LUSTRE":
        raise Refusal("BadRequest", f"FileSystemType {given['FileSystemType']}: only LUSTRE is emulated.")
    for existing in backend.file_systems.values():
        if token and existing.token == token:
            return {"FileSystem": described(call, existing)}
    lustre_shape.check(given)
    file_system_id = new_id("fs")
    record = _record(call, given, file_system_id) | lustre_network.place(call, given, file_system_id)
    file_system = LustreFileSystem(record, token, given)
    backend.file_systems[file_system_id] = file_system
    if given.get("Tags"):
        backend.tagger.tag_resource(file_system.resource_arn, given["Tags"])
    return {"FileSystem": described(call, file_system) | {"Lifecycle": "CREATING"}}


def _record(call: Call, given: Params, file_system_id: str) -> Params:
    place = f"{call.region}:{call.current_account}"
    record = {
        "OwnerId": call.current_account,
        "CreationTime": datetime.now(UTC),
        "FileSystemId": file_system_id,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": given.get("FileSystemTypeVersion") or _default_version(given),
        "Lifecycle": "AVAILABLE",
        "StorageType": lustre_shape.storage_type(given),
        "DNSName": f"{file_system_id}.fsx.{call.region}.amazonaws.com",
        "ResourceARN": f"arn:{call.partition}:fsx:{place}:file-system/{file_system_id}",
        "LustreConfiguration": _configuration(given),
    }
    if given.get("StorageCapacity") is not None:
        record["StorageCapacity"] = given["StorageCapacity"]
    if lustre_shape.deployment_type(given) not in lustre_shape.SCRATCH:
        # AWS's own key for FSx, where the request names none.
        record["KmsKeyId"] = given.get("KmsKeyId") or f"arn:{call.partition}:kms:{place}:alias/aws/fsx"
    return record


def _default_version(given: Params) -> str:
    if lustre_shape.deployment_type(given) != "PERSISTENT_2":
        return "2.10"
    return "2.15" if given["LustreConfiguration"].get("MetadataConfiguration") else "2.12"


def _configuration(given: Params) -> Params:
    lustre, kind = dict(given.get("LustreConfiguration") or {}), lustre_shape.deployment_type(given)
    links = {field: lustre.pop(field) for field in lustre_shape.IMPORT_FIELDS if field in lustre}
    found = {
        "DeploymentType": kind,
        # Only the first generation has a fixed name.
        "MountName": "fsx" if kind == "SCRATCH_1" else random_hex(8),
        "WeeklyMaintenanceStartTime": "7:03:00",
        "CopyTagsToBackups": False,
        "DataCompressionType": "NONE",
        "LogConfiguration": {"Level": "DISABLED"},
        "EfaEnabled": False,
    } | lustre
    if kind not in lustre_shape.SCRATCH:
        found.setdefault("AutomaticBackupRetentionDays", 0)
    if metadata := lustre.get("MetadataConfiguration"):
        found["MetadataConfiguration"] = metadata | {"Iops": metadata.get("Iops") or automatic_iops(given.get("StorageCapacity") or 0)}
    if links:
        defaults = {"Lifecycle": "AVAILABLE", "AutoImportPolicy": "NONE", "ImportedFileChunkSize": 1024}
        found["DataRepositoryConfiguration"] = defaults | links
    return found


def automatic_iops(capacity_gib: int) -> int:
    """Metadata IOPS that come with a capacity in AUTOMATIC mode."""
    for limit, iops in ((1200, 1500), (2400, 3000), (9600, 6000)):
        if capacity_gib <= limit:
            return iops
    return 12000 * -(-capacity_gib // 24000)


def described(call: Call, file_system: LustreFileSystem) -> Params:
    """A file system as FSx describes it, with its tags."""
    return file_system.record | {"Tags": backend_of(call).list_tags_for_resource(file_system.resource_arn)}


def describe(call: Call, given: Params) -> Params:
    """DescribeFileSystems: all, or the named ones, of which each must exist."""
    ids = given.get("FileSystemIds") or list(backend_of(call).file_systems)
    start, size = int(given.get("NextToken") or 0), given.get("MaxResults") or 1000
    answer: Params = {"FileSystems": [described(call, find(call, each)) for each in ids[start : start + size]]}
    if start + size < len(ids):
        answer["NextToken"] = str(start + size)
    return answer


def update(call: Call, given: Params) -> Params:
    """UpdateFileSystem: the result must be a shape that could be created, and capacity only grows."""
    file_system = find(call, given["FileSystemId"])
    changed, kind = given.get("LustreConfiguration") or {}, lustre_shape.deployment_type(file_system.request)
    merged = file_system.request | {"LustreConfiguration": (file_system.request.get("LustreConfiguration") or {}) | changed}
    capacity = given.get("StorageCapacity")
    if capacity is not None and capacity != file_system.record.get("StorageCapacity"):
        if kind == "SCRATCH_1":
            raise Refusal("BadRequest", "StorageCapacity of a SCRATCH_1 file system can't be changed.")
        if capacity < file_system.record["StorageCapacity"]:
            raise Refusal(
                "BadRequest", f"StorageCapacity can't be decreased, from {file_system.record['StorageCapacity']} to {capacity} GiB."
            )
        merged["StorageCapacity"] = capacity
    lustre_shape.check(merged)
    kept = file_system.record["LustreConfiguration"]
    file_system.request = merged
    file_system.record |= {
        "LustreConfiguration": _configuration(merged) | {"MountName": kept["MountName"]},
        "Lifecycle": "AVAILABLE",
        **({"StorageCapacity": capacity} if capacity is not None else {}),
    }
    return {"FileSystem": described(call, file_system) | {"Lifecycle": "UPDATING"}}


def delete(call: Call, given: Params) -> Params:
    """DeleteFileSystem: its associations and its network interface go with it."""
    file_system = find(call, given["FileSystemId"])
    lustre_network.release(call, file_system.record)
    associations = store_of(call).data_repository_associations
    for association_id in [key for key, each in associations.items() if each["FileSystemId"] == file_system.file_system_id]:
        del associations[association_id]
    del backend_of(call).file_systems[file_system.file_system_id]
    return {"FileSystemId": file_system.file_system_id, "Lifecycle": "DELETING"}


def list_tags(call: Call, given: Params) -> Params:
    """ListTagsForResource of file systems and associations."""
    return {"Tags": backend_of(call).list_tags_for_resource(_known_arn(call, given["ResourceARN"]))}


def tag(call: Call, given: Params) -> None:
    """TagResource."""
    backend_of(call).tagger.tag_resource(_known_arn(call, given["ResourceARN"]), given["Tags"])


def untag(call: Call, given: Params) -> None:
    """UntagResource."""
    backend_of(call).tagger.untag_resource_using_names(_known_arn(call, given["ResourceARN"]), given["TagKeys"])


def _known_arn(call: Call, arn: str) -> str:
    backend = backend_of(call)
    known = [each.resource_arn for each in (*backend.file_systems.values(), *backend.backups.values())]
    known += [each["ResourceARN"] for each in store_of(call).data_repository_associations.values()]
    if arn not in known:
        raise Refusal("ResourceNotFound", f"The resource {arn} does not exist.", ResourceARN=arn)
    return arn


def install() -> None:
    """Answer FSx's operations on file systems and tags."""
    add_operations(
        FSxResponse,
        {
            "create_file_system": create,
            "describe_file_systems": describe,
            "update_file_system": update,
            "delete_file_system": delete,
            "list_tags_for_resource": list_tags,
            "tag_resource": tag,
            "untag_resource": untag,
        },
    )
