"""Settings: every wrong one is refused before anything is made, with its path, its value and what is allowed."""

import contextlib
import json

import pulumi
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from infra import labels
from infra.pool_outputs import queue_capability
from infra.settings import SettingsError, load, parse
from infra.settings.model import PlatformSettings, stack_file_schema
from tests.unit.infra.builders import ROOT, settings, stack_file, valid

pytestmark = pytest.mark.unit


def lustre(**changes):
    def change(raw):
        raw["storage"]["lustre"].update(changes)
        for key in [key for key, value in changes.items() if value is None]:
            del raw["storage"]["lustre"][key]

    return change


def pool(**changes):
    def change(raw):
        raw["pools"][0].update(changes)
        for key in [key for key, value in changes.items() if value is None]:
            raw["pools"][0].pop(key, None)

    return change


def section(name, **changes):
    return lambda raw: raw.setdefault(name, {}).update(changes)


HDD = {"deploymentType": "PERSISTENT_1", "storageType": "HDD"}
WRONG = {
    # Lustre: each kind with only its own keys and values.
    "p2 without throughput": (lustre(perUnitStorageThroughput=None), "storage.lustre.perUnitStorageThroughput", "125, 250, 500, 1000"),
    "p2 with 200": (lustre(perUnitStorageThroughput=200), "storage.lustre.perUnitStorageThroughput = 200", "125, 250, 500 or 1000"),
    "p1 ssd with 125": (lustre(deploymentType="PERSISTENT_1"), "storage.lustre.perUnitStorageThroughput = 125", "50, 100 or 200 on SSD"),
    "p1 ssd with 12": (lustre(deploymentType="PERSISTENT_1", perUnitStorageThroughput=12), "storage.lustre", "SSD: 50, 100, 200"),
    "p1 hdd with 50": (lustre(**HDD, perUnitStorageThroughput=50), "storage.lustre", "HDD: 12, 40"),
    "p1 hdd off grid": (lustre(**HDD, perUnitStorageThroughput=12), "storage.lustre", "multiple of 6000"),
    "p1 hdd without cache": (
        lustre(**HDD, perUnitStorageThroughput=40, storageCapacityGib=1800), "storage.lustre", "driveCache is required on HDD",
    ),
    "scratch with throughput": (lustre(deploymentType="SCRATCH_2"), "storage.lustre.perUnitStorageThroughput = 125", "FSX02"),
    "scratch for checkpoints": (
        lustre(deploymentType="SCRATCH_2", perUnitStorageThroughput=None, claim="checkpoints"), "storage.lustre.claim", "FSX12",
    ),
    "p2 of 3600": (lustre(storageCapacityGib=3600), "storage.lustre.storageCapacityGib = 3600", "1200 or a multiple of 2400"),
    "unknown lustre": (lustre(deploymentType="SCRATCH_3"), "storage.lustre.deploymentType = \"SCRATCH_3\"", "'PERSISTENT_2'"),
    "lustre of no kind": (lustre(deploymentType=None), "storage.lustre", "needs deploymentType"),
    "lustre out of zones": (lustre(zone="us-east-1f"), "storage.lustre.zone = \"us-east-1f\"", "us-east-1a, us-east-1b"),
    "lustre far from pools": (lustre(zone="us-east-1b"), "storage.lustre.zone = \"us-east-1b\"", "us-east-1a"),
    "overlapping repositories": (
        lustre(repositories=[{"path": "/a", "bucketUri": "s3://one/x"}, {"path": "/a/b", "bucketUri": "s3://one/y"}]),
        "storage.lustre.repositories", "overlap",
    ),
    # Pools.
    "efa without zone": (pool(zone=None), "pools[0]", "zone is required with efa: true"),
    "group without zone": (pool(zone=None, efa=False), "pools[0]", "zone is required with placement group"),
    "efa on a type without": (pool(instanceType="g5.xlarge"), "pools[0]", "g5.8xlarge"),
    "unknown type": (pool(instanceType="p5.48xl"), "pools[0].instanceType = \"p5.48xl\"", "p5.48xlarge"),
    "zone without subnet": (pool(zone="us-east-1f"), "pools[0].zone = \"us-east-1f\"", "us-east-1a, us-east-1b, us-east-1c"),
    "neuron": (pool(instanceType="trn1.32xlarge"), "pools[0].instanceType", "Neuron device plug-in"),
    "no nodes": (pool(maxNodes=0), "pools[0].maxNodes = 0", "greater than or equal to 1"),
    "moving image": (pool(image={"kind": "alias", "alias": "al2023@latest"}), "pools[0].image.alias", "must match"),
    "unknown placement": (pool(placement={"kind": "spread"}), "pools[0].placement.kind = \"spread\"", "'new-reservation'"),
    "reserving too many": (pool(placement={"kind": "new-reservation", "instances": 9}), "pools[0]", "maxNodes is 4"),
    "same name": (lambda raw: raw["pools"].append(dict(raw["pools"][0])), "pools[1].name = \"p5\"", "pools[0].name"),
    "name of the system pool": (pool(name="system"), "pools[0].name", "cluster.systemNodes.name"),
    # Network and cluster.
    "unknown nat": (section("network", nat="some"), "network.nat = \"some\"", "'none', 'single' or 'per-az'"),
    "no way out": (section("network", nat="none"), "network", "needs interfaceEndpoints for ec2"),
    "zones elsewhere": (section("aws", region="us-west-2"), "network.zones[0] = \"us-east-1a\"", "us-west-2a"),
    "two zones": (section("network", zones=["us-east-1a", "us-east-1b"]), "network.zones", "min 3"),
    "zone twice": (section("network", zones=["us-east-1a", "us-east-1a", "us-east-1b"]), "network.zones", "names a zone twice"),
    "public range": (section("network", cidr="52.0.0.0/16"), "network.cidr = \"52.0.0.0/16\"", "private range"),
    "small range": (section("network", cidr="10.0.0.0/24"), "network.cidr", "/16 to /20"),
    "nobody administers": (section("cluster", admins=[]), "cluster.admins", "min 1"),
    "open to the internet": (section("cluster", endpoint={"publicCidrs": ["0.0.0.0/0"]}), "cluster.endpoint.publicCidrs", "internet"),
    "old version": (section("cluster", version="1.32"), "cluster.version = \"1.32\"", "1.36"),
    "number for a version": (section("cluster", version=1.36), "cluster.version = 1.36", "valid string"),
    "unknown add-on": (section("cluster", addonVersions={"istio": "1"}), "cluster.addonVersions", "vpc-cni"),
    "gpu for controllers": (section("cluster", systemNodes={"instanceType": "g5.xlarge"}), "cluster.systemNodes.instanceType", "amd64"),
    # Add-ons.
    "pools without karpenter": (section("addons", karpenter={"enabled": False}), "addons.karpenter.enabled", "enable it"),
    "efa without plug-in": (section("addons", efaDevicePlugin={"enabled": False}), "pools[0].efa", "efaDevicePlugin"),
    "gpus without plug-in": (section("addons", nvidiaDevicePlugin={"enabled": False}), "pools[0].instanceType", "nvidiaDevicePlugin"),
    "mpi without gangs": (section("addons", volcano={"enabled": False}), "addons.volcano.enabled", "mpiOperator"),
    "crowded karpenter": (section("addons", karpenter={"replicas": 3}), "addons.karpenter.replicas = 3", "minNodes (2)"),
    "missing chart": (section("addons", volcano={"chart": "/no/such"}), "addons.volcano.chart = \"/no/such\"", "no such file"),
    "missing kubeconfig": (section("kubernetes", kubeconfig="/no/such"), "kubernetes.kubeconfig", "no such file"),
    "image without tag": (section("addons", efaDevicePlugin={"image": "a/b"}), "addons.efaDevicePlugin.image", "must match"),
    # Shape.
    "unknown section": (section("netwrok"), "netwrok", "aws, kubernetes, network"),
    "unknown key": (section("network", natt=1), "network.natt = 1", "cidr, zones, nat, interfaceEndpoints"),
    "text for a map": (lambda raw: raw.update(network="x"), "network = \"x\"", "must be a map with keys cidr"),
    "text for a switch": (lambda raw: raw.update(protect="yes"), "protect = \"yes\"", "boolean"),
    "no cluster": (lambda raw: raw.pop("cluster"), "cluster", "is required"),
    "efs throughput without mode": (
        lambda raw: raw["storage"]["efs"].update(provisionedMibps=64), "storage.efs", "throughputMode provisioned",
    ),
    "claim twice": (
        lambda raw: raw["storage"]["efs"]["accessPoints"][0].update(name="checkpoints"), "storage.efs.accessPoints[0].name", "claim",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_refused_with_path_value_and_what_is_allowed(name):
    change, path, allowed = WRONG[name]
    with pytest.raises(SettingsError) as caught:
        settings(change)
    lines = str(caught.value).splitlines()[1:]
    assert any(line.startswith(f"  - trainyard:{path}") and allowed in line for line in lines), str(caught.value)


def test_the_valid_settings_are_valid():
    assert settings().pools[0].capacity_type == "on-demand"


def test_every_fault_is_listed_at_once():
    with pytest.raises(SettingsError) as caught:
        settings(lambda raw: (raw.update(protect="yes", x=1), raw["network"].update(nat="no"), pool(maxNodes=0)(raw)))
    assert len(caught.value.faults) == 4
    assert str(caught.value).startswith("4 settings are wrong (nothing was created):")


def test_the_error_ends_the_program_without_a_traceback():
    assert issubclass(SettingsError, pulumi.RunError)


@pytest.mark.parametrize(
    ("placement", "capacity"),
    [
        ({"kind": "reservation", "ids": ["cr-1"]}, "reserved"),
        ({"kind": "new-reservation", "instances": 2}, "reserved"),
        (None, "on-demand"),
    ],
)
def test_the_capacity_type_follows_from_the_placement(placement, capacity):
    assert settings(pool(placement=placement)).pools[0].capacity_type == capacity


def test_an_hdd_file_system_with_its_own_keys_is_valid():
    keys = {**HDD, "perUnitStorageThroughput": 12, "storageCapacityGib": 6000, "driveCache": "READ"}
    assert settings(lustre(**keys)).storage.lustre is not None


@pytest.mark.parametrize("stack", ["dev", "local"])
def test_the_committed_stack_files_are_valid(stack):
    assert parse(stack_file(stack)).pools


def test_the_committed_schema_is_that_of_the_models():
    committed = json.loads((ROOT / "infra" / "settings.schema.json").read_text())
    assert committed == stack_file_schema(), "run `python -m infra.settings > infra/settings.schema.json`"


def test_every_key_is_described():
    schema = stack_file_schema()
    models = [definition for definition in schema["$defs"].values() if definition.get("type") == "object"]
    bare = [f"{model['title']}.{key}" for model in models for key, value in model["properties"].items() if "description" not in value]
    assert len(models) > 20
    assert not bare


def test_configuration_is_read_as_pulumi_hands_it_over(monkeypatch):
    config = {f"trainyard:{key}": json.dumps(value) for key, value in valid().items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({**config, "trainyard:protect": "true", "aws:region": "eu-west-1"}))
    assert load().protect is True


def test_an_unknown_key_of_the_stack_is_refused(monkeypatch):
    config = {f"trainyard:{key}": json.dumps(value) for key, value in valid().items()}
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({**config, "trainyard:pool": "[]"}))
    with pytest.raises(SettingsError, match="trainyard:pool"):
        load()


def test_the_queue_may_hold_what_the_pools_may_grow_to():
    assert queue_capability(settings()) == {labels.GPU_RESOURCE: "32"}


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=4,
)


@examples(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(PlatformSettings.model_fields)), junk)
def test_no_value_whatever_gets_anything_but_settings_or_a_settings_error(key, value):
    with contextlib.suppress(SettingsError):
        assert isinstance(parse({**valid(), key: value}), PlatformSettings)
