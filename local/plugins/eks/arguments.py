"""The arguments of eks.Cluster that the stand-in knows, and what it accepts for each."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.errors import InputPropertyError

API = "API"
_OTHER_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP")

SUPPORTED = frozenset(
    {
        "accessEntries",
        "authenticationMode",
        "bootstrapSelfManagedAddons",
        "clusterSecurityGroup",
        "clusterSecurityGroupTags",
        "clusterTags",
        "corednsAddonOptions",
        "createOidcProvider",
        "deletionProtection",
        "enableConfigMapMutable",
        "enabledClusterLogTypes",
        "encryptionConfigKeyArn",
        "endpointPrivateAccess",
        "endpointPublicAccess",
        "ipFamily",
        "kubeProxyAddonOptions",
        "kubernetesServiceIpAddressRange",
        "name",
        "nodeSecurityGroupTags",
        "privateSubnetIds",
        "providerCredentialOpts",
        "publicAccessCidrs",
        "publicSubnetIds",
        "serviceRole",
        "skipDefaultNodeGroup",
        "skipDefaultSecurityGroups",
        "subnetIds",
        "tags",
        "upgradePolicy",
        "useDefaultVpcCni",
        "version",
        "vpcCniOptions",
        "vpcId",
    }
)
NESTED: Mapping[str, frozenset[str]] = {
    "corednsAddonOptions": frozenset(
        {"configurationValues", "enabled", "resolveConflictsOnCreate", "resolveConflictsOnUpdate", "version"},
    ),
    "kubeProxyAddonOptions": frozenset(
        {"configurationValues", "enabled", "resolveConflictsOnCreate", "resolveConflictsOnUpdate", "version"},
    ),
    "providerCredentialOpts": frozenset({"profileName", "roleArn"}),
}
"""Arguments that are tables of known options."""


def check(inputs: Mapping[str, Any]) -> None:
    """Refuse what the genuine component refuses, and what this one can't do.

    Raises:
        InputPropertyError: it names the argument, its value and what is allowed.
    """
    for name in inputs:
        if name not in SUPPORTED:
            raise InputPropertyError(
                name, f"the stand-in for eks.Cluster does not support it; supported are {', '.join(sorted(SUPPORTED))}"
            )
    for name, allowed in NESTED.items():
        options = inputs.get(name)
        unknown = sorted(set(options) - allowed) if isinstance(options, Mapping) else []
        if unknown:
            raise InputPropertyError(f"{name}.{unknown[0]}", f"no such option; known are {', '.join(sorted(allowed))}")
    _check_mode(inputs.get("authenticationMode"))
    _must_be(inputs, "skipDefaultNodeGroup", True, "the stand-in makes no node group; the platform makes its own")
    _must_be(
        inputs, "createOidcProvider", False, "the genuine component asks the issuer for its certificate, which a local stack has none of"
    )
    _check_network(inputs)


def _check_mode(mode: Any) -> None:
    if mode == API:
        return
    if mode is None or mode in _OTHER_MODES:
        raise InputPropertyError(
            "authenticationMode", f"is {mode or 'not set'}; the stand-in supports API only, not the aws-auth ConfigMap"
        )
    raise InputPropertyError("authenticationMode", f"is {mode}; allowed are {', '.join([API, *_OTHER_MODES])}")


def _must_be(inputs: Mapping[str, Any], name: str, wanted: bool, reason: str) -> None:
    # Unset means false for both.
    found = inputs.get(name) or False
    if isinstance(found, pulumi.Output) or found is not wanted:
        raise InputPropertyError(name, f"is {_shown(found)}, and must be {_shown(wanted)}: {reason}")


def _check_network(inputs: Mapping[str, Any]) -> None:
    if not inputs.get("vpcId"):
        raise InputPropertyError("vpcId", "is not set; the stand-in looks for no default VPC")
    split = [name for name in ("publicSubnetIds", "privateSubnetIds") if inputs.get(name) is not None]
    if inputs.get("subnetIds") is not None and split:
        raise InputPropertyError("subnetIds", f"excludes {' and '.join(split)}")
    if inputs.get("subnetIds") is None and not split:
        raise InputPropertyError("subnetIds", "is not set, and neither is publicSubnetIds nor privateSubnetIds")
    if inputs.get("publicAccessCidrs") is not None and inputs.get("endpointPublicAccess") is False:
        raise InputPropertyError("publicAccessCidrs", "can only be set when endpointPublicAccess is true")


def _shown(value: Any) -> str:
    if isinstance(value, pulumi.Output):
        return "an output"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def subnet_ids(inputs: Mapping[str, Any]) -> pulumi.Output[Sequence[str]]:
    """The subnets of the control plane: as given, or the public ones followed by the private ones."""
    if inputs.get("subnetIds") is not None:
        return pulumi.Output.from_input(inputs["subnetIds"])
    both = pulumi.Output.all(inputs.get("publicSubnetIds") or [], inputs.get("privateSubnetIds") or [])
    return both.apply(lambda lists: [*lists[0], *lists[1]])


def merged_tags(*layers: pulumi.Input[Mapping[str, str] | None]) -> pulumi.Output[dict[str, str]]:
    """Tags of all layers; a later layer wins."""
    return pulumi.Output.all(*layers).apply(lambda known: {key: value for layer in known if layer for key, value in layer.items()})
