"""What the platform's resources are read back by: rules of security groups, and instance profiles by path."""

import pytest

from tests.emulated.landscape import Clients, Network, unique

pytestmark = pytest.mark.emulated


def test_a_rule_between_groups_keeps_its_description(aws: Clients, network: Network) -> None:
    group = aws("ec2").create_security_group(GroupName=unique("described"), Description="rules", VpcId=network.vpc)["GroupId"]
    pair = {"GroupId": group, "Description": "EFA from members of this group"}
    made = aws("ec2").authorize_security_group_ingress(GroupId=group, IpPermissions=[{"IpProtocol": "-1", "UserIdGroupPairs": [pair]}])
    rule = made["SecurityGroupRules"][0]["SecurityGroupRuleId"]
    described = aws("ec2").describe_security_group_rules(SecurityGroupRuleIds=[rule])["SecurityGroupRules"]
    assert [entry["Description"] for entry in described] == ["EFA from members of this group"]


def test_instance_profiles_are_listed_below_the_path_asked_for(aws: Clients) -> None:
    iam, ours, theirs = aws("iam"), unique("ours"), unique("karpenter")
    path = f"/karpenter/us-east-1/{unique('yard')}/"
    iam.create_instance_profile(InstanceProfileName=ours)
    iam.create_instance_profile(InstanceProfileName=theirs, Path=path)
    below = iam.list_instance_profiles(PathPrefix=path)["InstanceProfiles"]
    assert [profile["InstanceProfileName"] for profile in below] == [theirs]
    assert {ours, theirs} <= {profile["InstanceProfileName"] for profile in iam.list_instance_profiles()["InstanceProfiles"]}
