"""What the pack tells besides violations."""

import pytest

from guardrails import RULES, tokens
from guardrails.judge import by_id
from guardrails.node import Node
from guardrails.rule import _is_placeholder
from tests.unit.policy.analyzer import UNKNOWN, Diagnostic, Thing, analyze
from tests.unit.policy.cases import csi, efs, fsx, release

pytestmark = pytest.mark.policy


def test_what_only_up_knows_is_told_once_for_each_rule_with_all_places() -> None:
    rule = by_id(RULES)["FSX04"]
    shape = fsx.p2(storageCapacity=UNKNOWN).properties
    said = analyze(*(Thing(type=fsx.p2().type, name=name, properties=shape) for name in ("scratch", "home")), rules=[rule])
    words = "FSX04 not evaluated: needs home.storageCapacity, scratch.storageCapacity, which only `up` knows and will judge."
    assert said == [Diagnostic(rule.policy_name, words, mandatory=False)]


@pytest.mark.parametrize(
    ("rule", "things", "place"),
    [
        ("FSX10", (fsx.placed(),), "scratch.subnetIds"),
        ("FSX10", (fsx.scratch(subnetIds="subnet-1"), fsx.of_id(UNKNOWN)), "other.id"),
        ("CSI03", (csi.named(csi.EBS, metadata={"name": UNKNOWN}), csi.claim()), "gp3.metadata.name"),
        ("EFS04", (efs.efs(), efs.nfs(), efs.target("a")), "home-a.subnetId"),
        ("EFS04", (efs.ZONAL, efs.nfs(), efs.target("a")), "home-a.subnetId"),
        ("EFS04", (efs.efs(), efs.UNKNOWN_TARGET, efs.pool(efs.A)), "home-a.fileSystemId, home-a.securityGroups[0]"),
        ("HLM01", (Thing(type=tokens.LIST, name="all", properties={"items": UNKNOWN}),), "all.items"),
        (
            "HLM01",
            (Thing(type=tokens.LIST, name="all", properties={"items": [{"kind": "Pod", "apiVersion": "v1"}, UNKNOWN]}),),
            "all.items[1]",
        ),
        ("HLM01", (release.application(values=UNKNOWN),), "app.spec.source.helm.values"),
        ("HLM01", (release.release({"a": [{"apiVersion": UNKNOWN, "kind": "Pod"}]}),), "app.values.a[0].apiVersion"),
        ("HLM01", (release.application(valuesObject={"a": UNKNOWN}),), "app.spec.source.helm.valuesObject.a"),
        ("DSP02", (Thing(type=tokens.RELEASE, name="app", properties={"values": {"deepspeed": UNKNOWN}}),), "app.values.deepspeed"),
        ("EFS04", (efs.efs(), efs.subnet("a"), efs.target("a")), "home-a.securityGroups[0]"),
    ],
)
def test_a_rule_names_the_value_from_elsewhere_that_it_needs(rule: str, things: tuple[Thing, ...], place: str) -> None:
    said = analyze(*things, rules=[by_id(RULES)[rule]])
    assert [diagnostic.message for diagnostic in said] == [f"{rule} not evaluated: needs {place}, which only `up` knows and will judge."]


def test_each_finding_is_told_once_though_its_rule_runs_again_and_again() -> None:
    volumes = [Thing(type=fsx.p2().type, name=name, properties=fsx.p2(importPath="s3://b").properties) for name in ("scratch", "home")]
    said = analyze(*volumes, rules=[by_id(RULES)["FSX08"]])
    assert [diagnostic.message.split(":")[0] for diagnostic in said] == ["FSX08 scratch", "FSX08 home"]


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("${DLC_IMAGE}", True),
        ("{{ .Values.image }}:latest", True),
        ("trainer:latest", False),
        ("${A}${B}:latest", True),
        (f"{'a' * 988}${{AB}}:latest", True),
        (f"{'a' * 989}${{AB}}:latest", False),
    ],
)
def test_a_placeholder_that_nobody_filled_in_is_called_one(image: str, says: bool) -> None:
    spec = {"containers": [{"name": "main", "image": image, "args": ["${NAME}"]}]}
    (said,) = analyze(Thing(type=tokens.POD, name="rank", properties={"spec": spec}), rules=[by_id(RULES)["POD03"]])
    assert ("a placeholder was left in" in said.message) is says


@pytest.mark.parametrize(
    ("value", "path", "is_one"),
    [("${A}", "spec.image", True), ("${A} ${B}", "spec.image", False), ("${A}|b", "spec.image", False), ("${A}", "spec.args[0]", False)],
)
def test_a_placeholder_is_one_word_of_no_command_line(value: str, path: str, is_one: bool) -> None:
    assert _is_placeholder(Node(value, path)) is is_one


def test_a_variable_of_a_command_line_is_no_placeholder() -> None:
    spec = {"containers": [{"name": "main", "image": "trainer:1.2.3", "args": ["RDMAV_FORK_SAFE=${SAFE}"]}]}
    (said,) = analyze(Thing(type=tokens.POD, name="rank", properties={"spec": spec}), rules=[by_id(RULES)["ENV01"]])
    assert "placeholder" not in said.message
