"""What Karpenter 1.14 asks of AWS, asked the same way: alias images, prices, instance types, placement groups, reservations."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.versions import AL2023_RELEASE, KUBERNETES
from tests.emulated.landscape import Clients, unique

pytestmark = pytest.mark.emulated


@pytest.mark.parametrize(
    ("architecture", "variant"), [("x86_64", "standard"), ("x86_64", "nvidia"), ("x86_64", "neuron"), ("arm64", "standard")]
)
def test_an_alias_leads_to_an_image(aws: Clients, architecture: str, variant: str) -> None:
    folder = f"/aws/service/eks/optimized-ami/{KUBERNETES}/amazon-linux-2023/{architecture}/{variant}"
    pinned = f"amazon-eks-node-al2023-{architecture}-{variant}-{KUBERNETES}-v{AL2023_RELEASE}"
    identity = aws("ssm").get_parameter(Name=f"{folder}/{pinned}/image_id")["Parameter"]["Value"]
    assert aws("ssm").get_parameter(Name=f"{folder}/recommended/image_id")["Parameter"]["Value"] == identity
    images = aws("ec2").describe_images(Filters=[{"Name": "image-id", "Values": [identity]}])["Images"]
    assert [(image["Name"], image["Architecture"], image["State"]) for image in images] == [(pinned, architecture, "available")]
    with pytest.raises(ClientError, match="ParameterNotFound"):
        aws("ssm").get_parameter(Name=f"{folder}/{pinned.replace(AL2023_RELEASE, '20200101')}/image_id")


def prices(aws: Clients, family: str, tenancy: str) -> dict[str, float]:
    wanted = {
        "regionCode": "us-east-1",
        "serviceCode": "AmazonEC2",
        "preInstalledSw": "NA",
        "operatingSystem": "Linux",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "tenancy": tenancy,
        "productFamily": family,
    }
    filters = [{"Field": field, "Type": "TERM_MATCH", "Value": value} for field, value in wanted.items()]
    pages = (
        aws("pricing").get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters, PaginationConfig={"PageSize": 100})
    )
    found = {}
    for text in (text for page in pages for text in page["PriceList"]):
        product = json.loads(text)
        dimension = product["terms"]["OnDemand"]["term"]["priceDimensions"]["hour"]
        found[product["product"]["attributes"]["instanceType"]] = float(dimension["pricePerUnit"]["USD"])
    return found


def test_every_instance_type_has_a_price_that_grows_with_it(aws: Clients) -> None:
    shared = prices(aws, "Compute Instance", "Shared")
    metal = prices(aws, "Compute Instance (bare metal)", "Dedicated")
    assert len(shared) > 500
    assert metal
    assert shared.keys().isdisjoint(metal)
    assert 0 < shared["m7i.large"] < shared["m7i.2xlarge"] < shared["g6.12xlarge"] < shared["p5.48xlarge"]
    spot = aws("ec2").describe_spot_price_history(ProductDescriptions=["Linux/UNIX"], InstanceTypes=["p5.48xlarge"])["SpotPriceHistory"]
    assert {0 < float(each["SpotPrice"]) < shared["p5.48xlarge"] for each in spot} == {True}


def test_p5_has_its_gpus_and_efa_interfaces(aws: Clients) -> None:
    kind = aws("ec2").describe_instance_types(InstanceTypes=["p5.48xlarge"])["InstanceTypes"][0]
    assert kind["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"] == 32
    assert kind["GpuInfo"]["Gpus"][0]["Count"] == 8


def test_a_placement_group_is_found_by_name_by_id_and_by_state(aws: Clients) -> None:
    ec2, name = aws("ec2"), unique("group")
    made = ec2.create_placement_group(GroupName=name, Strategy="partition", PartitionCount=3)["PlacementGroup"]
    available = [{"Name": "state", "Values": ["available"]}]
    for given in ({"GroupNames": [name]}, {"GroupIds": [made["GroupId"]]}):
        found = ec2.describe_placement_groups(**given, Filters=available)["PlacementGroups"]
        assert [(each["GroupId"], each["PartitionCount"]) for each in found] == [(made["GroupId"], 3)]
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Unknown"):
        ec2.describe_placement_groups(GroupNames=["absent"])


def reserve(aws: Clients, **changes: Any) -> dict[str, Any]:
    request = {"InstanceType": "p5.48xlarge", "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-east-1a", "InstanceCount": 2}
    return aws("ec2").create_capacity_reservation(**request | changes)["CapacityReservation"]


def test_a_reservation_is_targeted_in_its_group_and_counts_what_is_used(aws: Clients) -> None:
    ec2, name, team = aws("ec2"), unique("group"), unique("team")
    arn = ec2.create_placement_group(GroupName=name, Strategy="cluster")["PlacementGroup"]["GroupArn"]
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "team", "Value": team}]}]
    made = reserve(aws, InstanceMatchCriteria="targeted", PlacementGroupArn=arn, TagSpecifications=tags)["CapacityReservationId"]
    filters = [{"Name": "state", "Values": ["active"]}, {"Name": "tag:team", "Values": [team]}]

    def free() -> list[int]:
        return [each["AvailableInstanceCount"] for each in ec2.describe_capacity_reservations(Filters=filters)["CapacityReservations"]]

    assert free() == [2]
    ec2.modify_capacity_reservation(CapacityReservationId=made, InstanceCount=4)
    image = ec2.describe_images()["Images"][0]["ImageId"]
    target = {"CapacityReservationTarget": {"CapacityReservationId": made}}
    instance = ec2.run_instances(ImageId=image, InstanceType="p5.48xlarge", MinCount=1, MaxCount=1, CapacityReservationSpecification=target)
    assert free() == [3]
    ec2.terminate_instances(InstanceIds=[instance["Instances"][0]["InstanceId"]])
    assert free() == [4]
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.InUse"):
        ec2.delete_placement_group(GroupName=name)
    ec2.cancel_capacity_reservation(CapacityReservationId=made)
    assert free() == []
    ec2.delete_placement_group(GroupName=name)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"AvailabilityZone": "us-east-1z"}, "InvalidParameterValue"),
        ({"InstanceType": "p99.huge"}, "InvalidParameterValue"),
        ({"InstanceMatchCriteria": "closed"}, "InvalidParameterValue"),
        ({"EndDateType": "limited"}, "InvalidParameterCombination"),
        ({"PlacementGroupArn": "arn:aws:ec2:us-east-1:123456789012:placement-group/absent"}, "InvalidPlacementGroup.Unknown"),
    ],
)
def test_a_reservation_that_ec2_does_not_make(aws: Clients, changes: dict[str, Any], code: str) -> None:
    with pytest.raises(ClientError) as caught:
        reserve(aws, **changes)
    assert caught.value.response["Error"]["Code"] == code


def test_a_capacity_block_is_offered_bought_and_fixed(aws: Clients) -> None:
    ec2 = aws("ec2")
    offerings = ec2.describe_capacity_block_offerings(InstanceType="p5.48xlarge", InstanceCount=4, CapacityDurationHours=48)
    offering = offerings["CapacityBlockOfferings"][0]
    assert (offering["EndDate"] - offering["StartDate"]).total_seconds() == 48 * 3600
    bought = ec2.purchase_capacity_block(CapacityBlockOfferingId=offering["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX")
    record = bought["CapacityReservation"]
    assert (record["ReservationType"], record["InstanceMatchCriteria"], record["State"]) == ("capacity-block", "targeted", "scheduled")
    with pytest.raises(ClientError, match="UnsupportedOperation"):
        ec2.cancel_capacity_reservation(CapacityReservationId=record["CapacityReservationId"])
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        ec2.describe_capacity_block_offerings(InstanceType="m7i.large", InstanceCount=1, CapacityDurationHours=24)


def test_no_instance_is_impaired_and_an_operation_that_is_missing_says_so(aws: Clients) -> None:
    impaired = [{"Name": "instance-status.status", "Values": ["impaired"]}]
    assert aws("ec2").describe_instance_status(Filters=impaired)["InstanceStatuses"] == []
    with pytest.raises(ClientError, match="NotImplemented"):
        aws("ec2").describe_bundle_tasks()
