"""EKS clusters and what belongs to their control plane: add-ons, access entries, Pod Identity."""

from typing import Any

from local.plugins.aws.row import Call, Described, Name, Prop, Row, Tags, Update, Wait, fixed, plain
from local.plugins.aws.run import Run

TOKEN = "clientRequestToken"


def eks_tags(arn: str = "$arn") -> Tags:
    """Tags of an EKS resource; `arn` names the output that holds its ARN."""
    return Tags(
        create="tags",
        form="map",
        add=Call(op="TagResource", by={"resourceArn": arn}),
        add_as="tags",
        remove=Call(op="UntagResource", by={"resourceArn": arn}),
        remove_as="tagKeys",
        at="tags",
    )


def _logging(types: list[str]) -> dict[str, Any]:
    return {"clusterLogging": [{"types": types, "enabled": True}]}


def _log_types(cluster: Described, declared: Any) -> list[str]:
    groups = (cluster.get("logging") or {}).get("clusterLogging") or ()
    return sorted(kind for group in groups if group.get("enabled") for kind in group["types"])


def _set_logging(run: Run) -> None:
    """AWS keeps what is not named, so what goes off is named too."""
    wanted, had = set(run.inputs.get("enabledClusterLogTypes") or ()), set(run.state.get("enabledClusterLogTypes") or ())
    groups = [{"types": sorted(types), "enabled": on} for types, on in ((wanted, True), (had - wanted, False)) if types]
    run.call("UpdateClusterConfig", {"name": run.resource_id, "logging": {"clusterLogging": groups}}, {"logging": "enabledClusterLogTypes"})


def _set_authentication(run: Run) -> None:
    mode = (run.inputs.get("accessConfig") or {}).get("authenticationMode")
    if mode:
        params = {"name": run.resource_id, "accessConfig": {"authenticationMode": mode}}
        run.call("UpdateClusterConfig", params, {"accessConfig": "accessConfig.authenticationMode"})


def _access_policy(run: Run) -> dict[str, Any] | None:
    by = {"clusterName": run.value("clusterName"), "principalArn": run.value("principalArn")}
    listed = run.call("ListAssociatedAccessPolicies", by).get("associatedAccessPolicies") or ()
    found = next((one for one in listed if one["policyArn"] == run.value("policyArn")), None)
    return found and {**by, **found}


def _describe_association(run: Run) -> dict[str, Any]:
    """Import names the cluster too, so the identifier alone is the association's only after that."""
    by = {"clusterName": run.value("clusterName"), "associationId": run.state.get("associationId") or run.resource_id}
    return run.call("DescribePodIdentityAssociation", by)["association"]


_VPC_FILLED_IN = (
    "vpcId",
    "clusterSecurityGroupId",
    "publicAccessCidrs",
    "controlPlaneEgressMode",
    "endpointPublicAccess",
    "endpointPrivateAccess",
)
_ACTIVE = Wait(at="status", done=("ACTIVE",), failed=("FAILED",), seconds=1800)
_CONFIG_EACH = (
    "vpcConfig",
    "upgradePolicy",
    "zonalShiftConfig",
    "deletionProtection",
    "computeConfig",
    "storageConfig",
    "remoteNetworkConfig",
)

CLUSTER = Row(
    token="aws:eks/cluster:Cluster",
    service="eks",
    create=Call(op="CreateCluster", result="cluster", token=TOKEN),
    id="{name}",
    read=Call(op="DescribeCluster", by={"name": "$id"}, result="cluster"),
    delete=Call(op="DeleteCluster", by={"name": "$id"}),
    retry_delete=("ResourceInUseException",),
    created=_ACTIVE,
    updated=_ACTIVE,
    deleted=Wait(at="status", done=(), failed=("FAILED",), seconds=900),
    props={
        **fixed("name", "roleArn"),
        **fixed("outpostConfig", "encryptionConfig"),
        **fixed("kubernetesNetworkConfig", computed=True, names={"serviceIpv6Cidr": ""}),
        **plain(
            "computeConfig",
            "storageConfig",
            "upgradePolicy",
            "zonalShiftConfig",
            "remoteNetworkConfig",
            "deletionProtection",
            computed=True,
        ),
        "bootstrapSelfManagedAddons": Prop(replace=True, default=True, read=""),
        "version": Prop(computed=True),
        "vpcConfig": Prop(param="resourcesVpcConfig", computed_below=_VPC_FILLED_IN, names={"vpcId": "", "clusterSecurityGroupId": ""}),
        "accessConfig": Prop(computed=True, replace_below=("bootstrapClusterCreatorAdminPermissions",)),
        "enabledClusterLogTypes": Prop(param="logging", send=_logging, read=_log_types),
        "forceUpdateVersion": Prop(write_only=True),
    },
    updates=[
        Call(op="UpdateClusterVersion", by={"name": "$id"}, takes=("version",), token=TOKEN),
        Update(takes=("enabledClusterLogTypes",), run=_set_logging),
        Update(takes=("accessConfig",), run=_set_authentication),
        Call(op="UpdateClusterConfig", by={"name": "$id"}, takes=_CONFIG_EACH, each=True),
    ],
    outputs={
        "arn": "arn",
        "endpoint": "endpoint",
        "status": "status",
        "platformVersion": "platformVersion",
        "createdAt": "createdAt",
        "clusterId": "id",
        "certificateAuthority": "certificateAuthority",
        "identities": lambda run, cluster: (
            [{"oidcs": [{"issuer": cluster["identity"]["oidc"]["issuer"]}]}] if cluster.get("identity") else None
        ),
    },
    tags=eks_tags(),
    name=Name(longest=100, prefix_prop=""),
)

