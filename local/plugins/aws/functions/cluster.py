"""EKS clusters, their tokens and their add-ons' versions."""

import base64
from collections.abc import Mapping
from typing import Any

from local.errors import LocalStackError
from local.plugins.aws.clients import Clients
from local.plugins.aws.functions.query import ask, region_of, result


def addon_version(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """The default version of an add-on for a Kubernetes version, or the newest with `mostRecent`."""
    params = {"addonName": args["addonName"], "kubernetesVersion": args["kubernetesVersion"]}
    found = ask(clients, "eks", "DescribeAddonVersions", params, args)["addons"]
    versions = [version for addon in found for version in addon["addonVersions"]]
    if not args.get("mostRecent"):
        versions = [one for one in versions if any(fit.get("defaultVersion") for fit in one.get("compatibilities") or ())] or versions
    if not versions:
        raise LocalStackError(f"no version of add-on {args['addonName']} for Kubernetes {args['kubernetesVersion']}")
    region = region_of(clients, args)
    return {
        **args,
        "id": args["addonName"],
        "region": region,
        "version": versions[0]["addonVersion"],
        "mostRecent": bool(args.get("mostRecent")),
    }


def cluster(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """One cluster, by name. The SDK has lists of one where AWS has an object."""
    found = ask(clients, "eks", "DescribeCluster", {"name": args["name"]}, args)["cluster"]
    groups = (found.get("logging") or {}).get("clusterLogging") or ()
    described = {
        **found,
        "accessConfigs": found.get("accessConfig"),
        "certificateAuthorities": found.get("certificateAuthority"),
        "kubernetesNetworkConfigs": found.get("kubernetesNetworkConfig"),
        "upgradePolicies": found.get("upgradePolicy"),
        "vpcConfig": found.get("resourcesVpcConfig"),
    }
    issuer = ((found.get("identity") or {}).get("oidc") or {}).get("issuer")
    return result(
        "aws:eks/getCluster:getCluster",
        described,
        args,
        id=found["name"],
        region=region_of(clients, args),
        enabledClusterLogTypes=[kind for group in groups if group.get("enabled") for kind in group["types"]],
        identities=[{"oidcs": [{"issuer": issuer}]}] if issuer else [],
    )


def cluster_auth(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """A bearer token as EKS takes it: a signed request for one's own identity, in base64."""
    region, name = region_of(clients, args), args["name"]
    client = clients.client("sts", region)
    from botocore.signers import RequestSigner

    signer = RequestSigner(client.meta.service_model.service_id, region, "sts", "v4", client._get_credentials(), client.meta.events)
    request = {
        "method": "GET",
        "url": f"{client.meta.endpoint_url}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        # Ties the token to this cluster.
        "headers": {"x-k8s-aws-id": name},
        "context": {},
    }
    url = signer.generate_presigned_url(request, region_name=region, expires_in=60, operation_name="")
    token = "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    return {"id": name, "name": name, "region": region, "token": token}


FUNCTIONS = {
    "aws:eks/getAddonVersion:getAddonVersion": addon_version,
    "aws:eks/getCluster:getCluster": cluster,
    "aws:eks/getClusterAuth:getClusterAuth": cluster_auth,
}
