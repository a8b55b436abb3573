"""What the stand-in aws plug-in makes of declared inputs before AWS is asked: refusals, defaults, names, tags, differences."""

import re
from typing import Any

import pytest

from local.errors import LocalStackError
from local.plugins.aws.check import DEFAULTS_KEY, Declared, Failure, check
from local.plugins.aws.clients import read_configuration
from local.plugins.aws.diff import Change, compare, equivalent, projected
from local.plugins.aws.naming import client_token
from local.plugins.aws.row import Prop
from local.plugins.aws.schema import schema_of
from local.plugins.aws.types import TABLE
from local.plugins.aws.types.permissions import of_aws, of_block, to_aws, to_blocks
from local.plugins.aws.values import UNKNOWN, decode, encode

pytestmark = pytest.mark.unit

VPC = "aws:ec2/vpc:Vpc"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
CLUSTER = "aws:eks/cluster:Cluster"


def checked(token: str, news: dict[str, Any], **declared: Any) -> tuple[dict[str, Any], list[Failure]]:
    about: dict[str, Any] = {"name": "thing", "region": "us-west-2", "seed": b"1"} | declared
    return check(TABLE[token], schema_of(token), Declared(news=news, **about))


def inputs(token: str, news: dict[str, Any], **declared: Any) -> dict[str, Any]:
    found, failures = checked(token, news, **declared)
    assert failures == []
    return found


def refusal(token: str, news: dict[str, Any]) -> tuple[str, str]:
    _, failures = checked(token, news)
    assert len(failures) == 1, failures
    return failures[0].path, failures[0].reason


@pytest.mark.parametrize(
    ("token", "news", "path", "said"),
    [
        (VPC, {"cidrBlok": "10.0.0.0/16"}, "cidrBlok", "did you mean cidrBlock"),
        (VPC, {"ipv6IpamPoolId": "x"}, "ipv6IpamPoolId", "does not carry out property ipv6IpamPoolId"),
        (VPC, {"enableDnsSupport": "perhaps"}, "enableDnsSupport", "type boolean is expected"),
        (LUSTRE, {"subnetIds": "s", "deploymentType": "PERSISTENT_3"}, "deploymentType", "AWS allows SCRATCH_1"),
        (LUSTRE, {"subnetIds": "s", "perUnitStorageThroughput": 1}, "perUnitStorageThroughput", "at least 12"),
        (LUSTRE, {}, "subnetIds", "a value is required"),
        (CLUSTER, {"roleArn": "r", "vpcConfig": {"subnetId": "s"}}, "vpcConfig.subnetId", "has no field subnetId"),
        ("aws:ec2/route:Route", {"routeTableId": "r", "gatewayId": "g"}, "destinationCidrBlock", "exactly one destination"),
        (
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            {"ipProtocol": "-1", "securityGroupId": "s", "cidrIpv4": "10.0.0.0/8", "cidrIpv6": "::/0"},
            "cidrIpv4",
            "exactly one source",
        ),
    ],
)
def test_a_wrong_property_is_refused_by_name(token: str, news: dict[str, Any], path: str, said: str) -> None:
    refused, reason = (
        refusal(token, news)
        if token != CLUSTER
        else next((one.path, one.reason) for one in checked(token, news)[1] if "no field" in one.reason)
    )
    assert refused == path
    assert said in reason


def test_defaults_and_region_are_filled_in_and_marked() -> None:
    found = inputs(VPC, {"cidrBlock": "10.0.0.0/16"})
    assert (found["enableDnsSupport"], found["instanceTenancy"], found["region"]) == (True, "default", "us-west-2")
    assert set(found[DEFAULTS_KEY]) >= {"enableDnsSupport", "instanceTenancy", "region"}


def test_default_tags_join_the_own_ones_which_win() -> None:
    found = inputs(VPC, {"tags": {"Team": "a"}}, default_tags={"Team": "z", "Project": "p"})
    assert found["tags"] == {"Team": "a"}
    assert found["tagsAll"] == {"Team": "a", "Project": "p"}


