"""Descriptions of security group rules that name another group: moto keeps them, but answers those of ranges only."""

from moto.ec2.models.security_groups import SecurityGroupRule


def description(rule: SecurityGroupRule) -> str | None:
    """Description of a rule, whatever its source is."""
    return rule.ip_range.get("Description") or rule.source_group.get("Description")


def install() -> None:
    """Answer it in DescribeSecurityGroupRules and AuthorizeSecurityGroup*."""
    # moto writes each member of an answer from the attribute of the same name.
    type.__setattr__(SecurityGroupRule, "description", property(description))
