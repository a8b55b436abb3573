"""What the registrar knows of an EC2 instance, and how it asks the emulator for them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

NODE_POOL_TAG = "karpenter.sh/nodepool"
"""Karpenter tags an instance with its NodePool at launch; the NodeClaim follows only once there is a Node."""
ALIVE = frozenset({"pending", "running"})


@dataclass(frozen=True, kw_only=True)
class Instance:
    """An instance of Karpenter's."""

    id: str
    zone: str
    state: str
    """EC2's name of it, such as `running`."""
    private_ip: str
    private_dns: str

    @property
    def region(self) -> str:
        """Of the zone, which may be a local zone (`us-west-2-lax-1a`) as well."""
        match = re.match(r"[a-z]+(?:-[a-z]+)+-\d+", self.zone)
        return match[0] if match else self.zone

    @property
    def provider_id(self) -> str:
        """How Kubernetes refers to it."""
        return f"aws:///{self.zone}/{self.id}"

    @property
    def node_name(self) -> str:
        """The name under which an EKS node registers: its private DNS name."""
        return self.private_dns or self.id

    @property
    def alive(self) -> bool:
        return self.state in ALIVE


class Ec2Client(Protocol):
    """The one method that is needed of boto3's client."""

    def get_paginator(self, name: str, /) -> Any: ...


def ec2_client(endpoint: str, region: str) -> Ec2Client:
    """A client of the emulator, which takes any credentials."""
    # Its import and its service model cost 60 MB, which a stack without a single NodeClaim need not pay.
    import boto3
    from botocore.config import Config

    once = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 1})
    return boto3.client(
        "ec2", endpoint_url=endpoint, region_name=region, aws_access_key_id="local", aws_secret_access_key="local", config=once
    )


def list_instances(client: Ec2Client) -> list[Instance]:
    """All instances that Karpenter launched, ended ones too for as long as EC2 still shows them."""
    pages = client.get_paginator("describe_instances").paginate(Filters=[{"Name": "tag-key", "Values": [NODE_POOL_TAG]}])
    return [_instance(item) for item in _items(pages)]


def _items(pages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for page in pages:
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def _instance(item: Mapping[str, Any]) -> Instance:
    return Instance(
        id=item["InstanceId"],
        zone=item["Placement"]["AvailabilityZone"],
        state=item["State"]["Name"],
        private_ip=item.get("PrivateIpAddress", ""),
        private_dns=item.get("PrivateDnsName", ""),
    )
