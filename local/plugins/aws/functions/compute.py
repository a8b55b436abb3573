"""Instance types and machine images."""

import re
from collections.abc import Mapping
from typing import Any

from local.errors import LocalStackError
from local.plugins.aws.clients import Clients
from local.plugins.aws.functions.query import ask, filters, only, region_of, result


def instance_type(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes of an instance type, as far as the emulator's catalogue has them."""
    found = only(
        ask(clients, "ec2", "DescribeInstanceTypes", {"InstanceTypes": [args["instanceType"]]}, args)["InstanceTypes"],
        "instance type",
        args,
    )
    cpu, network = found.get("VCpuInfo") or {}, found.get("NetworkInfo") or {}
    gpus = (found.get("GpuInfo") or {}).get("Gpus") or ()
    return result(
        "aws:ec2/getInstanceType:getInstanceType",
        found,
        args,
        id=found["InstanceType"],
        region=region_of(clients, args),
        defaultVcpus=cpu.get("DefaultVCpus"),
        defaultCores=cpu.get("DefaultCores"),
        defaultThreadsPerCore=cpu.get("DefaultThreadsPerCore"),
        memorySize=(found.get("MemoryInfo") or {}).get("SizeInMiB"),
        efaSupported=network.get("EfaSupported"),
        efaMaximumInterfaces=(network.get("EfaInfo") or {}).get("MaximumEfaInterfaces"),
        maximumNetworkCards=network.get("MaximumNetworkCards"),
        maximumNetworkInterfaces=network.get("MaximumNetworkInterfaces"),
        networkPerformance=network.get("NetworkPerformance"),
        supportedArchitectures=(found.get("ProcessorInfo") or {}).get("SupportedArchitectures"),
        totalGpuMemory=(found.get("GpuInfo") or {}).get("TotalGpuMemoryInMiB"),
        gpuses=[_gpu(one) for one in gpus],
    )


def _gpu(gpu: Mapping[str, Any]) -> dict[str, Any]:
    memory = (gpu.get("MemoryInfo") or {}).get("SizeInMiB")
    return {"count": gpu.get("Count"), "manufacturer": gpu.get("Manufacturer"), "name": gpu.get("Name"), "memorySize": memory}


def ami(clients: Clients, args: Mapping[str, Any]) -> dict[str, Any]:
    """The image that matches, or the newest of them with `mostRecent`."""
    params = {"Owners": args.get("owners"), "ExecutableUsers": args.get("executableUsers"), "Filters": filters(args)}
    found = ask(clients, "ec2", "DescribeImages", {key: value for key, value in params.items() if value}, args)["Images"]
    if args.get("nameRegex"):
        found = [image for image in found if re.search(args["nameRegex"], image.get("Name", ""))]
    if not found:
        raise LocalStackError("no image matches; the emulator's catalogue is small, so name an image by `filters` that it has")
    if args.get("mostRecent"):
        found = [max(found, key=lambda image: image.get("CreationDate", ""))]
    image = only(found, "image", args)
    arn = f"arn:aws:ec2:{region_of(clients, args)}::image/{image['ImageId']}"
    return result(
        "aws:ec2/getAmi:getAmi",
        {key: value for key, value in image.items() if key not in ("BlockDeviceMappings", "Tags", "StateReason", "ProductCodes")},
        args,
        id=image["ImageId"],
        arn=arn,
        region=region_of(clients, args),
        tags={tag["Key"]: tag["Value"] for tag in image.get("Tags") or ()},
    )


FUNCTIONS = {
    "aws:ec2/getInstanceType:getInstanceType": instance_type,
    "aws:ec2/getAmi:getAmi": ami,
}
