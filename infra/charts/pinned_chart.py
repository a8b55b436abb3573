"""A Helm release of one pinned chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.helm.v3 import Release, RepositoryOptsArgs
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from infra import labels
from infra.component import child_options, token


@dataclass(frozen=True, kw_only=True)
class PinnedChartArgs:
    """What a PinnedChart needs to know."""

    release_name: str
    """Name of the release; charts name their objects after it."""
    chart: str
    """The published chart: a name in `repository`, or an oci:// reference."""
    version: str
    """Its pinned version."""
    namespace: str
    """Namespace of its objects."""
    repository: str | None = None
    """URL of the chart repository, where the chart is not an oci:// reference."""
    override_chart: str | None = None
    """Chart that replaces the published one: a folder, or an oci:// reference."""
    override_version: str | None = None
    """Version that replaces the pinned one."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Chart values; outputs may stand in them."""
    own_namespace: bool = False
    """Whether the namespace is made, and deleted, with the chart."""
    skip_crds: bool = False
    """Whether the chart's crds folder is left out, because another chart brings them."""
    timeout_seconds: int = 600
    """How long its objects may take to become ready."""
    after: Sequence[pulumi.Resource] = ()
    """What has to exist first."""


class PinnedChart(pulumi.ComponentResource):
    """A Helm release, rendered by Helm itself: what a template generates is made once, and not anew on each preview."""

    ready: list[pulumi.Resource]
    """The release, for objects of the kinds it brings."""

    def __init__(self, name: str, args: PinnedChartArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(token("charts", "PinnedChart"), name, {"chart": args.override_chart or args.chart}, opts)
        after = list(args.after)
        if args.own_namespace:
            # A namespace made by Helm would outlive the release.
            metadata = ObjectMetaArgs(name=args.namespace, labels=labels.object_labels(args.release_name))
            after.append(Namespace(f"{name}-namespace", metadata=metadata, opts=child_options(self, depends_on=args.after)))
        chart, version, repository = _source(args)
        release = Release(
            name,
            name=args.release_name,
            chart=chart,
            version=version,
            repository_opts=RepositoryOptsArgs(repo=repository) if repository else None,
            namespace=args.namespace,
            values=dict(args.values),
            skip_crds=args.skip_crds,
            timeout=args.timeout_seconds,
            # A failed release stays for inspection; the next update goes on from it.
            atomic=False,
            skip_await=False,
            # The caller knows what its chart needs; nothing in a chart's values says it.
            opts=child_options(self, depends_on=after),
        )
        self.ready = [release]
        self.register_outputs({"status": release.status})


def _source(args: PinnedChartArgs) -> tuple[str, str | None, str | None]:
    """Return chart, version and repository: a folder has a version of its own, and an override no repository."""
    if args.override_chart is None:
        return args.chart, args.override_version or args.version, args.repository
    is_folder = not args.override_chart.startswith("oci://")
    return args.override_chart, None if is_folder else args.override_version or args.version, None
