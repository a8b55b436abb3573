"""IAM roles, policies, instance profiles and identity providers. IAM is global, so nothing here has a region."""

from typing import Any

from local.plugins.aws.row import Call, Described, Name, Prop, Row, Tags, Update
from local.plugins.aws.run import Run

_SETTLING = ("DeleteConflict", "DeleteConflictException", "ConcurrentModification")


def _tags(kind: str, by: dict[str, str]) -> Tags:
    return Tags(add=Call(op=f"Tag{kind}", by=by), remove=Call(op=f"Untag{kind}", by=by))


def _set_boundary(run: Run) -> None:
    boundary = run.inputs.get("permissionsBoundary")
    if boundary:
        params = {"RoleName": run.resource_id, "PermissionsBoundary": boundary}
        run.call("PutRolePermissionsBoundary", params, {"PermissionsBoundary": "permissionsBoundary"})
    else:
        run.call("DeleteRolePermissionsBoundary", {"RoleName": run.resource_id})


def _attached(run: Run) -> list[str]:
    return [one["PolicyArn"] for one in run.call("ListAttachedRolePolicies", {"RoleName": run.resource_id})["AttachedPolicies"]]


def _set_managed(run: Run) -> None:
    live, wanted = set(_attached(run)), set(run.inputs.get("managedPolicyArns") or ())
    for arn in sorted(wanted - live):
        run.call("AttachRolePolicy", {"RoleName": run.resource_id, "PolicyArn": arn}, {"PolicyArn": "managedPolicyArns"})
    for arn in sorted(live - wanted):
        run.call("DetachRolePolicy", {"RoleName": run.resource_id, "PolicyArn": arn})


def _describe_role(run: Run) -> dict[str, Any]:
    role = run.call("GetRole", {"RoleName": run.resource_id})["Role"]
    return {**role, "ManagedPolicyArns": _attached(run)}


def _delete_role(run: Run) -> None:
    """As the genuine plug-in does: out of its instance profiles, and rid of its policies where the program says so."""
    name = {"RoleName": run.resource_id}
    for profile in run.call("ListInstanceProfilesForRole", name)["InstanceProfiles"]:
        run.call("RemoveRoleFromInstanceProfile", name | {"InstanceProfileName": profile["InstanceProfileName"]})
    if run.inputs.get("forceDetachPolicies") or run.inputs.get("managedPolicyArns"):
        for arn in _attached(run):
            run.call("DetachRolePolicy", name | {"PolicyArn": arn})
    if run.inputs.get("forceDetachPolicies"):
        for policy in run.call("ListRolePolicies", name)["PolicyNames"]:
            run.call("DeleteRolePolicy", name | {"PolicyName": policy})
    run.call("DeleteRole", name)


ROLE = Row(
    token="aws:iam/role:Role",
    service="iam",
    create=Call(op="CreateRole", result="Role"),
    id="{name}",
    read=_describe_role,
    delete=_delete_role,
    retry_delete=_SETTLING,
    props={
        "name": Prop(param="RoleName", replace=True),
        "namePrefix": Prop(write_only=True, replace=True),
        "path": Prop(replace=True, default="/"),
        "assumeRolePolicy": Prop(param="AssumeRolePolicyDocument", json=True),
        "description": Prop(),
        "maxSessionDuration": Prop(default=3600),
        "permissionsBoundary": Prop(read="PermissionsBoundary.PermissionsBoundaryArn"),
        "managedPolicyArns": Prop(param="", computed=True),
        "forceDetachPolicies": Prop(write_only=True, default=False),
    },
    updates=[
        Call(
            op="UpdateAssumeRolePolicy", by={"RoleName": "$id"}, takes=("assumeRolePolicy",), names={"assumeRolePolicy": "PolicyDocument"}
        ),
        Call(op="UpdateRole", by={"RoleName": "$id"}, takes=("description", "maxSessionDuration"), all=True),
        Update(takes=("permissionsBoundary",), run=_set_boundary),
        Update(takes=("managedPolicyArns",), run=_set_managed, on_create=True),
    ],
    outputs={"arn": "Arn", "createDate": "CreateDate", "uniqueId": "RoleId"},
    tags=_tags("Role", {"RoleName": "$id"}),
    name=Name(longest=64),
)


