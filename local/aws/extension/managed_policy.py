"""IAM's managed policies: AWS's own come into moto's IAM when first named, not all 1,300 (5 MB a partition in each saved state)."""

import functools
import json
from typing import Any

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, iam_backends
from moto.iam.responses import IamResponse
from moto.utilities.utils import get_partition

from local.aws.extension.hooks import Call, Params, Refusal, add_completions, add_guards


@functools.cache
def _catalogue() -> dict[str, dict[str, Any]]:
    """Path and name (as at the end of an ARN) to the policy's data."""
    return {f"{data['Path']}{name}": data | {"Name": name} for name, data in json.loads(aws_managed_policies_data).items()}


def _backend(call: Call) -> Any:
    return iam_backends[call.current_account][get_partition(call.region)]


def _load(backend: Any, key: str) -> None:
    data = _catalogue().get(key)
    if data is None:
        return
    policy = AWSManagedPolicy.from_data(data["Name"], backend.account_id, backend.region_name, data)
    if policy.arn not in backend.managed_policies:
        backend.managed_policies[policy.arn] = policy
        backend.aws_managed_policies.append(policy)


def load_named(call: Call, given: Params) -> None:
    """Before an operation on one policy: load it, if it is one of AWS's own."""
    owner, _, path = given.get("PolicyArn", "").partition(":policy")
    if owner.endswith(":aws"):
        _load(_backend(call), path)


def load_all(call: Call, given: Params) -> None:
    """Before a list of policies: load every one of AWS's own."""
    if given.get("Scope") != "Local":
        for key in _catalogue():
            _load(_backend(call), key)


def unload_unused(call: Call, given: Params, result: Any) -> None:
    """After a list of policies: keep only what is attached to something."""
    backend = _backend(call)
    for policy in [each for each in backend.aws_managed_policies if not each.attachment_count]:
        backend.aws_managed_policies.remove(policy)
        del backend.managed_policies[policy.arn]


def refuse_attached(call: Call, given: Params) -> None:
    """DeletePolicy: a policy that is attached, or has more than its default version, stays (DeleteConflict)."""
    policy = _backend(call).managed_policies.get(given["PolicyArn"])
    if policy is not None and policy.attachment_count:
        raise Refusal("DeleteConflict", "Cannot delete a policy attached to entities.")
    if policy is not None and len(policy.versions) > 1:
        raise Refusal("DeleteConflict", "This policy has more than one version. Before you delete a policy, you must delete its versions.")


def install() -> None:
    """Guard IAM's operations on managed policies."""
    named = (
        "attach_role_policy",
        "attach_user_policy",
        "attach_group_policy",
        "detach_role_policy",
        "get_policy",
        "get_policy_version",
        "list_policy_versions",
        "list_entities_for_policy",
    )
    add_guards(IamResponse, dict.fromkeys(named, load_named) | {"list_policies": load_all, "delete_policy": refuse_attached})
    add_completions(IamResponse, {"list_policies": unload_unused})
