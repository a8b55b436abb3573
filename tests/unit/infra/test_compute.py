"""Training pools and Karpenter: defaults that a running job is safe with, checked against the controller's own schemas."""

import json
import subprocess
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml

from infra import catalogue, labels, versions
from infra.compute import Placement, PlacementArgs
from infra.compute.node_class import node_class_spec
from infra.compute.node_pool import node_pool_spec
from tests.recording import record
from tests.unit.infra.builders import ROOT, platform, settings

pytestmark = pytest.mark.unit

RELEASE = "kubernetes:helm.sh/v3:Release"
EVENT_RULE = "aws:cloudwatch/eventRule:EventRule"
CR = {"kind": "reservation", "ids": ["cr-0abc"]}


def pool(**changes):
    return settings(lambda raw: raw["pools"][0].update(changes)).pools[0]


def class_spec(found, group_id=None, reservation_ids=()):
    return node_class_spec(
        found,
        instance_profile="profile",
        subnet_ids=["subnet-1"],
        security_group_ids=["sg-1"],
        group_id=group_id,
        reservation_ids=reservation_ids,
        tags={"trainyard:stack": "x"},
    )


@cache
def crd(name):
    """The schema of a kind of Karpenter's, from the Go module that the local stack builds it from."""
    folder = ROOT / "local" / "toolchain" / "karpenter"
    command = ["go", "list", "-mod=mod", "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws"]
    module = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
    assert module, "Karpenter's Go module is not downloaded: run `go mod download` in local/toolchain/karpenter"
    definition = yaml.load((Path(module) / "pkg" / "apis" / "crds" / name).read_text(), Loader=yaml.CSafeLoader)
    return closed(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])


def closed(node):
    """Refuse fields the API server would drop without a word."""
    if isinstance(node, list):
        return [closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: closed(value) for key, value in node.items()}
    if "properties" in node and "additionalProperties" not in node:
        found["additionalProperties"] = False
    return found


SHAPES = [
    {},
    {"efa": False, "placement": None},
    {"placement": CR},
    {"image": {"kind": "id", "id": "ami-1"}},
    {"instanceType": "p6-b300.48xlarge"},
    {"instanceType": "m7i.2xlarge", "efa": False, "placement": None, "localScratch": False},
    {"disruptionWindows": [{"reasons": ["Drifted"], "days": ["sat", "sun"], "start": "22:30", "hours": 6}]},
]


@pytest.mark.parametrize("changes", SHAPES)
def test_pools_are_what_karpenter_s_schemas_allow(changes):
    found = pool(**changes)
    jsonschema.validate(node_pool_spec(found), crd("karpenter.sh_nodepools.yaml"))
    reservations = ["cr-0abc"] if found.placement == settings(lambda raw: raw["pools"][0].update(placement=CR)).pools[0].placement else []
    spec = class_spec(found, group_id=None if reservations else "pg-1", reservation_ids=reservations)
    jsonschema.validate(spec, crd("karpenter.k8s.aws_ec2nodeclasses.yaml"))


def test_the_schema_check_finds_a_misspelt_field():
    spec = node_pool_spec(pool())
    spec["template"]["spec"]["expireAfterr"] = "Never"
    with pytest.raises(jsonschema.ValidationError, match="expireAfterr"):
        jsonschema.validate(spec, crd("karpenter.sh_nodepools.yaml"))


def test_a_running_job_is_safe_from_karpenter_s_own_accord():
    spec = node_pool_spec(pool())
    assert spec["template"]["spec"]["expireAfter"] == "Never"
    assert spec["template"]["spec"]["terminationGracePeriod"] == "1h"
    assert spec["disruption"]["consolidationPolicy"] == "WhenEmpty"
    zero = {reason for budget in spec["disruption"]["budgets"] if budget["nodes"] == "0" for reason in budget["reasons"]}
    assert zero == {"Drifted", "Underutilized"}


def test_a_pool_is_one_type_in_one_zone_and_never_spot():
    wanted = {entry["key"]: (entry["operator"], entry["values"]) for entry in node_pool_spec(pool())["template"]["spec"]["requirements"]}
    assert wanted[labels.INSTANCE_TYPE] == ("In", ["p5.48xlarge"])
    assert wanted[labels.ZONE] == ("In", ["us-east-1a"])
    assert wanted[labels.CAPACITY_TYPE] == ("In", ["on-demand"])


def test_a_pool_has_limits_and_its_accelerators_taint():
    spec = node_pool_spec(pool())
    assert spec["limits"] == {"cpu": "768", labels.GPU_RESOURCE: "32"}
    assert {taint["key"] for taint in spec["template"]["spec"]["taints"]} == {labels.TRAINING_TAINT, labels.GPU_TAINT}


