"""What the stand-in for the eks component accepts, and the documents it writes."""

import asyncio
import json
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertyError

from local.plugins.eks.addons import check_cni_options, cni_configuration
from local.plugins.eks.arguments import check
from local.plugins.eks.kubeconfig import _document

pytestmark = pytest.mark.unit


def inputs(**changes: Any) -> dict[str, Any]:
    """Valid arguments with changes; None takes one away."""
    valid = {"vpcId": "vpc-1", "privateSubnetIds": ["subnet-1", "subnet-2"], "authenticationMode": "API", "skipDefaultNodeGroup": True}
    return {name: value for name, value in (valid | changes).items() if value is not None}


def test_valid_arguments_are_accepted() -> None:
    check(inputs())
    check(
        inputs(
            createOidcProvider=False,
            subnetIds=None,
            publicSubnetIds=["subnet-3"],
            endpointPublicAccess=True,
            publicAccessCidrs=["10.0.0.0/8"],
        )
    )


@pytest.mark.parametrize(
    ("changes", "path", "reason"),
    [
        ({"fargate": True}, "fargate", "the stand-in for eks.Cluster does not support it; supported are accessEntries"),
        ({"autoMode": {"enabled": True}}, "autoMode", "does not support it"),
        ({"authenticationMode": None}, "authenticationMode", "is not set; the stand-in supports API only"),
        ({"authenticationMode": "CONFIG_MAP"}, "authenticationMode", "is CONFIG_MAP; the stand-in supports API only"),
        ({"authenticationMode": "api"}, "authenticationMode", "is api; allowed are API, CONFIG_MAP, API_AND_CONFIG_MAP"),
        ({"skipDefaultNodeGroup": None}, "skipDefaultNodeGroup", "is false, and must be true"),
        ({"createOidcProvider": True}, "createOidcProvider", "is true, and must be false"),
        ({"vpcId": None}, "vpcId", "is not set"),
        ({"privateSubnetIds": None}, "subnetIds", "neither is publicSubnetIds nor privateSubnetIds"),
        ({"subnetIds": ["subnet-1"]}, "subnetIds", "excludes privateSubnetIds"),
        (
            {"endpointPublicAccess": False, "publicAccessCidrs": ["10.0.0.0/8"]},
            "publicAccessCidrs",
            "only be set when endpointPublicAccess is true",
        ),
        (
            {"kubeProxyAddonOptions": {"enable": False}},
            "kubeProxyAddonOptions.enable",
            "no such option; known are configurationValues, enabled",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_argument_is_refused_by_name(changes: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(InputPropertyError) as refused:
        check(inputs(**changes))
    assert refused.value.property_path == path
    assert reason in refused.value.reason


def test_a_flag_that_decides_what_is_made_must_be_plain() -> None:
    async def refusal() -> str:
        with pytest.raises(InputPropertyError) as refused:
            check(inputs(createOidcProvider=pulumi.Output.from_input(False)))
        return refused.value.reason

    assert asyncio.run(refusal()).startswith("is an output, and must be false")


def test_the_cni_has_the_genuine_defaults() -> None:
    assert cni_configuration({}) == {
        "env": {
            "AWS_VPC_ENI_MTU": "9001",
            "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "false",
            "AWS_VPC_K8S_CNI_EXTERNALSNAT": "false",
            "AWS_VPC_K8S_CNI_LOGLEVEL": "DEBUG",
            "AWS_VPC_K8S_CNI_LOG_FILE": "/host/var/log/aws-routed-eni/ipamd.log",
            "AWS_VPC_K8S_CNI_VETHPREFIX": "eni",
            "AWS_VPC_K8S_PLUGIN_LOG_FILE": "/var/log/aws-routed-eni/plugin.log",
            "AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "DEBUG",
            "ENABLE_POD_ENI": "false",
            "WARM_ENI_TARGET": "1",
        },
        "init": {"env": {"DISABLE_TCP_EARLY_DEMUX": "false"}},
    }


def test_given_configuration_values_win_over_options() -> None:
    given = {"env": {"WARM_ENI_TARGET": "3"}, "tolerations": [{"operator": "Exists"}]}
    made = cni_configuration({"warmEniTarget": 2.0, "warmIpTarget": 5.0, "enableNetworkPolicy": True, "configurationValues": given})
    assert made["env"]["WARM_ENI_TARGET"] == "3"
    assert made["env"]["WARM_IP_TARGET"] == "5"
    assert made["enableNetworkPolicy"] == "true"
    assert made["tolerations"] == [{"operator": "Exists"}]
    assert given["env"] == {"WARM_ENI_TARGET": "3"}


def test_an_unknown_cni_option_is_refused_by_name() -> None:
    with pytest.raises(InputPropertyError) as refused:
        check_cni_options({"warmPoolTarget": 1})
    assert refused.value.property_path == "vpcCniOptions.warmPoolTarget"


@pytest.mark.parametrize(("with_profile", "words"), [(True, ["--role", "arn:role", "--profile", "team"]), (False, ["--role", "arn:role"])])
def test_the_kubeconfig_asks_the_aws_cli_for_a_token(with_profile: bool, words: list[str]) -> None:
    arn = "arn:aws:eks:eu-west-1:123456789012:cluster/c"
    made = _document(
        "c", "https://endpoint", {"data": "Q0E="}, arn, {"roleArn": "arn:role", "profileName": "team"}, with_profile=with_profile
    )
    token = made["users"][0]["user"]["exec"]
    assert token["command"] == "aws"
    assert token["args"] == ["--region", "eu-west-1", "eks", "get-token", "--cluster-name", "c", "--output", "json", *words]
    assert made["clusters"][0]["cluster"] == {"server": "https://endpoint", "certificate-authority-data": "Q0E="}
    assert json.loads(json.dumps(made))["current-context"] == "aws"
