"""The network: VPC, endpoints of AWS services, and the EFA security group."""

from infra.network.endpoints import VpcEndpoints, VpcEndpointsArgs
from infra.network.security import EfaSecurityGroup, EfaSecurityGroupArgs
from infra.network.subnets import ZoneSubnets, plan_subnets
from infra.network.vpc import Vpc, VpcArgs

__all__ = ["EfaSecurityGroup", "EfaSecurityGroupArgs", "Vpc", "VpcArgs", "VpcEndpoints", "VpcEndpointsArgs", "ZoneSubnets", "plan_subnets"]
