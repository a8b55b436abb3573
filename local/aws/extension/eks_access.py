"""EKS access entries and the access policies associated with them. Sources: botocore eks 2017-11-01; EKS user guide, "Access entries"."""

from datetime import UTC, datetime

from moto.eks.responses import EKSResponse
from moto.moto_api._internal import mock_random

from local.aws.extension.eks_error import bad_parameter, bad_request, in_use, not_found
from local.aws.extension.eks_lookup import cluster_of, role_of
from local.aws.extension.hooks import Call, Params, add_operations
from local.aws.extension.store import Record, store_of

NODE_TYPES = ("EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX")
TYPES = ("STANDARD", *NODE_TYPES)
POLICIES = (
    "AmazonEKSAdminPolicy",
    "AmazonEKSAdminViewPolicy",
    "AmazonEKSAutoNodePolicy",
    "AmazonEKSClusterAdminPolicy",
    "AmazonEKSEditPolicy",
    "AmazonEKSViewPolicy",
)
POLICY_PREFIX = "arn:aws:eks::aws:cluster-access-policy/"


def check_mode(call: Call, name: str) -> None:
    """Access entries need a cluster whose authentication mode knows them."""
    if cluster_of(call, name).access_config["authenticationMode"] == "CONFIG_MAP":
        raise bad_request(
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.", clusterName=name
        )


def create(call: Call, given: Params) -> Params:
    """CreateAccessEntry."""
    cluster, principal = given["clusterName"], given["principalArn"]
    check_mode(call, cluster)
    kind, groups = given.get("type") or "STANDARD", given.get("kubernetesGroups") or []
    if kind not in TYPES:
        raise bad_parameter(f"The type {kind} is not valid: must be one of {', '.join(TYPES)}.", clusterName=cluster)
    if kind != "STANDARD" and (groups or given.get("username")):
        raise bad_parameter(
            f"kubernetesGroups and username can't be specified for an access entry of the type {kind}.", clusterName=cluster
        )
    _check_groups(cluster, groups)
    _check_principal(call, cluster, principal)
    if (cluster, principal) in store_of(call).access_entries:
        raise in_use("The specified access entry resource is already in use on this cluster.", clusterName=cluster)
    return {"accessEntry": add(call, cluster, principal, kind, given)}


def _check_groups(cluster: str, groups: list[str]) -> None:
    for group in groups:
        if group.startswith(("system:", "eks:", "aws:", "amazon:", "iam:")):
            raise bad_parameter(f"The kubernetes group name {group} is invalid, it starts with a reserved prefix.", clusterName=cluster)


def _check_principal(call: Call, cluster: str, principal: str) -> None:
    parts = principal.split(":")
    if len(parts) != 6 or parts[2] != "iam" or parts[5].split("/")[0] not in ("role", "user", "root"):
        raise bad_parameter("The specified principalArn is invalid: invalid principal.", clusterName=cluster)
    if parts[4] == call.current_account and parts[5].startswith("role/") and "/aws-reserved/" not in principal:
        role_of(call, principal)


def add(call: Call, cluster: str, principal: str, kind: str, given: Params) -> Record:
    """Record an entry, without checks."""
    account, resource = principal.split(":")[4:6]
    now = datetime.now(UTC)
    path = f"{cluster}/{resource.split('/')[0]}/{account}/{resource.split('/')[-1]}/{mock_random.uuid4()}"
    record: Record = {
        "clusterName": cluster,
        "principalArn": principal,
        "kubernetesGroups": ["system:nodes"] if kind.startswith("EC2_") else given.get("kubernetesGroups") or [],
        "accessEntryArn": f"arn:{call.partition}:eks:{call.region}:{call.current_account}:access-entry/{path}",
        "createdAt": now,
        "modifiedAt": now,
        "tags": given.get("tags") or {},
        "username": given.get("username") or _default_username(kind, principal, account),
        "type": kind,
    }
    store_of(call).access_entries[(cluster, principal)] = record
    store_of(call).access_policies[(cluster, principal)] = {}
    return record


def _default_username(kind: str, principal: str, account: str) -> str:
    if kind != "STANDARD":
        return "system:node:{{EC2PrivateDNSName}}" if kind != "FARGATE_LINUX" else "system:node:{{SessionName}}"
    if ":role/" in principal:
        return f"arn:aws:sts::{account}:assumed-role/{principal.rpartition('/')[2]}/{{{{SessionName}}}}"
    return principal


def admit_creator(call: Call, cluster: str) -> None:
    """The entry that EKS makes for whoever creates a cluster: administrator."""
    principal = f"arn:{call.partition}:iam::{call.current_account}:root"
    add(call, cluster, principal, "STANDARD", {})
    _grant(call, cluster, principal, f"{POLICY_PREFIX}AmazonEKSClusterAdminPolicy", {"type": "cluster", "namespaces": []})


