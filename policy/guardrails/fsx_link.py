"""Lustre and S3: links of the older kind, data repository associations, and what a volume of checkpoints needs."""

import re

from guardrails.facts import load
from guardrails.fsx import bucket_of, in_bucket, repository_paths
from guardrails.links import targets
from guardrails.lustre import LUSTRE_TYPES, SCRATCH, TIERING, Shape, file_system, flag, shape_of
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import BUCKET, BUCKET_VERSIONING, DRA, LUSTRE, LUSTRE_OBJECTS, PERSISTENT_VOLUME, VOLUME_CLAIM
from guardrails.volume import lustre_of, volume_of

CHECKPOINT = re.compile(r"(?<![a-z])(checkpoints?|ckpts?)(?![a-z])", re.IGNORECASE)
_INLINE = (("dataRepositoryAssociations",), ("lustreConfiguration", "dataRepositoryAssociations"))
"""Where people write associations into a file system of ACK, from which the API server drops them."""
_EVENTS = ("NEW", "CHANGED", "DELETED")


def _repository_link(program: Program, report: Report) -> None:
    for resource in program.of(*LUSTRE_TYPES):
        with report.part():
            shape = shape_of(resource)
            if shape is not None:
                repository_paths(shape, report)
        with report.part():
            _both_links(program, resource, report)


def _both_links(program: Program, resource: Resource, report: Report) -> None:
    # An export path without an import path is refused anyway.
    given = resource.at("importPath")
    for association in program.of(DRA):
        if given.present and program.refers(association, "fileSystemId", resource):
            report.refuse(resource, given, allowed=f"unset, because {association.name} is a data repository association of it")
            return


def _checkpoints(program: Program, report: Report) -> None:
    for resource in program.of(LUSTRE):
        with report.part():
            if not _holds_checkpoints(program, resource):
                continue
            _safe(program, file_system(resource), report)


def _holds_checkpoints(program: Program, resource: Resource) -> bool:
    if CHECKPOINT.search(resource.name):
        return True
    if any(CHECKPOINT.search(key) or CHECKPOINT.search(tag.text()) for key, tag in resource.at("tags").entries()):
        return True
    claimed = [volume_of(program, claim) for claim in program.of(VOLUME_CLAIM) if _speaks_of_checkpoints(claim)]
    named = [volume for volume in program.of(PERSISTENT_VOLUME) if _speaks_of_checkpoints(volume)]
    return any(target is resource for volume in (*named, *claimed) if volume is not None for target in lustre_of(program, volume))


def _speaks_of_checkpoints(each: Resource) -> bool:
    return bool(CHECKPOINT.search(f"{each.name} {each.at('metadata', 'name').text()}"))


def _safe(program: Program, shape: Shape, report: Report) -> None:
    place = shape.at("deploymentType")
    if shape.deployment in SCRATCH:
        found = f"{shape.deployment} for a volume of checkpoints"
        report.refuse(
            shape.resource, place, allowed="PERSISTENT_1 or PERSISTENT_2 with backups, or with automatic export to S3", found=found
        )
        return
    if (shape.at("automaticBackupRetentionDays").integer() or 0) > 0:
        return
    if any(_exports(program, association, shape.resource) for association in program.of(DRA)):
        return
    allowed = "above 0, or an association that exports NEW and CHANGED files to S3: it holds checkpoints"
    report.refuse(shape.resource, shape.at("automaticBackupRetentionDays"), allowed=allowed)


def _exports(program: Program, association: Resource, file_system_resource: Resource) -> bool:
    if not program.refers(association, "fileSystemId", file_system_resource):
        return False
    events = {event.text() for event in association.at("s3", "autoExportPolicy", "events").elements()}
    return {"NEW", "CHANGED"} <= events


def _association_parent(program: Program, report: Report) -> None:
    most = load("lustre")["associationsMost"]
    for resource in program.of(LUSTRE):
        mine = [each for each in program.of(DRA) if program.refers(each, "fileSystemId", resource)]
        if not mine:
            continue
        with report.part():
            _able(file_system(resource), mine[0], report)
        if len(mine) > most:
            report.refuse(
                mine[most], mine[most].at("fileSystemId"), allowed=f"{most} associations", found=f"{len(mine)} of {resource.name}"
            )


def _able(shape: Shape, association: Resource, report: Report) -> None:
    """Whether the file system takes associations at all."""
    place = association.at("fileSystemId")
    if shape.deployment == "SCRATCH_1":
        report.refuse(association, place, allowed="SCRATCH_2 or a persistent type", found="a SCRATCH_1 file system")
    elif shape.storage == TIERING:
        report.refuse(association, place, allowed="a file system on SSD or HDD", found=f"an {TIERING} file system")
    elif shape.version == "2.10":
        found = f"{shape.resource.name} with Lustre 2.10"
        report.refuse(association, place, allowed="fileSystemTypeVersion 2.12 or later", found=found)


