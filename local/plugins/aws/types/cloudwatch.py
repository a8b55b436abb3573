"""EventBridge rules and targets, and log groups (all three are in Pulumi's `cloudwatch` module)."""

from typing import Any

from local.plugins.aws.convert import to_aws, walk
from local.plugins.aws.errors import AwsError
from local.plugins.aws.naming import client_token
from local.plugins.aws.row import Call, Name, Prop, Row, Tags, Update, fixed, plain
from local.plugins.aws.run import Run


def _rule_id(run: Run) -> str:
    bus = run.value("eventBusName") or "default"
    return run.value("name") if bus == "default" else f"{bus}/{run.value('name')}"


_RULE = {"Name": "$name", "EventBusName": "$eventBusName"}
_RULE_PROPS = ("scheduleExpression", "eventPattern", "state", "description", "roleArn")


def _describe_rule(run: Run) -> dict[str, Any]:
    """Import gives `name` or `bus/name`."""
    bus, _, name = run.resource_id.rpartition("/")
    run.state |= {"name": name, "eventBusName": bus or "default"}
    return run.call("DescribeRule", {"Name": name, "EventBusName": bus or "default"})


EVENT_RULE = Row(
    token="aws:cloudwatch/eventRule:EventRule",
    service="events",
    create=Call(op="PutRule"),
    id=_rule_id,
    read=_describe_rule,
    delete=Call(op="DeleteRule", by={**_RULE, "Force": "$forceDestroy"}),
    props={
        "name": Prop(replace=True),
        "namePrefix": Prop(write_only=True, replace=True),
        "eventBusName": Prop(replace=True, default="default"),
        "eventPattern": Prop(json=True),
        "state": Prop(default="ENABLED"),
        **plain("scheduleExpression", "description", "roleArn"),
        "forceDestroy": Prop(write_only=True, default=False),
    },
    updates=[Call(op="PutRule", by=_RULE, takes=_RULE_PROPS, whole=True)],
    outputs={"arn": "Arn"},
    tags=Tags(
        add=Call(op="TagResource", by={"ResourceARN": "$arn"}),
        remove=Call(op="UntagResource", by={"ResourceARN": "$arn"}),
        read=lambda run: run.call("ListTagsForResource", {"ResourceARN": _rule_arn(run)}),
    ),
    name=Name(longest=64),
)


def _rule_arn(run: Run) -> str:
    bus = run.value("eventBusName") or "default"
    path = run.value("name") if bus == "default" else f"{bus}/{run.value('name')}"
    return run.filled("arn:{partition}:events:{region}:{account}:rule/") + path


_TARGET_BODY = ("arn", "roleArn", "input", "inputPath", "inputTransformer", "retryPolicy", "deadLetterConfig", "sqsTarget")
_TARGET_PARAMS = {"sqsTarget": "SqsParameters"}
_TARGET_NAMES = {"inputTemplate": "InputTemplate", "inputPaths": "InputPathsMap"}


def _target_id(run: Run) -> str:
    return run.value("targetId") or f"pulumi-{client_token(run.urn, {})[:26]}"


def _put_target(run: Run) -> dict[str, Any]:
    client = run.clients.client("events", run.region)
    target = walk(client.meta.service_model.operation_model("PutTargets").input_shape, "Targets")
    assert target is not None
    item: dict[str, Any] = {"Id": _target_id(run)}
    for name in _TARGET_BODY:
        if (value := run.inputs.get(name)) is not None:
            param = _TARGET_PARAMS.get(name, f"{name[0].upper()}{name[1:]}")
            item[param] = to_aws(value, target.member.members[param], _TARGET_NAMES)
    params = {"Rule": run.inputs["rule"], "EventBusName": run.inputs.get("eventBusName") or "default", "Targets": [item]}
    answer = run.call("PutTargets", params, {"Rule": "rule", "Arn": "arn", "RoleArn": "roleArn"})
    for failure in answer.get("FailedEntries") or ():
        raise AwsError(f"PutTargets: {failure['ErrorCode']}: {failure['ErrorMessage']} [property arn]", code=failure["ErrorCode"])
    return {"TargetId": item["Id"]}