def known(call: Call, given: Params) -> Record:
    """The entry a request names. ResourceNotFoundException where there is none."""
    cluster, principal = given["clusterName"], given["principalArn"]
    cluster_of(call, cluster)
    record = store_of(call).access_entries.get((cluster, principal))
    if record is None:
        raise not_found(
            "The specified principalArn could not be found. You can view your available access entries with 'list-access-entries'."
        )
    return record


def describe(call: Call, given: Params) -> Params:
    """DescribeAccessEntry."""
    return {"accessEntry": known(call, given)}


def list_entries(call: Call, given: Params) -> Params:
    """ListAccessEntries, by associated policy if one is given."""
    cluster, policy = given["clusterName"], given.get("associatedPolicyArn")
    cluster_of(call, cluster)
    store = store_of(call)
    return {
        "accessEntries": [
            principal
            for owner, principal in store.access_entries
            if owner == cluster and (policy is None or policy in store.access_policies[(cluster, principal)])
        ]
    }


def update(call: Call, given: Params) -> Params:
    """UpdateAccessEntry: groups and user name of a STANDARD entry."""
    record = known(call, given)
    if record["type"] != "STANDARD":
        raise bad_parameter(f"An access entry of the type {record['type']} can't be updated.", clusterName=given["clusterName"])
    if given.get("kubernetesGroups") is not None:
        _check_groups(given["clusterName"], given["kubernetesGroups"])
        record["kubernetesGroups"] = given["kubernetesGroups"]
    if given.get("username"):
        record["username"] = given["username"]
    record["modifiedAt"] = datetime.now(UTC)
    return {"accessEntry": record}


def delete(call: Call, given: Params) -> None:
    """DeleteAccessEntry, with its policies."""
    record = known(call, given)
    key = (record["clusterName"], record["principalArn"])
    del store_of(call).access_entries[key]
    store_of(call).access_policies.pop(key, None)


def associate(call: Call, given: Params) -> Params:
    """AssociateAccessPolicy: on STANDARD entries; a namespace scope names namespaces."""
    record, policy, scope = known(call, given), given["policyArn"], given["accessScope"]
    if record["type"] != "STANDARD":
        raise bad_request(f"Access policies can't be associated with an access entry of the type {record['type']}.")
    if policy.removeprefix(POLICY_PREFIX) not in POLICIES:
        raise bad_parameter(f"The policyArn {policy} is not valid. Valid are {', '.join(POLICY_PREFIX + name for name in POLICIES)}.")
    kind, namespaces = scope.get("type"), scope.get("namespaces") or []
    if kind not in ("cluster", "namespace"):
        raise bad_parameter(f"The access scope type {kind} is not valid: must be cluster or namespace.")
    if (kind == "namespace") != bool(namespaces):
        raise bad_parameter("Namespaces must be specified for the access scope type namespace, and only for it.")
    return {
        "clusterName": record["clusterName"],
        "principalArn": record["principalArn"],
        "associatedAccessPolicy": _grant(
            call, record["clusterName"], record["principalArn"], policy, {"type": kind, "namespaces": namespaces}
        ),
    }


def _grant(call: Call, cluster: str, principal: str, policy: str, scope: Params) -> Record:
    now = datetime.now(UTC)
    granted = store_of(call).access_policies[(cluster, principal)]
    granted[policy] = {
        "policyArn": policy,
        "accessScope": scope,
        "associatedAt": granted.get(policy, {}).get("associatedAt", now),
        "modifiedAt": now,
    }
    return granted[policy]


def disassociate(call: Call, given: Params) -> None:
    """DisassociateAccessPolicy."""
    record = known(call, given)
    granted = store_of(call).access_policies[(record["clusterName"], record["principalArn"])]
    if granted.pop(given["policyArn"], None) is None:
        raise not_found(f"The policy {given['policyArn']} is not associated with the access entry.")


def list_associated(call: Call, given: Params) -> Params:
    """ListAssociatedAccessPolicies."""
    record = known(call, given)
    granted = store_of(call).access_policies[(record["clusterName"], record["principalArn"])]
    return {
        "clusterName": record["clusterName"],
        "principalArn": record["principalArn"],
        "associatedAccessPolicies": list(granted.values()),
    }


def list_policies(call: Call, given: Params) -> Params:
    """ListAccessPolicies."""
    return {"accessPolicies": [{"name": name, "arn": POLICY_PREFIX + name} for name in POLICIES]}


def install() -> None:
    """Add the operations to EKS."""
    add_operations(
        EKSResponse,
        {
            "create_access_entry": create,
            "describe_access_entry": describe,
            "list_access_entries": list_entries,
            "update_access_entry": update,
            "delete_access_entry": delete,
            "associate_access_policy": associate,
            "disassociate_access_policy": disassociate,
            "list_associated_access_policies": list_associated,
            "list_access_policies": list_policies,
        },
    )
