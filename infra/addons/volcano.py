"""Volcano: gang scheduling, and the queue of training jobs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra import labels, versions
from infra.charts import PinnedChart, PinnedChartArgs, merge_values
from infra.component import child_options, token
from infra.settings import VolcanoSettings
from infra.settings.jobs import QueueSettings

_REPOSITORY = "https://volcano-sh.github.io/helm-charts"
_QUEUE_API = "scheduling.volcano.sh/v1beta1"

# No enqueue action: it holds a gang's pods back until the cluster has room, and Karpenter makes room for pods that exist only. The
# overcommit plug-in is left out for the same reason. Gangs still start whole: the gang plug-in binds no pod before all fit.
SCHEDULER_CONFIG: dict[str, Any] = {
    "actions": "allocate, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang", "enablePreemptable": False}, {"name": "conformance"}]},
        {"plugins": [{"name": "predicates"}, {"name": "proportion"}, {"name": "nodeorder"}, {"name": "binpack"}]},
    ],
}


@dataclass(frozen=True, kw_only=True)
class VolcanoArgs:
    """What Volcano needs to know."""

    settings: VolcanoSettings
    """Version, admission and chart values."""
    queue: QueueSettings
    """The queue of training jobs."""
    system_pool: str
    """Name of the system node pool that its controllers run on."""
    capability: Mapping[str, str] = field(default_factory=dict)
    """Most resources that the queue's jobs may hold, where the settings name none."""
    after: Sequence[pulumi.Resource] = ()
    """What has to exist first: system nodes, DNS."""


class Volcano(pulumi.ComponentResource):
    """Volcano's controllers and one open queue."""

    queue_name: pulumi.Output[str]
    ready: list[pulumi.Resource]
    """What jobs need: the release with its CRDs, and the queue."""

    def __init__(self, name: str, args: VolcanoArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("addons", "Volcano"), name, {"queue": args.queue.name}, opts)
        settings = args.settings
        chart = PinnedChart(
            name,
            PinnedChartArgs(
                release_name="volcano",
                chart="volcano",
                repository=_REPOSITORY,
                version=versions.VOLCANO,
                override_chart=settings.chart,
                override_version=settings.version,
                namespace=settings.namespace,
                own_namespace=True,
                values=merge_values(chart_values(settings, args.system_pool), settings.values),
                timeout_seconds=settings.timeout_seconds,
                after=args.after,
            ),
            child_options(self),
        )
        queue = CustomResource(
            f"{name}-queue",
            api_version=_QUEUE_API,
            kind="Queue",
            metadata=ObjectMetaArgs(name=args.queue.name, labels=labels.object_labels(args.queue.name)),
            spec=queue_spec(args.queue, args.capability),
            # The chart brings the kind.
            opts=child_options(self, depends_on=chart.ready),
        )
        # A custom resource has no typed fields; its URN carries the dependency.
        self.queue_name = queue.urn.apply(lambda _: args.queue.name)
        self.ready = [*chart.ready, queue]
        self.register_outputs({"queue_name": self.queue_name})


def chart_values(settings: VolcanoSettings, system_pool: str) -> dict[str, Any]:
    """Return the chart values of ours."""
    return {
        # The chart's own tag lags behind its version, and Always pulls on each start.
        "basic": {"image_tag_version": f"v{settings.version or versions.VOLCANO}", "image_pull_policy": "IfNotPresent"},
        "custom": {
            "admission_enable": settings.admission,
            "default_ns": labels.pool_selector(system_pool),
            # JSON is YAML; with sorted keys the text never changes by itself.
            "scheduler_config_override": json.dumps(SCHEDULER_CONFIG, sort_keys=True),
        },
    }


def queue_spec(queue: QueueSettings, capability: Mapping[str, str]) -> dict[str, Any]:
    """Return the spec of the queue; `capability` holds where the settings name none."""
    spec: dict[str, Any] = {"weight": queue.weight, "reclaimable": False}
    limits = dict(queue.capability or capability)
    if limits:
        spec["capability"] = limits
    return spec
