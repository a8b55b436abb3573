"""The EC2NodeClass of a training pool: how its instances start. Pure functions of settings and ids."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from infra import catalogue, labels
from infra.settings import AliasImage, PoolSettings

API_VERSION = "karpenter.k8s.aws/v1"
KIND = "EC2NodeClass"


def node_class_spec(
    pool: PoolSettings,
    *,
    instance_profile: pulumi.Input[str],
    subnet_ids: Sequence[pulumi.Input[str]],
    security_group_ids: Sequence[pulumi.Input[str]],
    group_id: pulumi.Input[str] | None,
    reservation_ids: Sequence[pulumi.Input[str]],
    tags: Mapping[str, str],
) -> dict[str, Any]:
    """Return the spec of the pool's EC2NodeClass; everything is selected by id, so that no tag of another stack can be caught."""
    kind = catalogue.require(pool.instance_type)
    spec: dict[str, Any] = {
        **_image(pool),
        "instanceProfile": instance_profile,
        "subnetSelectorTerms": [{"id": subnet_id} for subnet_id in subnet_ids],
        "securityGroupSelectorTerms": [{"id": group} for group in security_group_ids],
        # One hop: pods cannot reach the node's role. They have roles of their own.
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {"volumeType": "gp3", "volumeSize": f"{pool.root_volume_gib}Gi", "encrypted": True, "deleteOnTermination": True},
            }
        ],
        "tags": {**tags, "Name": pool.name, labels.TAG_POOL: pool.name},
    }
    if pool.local_scratch:
        spec["instanceStorePolicy"] = "RAID0"
    if pool.efa:
        spec["networkInterfaces"] = network_interfaces(kind)
    if group_id is not None:
        spec["placementGroupSelector"] = {"id": group_id}
    if reservation_ids:
        spec["capacityReservationSelectorTerms"] = [{"id": reservation} for reservation in reservation_ids]
    return spec


def network_interfaces(kind: catalogue.InstanceType) -> list[dict[str, Any]]:
    """Return the interfaces of an instance in Karpenter's terms: an ordinary primary, then one efa-only on each card that takes one."""
    return [
        {"networkCardIndex": interface.card, "deviceIndex": interface.device, "interfaceType": interface.interface_type}
        for interface in kind.efa_interfaces()
    ]


def _image(pool: PoolSettings) -> dict[str, Any]:
    if isinstance(pool.image, AliasImage):
        return {"amiSelectorTerms": [{"alias": pool.image.alias}]}
    # An AMI by id does not say how it boots.
    return {"amiFamily": "AL2023", "amiSelectorTerms": [{"id": pool.image.id}]}
