"""Tags of IAM instance profiles: moto keeps them, but does not list them."""

from moto.iam.models import iam_backends
from moto.iam.responses import IamResponse
from moto.utilities.utils import get_partition

from local.aws.extension.hooks import Call, Params, Refusal, add_operations


def list_tags(call: Call, given: Params) -> Params:
    """ListInstanceProfileTags."""
    name = given["InstanceProfileName"]
    for profile in iam_backends[call.current_account][get_partition(call.region)].instance_profiles.values():
        if profile.name == name:
            return {"Tags": profile.tags, "IsTruncated": False}
    raise Refusal("NoSuchEntity", f"Instance Profile {name} cannot be found.")


def install() -> None:
    """Add the operation to IAM."""
    add_operations(IamResponse, {"list_instance_profile_tags": list_tags})
