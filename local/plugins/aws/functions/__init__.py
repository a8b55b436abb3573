"""Data sources (invokes) that the stand-in answers, by token."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from local.plugins.aws.clients import Clients
from local.plugins.aws.functions import account, cluster, compute, network, parameter, policy_document, zones

Function = Callable[[Clients, Mapping[str, Any]], Mapping[str, Any]]
"""Takes the arguments in the program's spelling, gives the result in the SDK's."""

FUNCTIONS: MappingProxyType[str, Function] = MappingProxyType(
    {
        **account.FUNCTIONS,
        **zones.FUNCTIONS,
        **compute.FUNCTIONS,
        **network.FUNCTIONS,
        **cluster.FUNCTIONS,
        **policy_document.FUNCTIONS,
        **parameter.FUNCTIONS,
    }
)
"""Token such as `aws:ec2/getVpc:getVpc` -> what answers it."""
