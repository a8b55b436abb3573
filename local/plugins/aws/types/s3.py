"""S3 buckets and their settings, which Pulumi has as resources of their own."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from local.plugins.aws.errors import AwsError
from local.plugins.aws.row import Call, Name, Prop, Row, Step, Tags, Wait, fixed
from local.plugins.aws.run import Run

_BUCKET = {"Bucket": "$id"}


_CREATE = Call(op="CreateBucket")


def _create_bucket(run: Run) -> dict[str, Any]:
    params, sources = run.params(_CREATE, creating=True)
    # The first region is the default one, and S3 refuses to be told so.
    if run.region != "us-east-1":
        params["CreateBucketConfiguration"] = {"LocationConstraint": run.region}
    run.call("CreateBucket", params, sources)
    return {"Bucket": run.inputs["bucket"]}


def _describe_bucket(run: Run) -> dict[str, Any]:
    run.call("HeadBucket", {"Bucket": run.resource_id})
    return {"Bucket": run.resource_id, "ObjectLockEnabled": _object_lock(run)}


def _object_lock(run: Run) -> bool:
    try:
        found = run.call("GetObjectLockConfiguration", {"Bucket": run.resource_id})
    except AwsError as error:
        if error.code == "ObjectLockConfigurationNotFoundError":
            return False
        raise
    return found["ObjectLockConfiguration"].get("ObjectLockEnabled") == "Enabled"


def _delete_bucket(run: Run) -> None:
    if run.inputs.get("forceDestroy"):
        _empty(run)
    run.call("DeleteBucket", {"Bucket": run.resource_id})


def _empty(run: Run) -> None:
    """Every version and every delete marker, a page at a time."""
    while True:
        page = run.call("ListObjectVersions", {"Bucket": run.resource_id})
        items = [*(page.get("Versions") or ()), *(page.get("DeleteMarkers") or ())]
        if not items:
            return
        objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in items]
        answer = run.call("DeleteObjects", {"Bucket": run.resource_id, "Delete": {"Objects": objects, "Quiet": True}})
        for failure in answer.get("Errors") or ():
            raise AwsError(f"DeleteObjects: {failure['Code']}: {failure['Message']} (object {failure['Key']})", code=failure["Code"])


def _tagging(run: Run) -> Any:
    try:
        return run.call("GetBucketTagging", {"Bucket": run.resource_id})
    except AwsError as error:
        if error.code == "NoSuchTagSet":
            return {}
        raise


def _put_tags(run: Run, tags: Mapping[str, str]) -> None:
    if tags:
        items = [{"Key": key, "Value": value} for key, value in tags.items()]
        run.call("PutBucketTagging", {"Bucket": run.resource_id, "Tagging": {"TagSet": items}}, {"Tagging": "tags"})
    else:
        run.call("DeleteBucketTagging", {"Bucket": run.resource_id})


BUCKET = Row(
    token="aws:s3/bucket:Bucket",
    service="s3",
    create=_create_bucket,
    form=_CREATE,
    id="{bucket}",
    read=_describe_bucket,
    delete=_delete_bucket,
    gone=("404",),
    props={
        "bucket": Prop(replace=True),
        "bucketPrefix": Prop(write_only=True, replace=True),
        "objectLockEnabled": Prop(param="ObjectLockEnabledForBucket", read="ObjectLockEnabled", replace=True, computed=True),
        "forceDestroy": Prop(write_only=True, default=False),
    },
    outputs={
        "arn": "arn:{partition}:s3:::{bucket}",
        "bucketDomainName": "{bucket}.s3.amazonaws.com",
        "bucketRegionalDomainName": "{bucket}.s3.{region}.amazonaws.com",
        "bucketRegion": "{region}",
    },
    tags=Tags(create="", put=_put_tags, read=_tagging, at="TagSet"),
    name=Name(prop="bucket", longest=63, lower=True, prefix_prop="bucketPrefix"),
)


def _setting(token: str, put: str, get: str, result: str, delete: Step, props: Mapping[str, Prop], created: Wait | None = None) -> Row:
    """A setting of a bucket: set by one call as a whole, found under the bucket's name."""
    changing = tuple(name for name, prop in props.items() if not prop.write_only)
    return Row(
        token=token,
        service="s3",
        create=Call(op=put),
        id="{bucket}",
        read=lambda run: _with_bucket(run, get, result),
        delete=delete,
        props={**fixed("bucket"), **props},
        updates=[Call(op=put, by=_BUCKET, takes=changing, whole=True)],
        created=created,
        delete_before_replace=True,
    )


