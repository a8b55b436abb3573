"""Tags of every EKS resource, and the paths of the operations that moto's EKS does not route."""

from moto.eks import urls
from moto.eks.models import eks_backends
from moto.eks.responses import EKSResponse

from local.aws.extension.eks_error import not_found
from local.aws.extension.hooks import Call, Params, add_operations
from local.aws.extension.store import store_of

CLUSTER = "{0}/clusters/(?P<name>[^/]+)"
PATHS = (
    f"{CLUSTER}/(?P<rest>.+)$",
    "{0}/addons/(?P<rest>.+)$",
    "{0}/access-policies$",
    "{0}/cluster-versions$",
)


def _tags(call: Call, arn: str) -> dict[str, str]:
    """The tags of a resource, to be read or changed. ResourceNotFoundException where there is none of that ARN."""
    store = store_of(call)
    for cluster in eks_backends[call.current_account][call.region].clusters.values():
        for resource in (cluster, *cluster.nodegroups.values()):
            if resource.arn == arn:
                return resource.tags
    for records, member in (
        (store.access_entries, "accessEntryArn"),
        (store.addons, "addonArn"),
        (store.pod_identities, "associationArn"),
    ):
        for record in records.values():
            if record[member] == arn:
                return record["tags"]
    raise not_found(f"The resource {arn} does not exist.")


def list_tags(call: Call, given: Params) -> Params:
    """ListTagsForResource."""
    return {"tags": _tags(call, given["resourceArn"])}


def tag(call: Call, given: Params) -> None:
    """TagResource."""
    _tags(call, given["resourceArn"]).update(given["tags"])


def untag(call: Call, given: Params) -> None:
    """UntagResource."""
    tags = _tags(call, given["resourceArn"])
    for key in given["tagKeys"]:
        tags.pop(key, None)


def install() -> None:
    """Route and answer."""
    for path in PATHS:
        urls.url_paths.setdefault(path, urls.response.dispatch)
    add_operations(EKSResponse, {"list_tags_for_resource": list_tags, "tag_resource": tag, "untag_resource": untag})
