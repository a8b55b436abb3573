"""Which managed node groups EKS makes. Sources: botocore eks 2017-11-01; EKS user guide, "Launch templates", "Capacity Blocks"."""

from typing import Any

from local.aws.eks_versions import KUBERNETES_VERSIONS
from local.aws.extension.eks_error import bad_parameter
from local.aws.extension.hooks import Call, Params
from local.aws.extension.store import ec2_of

CAPACITY_TYPES = ("ON_DEMAND", "SPOT", "CAPACITY_BLOCK")
# Amazon Linux 2 images end with this version.
FIRST_WITHOUT_AL2 = "1.33"


def template_of(call: Call, reference: Params | None) -> Params:
    """The data of the launch template's version, or nothing."""
    if not reference:
        return {}
    known = ec2_of(call).launch_templates
    wanted = reference.get("id") or next((key for key, each in known.items() if each.name == reference.get("name")), None)
    if wanted not in known:
        raise bad_parameter(f"Launch template {reference.get('id') or reference.get('name')} was not found.")
    template = known[wanted]
    number = str(reference.get("version") or template.default_version_number)
    number = {"$Latest": str(template.latest_version_number), "$Default": str(template.default_version_number)}.get(number, number)
    if not number.isdigit() or not 1 <= int(number) <= template.latest_version_number:
        raise bad_parameter(f"Launch template {wanted} has no version {number}.")
    return dict(template.get_version(number).data)


def template_reference(call: Call, reference: Params | None) -> Params | None:
    """A launch template as a node group names it: id, name and version."""
    if not reference:
        return None
    known = ec2_of(call).launch_templates
    wanted = reference.get("id") or next(key for key, each in known.items() if each.name == reference["name"])
    template = known[wanted]
    return {"id": template.id, "name": template.name, "version": str(reference.get("version") or template.default_version_number)}


def check_shape(cluster: Any, given: Params, template: Params) -> None:
    """Capacity type, image, version, taints and launch template that go together."""
    name, image, capacity = given["nodegroupName"], given.get("amiType"), given.get("capacityType") or "ON_DEMAND"
    version = given.get("version") or cluster.version
    if capacity not in CAPACITY_TYPES:
        raise bad_parameter(f"The capacity type {capacity} is not valid: must be one of {', '.join(CAPACITY_TYPES)}.", nodegroupName=name)
    if version not in KUBERNETES_VERSIONS or KUBERNETES_VERSIONS.index(version) > KUBERNETES_VERSIONS.index(cluster.version):
        raise bad_parameter(
            f"Requested Nodegroup version {version} can't be newer than the cluster's, {cluster.version}.", nodegroupName=name
        )
    if (image or "").startswith("AL2_") and KUBERNETES_VERSIONS.index(version) >= KUBERNETES_VERSIONS.index(FIRST_WITHOUT_AL2):
        raise bad_parameter(
            f"The AMI type {image} is not supported for kubernetes versions {FIRST_WITHOUT_AL2} or greater.", nodegroupName=name
        )
    if given.get("launchTemplate"):
        _check_template(given, template, capacity)
    elif capacity == "CAPACITY_BLOCK":
        raise bad_parameter("A node group with the capacity type CAPACITY_BLOCK needs a launch template.", nodegroupName=name)
    for taint in given.get("taints") or []:
        if taint.get("effect") not in ("NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"):
            raise bad_parameter(f"The taint effect {taint.get('effect')} is not valid.", nodegroupName=name)


def _check_template(given: Params, template: Params, capacity: str) -> None:
    name = given["nodegroupName"]
    if given.get("diskSize"):
        raise bad_parameter("Disk size must be specified within the launch template.", nodegroupName=name)
    if given.get("remoteAccess"):
        raise bad_parameter("Remote access configuration cannot be specified with a launch template.", nodegroupName=name)
    if template.get("InstanceType") and given.get("instanceTypes"):
        raise bad_parameter("You cannot specify instance types in both the launch template and the API request.", nodegroupName=name)
    if template.get("ImageId") and given.get("amiType") not in (None, "CUSTOM"):
        raise bad_parameter("You cannot specify an image id within the launch template when specifying an ami type.", nodegroupName=name)
    market = (template.get("InstanceMarketOptions") or {}).get("MarketType")
    if (capacity == "CAPACITY_BLOCK") != (market == "capacity-block"):
        raise bad_parameter(
            "The capacity type CAPACITY_BLOCK and the launch template's market type capacity-block go together.", nodegroupName=name
        )
    if capacity == "CAPACITY_BLOCK" and (given.get("instanceTypes") or not template.get("InstanceType")):
        raise bad_parameter(
            "With the capacity type CAPACITY_BLOCK the instance type is specified in the launch template.", nodegroupName=name
        )
    if template.get("SubnetId") or any(each.get("SubnetId") for each in template.get("NetworkInterfaces") or []):
        raise bad_parameter("Launch template should not specify a subnet.", nodegroupName=name)


def check_scaling(scaling: Params | None) -> None:
    """Minimum, wanted and maximum size in order."""
    if scaling is None:
        return
    least, most, wanted = scaling.get("minSize", 0), scaling.get("maxSize", 1), scaling.get("desiredSize", 0)
    if most < 1 or not least <= most:
        raise bad_parameter(f"Minimum capacity {least} can't be greater than maximum size {most}, which is at least 1.")
    if not least <= wanted <= most:
        raise bad_parameter(f"Desired capacity {wanted} must be between the minimum {least} and the maximum {most}.")


def instance_types(given: Params, template: Params) -> list[str]:
    """The instance types of a node group; t3.medium where none is named."""
    return given.get("instanceTypes") or ([template["InstanceType"]] if template.get("InstanceType") else ["t3.medium"])
