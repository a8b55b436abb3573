"""IAM documents: no wildcard is granted, and roles reach no further than named."""

import pytest

from infra.iam import documents
from infra.iam.karpenter import karpenter_controller

pytestmark = pytest.mark.unit

CONTROLLER = karpenter_controller(region="us-east-1", cluster_name="yard", queue_arn="arn:q", node_role_arn="arn:r", cluster_arn="arn:c")
GRANTS = {
    "controller": CONTROLLER,
    "fsx": documents.fsx_csi(),
    "checkpoints": documents.checkpoint_access("arn:b"),
    "queue": documents.interruption_queue("arn:q"),
    "bucket": documents.bucket_tls_only("arn:b"),
    "trust": documents.pod_identity_trust(),
}


def as_list(value):
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", GRANTS)
def test_no_document_allows_a_wildcard_action(name):
    for entry in GRANTS[name]["Statement"]:
        if entry["Effect"] == "Allow":
            assert not [action for action in as_list(entry["Action"]) if "*" in action]


def test_karpenter_changes_only_what_carries_the_cluster_s_tag():
    read = ("Describe", "Get", "List", "Receive")
    for entry in CONTROLLER["Statement"]:
        changes = [action for action in entry["Action"] if not action.partition(":")[2].startswith(read)]
        if "*" in str(entry["Resource"]) and changes and entry["Sid"] != "UseParts":
            assert "kubernetes.io/cluster/yard" in str(entry["Condition"]), entry["Sid"]


def test_karpenter_passes_the_node_role_to_ec2_and_no_other():
    (entry,) = [entry for entry in CONTROLLER["Statement"] if "iam:PassRole" in entry["Action"]]
    assert entry["Resource"] == ["arn:r"]
    assert entry["Condition"]["StringEquals"] == {"iam:PassedToService": "ec2.amazonaws.com"}


def test_the_controller_s_policy_fits_an_inline_policy():
    import json

    assert len(json.dumps(CONTROLLER, separators=(",", ":"))) <= 10240


@pytest.mark.parametrize("document", ["queue", "bucket"])
def test_plain_http_is_refused(document):
    denied = [entry for entry in GRANTS[document]["Statement"] if entry["Effect"] == "Deny"]
    assert denied[0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize(
    ("region", "arn"),
    [
        ("eu-west-1", "arn:aws:iam::aws:policy/X"),
        ("cn-north-1", "arn:aws-cn:iam::aws:policy/X"),
        ("us-gov-west-1", "arn:aws-us-gov:iam::aws:policy/X"),
    ],
)
def test_managed_policies_are_named_in_the_region_s_partition(region, arn):
    assert documents.managed_policy(region, "X") == arn
