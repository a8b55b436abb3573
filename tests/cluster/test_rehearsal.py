"""The whole platform from nothing to nothing, as `make up` and `make down` do it: real engine, real cluster, real controllers.

The tests are one story in the order of the file; each begins where the one before it ended.
"""

import time
from collections.abc import Generator
from typing import Any

import pytest

from infra import labels
from local.aws.inventory import inventory
from local.node.api import ApiError
from local.stack import LocalStack
from tests.cluster import gang
from tests.cluster.nodes import wait_for
from tests.cluster.rehearsal import Rehearsal, rehearsal
from trainyard.down import take_down
from trainyard.engine import EngineError
from trainyard.session import Session
from trainyard.up import PLOT, bring_up

pytestmark = pytest.mark.cluster

STILL_SECONDS = 8.0
NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
LONGER_KEPT = {"trainyard:storage": {"bucket": {"noncurrentDays": 31}}}
SCRATCH_WITH_THROUGHPUT = {"trainyard:storage": {"lustre": {"deploymentType": "SCRATCH_2", "perUnitStorageThroughput": 200}}}


@pytest.fixture(scope="module")
def stage() -> Generator[Rehearsal]:
    with rehearsal() as stage:
        yield stage


def changed(session: Session) -> dict[str, int]:
    """Changes that bringing both stacks up makes."""
    return {stack.project.name: stack.up().changed for stack in (session.platform, session.workloads)}


def test_up_makes_the_platform_and_trains_with_both_kinds_of_job(stage: Rehearsal) -> None:
    PLOT.unlink(missing_ok=True)
    bring_up(stage.session(), stage.console)
    told = stage.told.getvalue()
    rows = {row.split("│")[1].strip(): row.split("│") for row in told.splitlines() if row.startswith("│ pretrain-")}
    assert set(rows) == {"pretrain-mpi", "pretrain-volcano"}, told
    for row in rows.values():
        first, last = float(row[3]), float(row[4])
        assert last < 0.75 * first, f"the loss must fall clearly: {told}"
    assert rows["pretrain-mpi"][5].strip() not in ("", "-"), f"the MPIJob stops once and must resume: {told}"
    assert "Emulated on this machine" in told
    assert PLOT.read_text().lstrip().startswith("<?xml")


def test_both_jobs_were_placed_as_gangs(stage: Rehearsal) -> None:
    """Volcano removes the group of a job that has ended; its pods still name it."""
    pods = stage.api().get(f"/api/v1/namespaces/training/pods?labelSelector={labels.JOB_KIND}")["items"]
    assert {pod["metadata"]["labels"][labels.JOB_KIND] for pod in pods} == {"mpi", "volcano"}
    for pod in pods:
        assert pod["spec"]["schedulerName"] == labels.VOLCANO_SCHEDULER
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]


def test_a_second_up_changes_nothing(stage: Rehearsal) -> None:
    assert changed(stage.session()) == {"trainyard": 0, "trainyard-workloads": 0}


def test_a_setting_that_no_file_system_can_have_is_refused_before_anything_is_made(stage: Rehearsal) -> None:
    before = inventory(LocalStack().emulator.endpoint)
    with pytest.raises(EngineError) as refused:
        stage.session(SCRATCH_WITH_THROUGHPUT).platform.preview()
    said = "\n".join([*refused.value.summary.errors, *(v.message for v in refused.value.summary.violations)])
    for word in ("FSX02", "perUnitStorageThroughput", "200", "SCRATCH_2", "LustreFileSystem"):
        assert word in said
    assert "Traceback" not in said
    assert inventory(LocalStack().emulator.endpoint) == before


def test_an_invalid_pool_is_refused_by_the_real_definitions(stage: Rehearsal) -> None:
    pool = stage.api().get(f"{NODE_POOLS}/p5")
    body = {"apiVersion": pool["apiVersion"], "kind": pool["kind"], "metadata": {"name": "broken"}, "spec": pool["spec"]}
    body["spec"]["disruption"]["budgets"] = [{"nodes": "0", "schedule": "@daily"}]
    with pytest.raises(ApiError) as refused:
        stage.api().create(NODE_POOLS, body)
    assert refused.value.status == 422


