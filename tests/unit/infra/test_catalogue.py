"""The instance catalogue: its arithmetic against published figures, its data against what EC2 describes."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from infra import catalogue, labels

pytestmark = pytest.mark.unit

# Allocatable CPU (millicores) and memory (MiB) as Karpenter's reference for 1.14 lists them.
PUBLISHED = [
    ("p4d.24xlarge", 95690, 1082712),
    ("p5.4xlarge", 15890, 240830),
    ("p5.48xlarge", 191450, 1938410),
    ("p5en.48xlarge", 191450, 1937332),
    ("p6-b300.48xlarge", 191450, 3877198),
    ("trn1.32xlarge", 127610, 481894),
    ("g5.48xlarge", 191450, 723299),
    ("g6.12xlarge", 47810, 178933),
    ("c5n.18xlarge", 71750, 173400),
    ("hpc7a.96xlarge", 191450, 725994),
]

EFA_COUNTS = [
    ("p4d.24xlarge", 8, 4, 400),
    ("p5.48xlarge", 8, 32, 3200),
    ("p5en.48xlarge", 8, 16, 3200),
    ("p6-b200.48xlarge", 8, 8, 3200),
    ("p6-b300.48xlarge", 8, 16, 6400),
    ("trn1n.32xlarge", 16, 16, 1600),
    ("g6e.48xlarge", 8, 4, 400),
    ("g7.48xlarge", 8, 2, 700),
    ("g5.xlarge", 1, 0, None),
    ("inf2.48xlarge", 12, 0, None),
]


@pytest.mark.parametrize(("name", "cpu", "memory"), PUBLISHED)
def test_allocatable_is_what_karpenter_lists(name, cpu, memory):
    kind = catalogue.require(name)
    assert (kind.allocatable_cpu_millis, kind.allocatable_memory_mib) == (cpu, memory)


@pytest.mark.parametrize(("name", "devices", "efa", "gbps"), EFA_COUNTS)
def test_devices_interfaces_and_bandwidth_are_those_of_the_type(name, devices, efa, gbps):
    kind = catalogue.require(name)
    assert (kind.accelerator_count, kind.efa_max) == (devices, efa)
    assert gbps is None or kind.network_gbps == gbps


@pytest.mark.parametrize("kind", [kind for kind in catalogue.instance_types() if kind.efa_max], ids=lambda kind: kind.name)
def test_every_efa_layout_keeps_ec2_s_law(kind):
    interfaces = kind.efa_interfaces()
    first, efa = interfaces[0], interfaces[1:]
    assert (first.card, first.device, first.interface_type) == (0, 0, "interface"), "the primary carries IP and is never efa-only"
    assert len(efa) == kind.efa_max
    assert len({interface.card for interface in efa}) == len(efa), "a card takes one EFA at most"
    assert max(interface.card for interface in efa) < kind.network_cards
    assert len({(interface.card, interface.device) for interface in interfaces}) == len(interfaces)


def test_the_primary_card_of_p6_b300_has_no_efa():
    assert {interface.card for interface in catalogue.require("p6-b300.48xlarge").efa_interfaces()[1:]} == set(range(1, 17))


def test_a_type_without_efa_has_no_layout():
    with pytest.raises(ValueError, match=r"'g5.xlarge' has no EFA"):
        catalogue.require("g5.xlarge").efa_interfaces()


def test_a_whole_node_pod_leaves_room_for_the_agents():
    kind = catalogue.require("p4d.24xlarge")
    requests = kind.whole_node_requests(efa=True)
    assert requests == {"cpu": "94690m", "memory": "1080664Mi", labels.GPU_RESOURCE: "8", labels.EFA_RESOURCE: "4"}
    assert int(requests["cpu"][:-1]) < kind.allocatable_cpu_millis


def test_neuron_types_ask_for_devices_and_run_a_process_per_core():
    accelerator = catalogue.require("trn2.48xlarge").accelerator
    assert accelerator is not None
    assert (accelerator.resource, accelerator.count, accelerator.processes) == (labels.NEURON_RESOURCE, 16, 128)


def test_an_unknown_type_is_an_error_that_names_it_and_the_nearest():
    with pytest.raises(catalogue.UnknownInstanceTypeError, match=r"'p5.48xl'.*p5\.48xlarge"):
        catalogue.require("p5.48xl")


@pytest.fixture(scope="module")
def described():
    """What EC2 describes, by name: moto's distribution carries a copy of the real answer."""
    moto = find_spec("moto")
    assert moto is not None
    assert moto.origin is not None
    text = gzip.decompress((Path(moto.origin).parent / "ec2" / "resources" / "instance_types.json.gz").read_bytes())
    return json.loads(text)


def test_data_agrees_with_what_ec2_describes(described):
    differences = []
    for kind in catalogue.instance_types():
        real = described[kind.name]
        gpus = sum(gpu["Count"] for gpu in real.get("GpuInfo", {}).get("Gpus", []))
        neurons = sum(device["Count"] for device in real.get("NeuronInfo", {}).get("NeuronDevices", []))
        expected = (
            real["VCpuInfo"]["DefaultVCpus"],
            real["MemoryInfo"]["SizeInMiB"],
            gpus + neurons,
            real["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
            real["NetworkInfo"]["MaximumNetworkCards"],
        )
        ours = (kind.vcpus, kind.memory_mib, kind.accelerator_count, kind.efa_max, kind.network_cards)
        if ours != expected:
            differences.append((kind.name, ours, expected))
    assert not differences
