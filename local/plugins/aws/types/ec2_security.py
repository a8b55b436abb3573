"""Security groups with the rules written inside them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from local.plugins.aws.row import Call, Described, Name, Prop, Row, Update, fixed
from local.plugins.aws.run import Run
from local.plugins.aws.types.ec2 import ARN, DEPENDENTS, ec2_tags, first
from local.plugins.aws.types.permissions import of_aws, of_block, to_aws, to_blocks

_DIRECTIONS = {"ingress": ("IpPermissions", "Ingress"), "egress": ("IpPermissionsEgress", "Egress")}


_CREATE = Call(op="CreateSecurityGroup")


def _create(run: Run) -> dict[str, Any]:
    """A new group lets everything out; as the genuine plug-in does, it starts with no rule at all."""
    params, sources = run.params(_CREATE, creating=True)
    group_id = run.call(_CREATE.op, params, sources)["GroupId"]
    run.resource_id = group_id
    _set_rules(run, "egress", [])
    return {"GroupId": group_id}


def _set_rules(run: Run, direction: str, declared: list[Mapping[str, Any]]) -> None:
    listed, word = _DIRECTIONS[direction]
    group = first(run, "DescribeSecurityGroups", "SecurityGroups", GroupIds=[run.resource_id]) or {}
    live = of_aws(group.get(listed, ()))
    wanted = set().union(*(of_block(block, run.resource_id) for block in declared))
    source = dict.fromkeys(("IpPermissions", "CidrIp", "FromPort", "IpProtocol"), direction)
    if live - wanted:
        run.call(f"RevokeSecurityGroup{word}", {"GroupId": run.resource_id, "IpPermissions": to_aws(live - wanted)}, source)
    if wanted - live:
        run.call(f"AuthorizeSecurityGroup{word}", {"GroupId": run.resource_id, "IpPermissions": to_aws(wanted - live)}, source)


def _update_rules(direction: str) -> Callable[[Run], None]:
    return lambda run: _set_rules(run, direction, run.inputs.get(direction) or [])


def _read_rules(direction: str, group: Described, declared: Any) -> list[dict[str, Any]]:
    return to_blocks(of_aws(group.get(_DIRECTIONS[direction][0], ())), declared or (), group["GroupId"])


def _delete(run: Run) -> None:
    if run.inputs.get("revokeRulesOnDelete"):
        for direction in _DIRECTIONS:
            _set_rules(run, direction, [])
    run.call("DeleteSecurityGroup", {"GroupId": run.resource_id})


def _adopt_default(run: Run) -> dict[str, Any] | None:
    """The VPC's default group is there already; it is taken over with no rules but the declared ones."""
    mine = [{"Name": "vpc-id", "Values": [run.inputs.get("vpcId")]}, {"Name": "group-name", "Values": ["default"]}]
    group = first(run, "DescribeSecurityGroups", "SecurityGroups", Filters=mine) or {}
    run.resource_id = group.get("GroupId", "")
    if run.resource_id:
        for direction in _DIRECTIONS:
            _set_rules(run, direction, run.inputs.get(direction) or [])
        run.apply_tags(run.tags(group), run.inputs.get("tagsAll") or {})
    return group


_RULES = {name: Prop(param="", computed=True, read=partial(_read_rules, name)) for name in _DIRECTIONS}
_RULE_UPDATES = [Update(takes=(name,), run=_update_rules(name), on_create=True) for name in _DIRECTIONS]
_READ = Call(op="DescribeSecurityGroups", by={"GroupIds": ["$id"]}, result="SecurityGroups[0]")

SECURITY_GROUP = Row(
    token="aws:ec2/securityGroup:SecurityGroup",
    service="ec2",
    create=_create,
    form=_CREATE,
    id="GroupId",
    read=_READ,
    delete=_delete,
    retry_delete=DEPENDENTS,
    gone=("InvalidGroup.NotFound",),
    props={
        **fixed("name", param="GroupName"),
        "namePrefix": Prop(write_only=True, replace=True),
        "description": Prop(replace=True, default="Managed by Pulumi", param="Description"),
        "vpcId": Prop(replace=True, computed=True),
        "revokeRulesOnDelete": Prop(write_only=True, default=False),
        **_RULES,
    },
    updates=_RULE_UPDATES,
    outputs={"arn": ARN + "security-group/{id}", "ownerId": "OwnerId"},
    tags=ec2_tags("security-group"),
    name=Name(),
)

DEFAULT_SECURITY_GROUP = Row(
    token="aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
    service="ec2",
    create=_adopt_default,
    id="GroupId",
    read=_READ,
    # AWS deletes it with its VPC; the genuine plug-in forgets it too.
    delete=None,
    props={"vpcId": Prop(replace=True, computed=True), "revokeRulesOnDelete": Prop(write_only=True, default=False), **_RULES},
    updates=_RULE_UPDATES,
    outputs={
        "arn": ARN + "security-group/{id}",
        "ownerId": "OwnerId",
        "name": "GroupName",
        "description": "Description",
    },
    tags=ec2_tags("security-group"),
)

ROWS = (SECURITY_GROUP, DEFAULT_SECURITY_GROUP)
