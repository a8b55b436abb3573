"""Forms that EC2's types share."""

from typing import Any

from local.plugins.aws.row import Call, Tags
from local.plugins.aws.run import Run

ARN = "arn:{partition}:ec2:{region}:{account}:"
"""Beginning of the ARNs which EC2 does not tell itself."""

DEPENDENTS = ("DependencyViolation", "InvalidIPAddress.InUse", "InvalidGroup.InUse", "InvalidPlacementGroup.InUse", "AuthFailure")
"""Refusals of a deletion that end once other deletions have come through."""


def ec2_tags(resource_type: str, resource: str = "$id") -> Tags:
    """Tags of an EC2 resource; `resource_type` is EC2's word in TagSpecifications, `resource` where its EC2 id is."""
    return Tags(
        spec=resource_type,
        add=Call(op="CreateTags", by={"Resources": [resource]}),
        remove=Call(op="DeleteTags", by={"Resources": [resource]}),
        remove_as="Tags",
    )


def first(run: Run, op: str, result: str, **params: Any) -> dict[str, Any] | None:
    """First item of a describe call's list, if any."""
    items = run.call(op, params)[result]
    return items[0] if items else None
