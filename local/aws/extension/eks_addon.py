"""EKS add-ons. Sources: botocore eks 2017-11-01; EKS user guide, "Amazon EKS add-ons". Versions: the pinned and earlier ones."""

import json
from datetime import UTC, datetime

from moto.eks.responses import EKSResponse
from moto.moto_api._internal import mock_random

from infra.versions import EKS_ADDONS
from local.aws.eks_versions import KUBERNETES_VERSIONS
from local.aws.extension import eks_pod_identity
from local.aws.extension.eks_error import bad_parameter, in_use, not_found
from local.aws.extension.eks_lookup import cluster_of, role_of
from local.aws.extension.eks_update import updated
from local.aws.extension.hooks import Call, Params, add_operations
from local.aws.extension.store import Record, store_of

# One earlier release each, so that an update and a downgrade can be tried.
EARLIER = {
    "vpc-cni": "v1.20.1-eksbuild.1",
    "kube-proxy": "v1.35.0-eksbuild.2",
    "coredns": "v1.12.3-eksbuild.1",
    "eks-pod-identity-agent": "v1.3.8-eksbuild.2",
    "aws-ebs-csi-driver": "v1.48.0-eksbuild.1",
    "aws-efs-csi-driver": "v2.1.11-eksbuild.1",
    "aws-fsx-csi-driver": "v1.6.0-eksbuild.1",
}
# Namespace of an add-on's service accounts, where it is not kube-system.
CONFLICTS = ("OVERWRITE", "NONE", "PRESERVE")


def versions(name: str) -> list[str]:
    """Versions of an add-on, newest first; none for an add-on that is not known here."""
    return [EKS_ADDONS[name], EARLIER[name]] if name in EKS_ADDONS else []


def create(call: Call, given: Params) -> Params:
    """CreateAddon: CREATING in the answer, ACTIVE from then on."""
    cluster, name = cluster_of(call, given["clusterName"]), given["addonName"]
    if not versions(name):
        raise bad_parameter(f"Addon {name} specified is not supported in {cluster.version} kubernetes version", addonName=name)
    if (cluster.name, name) in store_of(call).addons:
        raise in_use("Addon already exists.", clusterName=cluster.name, addonName=name)
    version = given.get("addonVersion") or versions(name)[0]
    _check(call, name, version, given)
    now, place = datetime.now(UTC), f"{call.region}:{call.current_account}"
    record: Record = {
        "addonName": name,
        "clusterName": cluster.name,
        "status": "ACTIVE",
        "addonVersion": version,
        "health": {"issues": []},
        "addonArn": f"arn:{call.partition}:eks:{place}:addon/{cluster.name}/{name}/{mock_random.uuid4()}",
        "createdAt": now,
        "modifiedAt": now,
        "tags": given.get("tags") or {},
        "podIdentityAssociations": [],
        "namespaceConfig": given.get("namespaceConfig") or {"namespace": "kube-system"},
    }
    record |= {member: given[member] for member in ("serviceAccountRoleArn", "configurationValues") if given.get(member)}
    _set_identities(call, record, given.get("podIdentityAssociations"))
    store_of(call).addons[(cluster.name, name)] = record
    return {"addon": record | {"status": "CREATING"}}


def _check(call: Call, name: str, version: str, given: Params) -> None:
    if version not in versions(name):
        raise bad_parameter(
            f"Addon version {version} specified is not supported. Supported are {', '.join(versions(name))}.", addonName=name
        )
    conflicts = given.get("resolveConflicts")
    if conflicts not in (None, *CONFLICTS):
        raise bad_parameter(f"resolveConflicts {conflicts} is not valid: must be one of {', '.join(CONFLICTS)}.", addonName=name)
    if given.get("serviceAccountRoleArn"):
        role_of(call, given["serviceAccountRoleArn"])
    text = given.get("configurationValues")
    if text:
        try:
            values = json.loads(text)
        except ValueError:
            # EKS takes YAML as well; only the JSON form is looked into.
            values = {}
        if not isinstance(values, dict):
            raise bad_parameter("ConfigurationValue provided in request is not supported: it must be an object.", addonName=name)