@pytest.mark.parametrize("instance_type", ["p4d.24xlarge", "p5.48xlarge", "p6-b300.48xlarge"])
def test_efa_interfaces_are_those_of_the_type(instance_type):
    interfaces = class_spec(pool(instanceType=instance_type))["networkInterfaces"]
    assert interfaces[0] == {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    assert [entry["interfaceType"] for entry in interfaces[1:]] == ["efa-only"] * catalogue.require(instance_type).efa_max


def test_without_efa_karpenter_chooses_the_interfaces():
    assert "networkInterfaces" not in class_spec(pool(efa=False))


def test_nodes_are_closed_encrypted_and_pinned():
    spec = class_spec(pool())
    assert spec["metadataOptions"]["httpTokens"] == "required"
    assert spec["metadataOptions"]["httpPutResponseHopLimit"] == 1
    assert spec["blockDeviceMappings"][0]["ebs"]["encrypted"] is True
    assert spec["amiSelectorTerms"] == [{"alias": f"al2023@v{versions.AL2023_RELEASE}"}]
    assert "role" not in spec, "a profile that Karpenter makes outlives the cluster"


def test_a_zone_named_puts_the_pool_into_its_subnet_alone():
    spec = platform().one("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs["spec"]
    assert spec["subnetSelectorTerms"] == [{"id": "trainyard-vpc-private-us-east-1a-id"}]
    assert [term["id"] for term in spec["securityGroupSelectorTerms"]] == ["sg-cluster", "trainyard-efa-id"]
    assert spec["placementGroupSelector"] == {"id": "pg-0"}


def test_a_pool_without_efa_or_placement_may_use_every_zone():
    changes = {"efa": False, "placement": None, "zone": None}
    requirements = node_pool_spec(pool(**changes))["template"]["spec"]["requirements"]
    assert labels.ZONE not in {entry["key"] for entry in requirements}


def placed(choice):
    found = pool(placement=choice)
    made = []
    recording = record(lambda: made.append(Placement("p", PlacementArgs(pool=found))))
    return recording, made[0]


def test_a_group_is_a_cluster_group():
    recording, made = placed({"kind": "group"})
    assert recording.one("aws:ec2/placementGroup:PlacementGroup").inputs["strategy"] == "cluster"
    assert made.reservation_ids == []


def test_a_reservation_that_exists_is_used_as_it_is():
    recording, made = placed(CR)
    assert not [entry.type for entry in recording.registrations if entry.custom], "nothing is made for it"
    assert (made.group_id, made.reservation_ids) == (None, ["cr-0abc"])


def test_a_new_reservation_is_targeted_and_in_the_pool_s_zone():
    recording, made = placed({"kind": "new-reservation", "instances": 2})
    inputs = recording.one("aws:ec2/capacityReservation:CapacityReservation").inputs
    assert (inputs["availabilityZone"], inputs["instanceCount"], inputs["instanceMatchCriteria"]) == ("us-east-1a", 2, "targeted")
    assert made.group_id is None


@pytest.mark.parametrize(("placement", "expected"), [(CR, "reserved"), ({"kind": "group"}, "on-demand")])
def test_reservations_are_selected_and_asked_for_together(placement, expected):
    found = pool(placement=placement)
    spec = class_spec(found, reservation_ids=["cr-0abc"] if expected == "reserved" else [])
    types = [entry["values"] for entry in node_pool_spec(found)["template"]["spec"]["requirements"] if entry["key"] == labels.CAPACITY_TYPE]
    assert types == [[expected]]
    assert ("capacityReservationSelectorTerms" in spec) == (expected == "reserved")


def test_aws_warns_karpenter_of_four_kinds_of_events():
    recording = platform()
    patterns = [json.loads(entry.inputs["eventPattern"]) for entry in recording.of_type(EVENT_RULE)]
    assert {kind for pattern in patterns for kind in pattern["detail-type"]} == {
        "AWS Health Event",
        "EC2 Spot Instance Interruption Warning",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Instance State-change Notification",
    }
    assert len(recording.of_type("aws:cloudwatch/eventTarget:EventTarget")) == 4
    values = recording.one(RELEASE, "trainyard-karpenter").inputs["values"]
    assert values["settings"]["interruptionQueue"] == recording.one("aws:sqs/queue:Queue").name


def test_karpenter_runs_on_system_nodes_with_its_own_identity():
    values = platform().one(RELEASE, "trainyard-karpenter").inputs["values"]
    assert values["nodeSelector"] == labels.pool_selector("system")
    accounts = platform().of_type("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    assert ("kube-system", "karpenter") in {(entry.inputs["namespace"], entry.inputs["serviceAccount"]) for entry in accounts}


def test_an_update_ends_when_karpenter_has_found_all_that_a_pool_names():
    for type_ in ("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "kubernetes:karpenter.sh/v1:NodePool"):
        assert platform().one(type_).inputs["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Ready"}
