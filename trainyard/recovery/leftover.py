"""What carries the stack's tag and is not in its state, once everything that could be matched has been."""

from collections.abc import Iterator, Mapping
from typing import Any

import boto3

from local.aws.inventory import Leftover, leftovers
from trainyard.recovery.deployment import Deployment

# Made from tagged templates by something that looks after them itself: node groups, Karpenter, CSI drivers.
_LOOKED_AFTER = ("ec2 instance", "ec2 volume", "ec2 network interface")
_OWNERS = ("karpenter.sh/", "karpenter.k8s.aws/", "eks:", "kubernetes.io/created-for/")


def untracked(deployment: Deployment, session: boto3.session.Session, endpoint: str | None, tags: Mapping[str, str]) -> list[Leftover]:
    """Resources with one of the tags that no resource of the state is. Raises LocalStackError where AWS does not answer."""
    known = set(_texts(deployment))
    return [each for each in leftovers(session, tags, endpoint=endpoint) if not _is_looked_after(each) and not _names(each) & known]


def _is_looked_after(found: Leftover) -> bool:
    return found.kind in _LOOKED_AFTER or any(key.startswith(_OWNERS) for key in found.tags)


def _names(found: Leftover) -> set[str]:
    # The state joins a cluster's child to it by a colon.
    return {found.id, found.id.replace("/", ":", 1)}


def _texts(deployment: Deployment) -> Iterator[str]:
    for resource in deployment.resources:
        yield str(resource.get("id"))
        outputs: Mapping[str, Any] = resource.get("outputs") or {}
        yield from (value for value in outputs.values() if isinstance(value, str))
