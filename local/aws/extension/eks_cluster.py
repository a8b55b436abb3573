"""EKS clusters. Sources: botocore eks 2017-11-01; EKS user guide, "Create a cluster", "Access entries", "Security group requirements"."""

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from moto.eks.models import eks_backends
from moto.eks.responses import EKSResponse

from local.aws.eks_versions import DEFAULT_VERSION, KUBERNETES_VERSIONS, STANDARD_SUPPORT
from local.aws.extension import eks_access
from local.aws.extension.eks_cluster_update import check_logging, mode_of
from local.aws.extension.eks_error import bad_parameter, bad_request, in_use
from local.aws.extension.eks_lookup import cluster_of, role_of
from local.aws.extension.eks_network import check_services, connect, delete_group, network_of
from local.aws.extension.hooks import Call, Params, add_operations
from local.aws.extension.store import ec2_of, random_hex, store_of


def create(call: Call, given: Params) -> Params:
    """CreateCluster: CREATING in the answer, ACTIVE from then on; with its security group and its interfaces in the subnets."""
    backend = eks_backends[call.current_account][call.region]
    name = given["name"]
    if not re.fullmatch(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", name):
        raise bad_parameter(f"The cluster name {name} is not valid: letters, digits, dashes and underscores, at most 100.")
    if name in backend.clusters:
        raise in_use(f"Cluster already exists with name: {name}", clusterName=name)
    version = given.get("version") or DEFAULT_VERSION
    if version not in KUBERNETES_VERSIONS:
        raise bad_parameter(f"unsupported Kubernetes version {version}. Supported are {', '.join(KUBERNETES_VERSIONS)}.", clusterName=name)
    role_of(call, given["roleArn"])
    network = network_of(call, given["resourcesVpcConfig"])
    check_services(call, given, network["vpcId"])
    check_logging(given.get("logging"))
    mode = mode_of((given.get("accessConfig") or {}).get("authenticationMode") or "CONFIG_MAP")
    cluster = backend.create_cluster(
        name=name,
        role_arn=given["roleArn"],
        resources_vpc_config=network,
        version=version,
        logging=given.get("logging"),
        tags=given.get("tags"),
        encryption_config=given.get("encryptionConfig"),
        client_request_token=given.get("clientRequestToken"),
        remote_network_config=given.get("remoteNetworkConfig"),
    )
    _complete(call, cluster, given, mode)
    connect(call, cluster)
    if (given.get("accessConfig") or {}).get("bootstrapClusterCreatorAdminPermissions", True) and mode != "CONFIG_MAP":
        eks_access.admit_creator(call, name)
    return {"cluster": described(cluster) | {"status": "CREATING"}}


def _complete(call: Call, cluster: Any, given: Params, mode: str) -> None:
    """Members that moto lacks, under the names its serializer looks for."""
    identity = random_hex(32).upper()
    cluster.endpoint = f"https://{identity}.gr7.{call.region}.eks.amazonaws.com"
    cluster.identity = {"oidc": {"issuer": f"https://oidc.eks.{call.region}.amazonaws.com/id/{identity}"}}
    cluster.certificate_authority = {"data": certificate_authority(cluster.name)}
    services = given.get("kubernetesNetworkConfig") or {}
    cluster.kubernetes_network_config = {
        "serviceIpv4Cidr": services.get("serviceIpv4Cidr") or "172.20.0.0/16",
        "ipFamily": services.get("ipFamily") or "ipv4",
    }
    creator = (given.get("accessConfig") or {}).get("bootstrapClusterCreatorAdminPermissions", True)
    cluster.access_config = {"authenticationMode": mode, "bootstrapClusterCreatorAdminPermissions": creator}
    cluster.upgrade_policy = {"supportType": (given.get("upgradePolicy") or {}).get("supportType") or "EXTENDED"}
    cluster.deletion_protection = bool(given.get("deletionProtection"))
    cluster.zonal_shift_config = given.get("zonalShiftConfig") or {"enabled": False}
    cluster.health = {"issues": []}
    cluster.platform_version = "eks.1"


def described(cluster: Any) -> Params:
    """A cluster as EKS describes it."""
    return {
        "name": cluster.name,
        "arn": cluster.arn,
        "createdAt": cluster.created_at,
        "version": cluster.version,
        "endpoint": cluster.endpoint,
        "roleArn": cluster.role_arn,
        "resourcesVpcConfig": cluster.resources_vpc_config,
        "kubernetesNetworkConfig": cluster.kubernetes_network_config,
        "logging": cluster.logging,
        "identity": cluster.identity,
        "status": cluster.status,
        "certificateAuthority": cluster.certificate_authority,
        "platformVersion": cluster.platform_version,
        "tags": cluster.tags,
        "encryptionConfig": cluster.encryption_config or None,
        "health": cluster.health,
        "accessConfig": cluster.access_config,
        "upgradePolicy": cluster.upgrade_policy,
        "zonalShiftConfig": cluster.zonal_shift_config,
        "deletionProtection": cluster.deletion_protection,
        "remoteNetworkConfig": cluster.remote_network_config,
    }


def describe(call: Call, given: Params) -> Params:
    """DescribeCluster."""
    return {"cluster": described(cluster_of(call, given["name"]))}


def delete(call: Call, given: Params) -> Params:
    """DeleteCluster: refused while it has node groups or protection. Its entries, add-ons, associations and interfaces go with it."""
    cluster, store, ec2 = cluster_of(call, given["name"]), store_of(call), ec2_of(call)
    if cluster.deletion_protection:
        raise bad_request(f"Cluster {cluster.name} has deletion protection enabled.", clusterName=cluster.name)
    if cluster.nodegroups:
        raise in_use("Cluster has nodegroups attached", clusterName=cluster.name, nodegroupName=",".join(cluster.nodegroups))
    for table in (store.access_entries, store.access_policies, store.addons, store.pod_identities, store.eks_updates):
        for key in [key for key in table if key[0] == cluster.name]:
            del table[key]
    for interface in store.cluster_interfaces.pop(cluster.name, []):
        ec2.enis.pop(interface, None)
    delete_group(call, cluster)
    del eks_backends[call.current_account][call.region].clusters[cluster.name]
    return {"cluster": described(cluster) | {"status": "DELETING"}}


def certificate_authority(name: str) -> str:
    """A self-signed certificate, base64 of PEM, as kubeconfig files carry it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"kubernetes-{name}")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=3650))
    certificate = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256())
    return base64.b64encode(certificate.public_bytes(serialization.Encoding.PEM)).decode()


def describe_versions(call: Call, given: Params) -> Params:
    """DescribeClusterVersions."""
    wanted = given.get("clusterVersions") or KUBERNETES_VERSIONS
    return {
        "clusterVersions": [
            {
                "clusterVersion": version,
                "clusterType": "eks",
                "defaultPlatformVersion": "eks.1",
                "defaultVersion": version == DEFAULT_VERSION,
                "status": "STANDARD_SUPPORT" if version in STANDARD_SUPPORT else "EXTENDED_SUPPORT",
                "versionStatus": "STANDARD_SUPPORT" if version in STANDARD_SUPPORT else "EXTENDED_SUPPORT",
            }
            for version in reversed(KUBERNETES_VERSIONS)
            if version in wanted and (not given.get("defaultOnly") or version == DEFAULT_VERSION)
        ]
    }


def install() -> None:
    """Answer EKS's operations on clusters."""
    add_operations(
        EKSResponse,
        {
            "create_cluster": create,
            "describe_cluster": describe,
            "delete_cluster": delete,
            "describe_cluster_versions": describe_versions,
        },
    )
