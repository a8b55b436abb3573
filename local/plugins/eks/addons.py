"""The managed add-ons inside eks.Cluster: kube-proxy, CoreDNS and the VPC CNI."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi.errors import InputPropertyError

_OVERWRITE = "OVERWRITE"


@dataclass(frozen=True)
class _Variable:
    """An environment variable of the CNI's node pods, the option that sets it, and its value without the option."""

    name: str
    option: str
    default: str | None = None


_CNI_VARIABLES = (
    _Variable("AWS_VPC_CNI_NODE_PORT_SUPPORT", "nodePortSupport"),
    _Variable("WARM_ENI_TARGET", "warmEniTarget", "1"),
    _Variable("WARM_IP_TARGET", "warmIpTarget"),
    _Variable("WARM_PREFIX_TARGET", "warmPrefixTarget"),
    _Variable("ENABLE_PREFIX_DELEGATION", "enablePrefixDelegation"),
    _Variable("AWS_VPC_K8S_CNI_LOGLEVEL", "logLevel", "DEBUG"),
    _Variable("AWS_VPC_K8S_CNI_LOG_FILE", "logFile", "/host/var/log/aws-routed-eni/ipamd.log"),
    _Variable("AWS_VPC_K8S_CNI_VETHPREFIX", "vethPrefix", "eni"),
    _Variable("AWS_VPC_ENI_MTU", "eniMtu", "9001"),
    _Variable("ENI_CONFIG_LABEL_DEF", "eniConfigLabelDef"),
    _Variable("AWS_VPC_K8S_PLUGIN_LOG_LEVEL", "pluginLogLevel", "DEBUG"),
    _Variable("AWS_VPC_K8S_PLUGIN_LOG_FILE", "pluginLogFile", "/var/log/aws-routed-eni/plugin.log"),
    _Variable("ENABLE_POD_ENI", "enablePodEni", "false"),
    _Variable("AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER", "cniConfigureRpfilter"),
    _Variable("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "cniCustomNetworkCfg", "false"),
)
_CNI_INIT_VARIABLES = (_Variable("DISABLE_TCP_EARLY_DEMUX", "disableTcpEarlyDemux", "false"),)
_CNI_SNAT = ("externalSnat", "cniExternalSnat")
_CNI_OPTIONS = frozenset(
    {
        *(variable.option for variable in (*_CNI_VARIABLES, *_CNI_INIT_VARIABLES)),
        *_CNI_SNAT,
        "addonVersion",
        "configurationValues",
        "enableNetworkPolicy",
        "resolveConflictsOnCreate",
        "resolveConflictsOnUpdate",
        "serviceAccountRoleArn",
    }
)


def create_addon(
    name: str, addon: str, options: Mapping[str, Any], cluster: aws.eks.Cluster, tags: Any, child: pulumi.ResourceOptions
) -> aws.eks.Addon:
    """An add-on of the plain kind (kube-proxy, CoreDNS): newest version unless one is given, conflicts overwritten, kept on delete."""
    return aws.eks.Addon(
        f"{name}-{addon}",
        cluster_name=cluster.name,
        addon_name=addon,
        addon_version=options.get("version") or _newest(addon, cluster, child),
        preserve=True,
        tags=tags,
        resolve_conflicts_on_create=options.get("resolveConflictsOnCreate") or _OVERWRITE,
        resolve_conflicts_on_update=options.get("resolveConflictsOnUpdate") or _OVERWRITE,
        configuration_values=_text(options.get("configurationValues")),
        opts=child,
    )


class VpcCniAddon(pulumi.ComponentResource):
    """The VPC CNI, whose options become environment variables of its pods."""

    addon: aws.eks.Addon

    def __init__(self, name: str, options: Mapping[str, Any], cluster: aws.eks.Cluster, tags: Any, opts: pulumi.ResourceOptions) -> None:
        check_cni_options(options)
        props = {**options, "clusterName": cluster.name, "clusterVersion": cluster.version, "tags": tags}
        super().__init__("eks:index:VpcCniAddon", name, props, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.addon = aws.eks.Addon(
            name,
            cluster_name=cluster.name,
            addon_name="vpc-cni",
            addon_version=options.get("addonVersion") or _newest("vpc-cni", cluster, child),
            resolve_conflicts_on_create=options.get("resolveConflictsOnCreate") or _OVERWRITE,
            resolve_conflicts_on_update=options.get("resolveConflictsOnUpdate") or _OVERWRITE,
            preserve=True,
            configuration_values=_text(pulumi.Output.from_input(dict(options)).apply(cni_configuration)),
            service_account_role_arn=options.get("serviceAccountRoleArn"),
            tags=tags,
            opts=child,
        )
        self.register_outputs({"addon": self.addon})


def check_cni_options(options: Mapping[str, Any]) -> None:
    """Refuse options that the stand-in does not know.

    Raises:
        InputPropertyError: it names the option.
    """
    unknown = sorted(set(options) - _CNI_OPTIONS)
    if unknown:
        known = ", ".join(sorted(_CNI_OPTIONS))
        raise InputPropertyError(f"vpcCniOptions.{unknown[0]}", f"the stand-in for eks.Cluster does not support it; supported are {known}")
    if all(options.get(option) for option in _CNI_SNAT):
        raise InputPropertyError("vpcCniOptions.externalSnat", "excludes cniExternalSnat")


def cni_configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """The add-on's configuration values: those given, with the options' environment variables beneath them."""
    variables = _environment(_CNI_VARIABLES, options)
    variables["AWS_VPC_K8S_CNI_EXTERNALSNAT"] = _word(any(options.get(option) for option in _CNI_SNAT))
    given = dict(options.get("configurationValues") or {})
    if options.get("enableNetworkPolicy") is not None:
        given.setdefault("enableNetworkPolicy", _word(options["enableNetworkPolicy"]))
    given["env"] = variables | given.get("env", {})
    first = given.get("init", {})
    given["init"] = {**first, "env": _environment(_CNI_INIT_VARIABLES, options) | first.get("env", {})}
    return given


def _environment(variables: tuple[_Variable, ...], options: Mapping[str, Any]) -> dict[str, str]:
    values = {
        variable.name: _word(options[variable.option]) if options.get(variable.option) else variable.default for variable in variables
    }
    return {name: value for name, value in values.items() if value is not None}


def _newest(addon: str, cluster: aws.eks.Cluster, child: pulumi.ResourceOptions) -> pulumi.Output[str]:
    found = aws.eks.get_addon_version_output(
        addon_name=addon, kubernetes_version=cluster.version, most_recent=True, opts=pulumi.InvokeOutputOptions(parent=child.parent)
    )
    return found.apply(lambda known: known.version)


def _text(values: pulumi.Input[Mapping[str, Any]] | None) -> pulumi.Output[str] | None:
    """JSON with sorted keys, so that the same options are always the same text."""
    if not values:
        return None
    return pulumi.Output.from_input(values).apply(lambda known: json.dumps(known, sort_keys=True, separators=(",", ":")))


def _word(value: Any) -> str:
    # Numbers come over the wire as floats.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