def _set_identities(call: Call, record: Record, wanted: list[Params] | None) -> None:
    if wanted is None:
        return
    store, cluster = store_of(call), record["clusterName"]
    for key in [key for key, each in store.pod_identities.items() if each.get("ownerArn") == record["addonArn"]]:
        del store.pod_identities[key]
    namespace = record["namespaceConfig"]["namespace"]
    record["podIdentityAssociations"] = [
        eks_pod_identity.add(call, cluster, each | {"namespace": namespace}, owner=record["addonArn"])["associationArn"] for each in wanted
    ]


def _known(call: Call, given: Params) -> Record:
    cluster, name = cluster_of(call, given["clusterName"]).name, given["addonName"]
    record = store_of(call).addons.get((cluster, name))
    if record is None:
        raise not_found(f"No addon: {name} found in cluster: {cluster}", clusterName=cluster, addonName=name)
    return record


def describe(call: Call, given: Params) -> Params:
    """DescribeAddon."""
    return {"addon": _known(call, given)}


def list_addons(call: Call, given: Params) -> Params:
    """ListAddons."""
    cluster = cluster_of(call, given["clusterName"]).name
    return {"addons": [name for owner, name in store_of(call).addons if owner == cluster]}


def update(call: Call, given: Params) -> Params:
    """UpdateAddon."""
    record = _known(call, given)
    version = given.get("addonVersion") or record["addonVersion"]
    _check(call, record["addonName"], version, given)
    record["addonVersion"] = version
    for member in ("serviceAccountRoleArn", "configurationValues"):
        if given.get(member) is not None:
            record[member] = given[member]
    _set_identities(call, record, given.get("podIdentityAssociations"))
    record["modifiedAt"] = datetime.now(UTC)
    return {"update": updated(call, record["clusterName"], "AddonUpdate", {"AddonVersion": version})}


def delete(call: Call, given: Params) -> Params:
    """DeleteAddon, with the associations it owns."""
    record = _known(call, given)
    _set_identities(call, record, [])
    del store_of(call).addons[(record["clusterName"], record["addonName"])]
    return {"addon": record | {"status": "DELETING"}}


def describe_versions(call: Call, given: Params) -> Params:
    """DescribeAddonVersions, by add-on and by Kubernetes version; the newest is the default."""
    wanted, kubernetes = given.get("addonName"), given.get("kubernetesVersion")
    names = [name for name in EKS_ADDONS if wanted in (None, name)]
    if wanted and not names:
        raise not_found(f"No addon versions found for {wanted}", addonName=wanted)
    return {
        "addons": [
            {
                "addonName": name,
                "type": "networking" if name in ("vpc-cni", "kube-proxy", "coredns") else "storage" if "csi" in name else "security",
                "owner": "aws",
                "publisher": "eks",
                "defaultNamespace": "kube-system",
                "addonVersions": [_version_info(name, version, kubernetes) for version in versions(name)],
            }
            for name in names
        ]
    }


def _version_info(name: str, version: str, kubernetes: str | None) -> Params:
    served = [each for each in KUBERNETES_VERSIONS if kubernetes in (None, each)]
    return {
        "addonVersion": version,
        "architecture": ["amd64", "arm64"],
        "computeTypes": ["ec2"],
        "compatibilities": [
            {"clusterVersion": each, "platformVersions": ["*"], "defaultVersion": version == versions(name)[0]} for each in served
        ],
        "requiresConfiguration": False,
        "requiresIamPermissions": "csi" in name or name == "vpc-cni",
    }


def install() -> None:
    """Add the operations to EKS."""
    add_operations(
        EKSResponse,
        {
            "create_addon": create,
            "describe_addon": describe,
            "list_addons": list_addons,
            "update_addon": update,
            "delete_addon": delete,
            "describe_addon_versions": describe_versions,
        },
    )
