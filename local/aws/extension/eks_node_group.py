"""EKS managed node groups. Sources: botocore eks 2017-11-01; EKS user guide, "Managed node groups", "Launch templates", "Capacity Blocks".

No instances stand behind a node group here: the local stack's node is a real one of its own. A node group with a cluster placement group
over several zones is made but can't be updated, as on AWS.
"""

from typing import Any

from moto.eks.models import eks_backends
from moto.eks.responses import EKSResponse

from infra.versions import AL2023_RELEASE
from local.aws.eks_versions import KUBERNETES_VERSIONS
from local.aws.extension import eks_access, placement_group
from local.aws.extension.eks_error import bad_parameter, bad_request, in_use, not_found
from local.aws.extension.eks_lookup import cluster_of, role_of, subnets_of
from local.aws.extension.eks_node_group_shape import check_scaling, check_shape, instance_types, template_of, template_reference
from local.aws.extension.eks_update import updated
from local.aws.extension.hooks import Call, Params, add_guards, add_operations
from local.aws.extension.launch import check_launch
from local.aws.extension.store import store_of


def create(call: Call, given: Params) -> Params:
    """CreateNodegroup: CREATING in the answer, ACTIVE from then on; admits its role to the cluster."""
    cluster, name = cluster_of(call, given["clusterName"]), given["nodegroupName"]
    if name in cluster.nodegroups:
        raise in_use(
            f"NodeGroup already exists with name {name} and cluster name {cluster.name}", clusterName=cluster.name, nodegroupName=name
        )
    role_of(call, given["nodeRole"])
    subnets = subnets_of(call, given.get("subnets") or [])
    if not subnets:
        raise bad_parameter("Subnets are not specified", nodegroupName=name)
    template = template_of(call, given.get("launchTemplate"))
    check_shape(cluster, given, template)
    check_scaling(given.get("scalingConfig"))
    for kind in instance_types(given, template):
        check_launch(call, template | {"InstanceType": kind, "Placement": {}}, subnets[0].id)
    node_group = eks_backends[call.current_account][call.region].create_nodegroup(
        cluster_name=cluster.name,
        node_role=given["nodeRole"],
        nodegroup_name=name,
        subnets=given["subnets"],
        scaling_config=given.get("scalingConfig") or {"minSize": 1, "maxSize": 2, "desiredSize": 2},
        instance_types=given.get("instanceTypes"),
        labels=given.get("labels"),
        taints=given.get("taints"),
        tags=given.get("tags"),
        launch_template=template_reference(call, given.get("launchTemplate")),
        capacity_type=given.get("capacityType"),
        version=given.get("version") or cluster.version,
    )
    _complete(node_group, given, template)
    _admit(call, cluster, given["nodeRole"])
    return {"nodegroup": described(node_group) | {"status": "CREATING"}}


def _complete(node_group: Any, given: Params, template: Params) -> None:
    """Members as EKS answers them, in place of moto's fixed ones."""
    node_group.ami_type = "CUSTOM" if template.get("ImageId") else given.get("amiType") or "AL2023_x86_64_STANDARD"
    node_group.disk_size = None if given.get("launchTemplate") else given.get("diskSize") or 20
    node_group.instance_types = given.get("instanceTypes") or (None if template.get("InstanceType") else ["t3.medium"])
    node_group.remote_access = given.get("remoteAccess")
    node_group.release_version = given.get("releaseVersion") or _release(node_group.version)
    node_group.update_config = given.get("updateConfig") or {"maxUnavailable": 1}
    node_group.node_repair_config = given.get("nodeRepairConfig")
    node_group.resources = {"autoScalingGroups": [{"name": f"eks-{node_group.nodegroup_name}-{node_group.uuid}"}]}


def _release(version: str) -> str:
    return f"{version}.0-{AL2023_RELEASE}"


def _admit(call: Call, cluster: Any, role: str) -> None:
    """EKS makes the access entry of a managed node group's role itself."""
    if cluster.access_config["authenticationMode"] != "CONFIG_MAP" and (cluster.name, role) not in store_of(call).access_entries:
        eks_access.add(call, cluster.name, role, "EC2_LINUX", {})["managed"] = True


def described(node_group: Any) -> Params:
    """A node group as EKS describes it."""
    return {
        "nodegroupName": node_group.nodegroup_name,
        "nodegroupArn": node_group.arn,
        "clusterName": node_group.cluster_name,
        "version": node_group.version,
        "releaseVersion": node_group.release_version,
        "createdAt": node_group.created_at,
        "modifiedAt": node_group.modified_at,
        "status": node_group.status,
        "capacityType": node_group.capacity_type,
        "scalingConfig": node_group.scaling_config,
        "instanceTypes": node_group.instance_types,
        "subnets": node_group.subnets,
        "remoteAccess": node_group.remote_access,
        "amiType": node_group.ami_type,
        "nodeRole": node_group.node_role,
        "labels": node_group.labels,
        "taints": node_group.taints,
        "resources": node_group.resources,
        "diskSize": node_group.disk_size,
        "health": node_group.health,
        "updateConfig": node_group.update_config,
        "nodeRepairConfig": node_group.node_repair_config,
        "launchTemplate": node_group.launch_template,
        "tags": node_group.tags,
    }


