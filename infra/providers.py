"""Providers: with the settings, the only place that knows whether something stands in for AWS or for the cluster."""

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from infra import labels
from infra.settings import AwsSettings, KubernetesSettings

# Every service that a component calls.
_SERVICES = ("cloudwatchevents", "ec2", "efs", "eks", "fsx", "iam", "kms", "s3", "sqs", "ssm", "sts")


def stack_tags(settings: AwsSettings) -> dict[str, str]:
    """Return the tags of everything the stack makes; by the first one finds what a destroy left over."""
    return {labels.TAG_STACK: f"{pulumi.get_project()}/{pulumi.get_stack()}", **settings.tags}


def aws_provider(settings: AwsSettings) -> aws.Provider:
    """Return the provider of all AWS resources, for the region (and endpoint, where one is set) of the settings."""
    tags = aws.ProviderDefaultTagsArgs(tags=stack_tags(settings))
    if settings.endpoint is None:
        return aws.Provider("aws", region=settings.region, default_tags=tags)
    # An emulator on this machine checks no credentials, and must not be given real ones.
    local = _is_loopback(settings.endpoint)
    return aws.Provider(
        "aws",
        region=settings.region,
        default_tags=tags,
        access_key="emulator" if local else None,
        secret_key="emulator" if local else None,
        endpoints=[aws.ProviderEndpointArgs(**dict.fromkeys(_SERVICES, settings.endpoint))],
        s3_use_path_style=True,
        skip_credentials_validation=True,
        skip_metadata_api_check=True,
        skip_requesting_account_id=True,
        skip_region_validation=True,
    )


def kubeconfig_text(settings: KubernetesSettings, of_cluster: pulumi.Output[str]) -> pulumi.Output[str]:
    """Return the kubeconfig to use, secret: the file the settings name, or else the cluster's own."""
    if settings.kubeconfig is None:
        return pulumi.Output.secret(of_cluster)
    return pulumi.Output.secret(Path(settings.kubeconfig).expanduser().read_text(encoding="utf-8"))


def kubernetes_provider(
    name: str, settings: KubernetesSettings, kubeconfig: pulumi.Output[str], opts: pulumi.ResourceOptions
) -> kubernetes.Provider:
    """Return the provider of everything in the cluster."""
    return kubernetes.Provider(
        name,
        kubeconfig=kubeconfig,
        context=settings.context,
        enable_server_side_apply=True,
        # What cannot be reached is not taken for deleted.
        delete_unreachable=False,
        opts=opts,
    )


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
