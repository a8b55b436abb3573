"""Route tables, routes, associations and VPC endpoints."""

import zlib
from collections.abc import Mapping
from typing import Any

from local.plugins.aws.errors import AwsError
from local.plugins.aws.row import Call, Described, Prop, Row, Update, Wait, fixed
from local.plugins.aws.run import Run
from local.plugins.aws.types.ec2 import ARN, DEPENDENTS, ec2_tags, first

_DESTINATIONS = {
    "destinationCidrBlock": "DestinationCidrBlock",
    "destinationIpv6CidrBlock": "DestinationIpv6CidrBlock",
    "destinationPrefixListId": "DestinationPrefixListId",
}
_TARGETS = {
    "carrierGatewayId": "CarrierGatewayId",
    "coreNetworkArn": "CoreNetworkArn",
    "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
    "gatewayId": "GatewayId",
    "localGatewayId": "LocalGatewayId",
    "natGatewayId": "NatGatewayId",
    "networkInterfaceId": "NetworkInterfaceId",
    "transitGatewayId": "TransitGatewayId",
    "vpcEndpointId": "VpcEndpointId",
    "vpcPeeringConnectionId": "VpcPeeringConnectionId",
}
# Inside a route table the destinations are called otherwise.
_INLINE = {"cidrBlock": "DestinationCidrBlock", "ipv6CidrBlock": "DestinationIpv6CidrBlock", **_TARGETS} | {
    "destinationPrefixListId": "DestinationPrefixListId"
}


def _inline_routes(table: Described, declared: Any) -> list[dict[str, str]]:
    """Routes that someone made; AWS's own local ones come with the table."""
    made = [route for route in table["Routes"] if route.get("GatewayId") != "local" and route.get("Origin") != "CreateRouteTable"]
    return [{name: route[param] for name, param in _INLINE.items() if route.get(param)} for route in made]


def _set_routes(run: Run) -> None:
    def by_destination(routes: Any) -> dict[tuple[str, str], dict[str, str]]:
        sent = [{_INLINE[name]: value for name, value in route.items() if value} for route in routes or []]
        return {next((key, value) for key, value in route.items() if key.startswith("Destination")): route for route in sent}

    olds, news = by_destination(run.state.get("routes")), by_destination(run.inputs.get("routes"))
    for key, value in olds.keys() - news.keys():
        run.call("DeleteRoute", {"RouteTableId": run.resource_id, key: value})
    for destination, route in news.items():
        if olds.get(destination) != route:
            op = "ReplaceRoute" if destination in olds else "CreateRoute"
            run.call(op, {"RouteTableId": run.resource_id, **route}, dict.fromkeys(route, "routes"))


def _destination(run: Run) -> tuple[str, str]:
    """Parameter and value of a route's destination."""
    for name, param in _DESTINATIONS.items():
        if value := run.value(name):
            return param, value
    raise AwsError("aws:ec2/route:Route: one of " + ", ".join(_DESTINATIONS) + " is required", code="BadProperty")


def _route_id(run: Run) -> str:
    """The genuine plug-in's form: the table and a checksum of the destination."""
    return f"r-{run.value('routeTableId')}{zlib.crc32(_destination(run)[1].encode())}"


def _describe_route(run: Run) -> dict[str, Any] | None:
    table = first(run, "DescribeRouteTables", "RouteTables", RouteTableIds=[run.value("routeTableId")])
    key, wanted = _destination(run)
    return (
        next(({"RouteTableId": table["RouteTableId"], **route} for route in table["Routes"] if route.get(key) == wanted), None)
        if table
        else None
    )


def _delete_route(run: Run) -> None:
    key, value = _destination(run)
    run.call("DeleteRoute", {"RouteTableId": run.value("routeTableId"), key: value})


def _replace_route(run: Run) -> None:
    key, value = _destination(run)
    target = {param: run.inputs[name] for name, param in _TARGETS.items() if run.inputs.get(name)}
    run.call("ReplaceRoute", {"RouteTableId": run.value("routeTableId"), key: value, **target}, {v: k for k, v in _TARGETS.items()})


def _one_destination_and_target(inputs: Mapping[str, Any]) -> dict[str, str]:
    for names, what in ((_DESTINATIONS, "destination"), (_TARGETS, "target")):
        given = [name for name in names if inputs.get(name) is not None]
        if len(given) != 1:
            found = f"{' and '.join(given)} are set" if given else "none is set"
            return {given[0] if given else next(iter(names)): f"a route has exactly one {what}, {found}; the choice is {', '.join(names)}"}
    return {}


def _describe_association(run: Run) -> dict[str, Any] | None:
    mine = [{"Name": "association.route-table-association-id", "Values": [run.resource_id]}]
    table = first(run, "DescribeRouteTables", "RouteTables", Filters=mine)
    return next((one for one in table["Associations"] if one["RouteTableAssociationId"] == run.resource_id), None) if table else None


