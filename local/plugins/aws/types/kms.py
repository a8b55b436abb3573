"""KMS keys and aliases."""

from typing import Any

from local.plugins.aws.row import Call, Name, Prop, Row, Tags, Update, fixed
from local.plugins.aws.run import Run

_KEY = {"KeyId": "$id"}


def _describe_key(run: Run) -> dict[str, Any] | None:
    key = run.call("DescribeKey", {"KeyId": run.resource_id})["KeyMetadata"]
    # A key is never gone at once: AWS keeps it for a week at least.
    if key["KeyState"] in ("PendingDeletion", "PendingReplicaDeletion"):
        return None
    policy = run.call("GetKeyPolicy", {"KeyId": run.resource_id, "PolicyName": "default"})["Policy"]
    rotation = run.call("GetKeyRotationStatus", {"KeyId": run.resource_id}) if key["Enabled"] else {}
    return {
        **key,
        "Policy": policy,
        **{name: rotation[name] for name in ("KeyRotationEnabled", "RotationPeriodInDays") if name in rotation},
    }


def _set_rotation(run: Run) -> None:
    if not run.inputs.get("enableKeyRotation"):
        run.call("DisableKeyRotation", {"KeyId": run.resource_id})
        return
    period = run.inputs.get("rotationPeriodInDays")
    params = {"KeyId": run.resource_id} | ({"RotationPeriodInDays": period} if period else {})
    run.call("EnableKeyRotation", params, {"RotationPeriodInDays": "rotationPeriodInDays"})


def _set_enabled(run: Run) -> None:
    run.call("EnableKey" if run.inputs.get("isEnabled", True) else "DisableKey", {"KeyId": run.resource_id})


def _schedule_deletion(run: Run) -> None:
    window = run.inputs.get("deletionWindowInDays") or 30
    run.call(
        "ScheduleKeyDeletion", {"KeyId": run.resource_id, "PendingWindowInDays": window}, {"PendingWindowInDays": "deletionWindowInDays"}
    )


KEY = Row(
    token="aws:kms/key:Key",
    service="kms",
    create=Call(op="CreateKey", result="KeyMetadata"),
    id="KeyId",
    read=_describe_key,
    delete=_schedule_deletion,
    gone=("KMSInvalidStateException",),
    props={
        "description": Prop(computed=True),
        "keyUsage": Prop(replace=True, default="ENCRYPT_DECRYPT"),
        "customerMasterKeySpec": Prop(replace=True, default="SYMMETRIC_DEFAULT", param="KeySpec"),
        "multiRegion": Prop(replace=True, computed=True),
        "policy": Prop(json=True, computed=True),
        "bypassPolicyLockoutSafetyCheck": Prop(read="", default=False),
        "enableKeyRotation": Prop(param="", default=False, read="KeyRotationEnabled"),
        "rotationPeriodInDays": Prop(param="", computed=True, read="RotationPeriodInDays"),
        "isEnabled": Prop(param="", default=True, read="Enabled"),
        "deletionWindowInDays": Prop(write_only=True),
    },
    updates=[
        Call(op="UpdateKeyDescription", by=_KEY, takes=("description",)),
        Call(
            op="PutKeyPolicy",
            by={**_KEY, "PolicyName": "default"},
            takes=("policy", "bypassPolicyLockoutSafetyCheck"),
            all=True,
        ),
        Update(takes=("isEnabled",), run=_set_enabled, on_create=True),
        Update(takes=("enableKeyRotation", "rotationPeriodInDays"), run=_set_rotation, on_create=True),
    ],
    outputs={"arn": "Arn", "keyId": "KeyId"},
    tags=Tags(
        form="TagKey/TagValue",
        add=Call(op="TagResource", by=_KEY),
        remove=Call(op="UntagResource", by=_KEY),
        read=Call(op="ListResourceTags", by=_KEY),
    ),
)


def _describe_alias(run: Run) -> dict[str, Any] | None:
    marker: dict[str, Any] = {}
    while True:
        page = run.call("ListAliases", marker)
        for alias in page["Aliases"]:
            if alias["AliasName"] == run.resource_id:
                return alias
        if not page.get("Truncated"):
            return None
        marker = {"Marker": page["NextMarker"]}


ALIAS = Row(
    token="aws:kms/alias:Alias",
    service="kms",
    create=Call(op="CreateAlias"),
    id="{name}",
    read=_describe_alias,
    delete=Call(op="DeleteAlias", by={"AliasName": "$id"}),
    props={
        **fixed("name", param="AliasName"),
        "namePrefix": Prop(write_only=True, replace=True),
        # The program may name the key by its ARN; KMS answers with the bare id.
        "targetKeyId": Prop(spell=lambda key: key.rpartition("/")[2]),
    },
    updates=[Call(op="UpdateAlias", by={"AliasName": "$id"}, takes=("targetKeyId",))],
    outputs={
        "arn": "AliasArn",
        "targetKeyArn": lambda run, alias: run.filled("arn:{partition}:kms:{region}:{account}:key/") + alias.get("TargetKeyId", ""),
    },
    name=Name(longest=256, before="alias/"),
)

ROWS = (KEY, ALIAS)
