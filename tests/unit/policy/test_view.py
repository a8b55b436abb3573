"""What a resource carries: every object once, under its type, its name and the path that leads to it."""

import json
from typing import Any

import pytest
import yaml

from guardrails import RULES, tokens
from guardrails.facts import custom_resource_schemas
from guardrails.node import UNKNOWN, Node
from guardrails.rule import Resource
from guardrails.view import views

pytestmark = pytest.mark.unit

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobs"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "trainer"}}
ZERO = {"train_batch_size": 64}
URN = "urn:pulumi:dev::project::type::owner"


def carried(kind: str, properties: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Type, name and path of what a resource called `owner` carries beside itself."""
    owner = Resource(
        type=kind,
        name="owner",
        urn=URN,
        properties=Node(properties, owner="owner"),
        sources={"values": ["urn"]},
        secrets=frozenset({"hunter2"}),
    )
    first, *rest = views(owner)
    assert first.properties is owner.properties
    for part in rest:
        assert (part.urn, part.sources, part.secrets) == (URN, owner.sources, owner.secrets)
        assert part.properties.owner == "owner"
    return [(part.type.removeprefix("kubernetes:"), part.name, part.properties.path) for part in rest]


def release(**values: Any) -> list[tuple[str, str, str]]:
    return carried(tokens.RELEASE, {"chart": "x", "values": values})


def config_map(files: Any) -> list[tuple[str, str, str]]:
    return carried(tokens.CONFIG_MAP, {"metadata": {"name": "settings"}, "data": files})


def test_a_resource_that_is_no_object_carries_nothing() -> None:
    assert carried(tokens.BUCKET, {"values": {"a": POD}}) == []
    assert carried(tokens.POD, {"values": {"a": POD}}) == []


def test_a_custom_resource_of_the_core_group_has_its_type() -> None:
    (pod,) = views(Resource(type="kubernetes:v1:Pod", name="owner", properties=Node(POD)))
    assert (pod.type, pod.name) == (tokens.POD, "owner")
    (other,) = views(Resource(type="kubernetes:apps/v1:Deployment", name="owner", properties=Node({})))
    assert other.type == "kubernetes:apps/v1:Deployment"


def test_the_second_type_of_a_bucket_is_the_first() -> None:
    for kind in (tokens.BUCKET, tokens.BUCKET_VERSIONING, tokens.BUCKET_LIFECYCLE):
        module, _, name = kind.rpartition(":")
        second = Resource(type=f"{module}V2:{name}V2", name="owner", urn=URN, properties=Node({}), sources={"bucket": ["urn"]})
        (only,) = views(second)
        assert (only.type, only.name, only.urn, only.sources) == (kind, "owner", URN, second.sources)
    (other,) = views(Resource(type="aws:s3/bucketObjectv2:BucketObjectv2", name="owner", properties=Node({})))
    assert other.type == "aws:s3/bucketObjectv2:BucketObjectv2"


def test_every_version_that_is_served_is_judged_as_the_one_that_rules_know() -> None:
    known = {kind for rule in RULES if rule.id != "KUB01" for kind in rule.types}
    for kind in custom_resource_schemas()[0]:
        (first, *_) = views(Resource(type=kind, name="owner", urn=URN, properties=Node({}), sources={"spec": ["urn"]}))
        assert first.type in known, kind
        assert (first.name, first.urn, first.sources) == ("owner", URN, {"spec": ["urn"]})
        assert first.written == ("" if first.type == kind else kind)


def test_a_release_carries_what_its_values_hold() -> None:
    assert release(a={"b": [1, POD]}, c=NAMESPACE) == [
        ("core/v1:Pod", "owner/trainer", "values.a.b[1]"),
        ("core/v1:Namespace", "owner/jobs", "values.c"),
    ]


def test_a_text_carries_each_of_its_documents() -> None:
    one, both = yaml.safe_dump(POD), f"{yaml.safe_dump(POD)}---\n{yaml.safe_dump([NAMESPACE])}"
    assert release(text=one) == [("core/v1:Pod", "owner/trainer", "values.text")]
    assert release(text=both) == [
        ("core/v1:Pod", "owner/trainer", "values.text#1"),
        ("core/v1:Namespace", "owner/jobs", "values.text#2[0]"),
    ]
    assert release(text="kind of apiVersion: {{ .Values.version }") == []
    assert release(text=f"{one}---\nplain kind of apiVersion\n") == [("core/v1:Pod", "owner/trainer", "values.text#1")]


@pytest.mark.parametrize(
    "value", [UNKNOWN, {"a": UNKNOWN}, {"kind": "Pod"}, {"apiVersion": "v1"}, {**POD, "kind": ""}, {**POD, "apiVersion": 1}, 3, None]
)
def test_what_is_no_object_is_passed_over(value: Any) -> None:
    assert release(a=value, b=POD) == [("core/v1:Pod", "owner/trainer", "values.b")]
    assert carried(tokens.RELEASE, {"values": value}) == []


def test_an_object_without_a_name_is_called_as_what_carries_it() -> None:
    for metadata in ({}, {"name": ""}, {"name": UNKNOWN}, UNKNOWN):
        assert release(a={**POD, "metadata": metadata}) == [("core/v1:Pod", "owner", "values.a")]


def test_objects_are_found_at_any_depth_that_a_chart_has() -> None:
    def nested(depth: int) -> Any:
        return POD if depth == 0 else {"a": nested(depth - 1)}

    assert len(release(a=nested(39))) == 1
    assert release(a=nested(40)) == []


def test_an_application_carries_what_its_sources_set() -> None:
    values = {"helm": {"valuesObject": {"extra": POD}}}
    assert carried(tokens.APPLICATION, {"spec": {"source": values}}) == [
        ("core/v1:Pod", "owner/trainer", "spec.source.helm.valuesObject.extra")
    ]
    assert carried(tokens.APPLICATION, {"spec": {"sources": [{}, values]}}) == [
        ("core/v1:Pod", "owner/trainer", "spec.sources[1].helm.valuesObject.extra")
    ]
    assert carried(tokens.APPLICATION, {"spec": UNKNOWN}) == []


def test_an_item_of_a_list_has_its_own_kind_or_that_of_the_list() -> None:
    assert carried("kubernetes:core/v1:PodList", {"items": [NAMESPACE, {"metadata": {"name": "a"}}, UNKNOWN, 1]}) == [
        ("core/v1:Namespace", "owner/jobs", "items[0]"),
        ("core/v1:Pod", "owner/a", "items[1]"),
        (tokens.UNSEEN, "owner", "items[2]"),
    ]
    assert carried(tokens.LIST, {"items": [{"metadata": {}}, NAMESPACE]}) == [
        (tokens.UNSEEN, "owner", "items[0]"),
        ("core/v1:Namespace", "owner/jobs", "items[1]"),
    ]
    assert carried(tokens.LIST, {"items": UNKNOWN}) == [(tokens.UNSEEN, "owner", "items")]
    assert carried(tokens.LIST, {}) == []


def test_a_list_carries_what_its_items_carry() -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ds"}, "data": {"ds.json": json.dumps(ZERO)}}
    assert carried("kubernetes:core/v1:List", {"items": [made]}) == [
        ("core/v1:ConfigMap", "owner/ds", "items[0]"),
        (tokens.DEEPSPEED, "owner/ds", 'items[0].data["ds.json"]'),
    ]


@pytest.mark.parametrize("name", ["ds.json", "settings.yaml", "settings.yml"])
def test_a_config_map_carries_the_deepspeed_configurations_among_its_files(name: str) -> None:
    for text in (json.dumps(ZERO), yaml.safe_dump(ZERO)):
        assert config_map({"train.py": "pass", name: text}) == [(tokens.DEEPSPEED, "owner", f'data["{name}"]')]


@pytest.mark.parametrize(
    "files",
    [
        None,
        {},
        {"notes.txt": yaml.safe_dump(ZERO)},
        {"train.py": "CONFIG = {'train_batch_size': 64}"},
        {"ds.json": json.dumps({"datasets": ["a"]})},
        {"deepspeed-hostfile": "worker-0 slots=8"},
        {"deepspeed_zero3.yaml": yaml.safe_dump({"deepspeed_config": {"zero_stage": 3}, "distributed_type": "DEEPSPEED"})},
        {"args.yaml": yaml.safe_dump({"gradient_accumulation_steps": 4, "learning_rate": 1e-4, "num_train_epochs": 3})},
        {"ds_config.json": '{"train_batch_size": ${GLOBAL_BATCH}}'},
        {"ds_config.json": "{"},
        {"settings.json": '{"train_batch_size": 64,'},
        {"other.json": json.dumps({"a": 1})},
        {"broken.json": "{"},
        {"empty.yaml": ""},
        {"list.json": "[]"},
        {"ds.json": 3},
        {"train.py": UNKNOWN},
    ],
)
def test_a_config_map_with_other_files_carries_nothing(files: Any) -> None:
    assert config_map(files) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ds_config", json.dumps(ZERO)),
        ("ds_config", yaml.safe_dump(ZERO)),
        ("ds_config.hjson", json.dumps(ZERO)),
        ("ds_config.JSON", json.dumps(ZERO)),
        ("notes.txt", json.dumps(ZERO)),
        ("ds.json", "// ours\n{/* x */ 'train_batch_size': 64, # all\n}"),
        ("ds.json", "train_batch_size: 64\nfp16: {enabled: true}"),
        ("ds_config.json", json.dumps({"fp16": {"enabled": True}, "bf16": {"enabled": True}})),
        ("settings.json", json.dumps({"train_micro_batch_size_per_gpu": 1, "a": 1, "b": 2, "c": 3})),
    ],
)
def test_a_file_is_read_as_deepspeed_reads_it(name: str, text: str) -> None:
    assert config_map({name: text}) == [(tokens.DEEPSPEED, "owner", f'data["{name}"]' if "." in name else f"data.{name}")]


def test_a_file_that_cannot_be_read_is_carried_as_the_text_it_is() -> None:
    for text in ('{"train_batch_size": 64', '{"train_batch_size": 1, "train_batch_size": 2}', '{"fp16": {"enabled" true}}'):
        owner = Resource(type=tokens.CONFIG_MAP, name="owner", properties=Node({"data": {"ds.json": text}}))
        assert [part.properties.raw for part in views(owner)[1:]] == [text]


def test_values_carry_deepspeed_configurations_at_any_depth() -> None:
    zero = {"zero_optimization": {"stage": 3}}
    assert release(deepspeed=ZERO, a={"config": zero}) == [
        (tokens.DEEPSPEED, "owner", "values.deepspeed"),
        (tokens.DEEPSPEED, "owner", "values.a.config"),
    ]
    assert release(a={"ds.json": json.dumps(zero)}) == [(tokens.DEEPSPEED, "owner", 'values.a["ds.json"]')]
    assert release(text=yaml.safe_dump({"a": {"config": zero}})) == [(tokens.DEEPSPEED, "owner", "values.text.a.config")]
    assert release(deepspeed=UNKNOWN) == [(tokens.DEEPSPEED, "owner", "values.deepspeed")]
    # A chart's own values.
    assert release(trainer={"train_micro_batch_size_per_gpu": 4, "image": "a", "replicas": 2}, deepspeed={"enabled": True}) == []


@pytest.mark.parametrize("name", ["ds_config.json", "deepspeed.json", "zero3.yaml", "my-ds"])
def test_a_file_that_is_not_known_yet_counts_by_its_name(name: str) -> None:
    assert config_map({name: UNKNOWN}) == [(tokens.DEEPSPEED, "owner", f"data.{name}" if name == "my-ds" else f'data["{name}"]')]


def test_files_that_are_not_known_yet_may_hold_a_configuration() -> None:
    assert config_map(UNKNOWN) == [(tokens.DEEPSPEED, "owner", "data")]