def _describe_policy(run: Run) -> dict[str, Any]:
    policy = run.call("GetPolicy", {"PolicyArn": run.resource_id})["Policy"]
    version = run.call("GetPolicyVersion", {"PolicyArn": run.resource_id, "VersionId": policy["DefaultVersionId"]})["PolicyVersion"]
    return {**policy, "PolicyDocument": version["Document"]}


def _old_versions(run: Run) -> list[str]:
    versions = run.call("ListPolicyVersions", {"PolicyArn": run.resource_id})["Versions"]
    return [one["VersionId"] for one in sorted(versions, key=lambda one: one["CreateDate"]) if not one["IsDefaultVersion"]]


def _new_policy_version(run: Run) -> None:
    """AWS keeps five at most: the oldest one makes room."""
    for version in _old_versions(run)[:-3]:
        run.call("DeletePolicyVersion", {"PolicyArn": run.resource_id, "VersionId": version})
    params = {"PolicyArn": run.resource_id, "PolicyDocument": run.inputs["policy"], "SetAsDefault": True}
    run.call("CreatePolicyVersion", params, {"PolicyDocument": "policy"})


def _delete_policy(run: Run) -> None:
    for version in _old_versions(run):
        run.call("DeletePolicyVersion", {"PolicyArn": run.resource_id, "VersionId": version})
    run.call("DeletePolicy", {"PolicyArn": run.resource_id})


POLICY = Row(
    token="aws:iam/policy:Policy",
    service="iam",
    create=Call(op="CreatePolicy", result="Policy"),
    id="Arn",
    read=_describe_policy,
    delete=_delete_policy,
    retry_delete=_SETTLING,
    props={
        "name": Prop(param="PolicyName", replace=True),
        "namePrefix": Prop(write_only=True, replace=True),
        "path": Prop(replace=True, default="/"),
        "description": Prop(replace=True),
        "policy": Prop(param="PolicyDocument", json=True),
    },
    updates=[Update(takes=("policy",), run=_new_policy_version)],
    outputs={"arn": "Arn", "policyId": "PolicyId", "attachmentCount": "AttachmentCount"},
    tags=_tags("Policy", {"PolicyArn": "$id"}),
    name=Name(longest=128),
)

_INLINE = {"role": Prop(param="RoleName", replace=True), "name": Prop(param="PolicyName", replace=True)}

ROLE_POLICY = Row(
    token="aws:iam/rolePolicy:RolePolicy",
    service="iam",
    create=Call(op="PutRolePolicy"),
    id="{role}:{name}",
    read=Call(op="GetRolePolicy", by={"RoleName": "$role", "PolicyName": "$name"}),
    delete=Call(op="DeleteRolePolicy", by={"RoleName": "$role", "PolicyName": "$name"}),
    props={**_INLINE, "namePrefix": Prop(write_only=True, replace=True), "policy": Prop(param="PolicyDocument", json=True)},
    updates=[Call(op="PutRolePolicy", by={"RoleName": "$role", "PolicyName": "$name"}, takes=("policy",))],
    name=Name(longest=128),
)


def _attachment(run: Run) -> dict[str, Any] | None:
    attached = run.call("ListAttachedRolePolicies", {"RoleName": run.value("role")})["AttachedPolicies"]
    found = next((one for one in attached if one["PolicyArn"] == run.value("policyArn")), None)
    return found and {**found, "RoleName": run.value("role")}


ROLE_POLICY_ATTACHMENT = Row(
    token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    service="iam",
    create=Call(op="AttachRolePolicy"),
    id="{role}/{policyArn}",
    read=_attachment,
    delete=Call(op="DetachRolePolicy", by={"RoleName": "$role", "PolicyArn": "$policyArn"}),
    props={"role": Prop(param="RoleName", replace=True), "policyArn": Prop(replace=True)},
    delete_before_replace=True,
)


