"""Security group rules as resources of their own: the older type with lists of sources, and the newer ones with one source each."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from local.plugins.aws.errors import AwsError
from local.plugins.aws.row import Call, Prop, Row, Update, fixed
from local.plugins.aws.run import Run
from local.plugins.aws.types.ec2 import ARN, ec2_tags, first
from local.plugins.aws.types.permissions import Permission, of_aws, of_block, to_aws

_FIXED = ("type", "securityGroupId", "protocol", "fromPort", "toPort")
_LISTED = {"ingress": "IpPermissions", "egress": "IpPermissionsEgress"}


def _meant(run: Run) -> set[Permission]:
    block = {
        name: run.value(name)
        for name in ("protocol", "fromPort", "toPort", "cidrBlocks", "ipv6CidrBlocks", "prefixListIds", "self", "description")
    }
    if run.value("sourceSecurityGroupId"):
        block["securityGroups"] = [run.value("sourceSecurityGroupId")]
    return of_block(block, run.value("securityGroupId"))


def _create_rule(run: Run) -> dict[str, Any]:
    op = "AuthorizeSecurityGroupIngress" if run.inputs["type"] == "ingress" else "AuthorizeSecurityGroupEgress"
    params = {"GroupId": run.inputs["securityGroupId"], "IpPermissions": to_aws(_meant(run))}
    return run.call(
        op, params, {"GroupId": "securityGroupId", "IpPermissions.CidrIp": "cidrBlocks", "FromPort": "fromPort", "IpProtocol": "protocol"}
    )


def _rule_id(run: Run) -> str:
    """AWS has no id for several sources together; the genuine plug-in makes one of the contents, and so does this."""
    parts = [run.value("securityGroupId"), run.value("type"), *(repr(replace(one, description="")) for one in sorted(_meant(run)))]
    return f"sgrule-{int(hashlib.sha256('|'.join(parts).encode()).hexdigest()[:8], 16)}"


def _describe_rule(run: Run) -> dict[str, Any] | None:
    if not run.value("type"):
        run.state |= _imported(run.resource_id)
    group = first(run, "DescribeSecurityGroups", "SecurityGroups", GroupIds=[run.value("securityGroupId")])
    if group is None:
        return None
    live = {replace(one, description=""): one for one in of_aws(group[_LISTED[run.value("type")]])}
    found = [live[key] for one in sorted(_meant(run)) if (key := replace(one, description="")) in live]
    if not found:
        return None
    kept = {name: run.value(name) for name in (*_FIXED, "self", "sourceSecurityGroupId")}
    kinds = {kind: [one.source for one in found if one.kind == kind] for kind in ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds")}
    return {**kept, **kinds, "description": found[0].description}


def _imported(import_id: str) -> dict[str, Any]:
    """The genuine plug-in's form: group, type, protocol, ports and one source or more, such as sg-1_ingress_tcp_80_80_10.0.0.0/8."""
    try:
        group, kind, protocol, from_port, to_port, *sources = import_id.split("_")
        rule: dict[str, Any] = {
            "securityGroupId": group,
            "type": kind,
            "protocol": protocol,
            "fromPort": int(from_port),
            "toPort": int(to_port),
        }
    except ValueError as error:
        form = "GROUP_TYPE_PROTOCOL_FROM_TO_SOURCE, such as sg-0123_ingress_tcp_443_443_10.0.0.0/8"
        raise AwsError(f"{import_id!r} names no security group rule; the form is {form}", code="BadIdentifier") from error
    for source in sources:
        if source == "self":
            rule["self"] = True
        elif source.startswith("sg-"):
            rule["sourceSecurityGroupId"] = source
        else:
            kind = "prefixListIds" if source.startswith("pl-") else "ipv6CidrBlocks" if ":" in source else "cidrBlocks"
            rule.setdefault(kind, []).append(source)
    return rule


def _revoke_rule(run: Run) -> None:
    op = "RevokeSecurityGroupIngress" if run.value("type") == "ingress" else "RevokeSecurityGroupEgress"
    run.call(op, {"GroupId": run.value("securityGroupId"), "IpPermissions": to_aws(_meant(run))})


def _describe_again(run: Run) -> None:
    word = "Ingress" if run.value("type") == "ingress" else "Egress"
    params = {"GroupId": run.value("securityGroupId"), "IpPermissions": to_aws(_meant(run))}
    run.call(f"UpdateSecurityGroupRuleDescriptions{word}", params, {"IpPermissions.Description": "description"})


def _rule_id_of_single(run: Run, described: Mapping[str, Any]) -> str | None:
    rules = run.made.get("SecurityGroupRules") or ()
    return rules[0].get("SecurityGroupRuleId") if len(rules) == 1 else run.state.get("securityGroupRuleId")


_SOURCES = ("cidrBlocks", "ipv6CidrBlocks", "prefixListIds", "self", "sourceSecurityGroupId")


def _has_source(inputs: Mapping[str, Any]) -> dict[str, str]:
    given = [name for name in _SOURCES if inputs.get(name)]
    if not given:
        return {"cidrBlocks": f"a rule needs a source: one of {', '.join(_SOURCES)}"}
    if inputs.get("type") not in _LISTED and isinstance(inputs.get("type"), str):
        return {"type": f"type is {inputs['type']!r}; it is ingress or egress"}
    if inputs.get("self") and inputs.get("sourceSecurityGroupId"):
        return {"self": "self and sourceSecurityGroupId exclude each other"}
    return {}


