"""EC2 tags of the resources we add: kept where moto keeps all of EC2's, so that CreateTags and DescribeTags work on them."""

from collections.abc import Mapping, Sequence
from typing import Any

from moto.ec2 import utils as ec2_utils

from local.aws.extension.hooks import Call, Params
from local.aws.extension.store import ec2_of

PREFIXES = {"placement-group": "pg", "capacity-reservation": "cr"}


def install() -> None:
    """Make our resource ids known to moto's tag operations."""
    ec2_utils.EC2_RESOURCE_TO_PREFIX.update(PREFIXES)
    ec2_utils.EC2_PREFIX_TO_RESOURCE.update({prefix: kind for kind, prefix in PREFIXES.items()})


def tag_on_create(call: Call, resource_id: str, kind: str, specifications: Sequence[Params] | None) -> None:
    """Apply the `TagSpecifications` of a create request that are meant for `kind`."""
    for specification in specifications or []:
        if specification.get("ResourceType") == kind:
            ec2_of(call).create_tags([resource_id], {tag["Key"]: tag["Value"] for tag in specification.get("Tags", [])})


def tags_of(call: Call, resource_id: str) -> list[dict[str, str]]:
    """A resource's tags as EC2 lists them."""
    return [{"Key": key, "Value": value} for key, value in ec2_of(call).tags.get(resource_id, {}).items()]


def forget_tags(call: Call, resource_id: str) -> None:
    """Drop the tags of a deleted resource."""
    ec2_of(call).tags.pop(resource_id, None)


def matches(record: Mapping[str, Any], filters: Sequence[Params] | None, fields: Mapping[str, str]) -> bool:
    """Whether a described record passes EC2 `Filters`. `fields` maps filter names to the record's members; tag filters always work."""
    return all(_passes(record, given, fields) for given in filters or [])


def _passes(record: Mapping[str, Any], given: Params, fields: Mapping[str, str]) -> bool:
    name, wanted = given["Name"], given.get("Values", [])
    tags = {tag["Key"]: tag["Value"] for tag in record.get("Tags", [])}
    if name.startswith("tag:"):
        value = tags.get(name.removeprefix("tag:"))
        return value is not None and ("*" in wanted or value in wanted)
    if name == "tag-key":
        return "*" in wanted or any(key in wanted for key in tags)
    value = record.get(fields[name]) if name in fields else None
    return value is not None and str(value) in wanted
