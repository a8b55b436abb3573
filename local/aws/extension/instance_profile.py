"""IAM instance profiles: moto keeps their tags, but does not list them, and lists all profiles whatever the path asked for."""

from typing import Any

from moto.iam.models import iam_backends
from moto.iam.responses import IamResponse
from moto.utilities.utils import get_partition

from local.aws.extension.hooks import Call, Params, Refusal, add_completions, add_operations


def list_tags(call: Call, given: Params) -> Params:
    """ListInstanceProfileTags."""
    name = given["InstanceProfileName"]
    for profile in iam_backends[call.current_account][get_partition(call.region)].instance_profiles.values():
        if profile.name == name:
            return {"Tags": profile.tags, "IsTruncated": False}
    raise Refusal("NoSuchEntity", f"Instance Profile {name} cannot be found.")


def keep_below_path(call: Call, given: Params, result: Any) -> None:
    """ListInstanceProfiles: only those below the path asked for. Karpenter deletes what it finds below its own and does not use."""
    prefix = given.get("PathPrefix", "/")
    result["InstanceProfiles"] = [profile for profile in result["InstanceProfiles"] if profile.path.startswith(prefix)]


def install() -> None:
    """Add the operation to IAM, and the path to its list."""
    add_operations(IamResponse, {"list_instance_profile_tags": list_tags})
    add_completions(IamResponse, {"list_instance_profiles": keep_below_path})
