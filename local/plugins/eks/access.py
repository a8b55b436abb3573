"""The access entries inside eks.Cluster."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi.errors import InputPropertyError

_ENTRY = frozenset({"principalArn", "username", "kubernetesGroups", "accessPolicies", "tags", "type"})


def create_access_entries(
    name: str, entries: Mapping[str, Mapping[str, Any]], cluster: aws.eks.Cluster, child: pulumi.ResourceOptions
) -> list[aws.eks.AccessEntry]:
    """An entry for each principal, with the associations of its policies beneath it.

    Raises:
        InputPropertyError: an entry holds a key that is none of an entry's.
    """
    after = pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=[cluster]))
    return [_create_entry(f"{name}-{key}", key, entry, cluster, after) for key, entry in entries.items()]


def _create_entry(
    name: str, key: str, entry: Mapping[str, Any], cluster: aws.eks.Cluster, after: pulumi.ResourceOptions
) -> aws.eks.AccessEntry:
    unknown = sorted(set(entry) - _ENTRY)
    if unknown:
        raise InputPropertyError(f"accessEntries.{key}.{unknown[0]}", f"no such key; known are {', '.join(sorted(_ENTRY))}")
    made = aws.eks.AccessEntry(
        name,
        cluster_name=cluster.name,
        principal_arn=entry["principalArn"],
        kubernetes_groups=entry.get("kubernetesGroups"),
        type=entry.get("type"),
        user_name=entry.get("username"),
        tags=entry.get("tags"),
        opts=after,
    )
    beneath = pulumi.ResourceOptions(parent=made, depends_on=[made])
    for association, policy in (entry.get("accessPolicies") or {}).items():
        known = pulumi.Output.from_input(policy)
        aws.eks.AccessPolicyAssociation(
            f"{name}-{association}",
            cluster_name=cluster.name,
            principal_arn=entry["principalArn"],
            policy_arn=known.apply(lambda given: given["policyArn"]),
            access_scope=known.apply(lambda given: given["accessScope"]),
            opts=beneath,
        )
    return made