def test_a_changed_setting_changes_that_resource_alone(stage: Rehearsal) -> None:
    summary = stage.session(LONGER_KEPT).platform.up()
    # The bucket's component carries its settings, so it is updated beside the one resource that they change.
    assert (summary.changed, summary.changes["update"]) == (2, 2), summary.text()
    assert stage.session().platform.up().changed == 2


def test_a_refresh_sees_what_was_changed_behind_pulumis_back_and_up_repairs_it(stage: Rehearsal) -> None:
    ec2 = stage.aws("ec2")
    mine = [{"Name": f"tag:{labels.TAG_STACK}", "Values": ["trainyard/local"]}]
    vpc = ec2.describe_vpcs(Filters=mine)["Vpcs"][0]["VpcId"]
    ec2.delete_tags(Resources=[vpc], Tags=[{"Key": labels.TAG_STACK}])
    session = stage.session()
    seen = session.platform.refresh()
    assert seen.changes["update"] == 1, seen.text()
    assert session.platform.up().changed == 1
    assert ec2.describe_vpcs(Filters=mine)["Vpcs"][0]["VpcId"] == vpc
    assert session.platform.up().changed == 0


def test_a_gang_waits_whole_for_its_last_node_and_then_starts_whole(stage: Rehearsal) -> None:
    """4 pods of 8 GPUs and 32 EFA interfaces each; three nodes hold three of them, and none may be placed."""
    api, job = stage.api(), gang.gang()
    gang.add_nodes(api, gang.WORKERS - 1)
    try:
        gang.submit(api, job)
        wait_for("pods", lambda: len(gang.pods_of(api, job)) == gang.WORKERS)
        until = time.monotonic() + STILL_SECONDS
        while time.monotonic() < until:
            assert gang.placed(gang.pods_of(api, job)) == 0, "a part of the gang was placed"
            time.sleep(0.5)
        gang.add_nodes(api, 1)
        wait_for("whole gang", lambda: gang.placed(gang.pods_of(api, job)) == gang.WORKERS)
        wait_for("running gang", lambda: all(pod["status"]["phase"] == "Running" for pod in gang.pods_of(api, job)))
        assert len({pod["spec"]["nodeName"] for pod in gang.pods_of(api, job)}) == gang.WORKERS
    finally:
        gang.remove(api, job)


def test_down_ends_the_nodes_of_a_running_job_and_leaves_nothing(stage: Rehearsal) -> None:
    """A pod asks for a node that only Karpenter can make; the platform is destroyed while it holds it."""
    api = stage.api()
    api.create("/api/v1/namespaces/training/pods", gpu_pod(api.get(f"{NODE_POOLS}/p5")))
    wait_for("node claim", lambda: api.get(NODE_CLAIMS)["items"], 120)
    running = [{"Name": "instance-state-name", "Values": ["running"]}, {"Name": "instance-type", "Values": ["p5.48xlarge"]}]
    wait_for("instance", lambda: stage.aws("ec2").describe_instances(Filters=running)["Reservations"], 120)
    take_down(stage.session(), stage.console)
    assert "Nothing is left." in stage.told.getvalue()
    assert stage.processes() == []


def gpu_pod(pool: dict[str, Any]) -> dict[str, Any]:
    spec = pool["spec"]["template"]["spec"]
    devices = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "holds-a-node", "annotations": {labels.DO_NOT_DISRUPT: "true"}},
        "spec": {
            "nodeSelector": {labels.POOL: "p5"},
            "tolerations": [{"key": taint["key"], "operator": "Exists"} for taint in spec["taints"]],
            "terminationGracePeriodSeconds": 5,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "train",
                    "image": "trainyard.local/trainer:none",
                    "resources": {"limits": devices, "requests": devices},
                    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                }
            ],
        },
    }
