"""The ServiceRole component inside eks.Cluster."""

import hashlib
import json
from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws


class ServiceRole(pulumi.ComponentResource):
    """An IAM role for one AWS service, with managed policies attached."""

    role: aws.iam.Role
    attachments: list[aws.iam.RolePolicyAttachment]

    def __init__(
        self,
        name: str,
        *,
        service: str,
        description: str,
        policies: Sequence[str],
        partition: pulumi.Output[str],
        actions: Sequence[str],
        tags: pulumi.Input[Mapping[str, str]] | None,
        opts: pulumi.ResourceOptions,
    ) -> None:
        props = {"service": service, "description": description, "assumeRoleActions": list(actions), "tags": tags}
        super().__init__("eks:index:ServiceRole", name, props, opts)
        child = pulumi.ResourceOptions(parent=self)
        statement = {"Action": list(actions), "Effect": "Allow", "Principal": {"Service": [service]}}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, separators=(",", ":"))
        self.role = aws.iam.Role(f"{name}-role", description=description, assume_role_policy=document, tags=tags, opts=child)
        self.attachments = [self._attach(name, policy, partition, child) for policy in policies]
        # Known once everything is attached, for what must not start before.
        resolved = pulumi.Output.all(self.role.arn, *(attachment.id for attachment in self.attachments)).apply(lambda _: self.role)
        self.register_outputs({"resolvedRole": resolved, "directRole": self.role})

    def _attach(self, name: str, policy: str, partition: pulumi.Output[str], child: pulumi.ResourceOptions) -> aws.iam.RolePolicyAttachment:
        # The suffix comes from the policy's name in the standard partition, whatever partition this is.
        suffix = hashlib.sha1(f"arn:aws:iam::aws:policy/{policy}".encode()).hexdigest()[:8]
        arn = pulumi.Output.format("arn:{0}:iam::aws:policy/{1}", partition, policy)
        return aws.iam.RolePolicyAttachment(f"{name}-{suffix}", policy_arn=arn, role=self.role.name, opts=child)