def _association_paths(program: Program, report: Report) -> None:
    for resource in program.of(LUSTRE):
        inline = resource.at("dataRepositoryAssociations")
        if inline.present:
            report.refuse(resource, inline, allowed="resources of their own: a file system has no such property", found="set")
    for resource in program.of(*LUSTRE_OBJECTS):
        with report.part():
            for keys in _INLINE:
                inline = resource.at("spec", *keys)
                if inline.present:
                    report.refuse(resource, inline, allowed="associations of their own: a file system has no such field", found="set")
    for association in program.of(DRA):
        with report.part():
            _own_paths(association, report)
    _overlaps(program, report)


def _own_paths(association: Resource, report: Report) -> None:
    here, there = association.at("fileSystemPath"), association.at("dataRepositoryPath")
    if not here.text().startswith("/"):
        report.refuse(association, here, allowed="a path in the file system that begins with /")
    if not in_bucket(there.text()):
        report.refuse(association, there, allowed="a bucket and prefix that begin with s3://")


def _overlaps(program: Program, report: Report) -> None:
    associations = list(program.of(DRA))
    for index, later in enumerate(associations):
        for earlier in associations[:index]:
            with report.part():
                if _one_file_system(program, earlier, later):
                    _compare(earlier, later, "fileSystemPath", report)
                    _compare(earlier, later, "dataRepositoryPath", report)


def _one_file_system(program: Program, one: Resource, other: Resource) -> bool:
    first, second = (targets(program, each, "fileSystemId", LUSTRE) for each in (one, other))
    if first and second:
        return first[0] is second[0]
    return one.at("fileSystemId").value == other.at("fileSystemId").value


def _compare(earlier: Resource, later: Resource, key: str, report: Report) -> None:
    one, other = earlier.at(key), later.at(key)
    first, second = (f"{place.text().rstrip('/')}/" for place in (one, other))
    if first.startswith(second) or second.startswith(first):
        report.refuse(later, other, allowed=f"a path that does not overlap {one.text()} of {earlier.name}")


def _association_events(program: Program, report: Report) -> None:
    for association in program.of(DRA):
        for policy in ("autoImportPolicy", "autoExportPolicy"):
            with report.part():
                _events(association, association.at("s3", policy, "events"), report)
        with report.part():
            _deletes(program, association, report)


def _events(association: Resource, place: Node, report: Report) -> None:
    events = list(place.elements())
    if len(events) > len(_EVENTS):
        report.refuse(association, place, allowed=f"at most {len(_EVENTS)} events", found=f"{len(events)} events")
    for event in events:
        if event.text() not in _EVENTS:
            report.refuse(association, event, allowed=", ".join(_EVENTS))


def _deletes(program: Program, association: Resource, report: Report) -> None:
    place = association.at("s3", "autoExportPolicy", "events")
    if not any(event.text() == "DELETED" for event in place.elements()):
        return
    if any(_is_versioned(program, versioning, association) for versioning in program.of(BUCKET_VERSIONING)):
        return
    if any(_is_linked(program, bucket, association) and _versions_itself(bucket) for bucket in program.of(BUCKET)):
        return
    report.refuse(association, place, allowed="NEW and CHANGED, or a bucket that keeps versions: DELETED removes the copy in S3 too")


def _is_versioned(program: Program, versioning: Resource, association: Resource) -> bool:
    if versioning.at("versioningConfiguration", "status").text() != "Enabled":
        return False
    kept, linked = (targets(program, each, key, BUCKET) for each, key in ((versioning, "bucket"), (association, "dataRepositoryPath")))
    if kept and linked:
        return kept[0] is linked[0]
    return bucket_of(association.at("dataRepositoryPath").text()) == versioning.at("bucket").text()


def _is_linked(program: Program, bucket: Resource, association: Resource) -> bool:
    origins = targets(program, association, "dataRepositoryPath", BUCKET)
    if origins:
        return any(origin is bucket for origin in origins)
    name = bucket_of(association.at("dataRepositoryPath").text())
    return bool(name) and name in (bucket.at("bucket").text(), bucket.at("id").raw)


def _versions_itself(bucket: Resource) -> bool:
    """Whether the bucket keeps versions by a setting of its own; the kind with V2 in its name has a list of one."""
    own = [bucket.at("versioning"), *bucket.at("versionings").elements()]
    return any(flag(each.at("enabled")) is True for each in own)


def _parent(deployment: str, **properties: object) -> Example:
    return Example(LUSTRE, {"deploymentType": deployment, "storageCapacity": 1200, **properties}, name="scratch")