ROUTE_TABLE = Row(
    token="aws:ec2/routeTable:RouteTable",
    service="ec2",
    create=Call(op="CreateRouteTable", result="RouteTable"),
    id="RouteTableId",
    read=Call(op="DescribeRouteTables", by={"RouteTableIds": ["$id"]}, result="RouteTables[0]"),
    delete=Call(op="DeleteRouteTable", by={"RouteTableId": "$id"}),
    retry_delete=DEPENDENTS,
    props={**fixed("vpcId"), "routes": Prop(param="", computed=True, read=_inline_routes)},
    updates=[Update(takes=("routes",), run=_set_routes, on_create=True)],
    outputs={"arn": ARN + "route-table/{id}", "ownerId": "OwnerId"},
    tags=ec2_tags("route-table"),
)

ROUTE = Row(
    token="aws:ec2/route:Route",
    service="ec2",
    create=Call(op="CreateRoute"),
    id=_route_id,
    id_parts="{routeTableId}_{destinationCidrBlock}",
    read=_describe_route,
    delete=_delete_route,
    props={
        **fixed("routeTableId", *_DESTINATIONS),
        **{name: Prop(param=param) for name, param in _TARGETS.items()},
    },
    updates=[Update(takes=tuple(_TARGETS), run=_replace_route)],
    outputs={"state": "State", "origin": "Origin", "instanceId": "InstanceId", "instanceOwnerId": "InstanceOwnerId"},
    retry_create=("InvalidNatGatewayID.NotFound", "InvalidTransitGatewayID.NotFound"),
    delete_before_replace=True,
    validate=_one_destination_and_target,
)

ROUTE_TABLE_ASSOCIATION = Row(
    token="aws:ec2/routeTableAssociation:RouteTableAssociation",
    service="ec2",
    create=Call(op="AssociateRouteTable"),
    id="AssociationId",
    read=_describe_association,
    delete=Call(op="DisassociateRouteTable", by={"AssociationId": "$id"}),
    props=fixed("routeTableId", "subnetId", "gatewayId"),
    # A subnet has one table at a time.
    delete_before_replace=True,
)


def _modify_endpoint(run: Run) -> None:
    params: dict[str, Any] = {"VpcEndpointId": run.resource_id}
    for name, word in (("routeTableIds", "RouteTableIds"), ("subnetIds", "SubnetIds"), ("securityGroupIds", "SecurityGroupIds")):
        olds, news = set(run.state.get(name) or ()), set(run.inputs.get(name) or ())
        if run.inputs.get(name) is not None and olds != news:
            params |= {key: sorted(ids) for key, ids in ((f"Add{word}", news - olds), (f"Remove{word}", olds - news)) if ids}
    if run.inputs.get("policy") != run.state.get("policy"):
        policy = run.inputs.get("policy")
        params |= {"PolicyDocument": policy} if policy else {"ResetPolicy": True}
    if run.inputs.get("privateDnsEnabled") is not None:
        params["PrivateDnsEnabled"] = run.inputs["privateDnsEnabled"]
    run.call("ModifyVpcEndpoint", params, {"PolicyDocument": "policy", "PrivateDnsEnabled": "privateDnsEnabled"})


def _prefix_list(run: Run, endpoint: Described) -> str | None:
    if endpoint.get("VpcEndpointType") != "Gateway":
        return None
    mine = [{"Name": "prefix-list-name", "Values": [endpoint["ServiceName"]]}]
    found = first(run, "DescribeManagedPrefixLists", "PrefixLists", Filters=mine)
    return found["PrefixListId"] if found else None


VPC_ENDPOINT = Row(
    token="aws:ec2/vpcEndpoint:VpcEndpoint",
    service="ec2",
    create=Call(op="CreateVpcEndpoint", result="VpcEndpoint", token="ClientToken"),
    id="VpcEndpointId",
    read=Call(op="DescribeVpcEndpoints", by={"VpcEndpointIds": ["$id"]}, result="VpcEndpoints[?State!='deleted'] | [0]"),
    delete=Call(op="DeleteVpcEndpoints", by={"VpcEndpointIds": ["$id"]}),
    created=Wait(at="State", done=("available", "pendingAcceptance"), failed=("failed", "rejected"), seconds=600),
    deleted=Wait(at="State", done=("deleted",), seconds=600),
    gone=("InvalidVpcEndpointId.NotFound",),
    props={
        **fixed("vpcId", "serviceName", "serviceRegion"),
        **fixed("vpcEndpointType", default="Gateway"),
        "privateDnsEnabled": Prop(computed=True),
        "policy": Prop(param="PolicyDocument", json=True, computed=True),
        "ipAddressType": Prop(replace=True, computed=True),
        "dnsOptions": Prop(replace=True, computed=True),
        "routeTableIds": Prop(computed=True),
        "subnetIds": Prop(computed=True),
        "securityGroupIds": Prop(computed=True, read="Groups[].GroupId"),
    },
    updates=[Update(takes=("routeTableIds", "subnetIds", "securityGroupIds", "policy", "privateDnsEnabled"), run=_modify_endpoint)],
    outputs={
        "arn": ARN + "vpc-endpoint/{id}",
        "ownerId": "OwnerId",
        "state": "State",
        "requesterManaged": "RequesterManaged",
        "dnsEntries": "DnsEntries",
        "networkInterfaceIds": "NetworkInterfaceIds",
        "prefixListId": _prefix_list,
    },
    tags=ec2_tags("vpc-endpoint"),
)

ROWS = (ROUTE_TABLE, ROUTE, ROUTE_TABLE_ASSOCIATION, VPC_ENDPOINT)
