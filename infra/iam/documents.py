"""IAM policy documents as plain data: pure functions of names and ARNs, no wildcard actions."""

from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]

_VERSION = "2012-10-17"


def partition(region: str) -> str:
    """Return the ARN partition that `region` lies in."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def managed_policy(region: str, name: str) -> str:
    """Return the ARN of the policy `name` (with its path, if any) that AWS manages."""
    return f"arn:{partition(region)}:iam::aws:policy/{name}"


def document(*statements: Mapping[str, Any]) -> Document:
    """Return a policy document of these statements."""
    return {"Version": _VERSION, "Statement": [dict(entry) for entry in statements]}


def statement(
    sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Return an Allow statement."""
    entry: dict[str, Any] = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    if conditions:
        entry["Condition"] = {operator: dict(values) for operator, values in conditions.items()}
    return entry


def service_trust(service: str, actions: Sequence[str] = ("sts:AssumeRole",)) -> Document:
    """Return the trust document of a role that an AWS service takes on."""
    return document({"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)})


def pod_identity_trust() -> Document:
    """Return the trust document of a role that pods take on through EKS Pod Identity."""
    return service_trust("pods.eks.amazonaws.com", ("sts:AssumeRole", "sts:TagSession"))


def fsx_csi() -> Document:
    """Return what the FSx CSI driver needs for volumes of file systems that exist already: it looks them up, and makes none."""
    return document(statement("LookUpFileSystems", ["fsx:DescribeFileSystems"], ["*"]))


def checkpoint_access(bucket_arn: str) -> Document:
    """Return what a training pod needs in the checkpoint bucket: read, write and list, no deletes of versions."""
    return document(
        statement("List", ["s3:ListBucket", "s3:ListBucketMultipartUploads"], [bucket_arn]),
        statement(
            "ReadWrite",
            ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"],
            [f"{bucket_arn}/*"],
        ),
    )


def bucket_tls_only(bucket_arn: str) -> Document:
    """Return a bucket policy that refuses plain HTTP."""
    return document(
        {
            "Sid": "RefusePlainHttp",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [bucket_arn, f"{bucket_arn}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )


def interruption_queue(queue_arn: str) -> Document:
    """Return a queue policy that lets EventBridge write to it, and nobody over plain HTTP."""
    return document(
        {
            "Sid": "EventsWrite",
            "Effect": "Allow",
            "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
        },
        {
            "Sid": "RefusePlainHttp",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": queue_arn,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    )