def _association(path: str, *, name: str = "data", export: tuple[str, ...] = ("NEW", "CHANGED"), prefix: str = "data") -> Example:
    properties = {
        "fileSystemId": "fs-0123456789abcdef0",
        "fileSystemPath": path,
        "dataRepositoryPath": f"s3://bucket/{prefix}",
        "s3": {"autoExportPolicy": {"events": list(export)}},
    }
    return Example(DRA, properties, name=name, sources={"fileSystemId": ["scratch"]})


_PERSISTENT = _parent("PERSISTENT_2", perUnitStorageThroughput=250)

RULES = (
    StackRule(
        id="FSX08",
        name="lustre-require-legal-import",
        title="An import path goes with scratch or PERSISTENT_1, one bucket and a policy that there is, and without associations",
        check=_repository_link,
        types=frozenset({*LUSTRE_TYPES, DRA}),
        early=True,
        why="FSx refuses the file system with InvalidImportPath or InvalidExportPath.",
        fix="use data repository associations on PERSISTENT_2; else import and export within one bucket, with autoImportPolicy NONE, NEW, "
        "NEW_CHANGED or NEW_CHANGED_DELETED.",
        source="botocore 1.44.8 fsx model; aws-parallelcluster FsxS3Validator; pulumi-aws 7.51.1 LustreFileSystem",
        valid=(_parent("SCRATCH_2", importPath="s3://bucket", exportPath="s3://bucket/out"),),
        invalid=(_parent("PERSISTENT_2", perUnitStorageThroughput=250, importPath="s3://bucket"),),
    ),
    StackRule(
        id="FSX12",
        name="lustre-require-safe-checkpoints",
        title="A file system that holds checkpoints survives a server and a destroy",
        check=_checkpoints,
        types=frozenset({LUSTRE, DRA, PERSISTENT_VOLUME, VOLUME_CLAIM}),
        why="one lost server, or one destroy (no final backup is taken by default), and every checkpoint is gone.",
        fix="use PERSISTENT_2, and keep backups or add an association that exports NEW and CHANGED files to S3.",
        source="FSx for Lustre guide: deployment types; pulumi-aws 7.51.1 LustreFileSystem.skipFinalBackup",
        valid=(
            _parent("PERSISTENT_2", perUnitStorageThroughput=250, tags={"role": "checkpoints"}),
            _association("/checkpoints"),
        ),
        invalid=(_parent("SCRATCH_2", tags={"role": "checkpoints"}),),
    ),
    StackRule(
        id="DRA01",
        name="association-require-able-parent",
        title="A data repository association needs Lustre 2.12 or later, neither SCRATCH_1 nor tiering, and at most 7 siblings",
        check=_association_parent,
        types=frozenset({DRA, LUSTRE}),
        why="FSx refuses the association with UnsupportedOperation after the file system is made.",
        fix="use PERSISTENT_2 on SSD, or set fileSystemTypeVersion to 2.15.",
        source="botocore 1.44.8 fsx model, CreateDataRepositoryAssociation and DataRepositoryAssociation",
        valid=(_PERSISTENT, _association("/data")),
        invalid=(_parent("SCRATCH_1"), _association("/data")),
    ),
    StackRule(
        id="DRA02",
        name="association-require-separate-paths",
        title="Associations have paths of their own, in the file system and in S3",
        check=_association_paths,
        types=frozenset({DRA, LUSTRE, *LUSTRE_OBJECTS}),
        early=True,
        why="FSx refuses the association with BadRequest; written inside a file system it is dropped, and nothing is linked.",
        fix="give each association a path that begins with / and overlaps no other, and an s3:// prefix of its own.",
        source="botocore 1.44.8 fsx model, FileSystemPath",
        valid=(_PERSISTENT, _association("/ns1"), _association("/ns2", name="models", prefix="models")),
        invalid=(_PERSISTENT, _association("/ns1"), _association("/ns1/ns2", name="models", prefix="models")),
    ),
    StackRule(
        id="DRA03",
        name="association-limit-events",
        title="An association exports deletions only into a bucket that keeps versions",
        check=_association_events,
        types=frozenset({DRA, BUCKET, BUCKET_VERSIONING}),
        mandatory=False,
        why="a file deleted by mistake is deleted in S3 too, and with it the only copy; an unknown event is refused by FSx.",
        fix="leave DELETED out of the export events, or turn versioning of the bucket on.",
        source="botocore 1.44.8 fsx model; FSx for Lustre guide: export changes; pulumi-aws 7.51.1 Bucket and BucketV2",
        valid=(_PERSISTENT, _association("/data")),
        invalid=(_PERSISTENT, _association("/data", export=("NEW", "CHANGED", "DELETED"))),
    ),
)
