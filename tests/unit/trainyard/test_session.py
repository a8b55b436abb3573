"""What the local stack adds to the settings that stand in its file."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.session import _platform_settings, _workloads_settings

pytestmark = pytest.mark.unit

CHARTS = {name: Path("/charts") / name for name in ("karpenter-chart", "karpenter-crd-chart", "volcano-chart", "mpi-operator-manifest")}


def running(node_url: str | None = "http://10.213.0.1:5000", node: Any = None) -> Any:
    aws = SimpleNamespace(url="http://127.0.0.1:5000", node_url=node_url, environment={"AWS_ENDPOINT_URL": "http://127.0.0.1:5000"})
    return SimpleNamespace(aws=aws, kubeconfig=Path("/state/admin.conf"), charts=CHARTS, node=node)


def test_without_a_node_only_the_emulator_is_known():
    assert _platform_settings(None, "http://127.0.0.1:5000") == {"trainyard:aws": {"endpoint": "http://127.0.0.1:5000"}}


def test_a_node_brings_its_kubeconfig_and_what_is_built_here():
    found = _platform_settings(running(), "http://127.0.0.1:5000")
    assert found["trainyard:kubernetes"] == {"kubeconfig": "/state/admin.conf"}
    addons = found["trainyard:addons"]
    assert addons["karpenter"]["chart"] == "/charts/karpenter-chart"
    assert addons["karpenter"]["crdChart"] == "/charts/karpenter-crd-chart"
    assert addons["volcano"] == {"chart": "/charts/volcano-chart"}
    assert addons["mpiOperator"] == {"manifest": "/charts/mpi-operator-manifest"}


@pytest.mark.parametrize(("node_url", "seen"), [("http://10.213.0.1:5000", "http://10.213.0.1:5000"), (None, "http://127.0.0.1:5000")])
def test_pods_reach_the_emulator_by_the_nodes_own_link(node_url: str | None, seen: str):
    environment = _platform_settings(running(node_url), "http://127.0.0.1:5000")["trainyard:addons"]["karpenter"]["env"]
    assert environment["AWS_ENDPOINT_URL"] == seen


def test_jobs_run_in_the_image_that_the_node_holds():
    node = SimpleNamespace(trainer_image="trainer:1")
    assert _workloads_settings(running(node=node)) == {"trainyard-workloads:image": "trainer:1"}
    assert _workloads_settings(None) == {}