def test_automatic_names_have_seven_digits_follow_the_seed_and_last() -> None:
    first = inputs(GROUP, {})
    assert re.fullmatch(r"thing-[0-9a-f]{7}", first["name"])
    assert inputs(GROUP, {})["name"] == first["name"]
    assert inputs(GROUP, {}, seed=b"2")["name"] != first["name"]
    assert inputs(GROUP, {}, seed=b"2", olds=first)["name"] == first["name"], "an update keeps the name"


def test_names_obey_the_services_rules_and_the_users_settings() -> None:
    assert re.fullmatch(r"my-data-[0-9a-f]{7}", inputs("aws:s3/bucket:Bucket", {}, name="My-Data")["bucket"])
    assert len(inputs("aws:iam/role:Role", {"assumeRolePolicy": "{}"}, name="r" * 100)["name"]) == 64
    assert inputs("aws:kms/alias:Alias", {"targetKeyId": "k"})["name"].startswith("alias/thing-")
    assert re.fullmatch(r"lt[0-9a-f]{26}", inputs("aws:ec2/launchTemplate:LaunchTemplate", {"namePrefix": "lt"})["name"])
    assert inputs(GROUP, {}, proposed_name="exact")["name"] == "exact"
    assert "automatic naming is off" in checked(GROUP, {}, naming_off=True)[1][0].reason


def test_unknown_values_pass_every_check() -> None:
    found = inputs(LUSTRE, {"subnetIds": UNKNOWN, "storageCapacity": UNKNOWN, "tags": {"a": UNKNOWN}})
    assert found["subnetIds"] is UNKNOWN
    assert found["tagsAll"] == {"a": UNKNOWN}


def test_a_policy_given_as_an_object_becomes_text() -> None:
    policy = {"Version": "2012-10-17", "Statement": []}
    assert inputs("aws:iam/policy:Policy", {"policy": policy})["policy"] == '{"Statement": [], "Version": "2012-10-17"}'
    assert inputs("aws:iam/policy:Policy", {"policy": {"Statement": [UNKNOWN]}})["policy"] is UNKNOWN


def changes(token: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[Change, bool]]:
    olds = inputs(token, old)
    return dict(compare(TABLE[token], olds, inputs(token, new, olds=olds)).changes)


def test_differences_are_told_field_by_field() -> None:
    old = {"tags": {"a": "1", "b": "2", "kubernetes.io/x": "y"}}
    assert changes(VPC, old, {"tags": {"a": "9", "c": "3", "kubernetes.io/x": "z"}}) == {
        f"{top}{path}": (kind, False)
        for top in ("tags", "tagsAll")
        for path, kind in ((".a", Change.UPDATE), (".b", Change.DELETE), (".c", Change.ADD), ('["kubernetes.io/x"]', Change.UPDATE))
    }


def test_a_change_that_replaces_says_so() -> None:
    assert changes(VPC, {"cidrBlock": "10.0.0.0/16"}, {"cidrBlock": "10.1.0.0/16"}) == {"cidrBlock": (Change.UPDATE, True)}
    assert changes(VPC, {"cidrBlock": "10.0.0.0/16"}, {"cidrBlock": UNKNOWN}) == {"cidrBlock": (Change.UPDATE, True)}
    nested = {"roleArn": "r", "vpcConfig": {"subnetIds": ["s"]}, "accessConfig": {"bootstrapClusterCreatorAdminPermissions": True}}
    other = nested | {"accessConfig": {"bootstrapClusterCreatorAdminPermissions": False}}
    path = "accessConfig.bootstrapClusterCreatorAdminPermissions"
    assert changes(CLUSTER, nested, other) == {path: (Change.UPDATE, True)}


def test_order_in_sets_and_spelling_of_json_are_no_difference() -> None:
    assert changes(GROUP, {"ingress": [rule(22), rule(80)]}, {"ingress": [rule(80), rule(22)]}) == {}
    one = '{"Statement": {"Action": ["s3:Get*"], "Effect": "Allow"}}'
    other = '{ "Statement": {"Effect": "Allow", "Action": "s3:Get*"} }'
    assert changes("aws:iam/policy:Policy", {"policy": one}, {"policy": other}) == {}


def test_what_aws_chose_is_not_taken_away_by_silence() -> None:
    assert changes(VPC, {"cidrBlock": "10.0.0.0/16"}, {}) == {}