def _describe_target(run: Run) -> dict[str, Any] | None:
    by = {"Rule": run.value("rule"), "EventBusName": run.value("eventBusName") or "default"}
    wanted = _target_id(run)
    found = next((one for one in run.call("ListTargetsByRule", by).get("Targets") or () if one["Id"] == wanted), None)
    return found and {**by, **found, "TargetId": found["Id"]}


def _remove_target(run: Run) -> None:
    by = {"Rule": run.value("rule"), "EventBusName": run.value("eventBusName") or "default"}
    run.call("RemoveTargets", {**by, "Ids": [_target_id(run)], "Force": bool(run.inputs.get("forceDestroy"))})


EVENT_TARGET = Row(
    token="aws:cloudwatch/eventTarget:EventTarget",
    service="events",
    create=_put_target,
    id=lambda run: f"{run.value('rule')}-{_target_id(run)}",
    id_parts="{rule}/{targetId}",
    read=_describe_target,
    delete=_remove_target,
    props={
        **fixed("rule"),
        "targetId": Prop(replace=True, computed=True),
        "eventBusName": Prop(replace=True, default="default"),
        "arn": Prop(),
        **plain("roleArn", "input", "inputPath", "retryPolicy", "deadLetterConfig"),
        "inputTransformer": Prop(names=_TARGET_NAMES),
        "sqsTarget": Prop(read="SqsParameters"),
        "forceDestroy": Prop(write_only=True, default=False),
    },
    updates=[Update(takes=_TARGET_BODY, run=_put_target)],
    delete_before_replace=True,
)


def _describe_log_group(run: Run) -> dict[str, Any] | None:
    groups = run.call("DescribeLogGroups", {"logGroupNamePrefix": run.resource_id}).get("logGroups") or ()
    return next((one for one in groups if one["logGroupName"] == run.resource_id), None)


def _set_retention(run: Run) -> None:
    name, days = {"logGroupName": run.resource_id}, run.inputs.get("retentionInDays")
    if days:
        run.call("PutRetentionPolicy", name | {"retentionInDays": days}, {"retentionInDays": "retentionInDays"})
    else:
        run.call("DeleteRetentionPolicy", name)


def _set_log_key(run: Run) -> None:
    name, key = {"logGroupName": run.resource_id}, run.inputs.get("kmsKeyId")
    if key:
        run.call("AssociateKmsKey", name | {"kmsKeyId": key}, {"kmsKeyId": "kmsKeyId"})
    else:
        run.call("DisassociateKmsKey", name)


def _delete_log_group(run: Run) -> None:
    if not run.inputs.get("skipDestroy"):
        run.call("DeleteLogGroup", {"logGroupName": run.resource_id})


_LOG_ARN = {"resourceArn": "arn:{partition}:logs:{region}:{account}:log-group:{name}"}

LOG_GROUP = Row(
    token="aws:cloudwatch/logGroup:LogGroup",
    service="logs",
    create=Call(op="CreateLogGroup"),
    id="{name}",
    read=_describe_log_group,
    delete=_delete_log_group,
    props={
        "name": Prop(param="logGroupName", replace=True),
        "namePrefix": Prop(write_only=True, replace=True),
        "logGroupClass": Prop(replace=True, computed=True),
        "kmsKeyId": Prop(),
        "retentionInDays": Prop(param="", default=0, read="retentionInDays"),
        "skipDestroy": Prop(write_only=True, default=False),
    },
    updates=[
        Update(takes=("retentionInDays",), run=_set_retention, on_create=True),
        Update(takes=("kmsKeyId",), run=_set_log_key),
    ],
    outputs={"arn": _LOG_ARN["resourceArn"]},
    tags=Tags(
        create="tags",
        form="map",
        add=Call(op="TagResource", by=_LOG_ARN),
        add_as="tags",
        remove=Call(op="UntagResource", by=_LOG_ARN),
        remove_as="tagKeys",
        read=Call(op="ListTagsForResource", by=_LOG_ARN),
        at="tags",
    ),
    name=Name(longest=512),
)

ROWS = (EVENT_RULE, EVENT_TARGET, LOG_GROUP)