def _with_bucket(run: Run, get: str, result: str) -> dict[str, Any] | None:
    found = run.call(get, {"Bucket": run.resource_id})
    wanted = found.get(result) if result else {key: value for key, value in found.items() if key != "ResponseMetadata"}
    return {"Bucket": run.resource_id, **wanted} if wanted else None


def _lifecycle_rules(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A rule without a filter is for all objects, which S3 wants to be said."""
    return [rule if rule.get("filter") or rule.get("prefix") else {**rule, "filter": {"prefix": ""}} for rule in rules]


def _suspend(run: Run) -> None:
    """Versioning can't be taken off a bucket any more, only be halted."""
    status = (run.value("versioningConfiguration") or {}).get("status")
    if status == "Enabled":
        run.call("PutBucketVersioning", {"Bucket": run.resource_id, "VersioningConfiguration": {"Status": "Suspended"}})


VERSIONING = _setting(
    "aws:s3/bucketVersioning:BucketVersioning",
    "PutBucketVersioning",
    "GetBucketVersioning",
    "",
    _suspend,
    {
        "versioningConfiguration": Prop(read=lambda found, declared: {"Status": found.get("Status"), "MFADelete": found.get("MFADelete")}),
        "expectedBucketOwner": Prop(read="", replace=True),
        "mfa": Prop(param="MFA", read=""),
    },
)
ENCRYPTION = _setting(
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "PutBucketEncryption",
    "GetBucketEncryption",
    "ServerSideEncryptionConfiguration",
    Call(op="DeleteBucketEncryption", by=_BUCKET),
    {
        "rules": Prop(param="ServerSideEncryptionConfiguration.Rules"),
        "expectedBucketOwner": Prop(read="", replace=True),
    },
)
LIFECYCLE = _setting(
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "PutBucketLifecycleConfiguration",
    "GetBucketLifecycleConfiguration",
    "",
    Call(op="DeleteBucketLifecycle", by=_BUCKET),
    {
        "rules": Prop(param="LifecycleConfiguration.Rules", send=_lifecycle_rules, computed_below=("filter", "prefix")),
        "expectedBucketOwner": Prop(read="", replace=True),
        "transitionDefaultMinimumObjectSize": Prop(computed=True),
    },
)
_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
PUBLIC_ACCESS_BLOCK = _setting(
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "PutPublicAccessBlock",
    "GetPublicAccessBlock",
    "PublicAccessBlockConfiguration",
    Call(op="DeletePublicAccessBlock", by=_BUCKET),
    {name: Prop(param=f"PublicAccessBlockConfiguration.{name[0].upper()}{name[1:]}", default=False) for name in _BLOCKS},
)
BUCKET_POLICY = _setting(
    "aws:s3/bucketPolicy:BucketPolicy",
    "PutBucketPolicy",
    "GetBucketPolicy",
    "",
    Call(op="DeleteBucketPolicy", by=_BUCKET),
    {"policy": Prop(json=True)},
)
OWNERSHIP = _setting(
    "aws:s3/bucketOwnershipControls:BucketOwnershipControls",
    "PutBucketOwnershipControls",
    "GetBucketOwnershipControls",
    "OwnershipControls",
    Call(op="DeleteBucketOwnershipControls", by=_BUCKET),
    {"rule": Prop(param="OwnershipControls.Rules", read="Rules[0]")},
)


def _older_spelling(row: Row) -> Row:
    """The SDK still has the names that ended in V2."""
    return replace(row, token=f"{row.token.split(':')[0]}:{row.token.split(':')[1]}V2:{row.token.split(':')[2]}V2")


ROWS = (
    BUCKET,
    VERSIONING,
    ENCRYPTION,
    LIFECYCLE,
    PUBLIC_ACCESS_BLOCK,
    BUCKET_POLICY,
    OWNERSHIP,
    *(_older_spelling(row) for row in (BUCKET, VERSIONING, ENCRYPTION, LIFECYCLE)),
)
