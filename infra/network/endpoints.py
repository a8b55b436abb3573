"""Endpoints of AWS services inside the VPC: S3 always, others as the settings name them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import child_options, token


@dataclass(frozen=True, kw_only=True)
class VpcEndpointsArgs:
    """What VpcEndpoints needs to know."""

    region: str
    """AWS region."""
    services: Sequence[str]
    """Services reached through interface endpoints, for instance ecr.api."""
    vpc_id: pulumi.Input[str]
    """The VPC."""
    vpc_cidr: pulumi.Input[str]
    """Range that may call the interface endpoints."""
    route_table_ids: Sequence[pulumi.Input[str]]
    """Route tables that get the way to S3."""
    subnet_ids: Mapping[str, pulumi.Input[str]]
    """Private subnets, by zone, that get an interface of each interface endpoint."""


class VpcEndpoints(pulumi.ComponentResource):
    """The S3 gateway endpoint, which keeps data and image layers off the NAT gateways, and optional interface endpoints."""

    s3_endpoint_id: pulumi.Output[str]
    interface_endpoints: dict[str, aws.ec2.VpcEndpoint]
    """Interface endpoint by service."""

    def __init__(self, name: str, args: VpcEndpointsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("network", "VpcEndpoints"), name, {"services": list(args.services)}, opts)
        child = child_options(self)
        gateway = aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=args.vpc_id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=list(args.route_table_ids),
            tags={"Name": f"{name}-s3"},
            opts=child,
        )
        self.s3_endpoint_id = gateway.id
        self.interface_endpoints = self._create_interfaces(name, args, child) if args.services else {}
        self.register_outputs({"s3_endpoint_id": self.s3_endpoint_id})

    @staticmethod
    def _create_interfaces(name: str, args: VpcEndpointsArgs, child: pulumi.ResourceOptions) -> dict[str, aws.ec2.VpcEndpoint]:
        group = aws.ec2.SecurityGroup(
            f"{name}-interfaces", vpc_id=args.vpc_id, description="Calls from the VPC to AWS services", tags={"Name": name}, opts=child
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-interfaces-https",
            security_group_id=group.id,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            cidr_ipv4=args.vpc_cidr,
            description="HTTPS from the VPC",
            opts=child,
        )
        return {
            service: aws.ec2.VpcEndpoint(
                f"{name}-{service.replace('.', '-')}",
                vpc_id=args.vpc_id,
                service_name=f"com.amazonaws.{args.region}.{service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=list(args.subnet_ids.values()),
                security_group_ids=[group.id],
                tags={"Name": f"{name}-{service}"},
                opts=child,
            )
            for service in args.services
        }
