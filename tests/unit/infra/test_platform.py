"""The whole platform under mocks: what it makes, in what order it comes and goes, and that no value is lost on the way."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from infra import versions
from infra.providers import aws_provider
from infra.settings import AwsSettings
from tests.recording import UNKNOWN, Recording, Registration, leaks, record
from tests.unit.infra.builders import platform, run_platform, stack_file, valid

pytestmark = pytest.mark.unit

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
RELEASE = "kubernetes:helm.sh/v3:Release"
NAMESPACE = "kubernetes:core/v1:Namespace"
ADDON = "aws:eks/addon:Addon"
CONTROL_PLANE = "eks:index:Cluster"


def named(recording: Recording, type_: str, ending: str) -> Registration:
    found = [entry for entry in recording.of_type(type_) if entry.name.endswith(ending)]
    assert len(found) == 1, [entry.name for entry in recording.of_type(type_)]
    return found[0]


@pytest.mark.parametrize(("stack", "resolved"), [("valid", True), ("valid", False), ("dev", False), ("local", True)])
def test_no_input_holds_an_output_s_text(stack, resolved):
    recording = platform(resolved=resolved) if stack == "valid" else run_platform(stack_file(stack), resolved=resolved)
    assert len(recording.registrations) > 120
    assert leaks(recording) == []


@pytest.mark.parametrize(
    "text",
    [
        "<object object at 0x7f0000000000>",
        "arn:aws:iam::<pulumi.output.Output object>",
        "Calling __str__ on an Output[T] is not supported.",
        "typing: Output[str]",
        "<coroutine never awaited>",
        f"arn:{UNKNOWN}",
    ],
)
def test_the_search_for_leaks_finds_each_kind_wherever_it_is(text):
    inputs = {"spec": {"list": [{"deep": text}]}}
    whole = platform().registrations[0]
    for leaky in (inputs, {text: "as a key"}):
        assert leaks(Recording(registrations=[replace(whole, inputs=leaky)])) == [f"{whole.urn}: {text[:80]}"]
        assert leaks(Recording(exports=leaky)) == [f"exports: {text[:80]}"]
    assert leaks(Recording(exports={"bucket": UNKNOWN})) == []


def test_a_first_preview_registers_what_the_update_registers():
    preview, update = platform(resolved=False), platform()
    assert sorted(entry.urn for entry in preview.registrations) == sorted(entry.urn for entry in update.registrations)


def test_the_program_says_the_same_twice():
    again = run_platform(valid(), resolved=True)
    first = {entry.urn: entry.inputs for entry in platform().registrations}
    assert {entry.urn: entry.inputs for entry in again.registrations} == first


def test_kinds_come_before_their_objects_and_go_after_them():
    recording = platform()
    crds, controller = (recording.one(RELEASE, name) for name in ("trainyard-karpenter-crd", "trainyard-karpenter"))
    pool, node_class = recording.one(NODE_POOL), recording.one(NODE_CLASS)
    queue, volcano = (
        named(recording, "kubernetes:scheduling.volcano.sh/v1beta1:Queue", "-queue"),
        recording.one(RELEASE, "trainyard-volcano"),
    )
    for later, earlier in [(controller, crds), (node_class, controller), (pool, controller), (pool, node_class), (queue, volcano)]:
        assert recording.waits_for(later, earlier), f"{later.name} must wait for {earlier.name}"


def test_a_destroy_ends_jobs_then_instances_then_controllers_then_cluster_then_network():
    recording = platform()
    jobs = recording.one(NAMESPACE, "trainyard-jobs")
    order = [
        jobs,
        recording.one(NODE_POOL),
        recording.one(RELEASE, "trainyard-karpenter"),
        named(recording, "aws:eks/nodeGroup:NodeGroup", "-system"),
        named(recording, ADDON, "-vpc-cni"),
        recording.one(CONTROL_PLANE),
        recording.one("aws:ec2/vpc:Vpc"),
    ]
    for first, then in pairwise(order):
        assert recording.waits_for(first, then), f"{first.name} must go before {then.name}"
    for earlier in ("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "kubernetes:scheduling.volcano.sh/v1beta1:Queue"):
        assert recording.waits_for(jobs, recording.one(earlier))
    for part in ("aws:iam/instanceProfile:InstanceProfile", "aws:eks/accessEntry:AccessEntry"):
        (entry,) = [found for found in recording.of_type(part) if found.name == "trainyard-karpenter-node"]
        assert recording.waits_for(recording.one(NODE_POOL), entry), f"nodes need {part} until they are gone"


def test_deleting_a_pool_has_time_for_its_instances():
    assert platform().one(NODE_POOL).delete_timeout == "2h"


def test_everything_in_the_cluster_waits_for_access_to_it():
    recording = platform()
    (admin,) = recording.of_type("aws:eks/accessPolicyAssociation:AccessPolicyAssociation")
    objects = [entry for entry in recording.registrations if entry.type.startswith("kubernetes:") and entry.custom]
    assert len(objects) > 15
    assert [entry.name for entry in objects if not recording.waits_for(entry, admin)] == []


def test_explicit_providers_reach_every_resource():
    recording = platform()
    custom = [entry for entry in recording.registrations if entry.custom and not entry.type.startswith("pulumi:providers")]
    assert [entry.urn for entry in custom if not entry.provider] == [], "a resource without one would take the default provider"


def test_the_exports_are_the_contract():
    exports = platform().exports
    assert exports["contract_version"] == 1
    assert exports["kubeconfig"] == {"secret": json.dumps({"apiVersion": "v1", "kind": "Config"})}
    assert exports["claims"] == {"checkpoints": "checkpoints", "home": "home"}
    assert set(exports["pools"]) == {"system", "p5"}
    assert exports["pools"]["system"]["taints"] == []


def test_every_add_on_is_pinned():
    addons = {entry.inputs["addonName"]: entry.inputs["addonVersion"] for entry in platform().of_type(ADDON)}
    assert addons == versions.EKS_ADDONS


def test_every_release_is_pinned_and_awaited():
    releases = platform().of_type(RELEASE)
    assert {entry.name: entry.inputs["version"] for entry in releases} == {
        "trainyard-karpenter-crd": versions.KARPENTER,
        "trainyard-karpenter": versions.KARPENTER,
        "trainyard-volcano": versions.VOLCANO,
    }
    assert all(not entry.inputs["atomic"] and not entry.inputs["skipAwait"] and entry.inputs["timeout"] for entry in releases)


@pytest.fixture(scope="module")
def overridden(tmp_path_factory):
    """The platform with all that settings may put in another's place: endpoint, kubeconfig, and protection on."""
    kubeconfig = tmp_path_factory.mktemp("settings") / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")

    def change(raw):
        raw.update(kubernetes={"kubeconfig": str(kubeconfig)}, protect=True)
        raw["aws"].update(endpoint="http://127.0.0.1:5000")

    return run_platform(valid(change), resolved=True)