def test_a_fixed_name_makes_room_first_and_an_automatic_one_does_not() -> None:
    fixed_name, automatic = {"name": "n", "description": "a"}, {"description": "a"}
    for news, first in ((fixed_name, True), (automatic, False)):
        olds = inputs(GROUP, news)
        difference = compare(TABLE[GROUP], olds, inputs(GROUP, news | {"description": "b"}, olds=olds))
        assert (difference.replaces, difference.delete_before_replace) == (["description"], first)


def test_fields_that_aws_adds_are_no_drift_but_changed_ones_are() -> None:
    declared = [{"name": "a", "size": 1}, {"name": "b", "on": False}]
    live = [{"name": "b"}, {"name": "a", "size": 1, "extra": True}]
    assert equivalent(Prop(), projected(live, declared, Prop()), declared)
    assert not equivalent(Prop(), projected([{"name": "a", "size": 2}, {"name": "b"}], declared, Prop()), declared)
    assert not equivalent(Prop(), projected([*live, {"name": "c"}], declared, Prop()), declared)


def rule(port: int) -> dict[str, Any]:
    return {"protocol": "tcp", "fromPort": port, "toPort": port, "cidrBlocks": ["10.0.0.0/8"]}


def test_rules_keep_the_programs_grouping() -> None:
    blocks = [{**rule(22), "cidrBlocks": ["10.0.0.0/8", "11.0.0.0/8"]}, {"protocol": "all", "fromPort": 0, "toPort": 0, "self": True}]
    meant = set().union(*(of_block(block, "sg-1") for block in blocks))
    assert of_aws(to_aws(meant)) == meant
    assert to_blocks(meant, blocks, "sg-1") == blocks
    assert to_blocks(meant - of_block(rule(22), "sg-1"), blocks, "sg-1") == [blocks[1], {**rule(22), "cidrBlocks": ["11.0.0.0/8"]}]


def test_values_survive_the_wire() -> None:
    values = {"a": 1, "b": 1.5, "c": True, "d": ["x", {"e": UNKNOWN}], "f": {}, "g": []}
    assert decode(encode(values)) == values


def test_secrets_and_references_are_opened() -> None:
    signature = "4dabf18193072939515e22adb298388d"
    secret = {signature: "1b47061264138c4ac30d75fd1eb44270", "value": "s"}
    reference = {signature: "5cf8f73096256a8f31e491e813e4eb8e", "urn": "u", "id": "i"}
    output = {signature: "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    assert decode(encode({"secret": secret, "reference": reference, "output": output})) == {
        "secret": "s",
        "reference": "i",
        "output": UNKNOWN,
    }


def test_client_tokens_follow_name_and_inputs() -> None:
    assert client_token("u", {"a": 1, DEFAULTS_KEY: []}) == client_token("u", {"a": 1})
    assert len({client_token("u", {"a": 1}), client_token("v", {"a": 1}), client_token("u", {"a": 2}), client_token("u", {"a": 1}, 1)}) == 4


@pytest.mark.parametrize("url", ["http://127.0.0.1:5000", "http://[::1]:5000", "http://localhost:5000", "http://127.9.9.9"])
def test_loopback_endpoints_are_taken(url: str) -> None:
    assert read_configuration({"region": "r"}, {"AWS_ENDPOINT_URL": url}).endpoint("ec2") == url


@pytest.mark.parametrize(
    "url",
    ["https://ec2.us-west-2.amazonaws.com", "http://10.0.0.1:5000", "http://localhost.example.com", "http://0.0.0.0:5000", "nonsense"],
)
def test_any_other_endpoint_is_refused(url: str) -> None:
    for args, environment in (({}, {"AWS_ENDPOINT_URL": url}), ({}, {"AWS_ENDPOINT_URL_EC2": url}), ({"endpoints": [{"ec2": url}]}, {})):
        with pytest.raises(LocalStackError, match=r"loopback"):
            read_configuration({"region": "r", **args}, environment)


def test_no_endpoint_at_all_is_refused() -> None:
    with pytest.raises(LocalStackError, match="was given no endpoint"):
        read_configuration({"region": "r"}, {})
    partly = read_configuration({"region": "r", "endpoints": '[{"ec2": "http://127.0.0.1:1"}]'}, {})
    with pytest.raises(LocalStackError, match="no endpoint for service iam"):
        partly.endpoint("iam")
