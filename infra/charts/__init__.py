"""One Helm chart at one pinned version."""

from infra.charts.pinned_chart import PinnedChart, PinnedChartArgs
from infra.charts.values import merge_values

__all__ = ["PinnedChart", "PinnedChartArgs", "merge_values"]
