"""Deletions that EC2 refuses while something depends on the resource, so that a wrong order of teardown fails here as it does on AWS.

Source: EC2 API reference, "Error codes" (DependencyViolation, InvalidParameterValue, CannotDelete); VPC user guide, "Delete your VPC".
"""

from collections.abc import Iterator
from typing import Any

from moto.ec2.responses import EC2Response

from local.aws.extension.hooks import Call, Params, Refusal, add_completions, add_guards
from local.aws.extension.store import ec2_of, store_of


def _violation(message: str) -> Refusal:
    return Refusal("DependencyViolation", message)


def live_instances(call: Call) -> Iterator[Any]:
    """moto's instances, without the terminated ones."""
    for reservation in ec2_of(call).reservations.values():
        for instance in reservation.instances:
            if instance.state != "terminated":
                yield instance


def interfaces_in(call: Call, *, subnet_id: str | None = None, vpc_id: str | None = None) -> list[str]:
    """Ids of the network interfaces in a subnet or VPC."""
    return [
        interface.id for interface in ec2_of(call).enis.values() if subnet_id == interface.subnet.id or vpc_id == interface.subnet.vpc_id
    ]


def check_subnet(call: Call, given: Params) -> None:
    """DeleteSubnet: no network interface may be in it (instances, load balancers, NAT gateways, EKS, FSx and EFS have theirs)."""
    subnet_id = given["SubnetId"]
    if interfaces_in(call, subnet_id=subnet_id):
        raise _violation(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")


def check_vpc(call: Call, given: Params) -> None:
    """DeleteVpc: no gateway, endpoint, interface, subnet, route table or group of the user's may be left in it."""
    ec2, vpc_id = ec2_of(call), given["VpcId"]
    left = [
        *interfaces_in(call, vpc_id=vpc_id),
        *(gateway.id for gateway in ec2.internet_gateways.values() if gateway.vpc is not None and gateway.vpc.id == vpc_id),
        *(gateway.id for gateway in ec2.nat_gateways.values() if gateway.vpc_id == vpc_id and gateway.state != "deleted"),
        *(endpoint.id for endpoint in ec2.vpc_end_points.values() if endpoint.vpc_id == vpc_id and endpoint.state != "deleted"),
        *(group.id for group in ec2.groups.get(vpc_id, {}).values() if group.name != "default"),
    ]
    if left:
        raise _violation(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")


def check_security_group(call: Call, given: Params) -> None:
    """DeleteSecurityGroup: not the default one, none that an interface carries or another group's rule names."""
    ec2, group_id = ec2_of(call), given.get("GroupId") or ""
    group = ec2.get_security_group_from_id(group_id)
    if group is None:
        return
    if group.name == "default":
        raise Refusal("CannotDelete", f"the specified group: '{group_id}' name: 'default' cannot be deleted by a user")
    carried = any(group_id in {each.id for each in interface.group_set} for interface in ec2.enis.values())
    if carried or _named_by_instances(call, group_id) or _named_by_groups(ec2, group_id):
        raise _violation(f"resource {group_id} has a dependent object")


def _named_by_instances(call: Call, group_id: str) -> bool:
    placements = store_of(call).instance_placements
    return any(
        group_id in placements.get(instance.id, {}).get("SecurityGroupIds", ())
        or group_id in {group.id for group in instance.security_groups}
        for instance in live_instances(call)
    )


def _named_by_groups(ec2: Any, group_id: str) -> bool:
    return any(
        rule.source_group.get("GroupId") == group_id
        for groups in ec2.groups.values()
        for other in groups.values()
        if other.id != group_id
        for rule in (*other.ingress_rules, *other.egress_rules)
    )


def check_internet_gateway(call: Call, given: Params) -> None:
    """DetachInternetGateway: not while addresses in the VPC are public."""
    ec2, vpc_id = ec2_of(call), given["VpcId"]
    public = [address for address in ec2.addresses if address.eni is not None and address.eni.subnet.vpc_id == vpc_id]
    public += [interface for interface in ec2.enis.values() if interface.public_ip and interface.subnet.vpc_id == vpc_id]
    if public:
        raise _violation(f"Network {vpc_id} has some mapped public address(es). Please unmap those before detaching the gateway.")


def check_address(call: Call, given: Params) -> None:
    """ReleaseAddress: not while it is associated."""
    for address in ec2_of(call).addresses:
        if given.get("AllocationId") and address.allocation_id == given["AllocationId"] and address.association_id:
            raise Refusal("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")


def check_interface(call: Call, given: Params) -> None:
    """DeleteNetworkInterface: not while attached, and none that a service manages."""
    interface = ec2_of(call).enis.get(given["NetworkInterfaceId"])
    if interface is None:
        return
    if interface.requester_managed:
        raise Refusal("OperationNotPermitted", "You are not allowed to manage this network interface: a service does.")
    if interface.instance is not None and interface.instance.state != "terminated":
        raise Refusal("InvalidParameterValue", f"Network interface '{interface.id}' is currently in use.")


def associate_nat_address(call: Call, given: Params, result: Any) -> None:
    """After CreateNatGateway: its interface is managed, its address associated."""
    ec2, gateway = ec2_of(call), result["NatGateway"]
    interface = gateway._eni
    interface.requester_managed = True
    interface.description = f"Interface for NAT Gateway {gateway.id}"
    for address in ec2.addresses:
        if given.get("AllocationId") and address.allocation_id == given["AllocationId"] and address.association_id is None:
            associated = ec2.associate_address(eni=interface, allocation_id=address.allocation_id)
            gateway.address_set[0]["associationId"] = associated.association_id


def release_nat(call: Call, given: Params, result: Any) -> None:
    """After DeleteNatGateway: its interface is gone, its address free."""
    ec2 = ec2_of(call)
    gateway = ec2.nat_gateways[given["NatGatewayId"]]
    for address in ec2.addresses:
        if address.eni is not None and address.eni.id == gateway._eni.id:
            address.eni, address.association_id = None, None
    ec2.enis.pop(gateway._eni.id, None)


def check_nat(call: Call, given: Params) -> None:
    """DeleteNatGateway: it must be there; moto would fail on its own."""
    if given["NatGatewayId"] not in ec2_of(call).nat_gateways:
        raise Refusal("NatGatewayNotFound", f"NatGateway {given['NatGatewayId']} was not found")


def release_instances(call: Call, given: Params, result: Any) -> None:
    """After TerminateInstances: interfaces made with an instance go with it."""
    ec2 = ec2_of(call)
    for interface in [each for each in ec2.enis.values() if each.instance is not None and each.instance.state == "terminated"]:
        if interface.delete_on_termination or interface.id in {nic.id for nic in interface.instance.nics.values()}:
            ec2.enis.pop(interface.id, None)
    for instance_id in given["InstanceIds"]:
        store_of(call).instance_placements.pop(instance_id, None)


def install() -> None:
    """Guard EC2's deletions and complete those that leave interfaces in moto."""
    add_guards(
        EC2Response,
        {
            "delete_subnet": check_subnet,
            "delete_vpc": check_vpc,
            "delete_security_group": check_security_group,
            "detach_internet_gateway": check_internet_gateway,
            "release_address": check_address,
            "delete_network_interface": check_interface,
            "delete_nat_gateway": check_nat,
        },
    )
    add_completions(
        EC2Response,
        {"create_nat_gateway": associate_nat_address, "delete_nat_gateway": release_nat, "terminate_instances": release_instances},
    )
