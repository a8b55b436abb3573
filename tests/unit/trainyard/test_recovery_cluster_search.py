"""What a recovery asks a cluster; the API server is played."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from local.errors import LocalStackError
from tests.unit.trainyard.state import NAMESPACE, RELEASE, resource
from trainyard.recovery.cluster_search import ClusterSearch
from trainyard.recovery.wanted import Found, Wanted

pytestmark = pytest.mark.unit

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: c, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: c}}]
"""
CORE = {"resources": [{"name": "namespaces", "kind": "Namespace", "namespaced": False}]}
APPS = {
    "resources": [
        {"name": "deployments", "kind": "Deployment", "namespaced": True},
        {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
    ]
}
OURS = [{"manager": "kubelet"}, {"manager": "pulumi-kubernetes-1a2b", "operation": "Apply"}]


class Answer:
    def __init__(self, status: int, body: Any) -> None:
        self.status, self._body = status, body

    def read(self) -> bytes:
        return json.dumps(self._body).encode()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> "Cluster":
    return Cluster(monkeypatch)


class Cluster:
    """Answers by path; unknown paths are 404."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: dict[str, Any] = {"/api/v1": CORE, "/apis/apps/v1": APPS}
        self.status = 404
        self.asked: list[tuple[str, str]] = []
        self.search = ClusterSearch(KUBECONFIG)
        monkeypatch.setattr(self.search._api, "call_api", self._call)

    def _call(self, method: str, url: str, *rest: Any, **more: Any) -> Answer:
        path = unquote(url.removeprefix("https://127.0.0.1:1"))
        self.asked.append((method, path))
        return Answer(200, self.answers[path]) if path in self.answers else Answer(self.status, {"message": "no"})

    def releases(self, namespace: str, name: str, *states: str) -> None:
        items = [
            {"metadata": {"name": f"sh.helm.release.v1.{name}.v{number}", "labels": {"version": str(number), "status": state}}}
            for number, state in enumerate(states, 1)
        ]
        self.answers[f"/api/v1/namespaces/{namespace}/secrets?labelSelector=owner=helm,name={name}"] = {"items": items}

    def find(self, kind: str, inputs: dict[str, Any], taken: set[str] | None = None) -> Found | None:
        return self.search.find(Wanted(resource=resource(kind, "x", inputs=inputs), pending=True), taken or set())


def live(name: str, namespace: str | None = None, managers: list[dict] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "managedFields": OURS if managers is None else managers}
    return {"metadata": metadata | ({"namespace": namespace} if namespace else {})}


def test_an_object_of_the_provider_is_found_with_its_field_manager(cluster: Cluster):
    cluster.answers["/api/v1/namespaces/training"] = live("training")
    found = cluster.find(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}})
    assert found == Found(id="training", outputs={"__fieldManager": "pulumi-kubernetes-1a2b", "__initialApiVersion": "v1"})


@pytest.mark.parametrize(("declared", "place"), [({"namespace": "mpi"}, "mpi"), ({}, "default")])
def test_an_object_in_a_namespace_has_both_in_its_id(cluster: Cluster, declared: dict[str, str], place: str):
    cluster.answers[f"/apis/apps/v1/namespaces/{place}/deployments/op"] = live("op", place)
    inputs = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "op", **declared}}
    found = cluster.find("kubernetes:apps/v1:Deployment", inputs)
    assert found is not None
    assert found.id == f"{place}/op"
    assert cluster.find("kubernetes:apps/v1:Deployment", inputs, {f"{place}/op"}) is None, "the state has it already"


def test_an_object_that_somebody_else_made_is_left_to_them(cluster: Cluster):
    cluster.answers["/api/v1/namespaces/kube-system"] = live("kube-system", managers=[{"manager": "kube-apiserver"}])
    assert cluster.find(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}) is None


@pytest.mark.parametrize(
    "inputs",
    [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "absent"}},
        # A kind whose definition is not there yet.
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p5"}},
        {"apiVersion": "v1", "kind": "Namespace"},
        {},
    ],
)
def test_what_does_not_exist_is_not_found(cluster: Cluster, inputs: dict[str, Any]):
    assert cluster.find(NAMESPACE, inputs) is None


def test_a_release_is_known_by_its_newest_revision(cluster: Cluster):
    cluster.releases("volcano-system", "volcano", *["superseded"] * 9, "pending-install")
    found = cluster.find(RELEASE, {"name": "volcano", "namespace": "volcano-system"})
    assert found == Found(id="volcano-system/volcano", condition="pending-install")


def test_a_release_without_records_does_not_exist(cluster: Cluster):
    cluster.releases("volcano-system", "volcano")
    assert cluster.find(RELEASE, {"name": "volcano", "namespace": "volcano-system"}) is None


@pytest.mark.parametrize(
    ("states", "record"),
    [
        (["deployed", "pending-upgrade"], "sh.helm.release.v1.volcano.v2"),
        (["superseded", "deployed", "pending-rollback"], "sh.helm.release.v1.volcano.v3"),
        (["superseded", "deployed"], None),
        # A failed one can be upgraded.
        (["failed"], None),
        ([], None),
    ],
)
def test_only_an_upgrade_that_was_cut_short_has_a_record_to_forget(cluster: Cluster, states: list[str], record: str | None):
    cluster.releases("system", "volcano", *states)
    assert cluster.search.half_made(resource(RELEASE, "v", inputs={"name": "volcano", "namespace": "system"})) == record


def test_a_record_is_forgotten_by_its_name(cluster: Cluster):
    cluster.answers["/api/v1/namespaces/system/secrets/sh.helm.release.v1.volcano.v2"] = {}
    cluster.search.forget("system", "sh.helm.release.v1.volcano.v2")
    assert cluster.asked == [("DELETE", "/api/v1/namespaces/system/secrets/sh.helm.release.v1.volcano.v2")]


def test_a_refusal_of_the_cluster_is_told(cluster: Cluster):
    cluster.status = 403
    with pytest.raises(LocalStackError, match="the cluster refuses GET"):
        cluster.find(NAMESPACE, {"apiVersion": "x/v1", "kind": "Namespace", "metadata": {"name": "a"}})


def test_a_kubeconfig_of_no_use_is_told():
    with pytest.raises(LocalStackError, match="kubeconfig can't be used"):
        ClusterSearch("apiVersion: v1\nkind: Config\n")
