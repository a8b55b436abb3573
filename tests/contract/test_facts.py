"""The policy pack keeps its own facts so that it can be used alone; they must be those the platform builds on."""

import re
from pathlib import Path
from typing import get_args

import pytest

from guardrails import facts, pool, template
from guardrails.facts import efa_interfaces, first_efa_card, load, lustre_throughput, network_cards
from guardrails.facts import instance_types as pack_types
from infra import catalogue, labels, versions
from infra.settings.storage import Persistent1Settings, Persistent2Settings

pytestmark = pytest.mark.unit


def test_the_pack_knows_every_accelerated_type_of_the_catalogue() -> None:
    platform = {t.name for t in catalogue.instance_types() if t.accelerator}
    assert platform - set(pack_types()) == set()


@pytest.mark.parametrize("name", sorted(pack_types()))
def test_pack_and_catalogue_count_the_same_devices_and_interfaces(name: str) -> None:
    ours, theirs = pack_types()[name], catalogue.require(name)
    assert theirs.accelerator is not None
    assert (ours.count, ours.efa, ours.cards) == (theirs.accelerator.count, theirs.efa_max, theirs.network_cards)


@pytest.mark.parametrize("kind", list(catalogue.instance_types()), ids=lambda kind: kind.name)
def test_pack_and_catalogue_agree_on_the_fabric_of_every_type(kind: catalogue.InstanceType) -> None:
    assert efa_interfaces().get(kind.name) == kind.efa_max
    assert network_cards(kind.name) == kind.network_cards
    assert first_efa_card(kind.name) == (1 if kind.efa_max and not kind.efa_on_primary_card else 0)
    assert (kind.name.partition(".")[0] in load("fleet")["arm"]) == (kind.arch == "arm64")


@pytest.mark.parametrize("name", sorted(path.stem for path in Path(facts.__file__).parent.glob("*.json")))
def test_every_fact_says_where_it_comes_from_and_when_it_was_read(name: str) -> None:
    found = load(name)
    assert len(found["source"]) > 20
    # The day it was read, or the releases it was taken from.
    assert "date" in found or re.search(r"read 20|[0-9]+\.[0-9]+\.[0-9]+", found["source"])


def test_a_settings_file_asks_for_a_kubernetes_that_the_pack_has_a_date_of() -> None:
    assert versions.KUBERNETES in load("eks")["standardUntil"]
    assert versions.KUBERNETES in load("karpenter")["leastForKubernetes"]


def test_settings_offer_only_throughputs_that_the_pack_lets_pass() -> None:
    legal = lustre_throughput()
    first = set(get_args(Persistent1Settings.model_fields["per_unit_storage_throughput"].annotation))
    second = set(get_args(Persistent2Settings.model_fields["per_unit_storage_throughput"].annotation))
    assert first == {*legal["PERSISTENT_1/SSD"], *legal["PERSISTENT_1/HDD"]}
    assert second == set(legal["PERSISTENT_2/SSD"])


def test_the_pack_judges_the_keys_that_the_platform_writes() -> None:
    assert (template.GPU, template.EFA) == (labels.GPU_RESOURCE, labels.EFA_RESOURCE)
    assert (pool.INSTANCE_TYPE, pool.ZONE, pool.CAPACITY_TYPE) == (labels.INSTANCE_TYPE, labels.ZONE, labels.CAPACITY_TYPE)
