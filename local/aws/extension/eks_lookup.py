"""What EKS's operations look up: clusters, roles, subnets, with EKS's errors where there is none."""

from typing import Any

from moto.eks.models import eks_backends
from moto.iam.models import iam_backends
from moto.utilities.utils import get_partition

from local.aws.extension.eks_error import bad_parameter, not_found
from local.aws.extension.hooks import Call
from local.aws.extension.store import ec2_of


def cluster_of(call: Call, name: str) -> Any:
    """moto's cluster object. ResourceNotFoundException where there is none."""
    found = eks_backends[call.current_account][call.region].clusters.get(name)
    if found is None:
        raise not_found(f"No cluster found for name: {name}.", clusterName=name)
    return found


def role_of(call: Call, arn: str) -> Any:
    """moto's role object; InvalidParameterException where the account has no such role."""
    roles = iam_backends[call.current_account][get_partition(call.region)].roles.values()
    found = next((role for role in roles if role.arn == arn), None)
    if found is None:
        raise bad_parameter(f"The role {arn} cannot be found.")
    return found


def subnets_of(call: Call, ids: list[str]) -> list[Any]:
    """moto's subnet objects; InvalidParameterException where one does not exist."""
    known = {subnet.id: subnet for zone in ec2_of(call).subnets.values() for subnet in zone.values()}
    missing = [each for each in ids if each not in known]
    if missing:
        raise bad_parameter(f"The subnet ID '{missing[0]}' does not exist")
    return [known[each] for each in ids]