ADDON = Row(
    token="aws:eks/addon:Addon",
    service="eks",
    create=Call(op="CreateAddon", result="addon", token=TOKEN),
    id="{clusterName}:{addonName}",
    read=Call(op="DescribeAddon", by={"clusterName": "$clusterName", "addonName": "$addonName"}, result="addon"),
    delete=Call(op="DeleteAddon", by={"clusterName": "$clusterName", "addonName": "$addonName", "preserve": "$preserve"}),
    created=Wait(at="status", done=("ACTIVE",), failed=("CREATE_FAILED", "DEGRADED"), reason="health.issues[0].message", seconds=1200),
    updated=Wait(at="status", done=("ACTIVE",), failed=("UPDATE_FAILED", "DEGRADED"), reason="health.issues[0].message", seconds=1200),
    deleted=Wait(at="status", done=(), failed=("DELETE_FAILED",), reason="health.issues[0].message", seconds=1200),
    props={
        **fixed("clusterName", "addonName"),
        "addonVersion": Prop(computed=True),
        "configurationValues": Prop(json=True, computed=True),
        "serviceAccountRoleArn": Prop(),
        "podIdentityAssociations": Prop(read=""),
        "resolveConflictsOnCreate": Prop(param="resolveConflicts", read=""),
        "resolveConflictsOnUpdate": Prop(write_only=True),
        "preserve": Prop(write_only=True),
    },
    updates=[
        Call(
            op="UpdateAddon",
            by={"clusterName": "$clusterName", "addonName": "$addonName", "resolveConflicts": "$resolveConflictsOnUpdate"},
            takes=("addonVersion", "configurationValues", "serviceAccountRoleArn", "podIdentityAssociations"),
            token=TOKEN,
        ),
        # It steers a creation that lies behind; the new value is only recorded.
        Update(takes=("resolveConflictsOnCreate",), run=lambda run: None),
    ],
    outputs={"arn": "addonArn", "createdAt": "createdAt", "modifiedAt": "modifiedAt"},
    volatile=("modifiedAt",),
    tags=eks_tags(),
)

ACCESS_ENTRY = Row(
    token="aws:eks/accessEntry:AccessEntry",
    service="eks",
    create=Call(op="CreateAccessEntry", result="accessEntry", token=TOKEN),
    id="{clusterName}:{principalArn}",
    read=Call(op="DescribeAccessEntry", by={"clusterName": "$clusterName", "principalArn": "$principalArn"}, result="accessEntry"),
    delete=Call(op="DeleteAccessEntry", by={"clusterName": "$clusterName", "principalArn": "$principalArn"}),
    props={
        **fixed("clusterName", "principalArn"),
        "type": Prop(replace=True, default="STANDARD"),
        "kubernetesGroups": Prop(computed=True),
        "userName": Prop(computed=True),
    },
    updates=[
        Call(
            op="UpdateAccessEntry",
            by={"clusterName": "$clusterName", "principalArn": "$principalArn"},
            takes=("kubernetesGroups", "userName"),
            all=True,
            token=TOKEN,
        )
    ],
    outputs={"accessEntryArn": "accessEntryArn", "createdAt": "createdAt", "modifiedAt": "modifiedAt"},
    volatile=("modifiedAt",),
    tags=eks_tags("$accessEntryArn"),
    delete_before_replace=True,
)

ACCESS_POLICY_ASSOCIATION = Row(
    token="aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
    service="eks",
    create=Call(op="AssociateAccessPolicy", result="associatedAccessPolicy"),
    id="{clusterName}#{principalArn}#{policyArn}",
    read=_access_policy,
    delete=Call(op="DisassociateAccessPolicy", by={name: f"${name}" for name in ("clusterName", "principalArn", "policyArn")}),
    props=fixed("clusterName", "principalArn", "policyArn", "accessScope"),
    outputs={"associatedAt": "associatedAt", "modifiedAt": "modifiedAt"},
    delete_before_replace=True,
)

POD_IDENTITY_ASSOCIATION = Row(
    token="aws:eks/podIdentityAssociation:PodIdentityAssociation",
    service="eks",
    create=Call(op="CreatePodIdentityAssociation", result="association", token=TOKEN),
    id="associationId",
    id_parts="{clusterName},{associationId}",
    read=_describe_association,
    delete=Call(op="DeletePodIdentityAssociation", by={"clusterName": "$clusterName", "associationId": "$associationId"}),
    props={
        **fixed("clusterName", "namespace", "serviceAccount"),
        "roleArn": Prop(),
        "targetRoleArn": Prop(),
        "disableSessionTags": Prop(computed=True),
        "policy": Prop(json=True),
    },
    updates=[
        Call(
            op="UpdatePodIdentityAssociation",
            by={"clusterName": "$clusterName", "associationId": "$associationId"},
            takes=("roleArn", "targetRoleArn", "disableSessionTags", "policy"),
            token=TOKEN,
        )
    ],
    outputs={"associationArn": "associationArn", "associationId": "associationId", "externalId": "externalId"},
    tags=eks_tags("$associationArn"),
    delete_before_replace=True,
)

ROWS = (CLUSTER, ADDON, ACCESS_ENTRY, ACCESS_POLICY_ASSOCIATION, POD_IDENTITY_ASSOCIATION)
