"""A cluster that was there before takes the node's place by one setting: nothing of ours is started but the AWS emulator.

The cluster is another state folder's node, which to the platform is no different from kind's or k3d's.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from local.errors import LocalStackError
from local.images.catalogue import controller_images
from local.node import Node
from local.paths import cache_dir
from local.progress import Progress
from local.stack import BIND_VARIABLE, LocalStack
from local.toolchain.tools import CHARTS, CLUSTER, CONTROLLERS, ensure
from tests.cluster.nodes import node_folder
from tests.cluster.rehearsal import Rehearsal, rehearsal
from trainyard.down import what_is_left

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def existing() -> Generator[Node]:
    """A running cluster with the controllers' images, and nothing else of ours."""
    with node_folder() as folder:
        progress = Progress(folder.parent / "existing.log", total=1)
        tools = ensure([CLUSTER, CONTROLLERS, CHARTS], progress)
        node = LocalStack(folder.parent).node(tools)
        try:
            node.start(progress)
            node.import_images([archive.path for archive in controller_images(tools, tools, cache_dir() / "images", progress)])
            yield node
        finally:
            node.destroy()


@pytest.fixture
def stage(existing: Node) -> Generator[Rehearsal]:
    with rehearsal() as stage:
        os.environ[BIND_VARIABLE] = existing.host_ip
        try:
            yield stage
        finally:
            del os.environ[BIND_VARIABLE]


def with_kubeconfig(path: Path) -> dict:
    return {"trainyard:kubernetes": {"kubeconfig": str(path)}}


def test_the_platform_comes_up_on_it_and_goes_away_again(existing: Node, stage: Rehearsal) -> None:
    session = stage.session(with_kubeconfig(existing.kubeconfig))
    assert session.running is not None
    assert session.running.node is None
    session.platform.init()
    session.platform.up()
    deployments = existing.api().get("/apis/apps/v1/deployments")["items"]
    assert {"karpenter", "volcano-scheduler", "mpi-operator"} <= {each["metadata"]["name"] for each in deployments}
    assert not LocalStack().was_started()
    session.platform.destroy()
    assert what_is_left(session) == []
    namespaces = {each["metadata"]["name"] for each in existing.api().get("/api/v1/namespaces")["items"]}
    assert namespaces == {"default", "kube-node-lease", "kube-public", "kube-system"}


def test_a_kubeconfig_that_is_not_there_is_named_before_anything_starts(stage: Rehearsal) -> None:
    with pytest.raises(LocalStackError, match=r"trainyard:kubernetes.kubeconfig = /nowhere/kubeconfig: there is no such file"):
        stage.session(with_kubeconfig(Path("/nowhere/kubeconfig")))
    assert not LocalStack().emulator.status().running