def _known(call: Call, given: Params) -> Any:
    cluster = cluster_of(call, given["clusterName"])
    found = cluster.nodegroups.get(given["nodegroupName"])
    if found is None:
        raise not_found(
            f"No node group found for name: {given['nodegroupName']}.", clusterName=cluster.name, nodegroupName=given["nodegroupName"]
        )
    return found


def describe(call: Call, given: Params) -> Params:
    """DescribeNodegroup."""
    return {"nodegroup": described(_known(call, given))}


def check_config(call: Call, given: Params) -> Any:
    """What UpdateNodegroupConfig refuses; the change itself is moto's."""
    node_group = _known(call, given)
    if given.get("scalingConfig"):
        check_scaling(node_group.scaling_config | given["scalingConfig"])
    return node_group


def update_config(call: Call, given: Params) -> Params:
    """UpdateNodegroupConfig: labels, taints, sizes."""
    node_group = check_config(call, given)
    backend = eks_backends[call.current_account][call.region]
    backend.update_nodegroup_config(
        cluster_name=node_group.cluster_name,
        nodegroup_name=node_group.nodegroup_name,
        labels=given.get("labels"),
        taints=given.get("taints"),
        scaling_config=given.get("scalingConfig"),
        update_config=given.get("updateConfig"),
        node_repair_config=given.get("nodeRepairConfig"),
    )
    sizes = {name[0].upper() + name[1:]: str(value) for name, value in (given.get("scalingConfig") or {}).items()}
    return {"update": updated(call, node_group.cluster_name, "ConfigUpdate", sizes)}


def update_version(call: Call, given: Params) -> Params:
    """UpdateNodegroupVersion: fails, after it was accepted, where a cluster placement group's instances can't be in one zone."""
    node_group, cluster = _known(call, given), cluster_of(call, given["clusterName"])
    version = given.get("version") or node_group.version
    if version not in KUBERNETES_VERSIONS or KUBERNETES_VERSIONS.index(version) > KUBERNETES_VERSIONS.index(cluster.version):
        raise bad_request(f"Requested Nodegroup version {version} can't be newer than the cluster's, {cluster.version}.")
    reference = given.get("launchTemplate") or node_group.launch_template
    error = _placement_error(call, node_group, template_of(call, reference))
    if not error:
        node_group.version = version
        node_group.release_version = given.get("releaseVersion") or _release(version)
        node_group.launch_template = template_reference(call, reference)
    return {"update": updated(call, cluster.name, "VersionUpdate", {"Version": version}, error=error)}


def _placement_error(call: Call, node_group: Any, template: Params) -> Params | None:
    name = (template.get("Placement") or {}).get("GroupName")
    group = placement_group.find(call, name) if name else None
    zones = {subnet.availability_zone for subnet in subnets_of(call, node_group.subnets)}
    if group is None or group["Strategy"] != "cluster" or len(zones) == 1:
        return None
    return {
        "errorCode": "NodeCreationFailure",
        "errorMessage": f"Couldn't proceed with upgrade process as new nodes are not joining node group {node_group.nodegroup_name}: "
        f"instances of the placement group {name} must be in one Availability Zone, not in {', '.join(sorted(zones))}",
        "resourceIds": [node_group.nodegroup_name],
    }


def delete(call: Call, given: Params) -> Params:
    """DeleteNodegroup: the access entry that EKS made for its role goes with the role's last node group."""
    node_group, cluster = _known(call, given), cluster_of(call, given["clusterName"])
    del cluster.nodegroups[node_group.nodegroup_name]
    cluster.nodegroup_count -= 1
    key = (cluster.name, node_group.node_role)
    entry = store_of(call).access_entries.get(key)
    if entry and entry.get("managed") and not any(each.node_role == node_group.node_role for each in cluster.nodegroups.values()):
        del store_of(call).access_entries[key]
        store_of(call).access_policies.pop(key, None)
    return {"nodegroup": described(node_group) | {"status": "DELETING"}}


def check_cluster(call: Call, given: Params) -> None:
    """What ListNodegroups refuses: a cluster that is not there."""
    cluster_of(call, given["clusterName"])


def install() -> None:
    """Answer EKS's operations on node groups."""
    add_guards(EKSResponse, {"list_nodegroups": check_cluster})
    add_operations(
        EKSResponse,
        {
            "create_nodegroup": create,
            "describe_nodegroup": describe,
            "update_nodegroup_config": update_config,
            "update_nodegroup_version": update_version,
            "delete_nodegroup": delete,
        },
    )
