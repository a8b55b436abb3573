"""VPC endpoints: of the kind that their service has, and with the way there."""

import re

from guardrails.firewall import GROUP_TYPES, is_open
from guardrails.links import targets
from guardrails.lustre import flag
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import ROUTE_TABLE_LINK, SECURITY_GROUP, VPC_ENDPOINT

_AWS = re.compile(r"(?:cn\.)?com\.amazonaws\.[a-z]{2,4}(?:-[a-z]+)+-[0-9]\.([a-z0-9.-]+)")
_WITH_GATEWAYS = ("s3", "dynamodb", "s3express")
_DEFAULT = "Gateway"
_HTTPS = 443
_OF_NODES = frozenset(
    {"autoscaling", "ec2", "ec2messages", "ecr.api", "ecr.dkr", "eks", "eks-auth", "elasticloadbalancing", "fsx", "kms", "logs", "s3"}
    | {"secretsmanager", "sqs", "ssm", "ssmmessages", "sts"}
)
"""What nodes and their drivers ask by HTTPS; others, such as email-smtp, have ports of their own."""


def _endpoints(program: Program, report: Report) -> None:
    for endpoint in program.of(VPC_ENDPOINT):
        with report.part():
            kind = endpoint.at("vpcEndpointType")
            if (kind.text() or _DEFAULT) == _DEFAULT:
                _gateway(program, endpoint, kind, report)
            elif kind.text() == "Interface":
                _interface(program, endpoint, report)


def _service(endpoint: Resource) -> str:
    """The service of AWS that an endpoint is for, such as ecr.api; empty where it is another's."""
    matched = _AWS.fullmatch(endpoint.at("serviceName").text())
    return matched[1] if matched else ""


def _gateway(program: Program, endpoint: Resource, kind: Node, report: Report) -> None:
    service = _service(endpoint)
    if service and service not in _WITH_GATEWAYS:
        found = kind.raw if kind.present else f"unset (EC2 takes {_DEFAULT})"
        report.refuse(endpoint, kind, allowed=f"Interface: {service} has no gateway", found=found)
        return
    for key in ("subnetIds", "securityGroupIds"):
        place = endpoint.at(key)
        if place.value not in (None, []):
            report.refuse(endpoint, place, allowed="unset: a gateway has routes, no interfaces", found="set")
    if flag(endpoint.at("privateDnsEnabled")) is True:
        report.refuse(endpoint, endpoint.at("privateDnsEnabled"), allowed="unset: a gateway has no names of its own")
    routes = endpoint.at("routeTableIds")
    if routes.raw in (None, []) and not _is_routed(program, endpoint):
        # Another program may associate them.
        report.advise(endpoint, routes, allowed="the route tables of the subnets that are to use it, or an association for each")


def _is_routed(program: Program, endpoint: Resource) -> bool:
    """Whether route tables are associated by resources of their own."""
    return any(program.refers(each, "vpcEndpointId", endpoint) for each in program.of(ROUTE_TABLE_LINK))


def _interface(program: Program, endpoint: Resource, report: Report) -> None:
    routes, private = endpoint.at("routeTableIds"), endpoint.at("privateDnsEnabled")
    with report.part():
        if routes.value not in (None, []):
            report.refuse(endpoint, routes, allowed="unset: an interface endpoint is reached by its address", found="set")
    with report.part():
        if flag(private) is not True and _service(endpoint) and _service(endpoint) not in _WITH_GATEWAYS:
            found = private.raw if private.present else "unset (EC2 takes false)"
            report.advise(endpoint, private, allowed="true: clients ask for the service's public name, which leads past it", found=found)
    with report.part():
        _https(program, endpoint, report)


def _https(program: Program, endpoint: Resource, report: Report) -> None:
    place = endpoint.at("securityGroupIds")
    groups = targets(program, endpoint, "securityGroupIds", SECURITY_GROUP)
    # A group that is made elsewhere may let nodes in.
    if not groups or len(groups) < len(list(place.elements())) or _service(endpoint) not in _OF_NODES:
        return
    if not is_open(program, groups, "ingress", _HTTPS, _HTTPS):
        found = f"{', '.join(group.name for group in groups)}, which lets nobody in on TCP {_HTTPS}"
        report.refuse(endpoint, place, allowed=f"a group with ingress of TCP {_HTTPS} from the nodes", found=found)


def _of(service: str, **properties: object) -> tuple[Example, ...]:
    return (Example(VPC_ENDPOINT, {"vpcId": "vpc-1", "serviceName": f"com.amazonaws.us-east-1.{service}", **properties}, name=service),)


RULES = (
    StackRule(
        id="NET01",
        name="endpoint-require-way-to-service",
        title="A VPC endpoint is of a kind that its service has, and nodes find the way through it",
        check=_endpoints,
        types=frozenset({VPC_ENDPOINT, ROUTE_TABLE_LINK, *GROUP_TYPES}),
        why="EC2 refuses the endpoint, or nodes without a way out pull no image and never join.",
        fix="give the gateway of S3 its route tables; use Interface with privateDnsEnabled and TCP 443 from the nodes for the rest.",
        source="botocore 1.44.8 ec2 model, CreateVpcEndpoint; PrivateLink guide: gateway endpoints; sassoftware/viya4-iac-aws#272",
        valid=_of("s3", routeTableIds=["rtb-1"]),
        invalid=_of("ecr.dkr"),
    ),
)
