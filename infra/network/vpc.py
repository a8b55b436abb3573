"""The VPC: three named zones, a private and a public subnet in each, and the chosen way out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import child_options, token
from infra.network.subnets import ZoneSubnets, plan_subnets
from infra.settings import NetworkSettings


@dataclass(frozen=True, kw_only=True)
class VpcArgs:
    """What a Vpc needs to know."""

    settings: NetworkSettings
    """Range, zones and NAT choice."""
    cluster_name: str
    """Name of the cluster whose load balancers may use the subnets."""


class Vpc(pulumi.ComponentResource):
    """A VPC whose zones are chosen by name, so that no later look-up can move them."""

    vpc_id: pulumi.Output[str]
    cidr: pulumi.Output[str]
    private_subnet_ids: dict[str, pulumi.Output[str]]
    """Id of the private subnet by zone."""
    public_subnet_ids: dict[str, pulumi.Output[str]]
    """Id of the public subnet by zone."""
    private_route_table_ids: list[pulumi.Output[str]]
    public_route_table_id: pulumi.Output[str]
    private_routes: list[aws.ec2.Route]
    """The ways out of the private subnets: nodes cannot start before they are there."""

    def __init__(self, name: str, args: VpcArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("network", "Vpc"), name, {"cidr": args.settings.cidr, "zones": list(args.settings.zones)}, opts)
        self._name, self._args, self._child = name, args, child_options(self)
        plan = plan_subnets(args.settings.cidr, args.settings.zones)
        vpc = aws.ec2.Vpc(
            name,
            cidr_block=args.settings.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags={"Name": name},
            opts=self._child,
        )
        self.vpc_id, self.cidr = vpc.id, vpc.cidr_block
        public = {row.zone: self._subnet(row, "public", row.public_cidr, {"kubernetes.io/role/elb": "1"}) for row in plan}
        private = {row.zone: self._subnet(row, "private", row.private_cidr, {"kubernetes.io/role/internal-elb": "1"}) for row in plan}
        self.public_subnet_ids = {zone: subnet.id for zone, subnet in public.items()}
        self.private_subnet_ids = {zone: subnet.id for zone, subnet in private.items()}
        gateway = aws.ec2.InternetGateway(f"{name}-internet", vpc_id=vpc.id, tags={"Name": name}, opts=self._child)
        self.public_route_table_id = self._route_public(gateway)
        nats = self._create_nat_gateways(gateway)
        self.private_routes = []
        self.private_route_table_ids = [self._route_private(zone, nats) for zone in private]
        self.register_outputs(
            {
                "vpc_id": self.vpc_id,
                "private_subnet_ids": self.private_subnet_ids,
                "public_subnet_ids": self.public_subnet_ids,
            }
        )

    def _subnet(self, row: ZoneSubnets, kind: str, cidr: str, tags: Mapping[str, str]) -> aws.ec2.Subnet:
        return aws.ec2.Subnet(
            f"{self._name}-{kind}-{row.zone}",
            vpc_id=self.vpc_id,
            availability_zone=row.zone,
            cidr_block=cidr,
            # Several network cards and a public address exclude each other; nothing of ours needs a public address anyway.
            map_public_ip_on_launch=False,
            tags={"Name": f"{self._name}-{kind}-{row.zone}", f"kubernetes.io/cluster/{self._args.cluster_name}": "shared", **tags},
            opts=self._child,
        )

    def _route_public(self, gateway: aws.ec2.InternetGateway) -> pulumi.Output[str]:
        table = aws.ec2.RouteTable(f"{self._name}-public", vpc_id=self.vpc_id, tags={"Name": f"{self._name}-public"}, opts=self._child)
        aws.ec2.Route(
            f"{self._name}-public-internet",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway.id,
            opts=self._child,
        )
        for zone, subnet_id in self.public_subnet_ids.items():
            aws.ec2.RouteTableAssociation(f"{self._name}-public-{zone}", subnet_id=subnet_id, route_table_id=table.id, opts=self._child)
        return table.id

    def _create_nat_gateways(self, gateway: aws.ec2.InternetGateway) -> dict[str, aws.ec2.NatGateway]:
        """Make the NAT gateways that the settings ask for; returns them by the zone they stand in."""
        # A NAT gateway has no way out before the internet gateway is attached, which no output of it carries.
        after_gateway = child_options(self, depends_on=[gateway])
        gateways = {}
        for zone in _nat_zones(self._args.settings):
            address = aws.ec2.Eip(f"{self._name}-nat-{zone}", domain="vpc", tags={"Name": f"{self._name}-nat-{zone}"}, opts=after_gateway)
            gateways[zone] = aws.ec2.NatGateway(
                f"{self._name}-nat-{zone}",
                subnet_id=self.public_subnet_ids[zone],
                allocation_id=address.allocation_id,
                tags={"Name": f"{self._name}-nat-{zone}"},
                opts=after_gateway,
            )
        return gateways

    def _route_private(self, zone: str, nats: Mapping[str, aws.ec2.NatGateway]) -> pulumi.Output[str]:
        name = f"{self._name}-private-{zone}"
        table = aws.ec2.RouteTable(name, vpc_id=self.vpc_id, tags={"Name": name}, opts=self._child)
        if nats:
            nat = nats.get(zone) or next(iter(nats.values()))
            route = aws.ec2.Route(
                f"{name}-nat", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", nat_gateway_id=nat.id, opts=self._child
            )
            self.private_routes.append(route)
        aws.ec2.RouteTableAssociation(name, subnet_id=self.private_subnet_ids[zone], route_table_id=table.id, opts=self._child)
        return table.id


def _nat_zones(settings: NetworkSettings) -> Sequence[str]:
    return {"none": (), "single": settings.zones[:1], "per-az": settings.zones}[settings.nat]