SECURITY_GROUP_RULE = Row(
    token="aws:ec2/securityGroupRule:SecurityGroupRule",
    service="ec2",
    create=_create_rule,
    id=_rule_id,
    id_parts="{importId}",
    read=_describe_rule,
    delete=_revoke_rule,
    gone=("InvalidPermission.NotFound", "InvalidGroup.NotFound"),
    props={
        **fixed(*_FIXED, "sourceSecurityGroupId", "cidrBlocks", "ipv6CidrBlocks", "prefixListIds"),
        "self": Prop(replace=True, default=False),
        "description": Prop(),
    },
    updates=[Update(takes=("description",), run=_describe_again)],
    outputs={"securityGroupRuleId": _rule_id_of_single},
    validate=_has_source,
)

# What EC2 calls the one source of a rule, when it is made and when it is described.
_CIDR4, _CIDR6, _LIST, _GROUP = "cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId"


def _single_permission(run: Run) -> list[dict[str, Any]]:
    kind, source = next((kind, run.inputs[name]) for name, kind in _SINGLE_SOURCES.items() if run.inputs.get(name))
    ports = (run.inputs.get("fromPort", -1), run.inputs.get("toPort", -1))
    return to_aws([Permission(run.inputs["ipProtocol"], *ports, kind, source, run.inputs.get("description") or "")])


_SINGLE_SOURCES = {_CIDR4: "cidrBlocks", _CIDR6: "ipv6CidrBlocks", _LIST: "prefixListIds", _GROUP: "securityGroups"}


def _one_source(inputs: Mapping[str, Any]) -> dict[str, str]:
    given = [name for name in _SINGLE_SOURCES if inputs.get(name) is not None]
    if len(given) == 1:
        return {}
    found = f"{' and '.join(given)} are set" if given else "none is set"
    return {given[0] if given else _CIDR4: f"a rule has exactly one source, {found}; the choice is {', '.join(_SINGLE_SOURCES)}"}


def _rule_row(direction: str) -> Row:
    def create(run: Run) -> dict[str, Any]:
        params: dict[str, Any] = {"GroupId": run.inputs["securityGroupId"], "IpPermissions": _single_permission(run)}
        if tags := run.inputs.get("tagsAll"):
            items = [{"Key": key, "Value": value} for key, value in tags.items()]
            params["TagSpecifications"] = [{"ResourceType": "security-group-rule", "Tags": items}]
        sources = {"GroupId": "securityGroupId", "CidrIp": _CIDR4, "FromPort": "fromPort", "IpProtocol": "ipProtocol"}
        return run.call(f"AuthorizeSecurityGroup{direction}", params, sources)["SecurityGroupRules"][0]

    def modify(run: Run) -> None:
        """EC2 takes the rule whole, in the shape of its description."""
        words = {"ipProtocol": "IpProtocol", "fromPort": "FromPort", "toPort": "ToPort", "description": "Description"}
        words |= {_CIDR4: "CidrIpv4", _CIDR6: "CidrIpv6", _LIST: "PrefixListId", _GROUP: "ReferencedGroupId"}
        rule = {word: run.inputs[name] for name, word in words.items() if run.inputs.get(name) is not None}
        entry = {"SecurityGroupRuleId": run.resource_id, "SecurityGroupRule": rule}
        run.call(
            "ModifySecurityGroupRules",
            {"GroupId": run.value("securityGroupId"), "SecurityGroupRules": [entry]},
            {v: k for k, v in words.items()},
        )

    changing = ("ipProtocol", "fromPort", "toPort", "description", *_SINGLE_SOURCES)
    return Row(
        token=f"aws:vpc/securityGroup{direction}Rule:SecurityGroup{direction}Rule",
        service="ec2",
        create=create,
        id="SecurityGroupRuleId",
        read=Call(op="DescribeSecurityGroupRules", by={"SecurityGroupRuleIds": ["$id"]}, result="SecurityGroupRules[0]"),
        delete=Call(op=f"RevokeSecurityGroup{direction}", by={"GroupId": "$securityGroupId", "SecurityGroupRuleIds": ["$id"]}),
        gone=("InvalidSecurityGroupRuleId.NotFound", "InvalidGroup.NotFound"),
        props={
            **fixed("securityGroupId", read="GroupId"),
            **{name: Prop() for name in ("ipProtocol", "description", _CIDR4, _CIDR6, _LIST)},
            # EC2 answers -1 for "all ports", which the program leaves out.
            **{
                name: Prop(read=f"{name[0].upper()}{name[1:]} != `-1` && {name[0].upper()}{name[1:]} || `null`")
                for name in ("fromPort", "toPort")
            },
            _GROUP: Prop(read="ReferencedGroupInfo.GroupId"),
        },
        updates=[Update(takes=changing, run=modify)],
        outputs={"arn": ARN + "security-group-rule/{id}", "securityGroupRuleId": "SecurityGroupRuleId"},
        tags=ec2_tags("security-group-rule"),
        validate=_one_source,
    )


ROWS = (SECURITY_GROUP_RULE, _rule_row("Ingress"), _rule_row("Egress"))
