"""The table: every resource type that the stand-in carries out, by token."""

from types import MappingProxyType

from local.plugins.aws.row import Row
from local.plugins.aws.types import (
    cloudwatch,
    ec2_compute,
    ec2_flow_log,
    ec2_launch_template,
    ec2_network,
    ec2_routing,
    ec2_security,
    ec2_security_rule,
    ecr,
    efs,
    eks,
    eks_node_group,
    fsx,
    iam,
    kms,
    s3,
    sqs,
    ssm,
)

_MODULES = (
    cloudwatch,
    ec2_compute,
    ec2_flow_log,
    ec2_launch_template,
    ec2_network,
    ec2_routing,
    ec2_security,
    ec2_security_rule,
    ecr,
    efs,
    eks,
    eks_node_group,
    fsx,
    iam,
    kms,
    s3,
    sqs,
    ssm,
)

TABLE: MappingProxyType[str, Row] = MappingProxyType({row.token: row for module in _MODULES for row in module.ROWS})
"""Token such as `aws:ec2/vpc:Vpc` -> its row."""
