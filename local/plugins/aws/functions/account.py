"""Who and where the provider is."""

from collections.abc import Mapping
from typing import Any

from local.plugins.aws.clients import Clients
from local.plugins.aws.functions.query import ask, region_of

_NAMES = {
    "us-east-1": "US East (N. Virginia)",
    "us-east-2": "US East (Ohio)",
    "us-west-2": "US West (Oregon)",
    "eu-west-1": "Europe (Ireland)",
    "eu-central-1": "Europe (Frankfurt)",
}


def caller_identity(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """The account that the emulator answers for."""
    found = ask(clients, "sts", "GetCallerIdentity", {}, args)
    return {"accountId": found["Account"], "arn": found["Arn"], "userId": found["UserId"], "id": found["Account"]}


def partition(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """AWS partition of the provider's region."""
    region = region_of(clients, args)
    name = "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
    suffix = "amazonaws.com.cn" if name == "aws-cn" else "amazonaws.com"
    return {"partition": name, "id": name, "dnsSuffix": suffix, "reverseDnsPrefix": ".".join(reversed(suffix.split(".")))}


def region(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """The region asked for by name, or the provider's."""
    name = args.get("region") or args.get("name") or clients.configuration.region
    return {"id": name, "name": name, "region": name, "endpoint": f"ec2.{name}.amazonaws.com", "description": _NAMES.get(name, name)}


FUNCTIONS = {
    "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
    "aws:index/getPartition:getPartition": partition,
    "aws:index/getRegion:getRegion": region,
}
