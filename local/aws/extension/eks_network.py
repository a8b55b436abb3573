"""A cluster's place in its VPC: subnets, endpoint access, its security group and its control plane's interfaces.

Sources: botocore eks 2017-11-01; EKS user guide, "Amazon EKS networking requirements", "Security group requirements".
"""

from ipaddress import IPv4Network
from typing import Any

from local.aws.extension.eks_error import bad_parameter
from local.aws.extension.eks_lookup import subnets_of
from local.aws.extension.hooks import Call, Params
from local.aws.extension.store import ec2_of, random_hex, store_of

PRIVATE_RANGES = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))


def network_of(call: Call, config: Params) -> Params:
    """Check a cluster's `resourcesVpcConfig` and complete it as EKS describes it."""
    subnets = subnets_of(call, config.get("subnetIds") or [])
    if len({subnet.availability_zone for subnet in subnets}) < 2:
        raise bad_parameter("Subnets specified must be in at least two different AZs")
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        raise bad_parameter("Subnets specified must belong to one VPC")
    groups = config.get("securityGroupIds") or []
    if len(groups) > 5:
        raise bad_parameter(f"At most 5 security groups can be specified, {len(groups)} were.")
    for group_id in groups:
        if group_id not in ec2_of(call).groups.get(subnets[0].vpc_id, {}):
            raise bad_parameter(f"The security group {group_id} does not exist in the VPC {subnets[0].vpc_id}.")
    return endpoint_access(config) | {"subnetIds": config["subnetIds"], "securityGroupIds": groups, "vpcId": subnets[0].vpc_id}


def endpoint_access(config: Params) -> Params:
    """The endpoint's members of `resourcesVpcConfig`; one of the two ways in must be open."""
    public, private = config.get("endpointPublicAccess", True), config.get("endpointPrivateAccess", False)
    if not public and not private:
        raise bad_parameter("Private and public endpoint access cannot be false")
    cidrs = config.get("publicAccessCidrs") or ["0.0.0.0/0"]
    return {"endpointPublicAccess": public, "endpointPrivateAccess": private, "publicAccessCidrs": cidrs if public else []}


def check_services(call: Call, given: Params, vpc_id: str) -> None:
    """The block of service addresses: private, of a size EKS takes, outside the VPC."""
    text = (given.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr")
    if not text:
        return
    services, vpc = IPv4Network(text), IPv4Network(ec2_of(call).get_vpc(vpc_id).cidr_block)
    if not 12 <= services.prefixlen <= 24 or not any(services.subnet_of(each) for each in PRIVATE_RANGES):
        raise bad_parameter(f"serviceIpv4Cidr {text} is not valid: a private block between /24 and /12.")
    if services.overlaps(vpc):
        raise bad_parameter(f"serviceIpv4Cidr {text} overlaps the VPC's block {vpc}.")


def connect(call: Call, cluster: Any) -> None:
    """The cluster's security group, and its control plane's interfaces in two of its subnets."""
    ec2, network, name = ec2_of(call), cluster.resources_vpc_config, cluster.name
    group = ec2.create_security_group(
        f"eks-cluster-sg-{name}-{random_hex(8)}",
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.",
        vpc_id=network["vpcId"],
        tags={"Name": f"eks-cluster-sg-{name}", f"kubernetes.io/cluster/{name}": "owned", "aws:eks:cluster-name": name},
    )
    itself = [{"GroupId": group.id, "UserId": call.current_account}]
    ec2.authorize_security_group_ingress(group.id, "-1", None, None, [], source_groups=itself, vpc_id=network["vpcId"])
    network["clusterSecurityGroupId"] = group.id
    interfaces, zones = [], set()
    for subnet in subnets_of(call, network["subnetIds"]):
        if subnet.availability_zone in zones or len(interfaces) == 2:
            continue
        zones.add(subnet.availability_zone)
        interface = ec2.create_network_interface(
            subnet, [], group_ids=[*network["securityGroupIds"], group.id], description=f"Amazon EKS {name}"
        )
        interface.requester_managed = True
        interfaces.append(interface.id)
    store_of(call).cluster_interfaces[name] = interfaces


def delete_group(call: Call, cluster: Any) -> None:
    """The cluster's group stays behind if a node still carries it or a rule names it: on AWS too, where it then blocks the VPC."""
    ec2, network = ec2_of(call), cluster.resources_vpc_config
    group_id = network["clusterSecurityGroupId"]
    carried = any(group_id in {group.id for group in interface.group_set} for interface in ec2.enis.values())
    placed = any(group_id in placement["SecurityGroupIds"] for placement in store_of(call).instance_placements.values())
    if not carried and not placed:
        ec2.groups[network["vpcId"]].pop(group_id, None)
