"""Puts the whole extension into moto."""

import functools

from moto.core import responses as moto_responses

from local.aws.extension import (
    capacity_block,
    capacity_reservation,
    data_repository,
    dependency,
    efs,
    eks_access,
    eks_addon,
    eks_cluster,
    eks_cluster_update,
    eks_node_group,
    eks_pod_identity,
    eks_tags,
    eks_update,
    instance_profile,
    launch,
    lustre,
    managed_policy,
    node_image,
    placement_group,
    price,
    security_rule,
    tags,
)

NOUNS = (
    tags,
    placement_group,
    capacity_reservation,
    capacity_block,
    security_rule,
    launch,
    dependency,
    price,
    node_image,
    managed_policy,
    instance_profile,
    eks_cluster,
    eks_cluster_update,
    eks_node_group,
    eks_access,
    eks_addon,
    eks_pod_identity,
    eks_update,
    eks_tags,
    lustre,
    data_repository,
    efs,
)


def install() -> None:
    """Add every noun's operations, guards and completions to moto's response classes. Once, before the first request."""
    for noun in NOUNS:
        noun.install()
    # moto lists a response class's methods again for every request: 2 ms of EC2's 4.
    vars(moto_responses)["method_names_from_class"] = functools.cache(moto_responses.method_names_from_class)
