"""Prices. They are made up from an instance type's size, and only their order is meant to be believed.

Karpenter ranks instance types by them and logs an error for each refresh that finds none. Answers: Pricing GetProducts (AmazonEC2, Linux,
on demand) and EC2 DescribeSpotPriceHistory.
"""

import json
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import BaseResponse
from moto.ec2.models import ec2_backends
from moto.ec2.responses import EC2Response

from local.aws.extension.hooks import Call, Params, Refusal, add_operations
from local.aws.extension.store import ec2_of

# US dollars an hour: a virtual CPU, a GiB of memory, an accelerator.
CPU, MEMORY, ACCELERATOR = 0.04, 0.005, 1.5
SPOT_SHARE = 0.4
PAGE = 100


def hourly_price(ec2: Any, instance_type: str) -> float:
    """The on-demand price of one known instance type, in US dollars an hour."""
    return _price(ec2.describe_instance_types([instance_type])[0])


def _price(kind: Params) -> float:
    accelerators = sum(gpu["Count"] for gpu in kind.get("GpuInfo", {}).get("Gpus", []))
    accelerators += sum(device["Count"] for device in kind.get("NeuronInfo", {}).get("NeuronDevices", []))
    memory_gib = kind["MemoryInfo"]["SizeInMiB"] / 1024
    return round(CPU * kind["VCpuInfo"]["DefaultVCpus"] + MEMORY * memory_gib + ACCELERATOR * accelerators, 4)


class PricingResponse(BaseResponse):
    """The Price List service, which moto does not have."""

    def __init__(self) -> None:
        super().__init__(service_name="pricing")


def get_products(call: Call, given: Params) -> Params:
    """GetProducts with TERM_MATCH filters; pages of at most 100."""
    if given.get("ServiceCode") != "AmazonEC2":
        raise Refusal("InvalidParameterException", f"Only the service code AmazonEC2 has prices here, not '{given.get('ServiceCode')}'.")
    wanted = {each["Field"]: each["Value"] for each in given.get("Filters") or []}
    region = wanted.get("regionCode", "us-east-1")
    products = [_product(kind, region) for kind in ec2_backends[call.current_account][region].describe_instance_types([])]
    chosen = [product for product in products if _matches(product["product"], wanted)]
    start, size = int(given.get("NextToken") or 0), min(given.get("MaxResults") or PAGE, PAGE)
    answer: Params = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product) for product in chosen[start : start + size]]}
    if start + size < len(chosen):
        answer["NextToken"] = str(start + size)
    return answer


def _matches(product: Params, wanted: dict[str, str]) -> bool:
    have = product["attributes"] | {"serviceCode": "AmazonEC2", "productFamily": product["productFamily"]}
    return all(have.get(field, "").lower() == value.lower() for field, value in wanted.items())


def _product(kind: Params, region: str) -> Params:
    metal = kind.get("BareMetal", False)
    return {
        "product": {
            "productFamily": "Compute Instance (bare metal)" if metal else "Compute Instance",
            "attributes": {
                "instanceType": kind["InstanceType"],
                "regionCode": region,
                "operatingSystem": "Linux",
                "preInstalledSw": "NA",
                "tenancy": "Dedicated" if metal else "Shared",
                "capacitystatus": "Used",
                "marketoption": "OnDemand",
            },
        },
        "terms": {"OnDemand": {"term": {"priceDimensions": {"hour": {"unit": "Hrs", "pricePerUnit": {"USD": str(_price(kind))}}}}}},
    }


def spot_price_history(call: Call, given: Params) -> Params:
    """DescribeSpotPriceHistory: one price a zone for each instance type."""
    wanted = set(given.get("InstanceTypes") or [])
    kinds = {kind["InstanceType"]: kind for kind in ec2_of(call).describe_instance_types([])}
    offered = ec2_of(call).describe_instance_type_offerings(location_type="availability-zone", filters={})
    now = datetime.now(UTC)
    return {
        "SpotPriceHistory": [
            {
                "AvailabilityZone": each["Location"],
                "InstanceType": each["InstanceType"],
                "ProductDescription": "Linux/UNIX",
                "SpotPrice": f"{_price(kinds[each['InstanceType']]) * SPOT_SHARE:.6f}",
                "Timestamp": now,
            }
            for each in offered
            if each["InstanceType"] in kinds and (not wanted or each["InstanceType"] in wanted)
        ]
    }


def install() -> None:
    """Add the operations to EC2 and to the Price List service."""
    add_operations(EC2Response, {"describe_spot_price_history": spot_price_history})
    add_operations(PricingResponse, {"get_products": get_products})
