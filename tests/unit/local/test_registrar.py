"""The registrar's decisions, on plain data: which Nodes come, go and lose taints, and when it gives up."""

from typing import Any

import pytest

from local.node.api import ApiError
from local.node.fake_nodes import FAKE_ANNOTATION
from local.registrar.__main__ import main
from local.registrar.instance import Instance, list_instances
from local.registrar.loop import NODE_CLAIMS, NODES, Registrar, run
from local.registrar.plan import INSTANCE_ANNOTATION, UNREGISTERED_TAINT, node_for, plan

pytestmark = pytest.mark.unit

STARTUP_TAINT = {"key": "efs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
POOL_TAINT = {"key": "trainyard.dev/training", "value": "true", "effect": "NoSchedule"}
RESOURCES = {"cpu": "191450m", "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}


def an_instance(number: int = 1, state: str = "running") -> Instance:
    dns = f"ip-10-0-0-{number}.ec2.internal"
    return Instance(id=f"i-{number}", zone="us-east-1a", state=state, private_ip=f"10.0.0.{number}", private_dns=dns)


def a_claim(number: int = 1, **changes: Any) -> dict[str, Any]:
    claim = {
        "metadata": {"name": f"claim-{number}", "labels": {"karpenter.sh/nodepool": "gpu", "kubernetes.io/arch": "amd64"}},
        "spec": {"taints": [POOL_TAINT], "startupTaints": [STARTUP_TAINT]},
        "status": {"providerID": f"aws:///us-east-1a/i-{number}", "capacity": RESOURCES, "allocatable": RESOURCES},
    }
    return claim | changes


def a_node(number: int = 1, *, taints: list[dict] | None = None, ready: bool = True, leaving: bool = False) -> dict[str, Any]:
    node = node_for(a_claim(number), an_instance(number))
    node["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]
    if taints is not None:
        node["spec"]["taints"] = taints
    if leaving:
        node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return node


def test_a_launched_claim_gets_the_node_that_its_kubelet_would_register():
    (node,) = plan([a_claim()], [], [an_instance()]).create
    assert node["metadata"]["name"] == "ip-10-0-0-1.ec2.internal"
    assert node["spec"]["providerID"] == "aws:///us-east-1a/i-1"
    assert node["spec"]["taints"] == [UNREGISTERED_TAINT, POOL_TAINT, STARTUP_TAINT], "Karpenter waits for the first and removes it"
    assert node["status"]["allocatable"] == RESOURCES
    assert node["metadata"]["annotations"] == {FAKE_ANNOTATION: "fake", INSTANCE_ANNOTATION: "i-1"}
    labels = node["metadata"]["labels"]
    assert labels["karpenter.sh/nodepool"] == "gpu"
    assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]
    assert (labels["topology.kubernetes.io/zone"], labels["topology.kubernetes.io/region"]) == ("us-east-1a", "us-east-1")


@pytest.mark.parametrize(
    ("claim", "instances"),
    [
        (a_claim(status={}), [an_instance()]),
        (a_claim(), []),
        (a_claim(), [an_instance(state="terminated")]),
        (a_claim(metadata={"name": "claim-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}), [an_instance()]),
    ],
    ids=["not launched", "instance unknown", "instance ended", "claim on its way out"],
)
def test_no_node_without_a_live_instance_of_a_living_claim(claim, instances):
    assert plan([claim], [], instances).empty


def test_a_registered_node_is_left_alone_and_one_of_someone_else_is_not_looked_at():
    foreign = {"metadata": {"name": "node"}, "spec": {}}
    assert plan([a_claim()], [a_node(taints=[POOL_TAINT]), foreign], [an_instance()]).empty


@pytest.mark.parametrize("instances", [[], [an_instance(state="shutting-down")], [an_instance(state="terminated")]])
def test_a_node_goes_once_its_instance_has_ended(instances):
    assert plan([], [a_node()], instances).delete == ["ip-10-0-0-1.ec2.internal"]
    assert plan([], [a_node(leaving=True)], instances).empty, "a second delete would only repeat the first"


def test_startup_taints_go_when_the_node_is_ready_and_registered_and_no_other_taint_does():
    settled = plan([a_claim()], [a_node(taints=[POOL_TAINT, STARTUP_TAINT])], [an_instance()]).taints
    assert settled == {"ip-10-0-0-1.ec2.internal": [POOL_TAINT]}
    assert plan([a_claim()], [a_node(taints=[STARTUP_TAINT], ready=False)], [an_instance()]).empty
    assert plan([a_claim()], [a_node(taints=[UNREGISTERED_TAINT, STARTUP_TAINT])], [an_instance()]).empty


class FakeCluster:
    """An API server of two lists that refuses a Node twice; `installed` tells whether it knows NodeClaims."""

    def __init__(self, *, claims: list[dict] | None = None, nodes: list[dict] | None = None, installed: bool = True) -> None:
        self.claims, self.nodes, self.installed = claims or [], nodes or [], installed

    def get(self, path: str) -> dict:
        if path == NODE_CLAIMS and not self.installed:
            raise ApiError("not found", status=404)
        return {"items": self.claims if path == NODE_CLAIMS else self.nodes}

    def create(self, path: str, body: dict) -> dict:
        if any(node["metadata"]["name"] == body["metadata"]["name"] for node in self.nodes):
            raise ApiError("exists", status=409)
        self.nodes.append(body)
        return body

    def merge(self, path: str, body: dict) -> dict:
        node = next(node for node in self.nodes if path == f"{NODES}/{node['metadata']['name']}")
        node["spec"]["taints"] = body["spec"]["taints"]
        return node

    def delete(self, path: str) -> None:
        self.nodes = [node for node in self.nodes if path != f"{NODES}/{node['metadata']['name']}"]


def test_nodes_come_and_go_with_their_instances_and_each_change_is_reported():
    cluster, instances, lines = FakeCluster(claims=[a_claim(1), a_claim(2)]), [an_instance(1), an_instance(2)], []
    registrar = Registrar(cluster, lambda: instances, lines.append)
    registrar.step()
    assert [node["metadata"]["name"] for node in cluster.nodes] == ["ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal"]
    assert registrar.step().empty
    instances[0] = an_instance(1, state="terminated")
    cluster.claims.pop(0)
    registrar.step()
    assert [node["metadata"]["name"] for node in cluster.nodes] == ["ip-10-0-0-2.ec2.internal"]
    assert lines == [
        "node ip-10-0-0-1.ec2.internal registered for i-1",
        "node ip-10-0-0-2.ec2.internal registered for i-2",
        "node ip-10-0-0-1.ec2.internal removed: its instance has ended",
    ]


def test_without_claims_the_cloud_is_not_asked():
    def ask() -> list[Instance]:
        pytest.fail("no NodeClaim, so there is nothing to ask for")

    for cluster in (FakeCluster(installed=False), FakeCluster(nodes=[{"metadata": {"name": "node"}, "spec": {}}])):
        assert Registrar(cluster, ask, print).step().empty


def test_a_name_that_an_outgoing_node_still_holds_is_waited_for():
    outgoing = a_node(leaving=True)
    outgoing["metadata"]["annotations"][INSTANCE_ANNOTATION] = "i-0"
    lines = []
    Registrar(FakeCluster(claims=[a_claim()], nodes=[outgoing]), lambda: [an_instance()], lines.append).step()
    assert lines == ["node ip-10-0-0-1.ec2.internal is still there, waiting for it to go"]


def test_it_ends_after_a_minute_without_the_cloud_and_says_a_repeated_error_once():
    now, lines = [0.0], []
    away = ConnectionRefusedError("nothing there")
    ends = {0: None, 30: None}

    def reachable() -> None:
        if now[0] not in ends:
            raise away

    def sleep(seconds: float) -> None:
        now[0] += seconds

    run(
        Registrar(FakeCluster(), list, lines.append),
        reachable=reachable,
        patience_seconds=60,
        interval_seconds=10,
        report=lines.append,
        clock=lambda: now[0],
        sleep=sleep,
    )
    assert now[0] == 90, "the minute starts anew with every round that works"
    assert lines == ["ConnectionRefusedError: nothing there"] * 2 + ["nothing to register with for 60 s: nothing there"]


def test_instances_are_read_from_every_page_and_reservation():
    item = {
        "InstanceId": "i-1",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Name": "running"},
        "PrivateIpAddress": "10.0.0.1",
        "PrivateDnsName": "ip-10-0-0-1.ec2.internal",
    }
    gone = {"InstanceId": "i-2", "Placement": {"AvailabilityZone": "us-east-1b"}, "State": {"Name": "terminated"}}

    class Client:
        def get_paginator(self, name: str):
            assert name == "describe_instances"
            return self

        def paginate(self, Filters):
            assert Filters == [{"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}]
            return [{"Reservations": [{"Instances": [item]}, {"Instances": []}]}, {"Reservations": [{"Instances": [gone]}]}]

    found = list_instances(Client())
    assert found[0] == an_instance()
    assert (found[1].alive, found[1].node_name, found[1].provider_id) == (False, "i-2", "aws:///us-east-1b/i-2")


@pytest.mark.parametrize(
    ("zone", "region"), [("eu-central-1b", "eu-central-1"), ("us-west-2-lax-1a", "us-west-2"), ("us-gov-east-1a", "us-gov-east-1")]
)
def test_the_region_is_that_of_the_zone(zone, region):
    assert Instance(id="i-1", zone=zone, state="running", private_ip="", private_dns="").region == region


@pytest.mark.parametrize("endpoint", ["https://ec2.us-east-1.amazonaws.com", "http://8.8.8.8:80", "127.0.0.1:5000", "http://example.com"])
def test_an_endpoint_that_is_not_of_this_machine_is_refused(endpoint, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--kubeconfig", "x", "--endpoint", endpoint, "--region", "us-east-1"])
    assert ended.value.code == 2
    assert f"{endpoint!r} is not the emulator" in capsys.readouterr().err


def test_an_unreadable_kubeconfig_is_a_message_and_not_a_traceback(tmp_path, capsys):
    arguments = ["--kubeconfig", str(tmp_path / "absent"), "--endpoint", "http://127.0.0.1:1", "--region", "us-east-1"]
    assert main(arguments) == 1
    assert "absent cannot be read" in capsys.readouterr().out
