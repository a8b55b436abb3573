"""EKS managed node groups."""

from typing import Any

from local.plugins.aws.row import Call, Name, Prop, Row, Update, Wait, fixed
from local.plugins.aws.run import Run
from local.plugins.aws.types.eks import TOKEN, eks_tags

_BY = {"clusterName": "$clusterName", "nodegroupName": "$nodeGroupName"}


def _config(run: Run, params: dict[str, Any], prop: str) -> None:
    by = {"clusterName": run.value("clusterName"), "nodegroupName": run.value("nodeGroupName")}
    run.call("UpdateNodegroupConfig", by | params, dict.fromkeys(params, prop))


def _set_labels(run: Run) -> None:
    olds, news = run.state.get("labels") or {}, run.inputs.get("labels") or {}
    change = {
        "addOrUpdateLabels": {key: value for key, value in news.items() if olds.get(key) != value},
        "removeLabels": [key for key in olds if key not in news],
    }
    _config(run, {"labels": {key: value for key, value in change.items() if value}}, "labels")


def _set_taints(run: Run) -> None:
    olds, news = run.state.get("taints") or [], run.inputs.get("taints") or []
    change = {"addOrUpdateTaints": [one for one in news if one not in olds], "removeTaints": [one for one in olds if one not in news]}
    _config(run, {"taints": {key: value for key, value in change.items() if value}}, "taints")


_LAUNCH_TEMPLATE_FIXED = ("id", "name")

NODE_GROUP = Row(
    token="aws:eks/nodeGroup:NodeGroup",
    service="eks",
    create=Call(op="CreateNodegroup", result="nodegroup", token=TOKEN),
    id="{clusterName}:{nodeGroupName}",
    read=Call(op="DescribeNodegroup", by=_BY, result="nodegroup"),
    delete=Call(op="DeleteNodegroup", by=_BY),
    retry_delete=("ResourceInUseException",),
    created=Wait(at="status", done=("ACTIVE",), failed=("CREATE_FAILED", "DEGRADED"), reason="health.issues[0].message", seconds=1800),
    updated=Wait(at="status", done=("ACTIVE",), failed=("DEGRADED",), reason="health.issues[0].message", seconds=1800),
    deleted=Wait(at="status", done=(), failed=("DELETE_FAILED",), reason="health.issues[0].message", seconds=1800),
    props={
        **fixed("clusterName"),
        "nodeGroupName": Prop(param="nodegroupName", replace=True),
        "nodeGroupNamePrefix": Prop(write_only=True, replace=True),
        "nodeRoleArn": Prop(param="nodeRole", replace=True),
        "subnetIds": Prop(param="subnets", replace=True),
        **fixed("amiType", "capacityType", "diskSize", computed=True),
        "instanceTypes": Prop(replace=True, computed=True, ordered=True),
        "remoteAccess": Prop(replace=True, names={"sourceSecurityGroupIds": "sourceSecurityGroups"}),
        "launchTemplate": Prop(replace_below=_LAUNCH_TEMPLATE_FIXED),
        "scalingConfig": Prop(),
        "updateConfig": Prop(computed=True),
        "nodeRepairConfig": Prop(),
        "labels": Prop(),
        "taints": Prop(),
        "version": Prop(computed=True),
        "releaseVersion": Prop(computed=True),
        "forceUpdateVersion": Prop(write_only=True),
    },
    updates=[
        Call(
            op="UpdateNodegroupVersion",
            by=_BY | {"force": "$forceUpdateVersion"},
            takes=("version", "releaseVersion", "launchTemplate"),
            token=TOKEN,
        ),
        Call(op="UpdateNodegroupConfig", by=_BY, takes=("scalingConfig", "updateConfig", "nodeRepairConfig"), token=TOKEN),
        Update(takes=("labels",), run=_set_labels),
        Update(takes=("taints",), run=_set_taints),
    ],
    outputs={
        "arn": "nodegroupArn",
        "status": "status",
        "resources": lambda run, group: [group["resources"]] if group.get("resources") else [],
    },
    tags=eks_tags(),
    name=Name(prop="nodeGroupName", longest=63, prefix_prop="nodeGroupNamePrefix"),
)

ROWS = (NODE_GROUP,)
