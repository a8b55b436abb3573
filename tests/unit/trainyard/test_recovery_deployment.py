"""What a recovery reads out of a stack's export, and what it writes into it."""

import json

import pytest

from tests.unit.trainyard.state import NAMESPACE, QUEUE, RELEASE, SUBNET, VPC, export, operation, resource, urn
from trainyard.recovery.deployment import Deployment, planned
from trainyard.recovery.wanted import Found, Wanted

pytestmark = pytest.mark.unit
NET = resource(VPC, "net", id="vpc-1")
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": '"the: kubeconfig"'}
SEALED = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc"}


def test_creations_that_had_begun_are_wanted_but_not_components_and_providers():
    component = {**resource("trainyard:network:Vpc", "part"), "custom": False}
    provider = resource("pulumi:providers:aws", "aws")
    pending = [operation("creating", each) for each in (component, provider, resource(SUBNET, "a"))]
    begun = Deployment(export([NET], [*pending, operation("updating", NET)])).begun()
    assert [(each.name, each.pending) for each in begun] == [("a", True)]


def test_what_was_being_changed_is_read_again_if_the_state_has_it():
    gone = resource(QUEUE, "gone", id="q")
    pending = [operation("deleting", NET), operation("updating", gone), operation("creating", resource(SUBNET, "a"))]
    assert Deployment(export([NET], pending)).touched() == {NET["urn"]}


def test_an_adopted_resource_comes_last_with_its_id_and_the_name_it_really_has():
    subnet = resource(QUEUE, "q", inputs={"name": "q-1111111", "delay": 5, "__defaults": ["name"]}, parent=NET["urn"], provider="p::1")
    state = Deployment(export([NET], [operation("creating", subnet)]))
    state.adopt(Wanted(resource=subnet, pending=True), Found(id="url", inputs={"name": "q-2222222", "delay": 9}))
    state.settle()
    document = json.loads(state.text)["deployment"]
    assert "pending_operations" not in document
    assert document["resources"][0] == NET
    adopted = document["resources"][1]
    assert (adopted["urn"], adopted["id"], adopted["parent"], adopted["provider"]) == (subnet["urn"], "url", NET["urn"], "p::1")
    # Only what the plug-in made up is taken from AWS: the rest stays as declared, so that the next update sees what differs.
    assert adopted["inputs"] == {"name": "q-2222222", "delay": 5, "__defaults": ["name"]}
    assert adopted["outputs"] == {"name": "q-2222222", "delay": 5}


def test_what_an_adopted_one_was_to_replace_is_left_for_deletion():
    state = Deployment(export([NET], [operation("creating", resource(VPC, "net"))]))
    state.adopt(state.begun()[0], Found(id="vpc-2"))
    assert [(each["id"], each.get("delete", False)) for each in state.resources] == [("vpc-1", True), ("vpc-2", False)]
    assert state.urns() == {NET["urn"]}


def test_one_that_was_deleted_first_makes_room():
    state = Deployment(export([{**NET, "pendingReplacement": True}], [operation("creating", resource(VPC, "net"))]))
    state.adopt(state.begun()[0], Found(id="vpc-2"))
    assert [each["id"] for each in state.resources] == ["vpc-2"]


def test_a_release_keeps_its_inputs_where_its_provider_looks_for_them():
    release = resource(RELEASE, "volcano", inputs={"name": "volcano", "namespace": "volcano-system"})
    state = Deployment(export([], [operation("creating", release)]))
    state.adopt(state.begun()[0], Found(id="volcano-system/volcano", condition="deployed"))
    kept = state.resources[0]["outputs"]["__inputs"]
    assert kept["4dabf18193072939515e22adb298388d"] == "1b47061264138c4ac30d75fd1eb44270", "the provider ends at anything but a secret"
    assert json.loads(kept["plaintext"]) == release["inputs"]


def test_outputs_that_only_the_cluster_tells_are_kept():
    namespace = resource(NAMESPACE, "jobs", inputs={"metadata": {"name": "jobs"}})
    state = Deployment(export([], [operation("creating", namespace)]))
    state.adopt(state.begun()[0], Found(id="jobs", outputs={"__fieldManager": "pulumi-kubernetes-1"}))
    assert state.resources[0]["outputs"]["__fieldManager"] == "pulumi-kubernetes-1"


@pytest.mark.parametrize(("value", "known"), [(SECRET, "the: kubeconfig"), (SEALED, None), ("plain", "plain"), (None, None)])
def test_a_providers_setting_is_read_only_if_it_is_shown(value: object, known: str | None):
    provider = resource("pulumi:providers:kubernetes", "k", id="7", inputs={"kubeconfig": value})
    assert Deployment(export([provider])).setting(f"{provider['urn']}::7", "kubeconfig") == known


def test_a_provider_of_another_id_is_not_that_provider():
    provider = resource("pulumi:providers:kubernetes", "k", id="7", inputs={"kubeconfig": "plain"})
    assert Deployment(export([provider])).setting(f"{provider['urn']}::8", "kubeconfig") is None


@pytest.mark.parametrize("text", ['{"version": 3, "deployment": null}', '{"version": 3}', export([])])
def test_a_stack_that_never_ran_has_nothing(text: str):
    state = Deployment(text)
    assert (state.resources, state.begun(), state.touched(), state.has_pending()) == ([], [], set(), False)


def test_a_preview_tells_what_is_missing():
    component = {**resource("trainyard:network:Vpc", "part"), "custom": False}
    steps = [
        {"op": "same", "newState": NET},
        {"op": "create", "newState": resource(SUBNET, "a")},
        {"op": "create-replacement", "newState": resource(QUEUE, "q")},
        {"op": "create", "newState": component},
        {"op": "delete", "oldState": NET},
    ]
    assert [(each.urn, each.pending) for each in planned({"steps": steps})] == [(urn(SUBNET, "a"), False), (urn(QUEUE, "q"), False)]
    assert planned({}) == []
