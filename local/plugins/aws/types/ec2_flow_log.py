"""Flow logs of a VPC, a subnet or an interface."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from local.plugins.aws.errors import AwsError
from local.plugins.aws.row import Call, Described, Prop, Row, fixed
from local.plugins.aws.run import Run
from local.plugins.aws.types.ec2 import ARN, ec2_tags

_WATCHED = {
    "vpcId": ("VPC", "vpc-"),
    "subnetId": ("Subnet", "subnet-"),
    "eniId": ("NetworkInterface", "eni-"),
    "transitGatewayId": ("TransitGateway", "tgw-"),
}


def _watched(prefix: str, flow_log: Described, declared: Any) -> str | None:
    found = flow_log.get("ResourceId", "")
    return found if found.startswith(prefix) else None


_CREATE = Call(op="CreateFlowLogs", token="ClientToken")


def _create(run: Run) -> dict[str, Any]:
    params, sources = run.params(_CREATE, creating=True)
    name = next(name for name in _WATCHED if run.inputs.get(name))
    params |= {"ResourceType": _WATCHED[name][0], "ResourceIds": [run.inputs[name]]}
    answer = run.call(_CREATE.op, params, {**sources, "ResourceIds": name})
    for failure in answer.get("Unsuccessful") or ():
        raise AwsError(
            f"CreateFlowLogs: {failure['Error']['Code']}: {failure['Error']['Message']} [property {name}]", code=failure["Error"]["Code"]
        )
    return {"FlowLogId": answer["FlowLogIds"][0]}


def _one_watched(inputs: Mapping[str, Any]) -> dict[str, str]:
    given = [name for name in _WATCHED if inputs.get(name) is not None]
    if len(given) == 1:
        return {}
    found = f"{' and '.join(given)} are set" if given else "none is set"
    return {given[0] if given else "vpcId": f"a flow log watches exactly one thing, {found}; the choice is {', '.join(_WATCHED)}"}


FLOW_LOG = Row(
    token="aws:ec2/flowLog:FlowLog",
    service="ec2",
    create=_create,
    form=_CREATE,
    id="FlowLogId",
    read=Call(op="DescribeFlowLogs", by={"FlowLogIds": ["$id"]}, result="FlowLogs[0]"),
    delete=Call(op="DeleteFlowLogs", by={"FlowLogIds": ["$id"]}),
    props={
        **{name: Prop(param="", read=partial(_watched, prefix), replace=True) for name, (_, prefix) in _WATCHED.items()},
        **fixed("trafficType", "destinationOptions"),
        **fixed("logFormat", "logDestination", computed=True),
        "logDestinationType": Prop(replace=True, default="cloud-watch-logs"),
        "maxAggregationInterval": Prop(replace=True, default=600),
        "iamRoleArn": Prop(param="DeliverLogsPermissionArn", replace=True),
        "deliverCrossAccountRole": Prop(replace=True),
    },
    outputs={"arn": ARN + "vpc-flow-log/{id}"},
    tags=ec2_tags("vpc-flow-log"),
    validate=_one_watched,
)

ROWS = (FLOW_LOG,)
