"""The bucket that checkpoints are copied to."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra import labels
from infra.component import child_options, token
from infra.iam import documents
from infra.settings import BucketSettings

_ABORT_MULTIPART_DAYS = 7


@dataclass(frozen=True, kw_only=True)
class CheckpointBucketArgs:
    """What a CheckpointBucket needs to know."""

    settings: BucketSettings
    """How long old versions are kept."""
    protect: bool
    """Whether Pulumi refuses to delete it."""


class CheckpointBucket(pulumi.ComponentResource):
    """A private, encrypted, versioned bucket that answers over TLS only; a destroy never empties it."""

    bucket_name: pulumi.Output[str]
    bucket_arn: pulumi.Output[str]

    def __init__(self, name: str, args: CheckpointBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("storage", "CheckpointBucket"), name, {"noncurrent_days": args.settings.noncurrent_days}, opts)
        bucket = aws.s3.Bucket(
            name,
            force_destroy=False,
            tags={"Name": name, labels.TAG_ROLE: "checkpoints"},
            opts=child_options(self, protect=args.protect),
        )
        self.bucket_name, self.bucket_arn = bucket.id, bucket.arn
        block = self._close(name)
        self._keep_versions(name, args.settings)
        aws.s3.BucketPolicy(
            name,
            bucket=bucket.id,
            policy=pulumi.Output.json_dumps(bucket.arn.apply(documents.bucket_tls_only)),
            # S3 refuses two changes of a bucket's access at the same moment.
            opts=child_options(self, depends_on=[block]),
        )
        self.register_outputs({"bucket_name": self.bucket_name, "bucket_arn": self.bucket_arn})

    def _close(self, name: str) -> aws.s3.BucketPublicAccessBlock:
        aws.s3.BucketServerSideEncryptionConfiguration(
            name,
            bucket=self.bucket_name,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    apply_server_side_encryption_by_default=(
                        aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(sse_algorithm="AES256")
                    )
                )
            ],
            opts=child_options(self),
        )
        return aws.s3.BucketPublicAccessBlock(
            name,
            bucket=self.bucket_name,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=child_options(self),
        )

    def _keep_versions(self, name: str, settings: BucketSettings) -> None:
        versioning = aws.s3.BucketVersioning(
            name,
            bucket=self.bucket_name,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
            opts=child_options(self),
        )
        rule = aws.s3.BucketLifecycleConfigurationRuleArgs
        aws.s3.BucketLifecycleConfiguration(
            name,
            bucket=self.bucket_name,
            rules=[
                rule(
                    id="abort-uploads",
                    status="Enabled",
                    filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
                    abort_incomplete_multipart_upload=aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                        days_after_initiation=_ABORT_MULTIPART_DAYS
                    ),
                ),
                rule(
                    id="expire-old-versions",
                    status="Enabled",
                    filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
                    noncurrent_version_expiration=aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                        noncurrent_days=settings.noncurrent_days
                    ),
                ),
            ],
            # A rule for old versions has nothing to act on before versions are kept.
            opts=child_options(self, depends_on=[versioning]),
        )
