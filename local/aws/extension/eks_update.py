"""EKS updates: what a change of a cluster, node group or add-on answers, and DescribeUpdate. Source: botocore eks 2017-11-01."""

from collections.abc import Mapping
from datetime import UTC, datetime

from moto.eks.responses import EKSResponse
from moto.moto_api._internal import mock_random

from local.aws.extension.eks_error import not_found
from local.aws.extension.hooks import Call, Params, add_operations
from local.aws.extension.store import store_of


def updated(call: Call, cluster: str, kind: str, params: Mapping[str, str], *, error: Params | None = None) -> Params:
    """Record an update and answer it as InProgress; DescribeUpdate then says Successful, or Failed with `error`."""
    update_id = str(mock_random.uuid4())
    record = {
        "id": update_id,
        "status": "Failed" if error else "Successful",
        "type": kind,
        "params": [{"type": name, "value": value} for name, value in params.items()],
        "createdAt": datetime.now(UTC),
        "errors": [error] if error else [],
    }
    store_of(call).eks_updates[(cluster, update_id)] = record
    return record | {"status": "InProgress", "errors": []}


def describe(call: Call, given: Params) -> Params:
    """DescribeUpdate."""
    record = store_of(call).eks_updates.get((given["name"], given["updateId"]))
    if record is None:
        raise not_found(f"No update found for ID: {given['updateId']}", clusterName=given["name"])
    return {"update": record}


def list_ids(call: Call, given: Params) -> Params:
    """ListUpdates."""
    return {"updateIds": [update_id for cluster, update_id in store_of(call).eks_updates if cluster == given["name"]]}


def install() -> None:
    """Add the two operations to EKS."""
    add_operations(EKSResponse, {"describe_update": describe, "list_updates": list_ids})
