"""FSx data repository associations. Sources: botocore fsx 2018-03-01; FSx for Lustre user guide, "Linking your file system"."""

from datetime import UTC, datetime

from moto.fsx.responses import FSxResponse

from local.aws.extension.hooks import Call, Params, Refusal, add_operations
from local.aws.extension.lustre import LustreFileSystem, backend_of, find
from local.aws.extension.store import Record, new_id, store_of

MAX_PER_FILE_SYSTEM = 8
EVENTS = ("NEW", "CHANGED", "DELETED")
FILTERS = {"file-system-id": "FileSystemId", "data-repository-path": "DataRepositoryPath"}


def create(call: Call, given: Params) -> Params:
    """CreateDataRepositoryAssociation: CREATING in the answer, AVAILABLE from then on."""
    file_system = find(call, given["FileSystemId"])
    associations = store_of(call).data_repository_associations
    others = [each for each in associations.values() if each["FileSystemId"] == file_system.file_system_id]
    _check_parent(file_system, others)
    path = _checked_path(given, others)
    association_id, place = new_id("dra"), f"{call.region}:{call.current_account}"
    record: Record = {
        "AssociationId": association_id,
        "ResourceARN": f"arn:{call.partition}:fsx:{place}:association/{file_system.file_system_id}/{association_id}",
        "FileSystemId": file_system.file_system_id,
        "Lifecycle": "AVAILABLE",
        "FileSystemPath": path,
        "DataRepositoryPath": given["DataRepositoryPath"],
        "BatchImportMetaDataOnCreate": bool(given.get("BatchImportMetaDataOnCreate")),
        "ImportedFileChunkSize": given.get("ImportedFileChunkSize") or 1024,
        "S3": _checked_events(given.get("S3")),
        "CreationTime": datetime.now(UTC),
    }
    associations[association_id] = record
    if given.get("Tags"):
        backend_of(call).tagger.tag_resource(record["ResourceARN"], given["Tags"])
    return {"Association": described(call, record) | {"Lifecycle": "CREATING"}}


def _check_parent(file_system: LustreFileSystem, others: list[Record]) -> None:
    configuration = file_system.record["LustreConfiguration"]
    kind, version = configuration["DeploymentType"], file_system.record["FileSystemTypeVersion"]
    if kind == "SCRATCH_1" or version == "2.10":
        raise Refusal(
            "UnsupportedOperation", f"Data repository associations need Lustre 2.12 or newer, and not {kind} with Lustre {version}."
        )
    if "DataRepositoryConfiguration" in configuration:
        raise Refusal("BadRequest", "A file system with an ImportPath can't have data repository associations.")
    if len(others) >= MAX_PER_FILE_SYSTEM:
        raise Refusal("ServiceLimitExceeded", f"A file system can have at most {MAX_PER_FILE_SYSTEM} data repository associations.")


def _checked_path(given: Params, others: list[Record]) -> str:
    path, source = given.get("FileSystemPath") or "/", given["DataRepositoryPath"]
    if not path.startswith("/"):
        raise Refusal("BadRequest", f"FileSystemPath {path} must begin with a slash.")
    if not source.startswith("s3://"):
        raise Refusal("BadRequest", f"DataRepositoryPath {source} must begin with s3://.")
    for other in others:
        if _overlaps(path, other["FileSystemPath"]):
            raise Refusal(
                "BadRequest", f"FileSystemPath {path} overlaps {other['FileSystemPath']} of the association {other['AssociationId']}."
            )
        if _overlaps(source.rstrip("/"), other["DataRepositoryPath"].rstrip("/")):
            raise Refusal(
                "BadRequest",
                f"DataRepositoryPath {source} overlaps {other['DataRepositoryPath']} of the association {other['AssociationId']}.",
            )
    return path


def _overlaps(one: str, other: str) -> bool:
    first, second = one.rstrip("/") + "/", other.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)


def _checked_events(s3: Params | None) -> Params:
    found = {}
    for policy in ("AutoImportPolicy", "AutoExportPolicy"):
        events = ((s3 or {}).get(policy) or {}).get("Events")
        if events is None:
            continue
        wrong = [event for event in events if event not in EVENTS]
        if wrong or len(set(events)) != len(events):
            raise Refusal(
                "BadRequest", f"{policy} events {', '.join(events)} are not valid. Valid values are {', '.join(EVENTS)}, each once."
            )
        found[policy] = {"Events": list(events)}
    return found


def _known(call: Call, association_id: str) -> Record:
    record = store_of(call).data_repository_associations.get(association_id)
    if record is None:
        raise Refusal("DataRepositoryAssociationNotFound", f"Data repository association '{association_id}' does not exist.")
    return record


def described(call: Call, record: Record) -> Record:
    """An association with its tags."""
    return record | {"Tags": backend_of(call).list_tags_for_resource(record["ResourceARN"])}


def describe(call: Call, given: Params) -> Params:
    """DescribeDataRepositoryAssociations by id and by filter."""
    ids = given.get("AssociationIds") or list(store_of(call).data_repository_associations)
    records = [described(call, _known(call, each)) for each in ids]
    for chosen in given.get("Filters") or []:
        member = FILTERS.get(chosen["Name"])
        records = [record for record in records if member is None or record[member] in chosen["Values"]]
    return {"Associations": records}


def update(call: Call, given: Params) -> Params:
    """UpdateDataRepositoryAssociation: chunk size and events."""
    record = _known(call, given["AssociationId"])
    if given.get("ImportedFileChunkSize"):
        record["ImportedFileChunkSize"] = given["ImportedFileChunkSize"]
    if given.get("S3") is not None:
        record["S3"] = record["S3"] | _checked_events(given["S3"])
    return {"Association": described(call, record) | {"Lifecycle": "UPDATING"}}


def delete(call: Call, given: Params) -> Params:
    """DeleteDataRepositoryAssociation."""
    record = _known(call, given["AssociationId"])
    del store_of(call).data_repository_associations[record["AssociationId"]]
    return {
        "AssociationId": record["AssociationId"],
        "Lifecycle": "DELETING",
        "DeleteDataInFileSystem": bool(given.get("DeleteDataInFileSystem")),
    }


def install() -> None:
    """Add the four operations to FSx."""
    add_operations(
        FSxResponse,
        {
            "create_data_repository_association": create,
            "describe_data_repository_associations": describe,
            "update_data_repository_association": update,
            "delete_data_repository_association": delete,
        },
    )
