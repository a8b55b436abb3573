"""The security group that lets EFA traffic through."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import child_options, token


@dataclass(frozen=True, kw_only=True)
class EfaSecurityGroupArgs:
    """What an EfaSecurityGroup needs to know."""

    vpc_id: pulumi.Input[str]
    """The VPC."""


class EfaSecurityGroup(pulumi.ComponentResource):
    """A group whose members may send each other anything, both ways.

    EFA drops traffic unless the group itself is named as source and as destination: a rule to 0.0.0.0/0 does not count as one to itself.
    """

    group_id: pulumi.Output[str]
    """Id of the group, there once both rules are."""

    def __init__(self, name: str, args: EfaSecurityGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("network", "EfaSecurityGroup"), name, {}, opts)
        child = child_options(self)
        group = aws.ec2.SecurityGroup(
            name, vpc_id=args.vpc_id, description="EFA traffic between training nodes", tags={"Name": name}, opts=child
        )
        inward = aws.vpc.SecurityGroupIngressRule(
            f"{name}-in",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA from members of this group",
            opts=child,
        )
        outward = aws.vpc.SecurityGroupEgressRule(
            f"{name}-out",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA to members of this group",
            opts=child,
        )
        # A node that starts before the rules runs its first job over TCP: the id waits for both.
        self.group_id = pulumi.Output.all(group.id, inward.id, outward.id).apply(lambda ids: ids[0])
        self.register_outputs({"group_id": self.group_id})
