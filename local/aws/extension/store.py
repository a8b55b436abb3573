"""What our operations keep: one object per account and region, beside moto's own and saved with them."""

from typing import Any

from moto.core.base_backend import BackendDict, BaseBackend
from moto.ec2.models import ec2_backends
from moto.moto_api._internal import mock_random

from local.aws.extension.hooks import Call

Record = dict[str, Any]


class Store(BaseBackend):
    """Records of the nouns that moto lacks, as the AWS API describes them, by their id or by (owner, id)."""

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.placement_groups: dict[str, Record] = {}
        self.capacity_reservations: dict[str, Record] = {}
        self.capacity_block_offerings: dict[str, Record] = {}
        self.access_entries: dict[tuple[str, str], Record] = {}
        self.access_policies: dict[tuple[str, str], dict[str, Record]] = {}
        self.addons: dict[tuple[str, str], Record] = {}
        self.pod_identities: dict[tuple[str, str], Record] = {}
        self.eks_updates: dict[tuple[str, str], Record] = {}
        self.cluster_interfaces: dict[str, list[str]] = {}
        self.data_repository_associations: dict[str, Record] = {}
        # Instance id to what moto's instance has no room for: reservation, security groups of a launch template's interfaces.
        self.instance_placements: dict[str, Record] = {}
        # EFS file system id to its replication overwrite protection.
        self.efs_protection: dict[str, str] = {}


# The list of regions is EC2's; the service name serves for nothing else.
stores: BackendDict[Store] = BackendDict(Store, "ec2")


def store_of(call: Call) -> Store:
    """Our records for the account and region that a request is signed for."""
    return stores[call.current_account][call.region]


def ec2_of(call: Call) -> Any:
    """moto's EC2 backend for the account and region that a request is signed for."""
    return ec2_backends[call.current_account][call.region]


def new_id(prefix: str, digits: int = 17) -> str:
    """An id as EC2 writes them: prefix, dash, hexadecimal digits."""
    return f"{prefix}-{mock_random.getrandbits(digits * 4):0{digits}x}"


def random_hex(digits: int) -> str:
    """So many hexadecimal digits from moto's source of randomness."""
    return f"{mock_random.getrandbits(digits * 4):0{digits}x}"
