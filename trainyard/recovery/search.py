"""Looks for what the state lacks wherever the stack makes things: in AWS, and in the clusters that its providers reach."""

from collections.abc import Callable, Mapping
from typing import Any

import boto3

from infra import labels
from local.aws.inventory import Account, emulator_session
from trainyard.recovery.aws_search import AwsSearch
from trainyard.recovery.cluster_search import ClusterSearch
from trainyard.recovery.deployment import Deployment
from trainyard.recovery.wanted import Found, Wanted
from trainyard.session import Session
from trainyard.stack import Stack

_AWS, _KUBERNETES = "aws:", "kubernetes:"


class Search:
    """Asks the right place about a resource."""

    def __init__(self, session: Session, stack: Stack, on_wait: Callable[[str], None]) -> None:
        self._stack = stack
        self.tags: Mapping[str, str] = {labels.TAG_STACK: f"{stack.project.name}/{stack.name}"}
        self.endpoint = session.aws_endpoint
        self.aws_session = _aws_session(session)
        self._aws = AwsSearch(Account(self.aws_session, self.endpoint), self.tags, on_wait)
        self._clusters: dict[str, ClusterSearch | None] = {}

    def knows(self, wanted: Wanted) -> bool:
        """Whether it can be told if such a resource exists."""
        return self._aws.knows(wanted) if wanted.kind.startswith(_AWS) else wanted.kind.startswith(_KUBERNETES)

    def find(self, wanted: Wanted, taken: set[str]) -> Found | None:
        """The resource if it exists and is the stack's. Raises LocalStackError where that can't be asked."""
        if wanted.kind.startswith(_AWS):
            return self._aws.find(wanted, taken)
        cluster = self.cluster(wanted.resource)
        return cluster.find(wanted, taken) if cluster else None

    def cluster(self, resource: Mapping[str, Any]) -> ClusterSearch | None:
        """The cluster that a resource's provider reaches; None where the provider is not made yet, and so nothing in it."""
        provider = resource.get("provider") or ""
        if provider not in self._clusters:
            self._clusters[provider] = self._reach(provider)
        return self._clusters[provider]

    def _reach(self, provider: str) -> ClusterSearch | None:
        # Kept in memory only: this export shows secrets.
        state = Deployment(self._stack.export(show_secrets=True))
        kubeconfig = state.setting(provider, "kubeconfig")
        return ClusterSearch(kubeconfig, state.setting(provider, "context")) if kubeconfig else None


def _aws_session(session: Session) -> boto3.session.Session:
    region = str(session.settings["trainyard:aws"]["region"])
    return emulator_session(region) if session.aws_endpoint else boto3.session.Session(region_name=region)
