"""Changes of an EKS cluster. Sources: botocore eks 2017-11-01; EKS user guide, "Update a cluster", "Access entries" (one-way modes)."""

from typing import Any

from moto.eks.responses import EKSResponse

from local.aws.eks_versions import KUBERNETES_VERSIONS
from local.aws.extension.eks_error import bad_parameter, bad_request
from local.aws.extension.eks_lookup import cluster_of
from local.aws.extension.eks_network import endpoint_access, network_of
from local.aws.extension.eks_update import updated
from local.aws.extension.hooks import Call, Params, add_operations

MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")
LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def check_logging(logging: Params | None) -> None:
    """Log types that EKS has."""
    for setup in (logging or {}).get("clusterLogging") or []:
        for kind in setup.get("types") or []:
            if kind not in LOG_TYPES:
                raise bad_parameter(f"The log type {kind} is not valid: must be one of {', '.join(LOG_TYPES)}.")


def mode_of(mode: str) -> str:
    """A valid authentication mode."""
    if mode not in MODES:
        raise bad_parameter(f"The authentication mode {mode} is not valid: must be one of {', '.join(MODES)}.")
    return mode


def update_config(call: Call, given: Params) -> Params:
    """UpdateClusterConfig: one kind of change a call, as EKS asks."""
    cluster = cluster_of(call, given["name"])
    kinds = ("resourcesVpcConfig", "logging", "accessConfig", "upgradePolicy", "zonalShiftConfig", "deletionProtection")
    asked = [kind for kind in kinds if given.get(kind) is not None]
    if len(asked) != 1:
        raise bad_parameter(
            f"Only one type of update can be requested, and one must be: {', '.join(asked) or 'none'} given.", clusterName=cluster.name
        )
    value = given[asked[0]]
    return {"update": updated(call, cluster.name, *CHANGES[asked[0]](call, cluster, value))}


def _change_network(call: Call, cluster: Any, value: Params) -> tuple[str, Params]:
    merged = cluster.resources_vpc_config | value
    if {"subnetIds", "securityGroupIds"} & value.keys():
        found = network_of(call, merged)
        if found["vpcId"] != cluster.resources_vpc_config["vpcId"]:
            raise bad_parameter("Subnets specified must belong to the cluster's VPC", clusterName=cluster.name)
    cluster.resources_vpc_config = merged | endpoint_access(merged)
    return "VpcConfigUpdate" if {"subnetIds", "securityGroupIds"} & value.keys() else "EndpointAccessUpdate", {}


def _change_logging(call: Call, cluster: Any, value: Params) -> tuple[str, Params]:
    check_logging(value)
    cluster.logging = value
    return "LoggingUpdate", {"ClusterLogging": str(value)}


def _change_access(call: Call, cluster: Any, value: Params) -> tuple[str, Params]:
    wanted, current = mode_of(value["authenticationMode"]), cluster.access_config["authenticationMode"]
    if MODES.index(wanted) < MODES.index(current):
        raise bad_request(f"Unsupported authentication mode update from {current} to {wanted}", clusterName=cluster.name)
    cluster.access_config["authenticationMode"] = wanted
    return "AccessConfigUpdate", {"AuthenticationMode": wanted}


def _change_upgrade_policy(call: Call, cluster: Any, value: Params) -> tuple[str, Params]:
    cluster.upgrade_policy = value
    return "UpgradePolicyUpdate", {"UpgradePolicy": value["supportType"]}


def _change_zonal_shift(call: Call, cluster: Any, value: Params) -> tuple[str, Params]:
    cluster.zonal_shift_config = value
    return "ZonalShiftConfigUpdate", {"ZonalShiftConfig": str(value)}


def _change_protection(call: Call, cluster: Any, value: bool) -> tuple[str, Params]:
    cluster.deletion_protection = value
    return "DeletionProtectionUpdate", {"DeletionProtection": str(value)}


CHANGES = {
    "resourcesVpcConfig": _change_network,
    "logging": _change_logging,
    "accessConfig": _change_access,
    "upgradePolicy": _change_upgrade_policy,
    "zonalShiftConfig": _change_zonal_shift,
    "deletionProtection": _change_protection,
}


def associate_encryption(call: Call, given: Params) -> Params:
    """AssociateEncryptionConfig: once, for secrets."""
    cluster, config = cluster_of(call, given["clusterName"]), given["encryptionConfig"]
    if cluster.encryption_config:
        raise bad_request("Encryption is already enabled on the cluster.", clusterName=cluster.name)
    if any(each.get("resources") != ["secrets"] for each in config):
        raise bad_parameter('The only supported resource of an encryption configuration is "secrets".', clusterName=cluster.name)
    cluster.encryption_config = config
    return {"update": updated(call, cluster.name, "AssociateEncryptionConfig", {"EncryptionConfig": str(config)})}


def update_version(call: Call, given: Params) -> Params:
    """UpdateClusterVersion: the next minor version only."""
    cluster, wanted = cluster_of(call, given["name"]), given["version"]
    if wanted not in KUBERNETES_VERSIONS:
        raise bad_parameter(
            f"unsupported Kubernetes version {wanted}. Supported are {', '.join(KUBERNETES_VERSIONS)}.", clusterName=cluster.name
        )
    if KUBERNETES_VERSIONS.index(wanted) - KUBERNETES_VERSIONS.index(cluster.version) != 1:
        raise bad_parameter(f"Unsupported Kubernetes minor version update from {cluster.version} to {wanted}", clusterName=cluster.name)
    cluster.version = wanted
    return {"update": updated(call, cluster.name, "VersionUpdate", {"Version": wanted})}


def install() -> None:
    """Answer EKS's updates of clusters."""
    add_operations(
        EKSResponse,
        {
            "update_cluster_config": update_config,
            "update_cluster_version": update_version,
            "associate_encryption_config": associate_encryption,
        },
    )