def test_a_kubeconfig_in_the_settings_takes_the_place_of_the_cluster_s(overridden):
    recording = overridden
    provider = recording.one("pulumi:providers:kubernetes")
    assert provider.inputs["kubeconfig"] == {"secret": "apiVersion: v1\nkind: Config\n"}
    assert recording.exports["kubeconfig"] == provider.inputs["kubeconfig"]
    assert recording.waits_for(recording.one(NAMESPACE, "trainyard-jobs"), recording.one(CONTROL_PLANE))


def test_an_endpoint_in_the_settings_is_where_all_aws_calls_go(overridden):
    recording = overridden
    (provider,) = recording.of_type("pulumi:providers:aws")
    (endpoints,) = json.loads(provider.inputs["endpoints"])
    services = {entry.type.partition(":")[2].partition("/")[0] for entry in recording.registrations if entry.type.startswith("aws:")}
    names = {"cloudwatch": "cloudwatchevents", "vpc": "ec2"}
    assert {names.get(service, service) for service in services} <= set(endpoints)
    assert set(endpoints.values()) == {"http://127.0.0.1:5000"}
    assert provider.inputs["secretKey"] == {"secret": "emulator"}


def test_a_real_endpoint_keeps_the_user_s_credentials():
    recording = record(lambda: aws_provider(AwsSettings(region="us-east-1", endpoint="https://proxy.example")))
    assert "accessKey" not in recording.one("pulumi:providers:aws").inputs


def test_protect_covers_what_holds_data_and_nothing_else(overridden):
    assert {entry.type for entry in overridden.registrations if entry.protect} == {
        "aws:fsx/lustreFileSystem:LustreFileSystem",
        "aws:efs/fileSystem:FileSystem",
        "aws:s3/bucket:Bucket",
    }


def test_without_pools_storage_and_add_ons_the_platform_is_a_cluster():
    def change(raw):
        raw.update(pools=[], storage={"bucket": None})
        raw["addons"] = {
            key: {"enabled": False} for key in ("karpenter", "volcano", "mpiOperator", "nvidiaDevicePlugin", "efaDevicePlugin")
        }

    recording = run_platform(valid(change), resolved=True)
    assert not recording.of_type(RELEASE)
    assert recording.exports["queue"] == "default"
    assert "bucket" not in recording.exports
    assert (recording.exports["claims"], recording.exports["file_systems"]) == ({}, {})
