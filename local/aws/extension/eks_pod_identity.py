"""EKS Pod Identity associations. Sources: botocore eks 2017-11-01; EKS user guide, "EKS Pod Identity" (trust of pods.eks.amazonaws.com)."""

import json
from datetime import UTC, datetime
from typing import Any

from moto.eks.responses import EKSResponse

from local.aws.extension.eks_error import bad_parameter, in_use, not_found
from local.aws.extension.eks_lookup import cluster_of, role_of
from local.aws.extension.hooks import Call, Params, add_operations
from local.aws.extension.store import Record, random_hex, store_of

SERVICE = "pods.eks.amazonaws.com"
ACTIONS = {"sts:AssumeRole", "sts:TagSession"}


def create(call: Call, given: Params) -> Params:
    """CreatePodIdentityAssociation: one a service account."""
    cluster = cluster_of(call, given["clusterName"]).name
    for record in records(call, cluster):
        if (record["namespace"], record["serviceAccount"]) == (given["namespace"], given["serviceAccount"]):
            raise in_use(f"Association already exists: {record['associationId']}", clusterName=cluster)
    return {"association": add(call, cluster, given)}


def add(call: Call, cluster: str, given: Params, *, owner: str | None = None) -> Record:
    """Check the role and record an association; `owner` is the ARN of the add-on that made it."""
    check_role(call, given["roleArn"])
    association_id, now, place = f"a-{random_hex(17)}", datetime.now(UTC), f"{call.region}:{call.current_account}"
    record: Record = {
        "clusterName": cluster,
        "namespace": given["namespace"],
        "serviceAccount": given["serviceAccount"],
        "roleArn": given["roleArn"],
        "associationArn": f"arn:{call.partition}:eks:{place}:podidentityassociation/{cluster}/{association_id}",
        "associationId": association_id,
        "tags": given.get("tags") or {},
        "createdAt": now,
        "modifiedAt": now,
        "disableSessionTags": bool(given.get("disableSessionTags")),
    }
    record |= {"ownerArn": owner} if owner else {}
    record |= {"targetRoleArn": given["targetRoleArn"]} if given.get("targetRoleArn") else {}
    store_of(call).pod_identities[(cluster, association_id)] = record
    return record


def check_role(call: Call, arn: str) -> None:
    """The role must exist and let Pod Identity assume it and tag its sessions."""
    document = role_of(call, arn).assume_role_policy_document
    statements = _listed((json.loads(document) if isinstance(document, str) else document).get("Statement"))
    allowed: set[str] = set()
    for statement in statements:
        principal = statement.get("Principal")
        services = _listed(principal.get("Service")) if isinstance(principal, dict) else []
        if statement.get("Effect") == "Allow" and SERVICE in services:
            allowed |= set(_listed(statement.get("Action")))
    if not allowed >= ACTIONS and not allowed & {"*", "sts:*"}:
        raise bad_parameter(
            f"Trust policy of the role {arn} is invalid: it must allow {' and '.join(sorted(ACTIONS))} to the service {SERVICE}."
        )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def records(call: Call, cluster: str) -> list[Record]:
    """All associations of a cluster."""
    return [record for (owner, _), record in store_of(call).pod_identities.items() if owner == cluster]


def _known(call: Call, given: Params) -> Record:
    cluster = cluster_of(call, given["clusterName"]).name
    record = store_of(call).pod_identities.get((cluster, given["associationId"]))
    if record is None:
        raise not_found(f"Association not found: {given['associationId']}", clusterName=cluster)
    return record


def describe(call: Call, given: Params) -> Params:
    """DescribePodIdentityAssociation."""
    return {"association": _known(call, given)}


def list_associations(call: Call, given: Params) -> Params:
    """ListPodIdentityAssociations, by namespace and service account."""
    members = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId", "ownerArn")
    cluster = cluster_of(call, given["clusterName"]).name
    chosen = [
        record
        for record in records(call, cluster)
        if all(given.get(member) in (None, record[member]) for member in ("namespace", "serviceAccount"))
    ]
    return {"associations": [{member: record[member] for member in members if member in record} for record in chosen]}


def update(call: Call, given: Params) -> Params:
    """UpdatePodIdentityAssociation: another role."""
    record = _known(call, given)
    if given.get("roleArn"):
        check_role(call, given["roleArn"])
    for member in ("roleArn", "targetRoleArn", "disableSessionTags"):
        if given.get(member) is not None:
            record[member] = given[member]
    record["modifiedAt"] = datetime.now(UTC)
    return {"association": record}


def delete(call: Call, given: Params) -> Params:
    """DeletePodIdentityAssociation."""
    record = _known(call, given)
    return {"association": store_of(call).pod_identities.pop((record["clusterName"], record["associationId"]))}


def install() -> None:
    """Add the operations to EKS."""
    add_operations(
        EKSResponse,
        {
            "create_pod_identity_association": create,
            "describe_pod_identity_association": describe,
            "list_pod_identity_associations": list_associations,
            "update_pod_identity_association": update,
            "delete_pod_identity_association": delete,
        },
    )
