"""The real Karpenter on the emulator: instances become nodes that run pods, and go with their NodeClaims. No mock can show that chain."""

import sys
from collections.abc import Generator

import pytest

from local.aws.emulator import Emulator, Endpoint
from local.node import Node
from local.node.api import Json
from local.paths import REPOSITORY
from local.progress import Progress
from local.registrar.loop import NODE_CLAIMS, NODES
from local.registrar.plan import INSTANCE_ANNOTATION
from local.toolchain.tools import ensure
from tests.cluster.karpenter import apply_definitions, aws_client, controller_environment, make_landscape, node_class, node_pool, running
from tests.cluster.nodes import Pods, cluster_binaries, node_folder, progress, require_root, wait_for

pytestmark = pytest.mark.cluster

TAINT = {"key": "trainyard.dev/training", "value": "true", "effect": "NoSchedule"}
STARTUP_TAINT = {"key": "fsx.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
LABELS = {"trainyard.dev/pool": "gpu"}
GANGS = "/apis/apps/v1/namespaces/default/statefulsets"
RESOURCES = {"cpu": "100", "nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Generator[Endpoint]:
    one = Emulator(tmp_path_factory.mktemp("aws"))
    try:
        yield one.start()
    finally:
        one.stop()


@pytest.fixture(scope="module")
def node(emulator: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Generator[Node]:
    require_root()
    logs = tmp_path_factory.mktemp("logs")
    karpenter = ensure(["karpenter"], Progress(logs / "build.log", total=1))["karpenter"]
    with node_folder() as state:
        one = Node(state, cluster_binaries())
        try:
            one.start(progress(state))
            apply_definitions(one, REPOSITORY / "local" / "toolchain" / "karpenter")
            registrar = [sys.executable, "-m", "local.registrar", "--kubeconfig", one.kubeconfig, "--interval", "0.5"]
            registrar += ["--endpoint", emulator.url, "--region", emulator.region]
            environment = controller_environment(one, emulator)
            with running([karpenter], logs / "karpenter.log", environment), running(registrar, logs / "registrar.log"):
                yield one
        finally:
            one.destroy()


def registered(node: Node) -> list[Json]:
    return [item for item in node.api().get(NODES)["items"] if INSTANCE_ANNOTATION in item["metadata"].get("annotations", {})]


def is_initialized(claim: Json) -> bool:
    conditions = claim.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Initialized" and condition["status"] == "True" for condition in conditions)


def test_an_instance_becomes_a_node_that_runs_the_pod_it_was_launched_for(node: Node, emulator: Endpoint) -> None:
    api = node.api()
    api.apply("/apis/karpenter.k8s.aws/v1/ec2nodeclasses/gpu", node_class(make_landscape(emulator)))
    api.apply("/apis/karpenter.sh/v1/nodepools/gpu", node_pool(LABELS, TAINT, STARTUP_TAINT))
    start_gang(node)
    pod = running_pod(node)
    (claim,) = api.get(NODE_CLAIMS)["items"]
    wait_for("initialized NodeClaim", lambda: is_initialized(api.get(f"{NODE_CLAIMS}/{claim['metadata']['name']}")))
    (found,) = registered(node)
    assert pod["spec"]["nodeName"] == found["metadata"]["name"]
    assert found["spec"]["providerID"] == claim["status"]["providerID"]
    assert found["metadata"]["labels"].items() >= LABELS.items()
    assert [taint["key"] for taint in found["spec"]["taints"]] == [TAINT["key"]]
    assert {name: found["status"]["allocatable"][name] for name in RESOURCES if "/" in name} == {
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "32",
    }


def test_a_deleted_claim_takes_its_instance_and_its_node_along(node: Node, emulator: Endpoint) -> None:
    api = node.api()
    (found,) = registered(node)
    end_gang(node)
    for claim in api.get(NODE_CLAIMS)["items"]:
        api.delete(f"{NODE_CLAIMS}/{claim['metadata']['name']}")
    wait_for("end of the node", lambda: not registered(node), seconds=90)
    assert instance_state(emulator, found) == "terminated"
    wait_for("end of the claims", lambda: not api.get(NODE_CLAIMS)["items"])


def test_a_node_whose_instance_was_taken_away_goes_too(node: Node, emulator: Endpoint) -> None:
    api = node.api()
    start_gang(node)
    running_pod(node)
    (found,) = registered(node)
    # The gang makes another pod, for which there must be no other node.
    api.delete("/apis/karpenter.sh/v1/nodepools/gpu")
    aws_client(emulator, "ec2").terminate_instances(InstanceIds=[found["metadata"]["annotations"][INSTANCE_ANNOTATION]])
    wait_for("end of the node", lambda: not registered(node), seconds=90)


def start_gang(node: Node) -> None:
    """A gang of one pod, with an owner as every pod of a job has it.

    The owner matters: a NoExecute startup taint comes off in the scheduler's view before it does in the eviction controller's, which then
    removes the pod that was just placed. A bare pod would be gone for good.
    """
    container = {"name": "main", "image": "example.org/trainer:1", "resources": {"requests": RESOURCES, "limits": RESOURCES}}
    spec = {
        "containers": [container],
        "tolerations": [{"key": TAINT["key"], "operator": "Exists"}],
        "nodeSelector": LABELS,
        "terminationGracePeriodSeconds": 1,
    }
    labels = {"app": "gang"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"metadata": {"name": "gang"}, "spec": {"serviceName": "gang", "selector": {"matchLabels": labels}, "template": template}}
    node.api().create(GANGS, body)


def end_gang(node: Node) -> None:
    node.api().delete(f"{GANGS}/gang")
    wait_for("end of the pod", lambda: not gang_pods(node))


def gang_pods(node: Node) -> list[Json]:
    return node.api().get(f"{Pods.path}?labelSelector=app%3Dgang")["items"]


def running_pod(node: Node) -> Json:
    """The gang's pod once it runs."""

    def probe() -> Json:
        return next((pod for pod in gang_pods(node) if pod["status"].get("phase") == "Running"), {})

    return wait_for("running pod of the gang", probe, seconds=90)


def instance_state(emulator: Endpoint, found: Json) -> str:
    name = found["metadata"]["annotations"][INSTANCE_ANNOTATION]
    (reservation,) = aws_client(emulator, "ec2").describe_instances(InstanceIds=[name])["Reservations"]
    return reservation["Instances"][0]["State"]["Name"]
