"""Puts the whole extension into moto."""

import functools

from moto.core import responses as moto_responses

from local.aws.extension import (
    capacity_block,
    capacity_reservation,
    cluster_authority,
    managed_policy,
    node_image,
    placement_group,
    price,
    tags,
)

NOUNS = (tags, placement_group, capacity_reservation, capacity_block, price, node_image, managed_policy, cluster_authority)


def install() -> None:
    """Add every noun's operations, guards and completions to moto's response classes. Once, before the first request."""
    for noun in NOUNS:
        noun.install()
    # moto lists a response class's methods again for every request: 2 ms of EC2's 4.
    vars(moto_responses)["method_names_from_class"] = functools.cache(moto_responses.method_names_from_class)
