"""Settings of the place that training jobs run in."""

from pydantic import Field

from infra.settings.base import DnsName, Settings


class QueueSettings(Settings):
    """The Volcano queue of training jobs."""

    name: DnsName = "training"
    """Name of the queue."""
    weight: int = Field(default=1, ge=1, le=1000)
    """Share of the queue against others."""
    capability: dict[str, str] = Field(default_factory=dict)
    """Most resources that jobs of the queue may hold, by resource name; unset: what the pools may grow to."""


class JobsSettings(Settings):
    """Namespace, identity and queue of training jobs."""

    namespace: DnsName = "training"
    """Namespace of jobs."""
    service_account: DnsName = "trainer"
    """Service account of training pods."""
    queue: QueueSettings = QueueSettings()
    """The queue that jobs are admitted through."""
