"""Tags in the forms that AWS's services have for them."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from local.aws.inventory import Account


def tags_of(tags: Any) -> dict[str, str]:
    """Tags as a mapping, from a mapping or from a list of Key and Value."""
    if isinstance(tags, Mapping):
        return dict(tags)
    return {str(tag["Key"]): str(tag["Value"]) for tag in tags or ()}


def bucket_tags(account: Account, bucket: str) -> dict[str, str]:
    """Tags of a bucket; AWS calls it an error where there are none."""
    try:
        return tags_of(account.client("s3").get_bucket_tagging(Bucket=bucket)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchTagSet":
            raise
        return {}
