"""Where FSx puts a Lustre file system: one subnet, its network interface, and security groups that let Lustre's traffic through.

Sources: botocore fsx 2018-03-01 (SubnetIds: exactly one for Lustre); FSx for Lustre user guide, "File system access control with VPC"
(TCP 988) and "Troubleshooting: can't create a file system".
"""

from typing import Any

from local.aws.extension.hooks import Call, Params, Refusal
from local.aws.extension.store import ec2_of

PORT = 988


def place(call: Call, given: Params, file_system_id: str) -> Params:
    """Check subnet and groups and make the network interface.

    Returns:
        `VpcId`, `SubnetIds` and `NetworkInterfaceIds` as FSx describes them.
    """
    subnets = given.get("SubnetIds") or []
    if len(subnets) != 1:
        raise Refusal("BadRequest", f"Exactly one subnet must be specified for a Lustre file system, {len(subnets)} were.")
    ec2 = ec2_of(call)
    subnet = next((zone[subnets[0]] for zone in ec2.subnets.values() if subnets[0] in zone), None)
    if subnet is None:
        raise Refusal("InvalidNetworkSettings", f"The subnet ID {subnets[0]} does not exist.", InvalidSubnetId=subnets[0])
    groups = [_group(call, group_id, subnet.vpc_id) for group_id in given.get("SecurityGroupIds") or []]
    groups = groups or [ec2.get_default_security_group(subnet.vpc_id)]
    if not (
        any(_lets_through(group, "ingress_rules") for group in groups) and any(_lets_through(group, "egress_rules") for group in groups)
    ):
        raise Refusal(
            "InvalidNetworkSettings",
            "The file system cannot be created because the provided security groups do not permit "
            f"Lustre LNET network traffic on port {PORT} in both directions.",
            InvalidSecurityGroupId=groups[0].id,
        )
    description = f"Created By Amazon FSx; file system {file_system_id}"
    interface = ec2.create_network_interface(subnet, [], group_ids=[group.id for group in groups], description=description)
    interface.requester_managed = True
    return {"VpcId": subnet.vpc_id, "SubnetIds": subnets, "NetworkInterfaceIds": [interface.id]}


def release(call: Call, record: Params) -> None:
    """Delete a file system's network interfaces."""
    for interface in record["NetworkInterfaceIds"]:
        ec2_of(call).enis.pop(interface, None)


def _group(call: Call, group_id: str, vpc_id: str) -> Any:
    group = ec2_of(call).groups.get(vpc_id, {}).get(group_id)
    if group is None:
        raise Refusal(
            "InvalidNetworkSettings", f"The security group {group_id} does not exist in the VPC {vpc_id}.", InvalidSecurityGroupId=group_id
        )
    return group


def _lets_through(group: Any, direction: str) -> bool:
    return any(_covers(rule) for rule in getattr(group, direction))


def _covers(rule: Any) -> bool:
    return rule.ip_protocol == "-1" or (rule.ip_protocol == "tcp" and int(rule.from_port) <= PORT <= int(rule.to_port))