def _set_profile_role(run: Run) -> None:
    name, wanted = {"InstanceProfileName": run.resource_id}, run.inputs.get("role")
    live = [role["RoleName"] for role in run.call("GetInstanceProfile", name)["InstanceProfile"]["Roles"]]
    for role in live:
        if role != wanted:
            run.call("RemoveRoleFromInstanceProfile", name | {"RoleName": role})
    if wanted and wanted not in live:
        run.call("AddRoleToInstanceProfile", name | {"RoleName": wanted}, {"RoleName": "role"})


def _delete_profile(run: Run) -> None:
    name = {"InstanceProfileName": run.resource_id}
    for role in run.call("GetInstanceProfile", name)["InstanceProfile"]["Roles"]:
        run.call("RemoveRoleFromInstanceProfile", name | {"RoleName": role["RoleName"]})
    run.call("DeleteInstanceProfile", name)


INSTANCE_PROFILE = Row(
    token="aws:iam/instanceProfile:InstanceProfile",
    service="iam",
    create=Call(op="CreateInstanceProfile", result="InstanceProfile"),
    id="{name}",
    read=Call(op="GetInstanceProfile", by={"InstanceProfileName": "$id"}, result="InstanceProfile"),
    delete=_delete_profile,
    retry_delete=_SETTLING,
    props={
        "name": Prop(param="InstanceProfileName", replace=True),
        "namePrefix": Prop(write_only=True, replace=True),
        "path": Prop(replace=True, default="/"),
        "role": Prop(param="", read="Roles[0].RoleName"),
    },
    updates=[Update(takes=("role",), run=_set_profile_role, on_create=True)],
    outputs={"arn": "Arn", "createDate": "CreateDate", "uniqueId": "InstanceProfileId"},
    tags=_tags("InstanceProfile", {"InstanceProfileName": "$id"}),
    name=Name(longest=128),
)


def _set_client_ids(run: Run) -> None:
    provider = {"OpenIDConnectProviderArn": run.resource_id}
    live, wanted = set(run.state.get("clientIdLists") or ()), set(run.inputs.get("clientIdLists") or ())
    for client in sorted(wanted - live):
        run.call("AddClientIDToOpenIDConnectProvider", provider | {"ClientID": client}, {"ClientID": "clientIdLists"})
    for client in sorted(live - wanted):
        run.call("RemoveClientIDFromOpenIDConnectProvider", provider | {"ClientID": client})


def _issuer(provider: Described, declared: Any) -> str | None:
    """IAM leaves the scheme away."""
    url = provider.get("Url")
    return url and (url if url.startswith("https://") else f"https://{url}")


OPEN_ID_CONNECT_PROVIDER = Row(
    token="aws:iam/openIdConnectProvider:OpenIdConnectProvider",
    service="iam",
    create=Call(op="CreateOpenIDConnectProvider"),
    id="OpenIDConnectProviderArn",
    read=Call(op="GetOpenIDConnectProvider", by={"OpenIDConnectProviderArn": "$id"}),
    delete=Call(op="DeleteOpenIDConnectProvider", by={"OpenIDConnectProviderArn": "$id"}),
    props={
        "url": Prop(replace=True, read=_issuer),
        "clientIdLists": Prop(param="ClientIDList"),
        "thumbprintLists": Prop(param="ThumbprintList", computed=True),
    },
    updates=[
        Update(takes=("clientIdLists",), run=_set_client_ids),
        Call(op="UpdateOpenIDConnectProviderThumbprint", by={"OpenIDConnectProviderArn": "$id"}, takes=("thumbprintLists",)),
    ],
    outputs={"arn": "{id}"},
    tags=_tags("OpenIDConnectProvider", {"OpenIDConnectProviderArn": "$id"}),
    delete_before_replace=True,
)

ROWS = (ROLE, POLICY, ROLE_POLICY, ROLE_POLICY_ATTACHMENT, INSTANCE_PROFILE, OPEN_ID_CONNECT_PROVIDER)
