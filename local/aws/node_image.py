"""Amazon Linux 2023 node images that EKS publishes, as far as the platform can ask for them: names, ids, SSM parameters.

Source: EKS user guide, "Retrieve recommended Amazon Linux AMI IDs"; the parameter paths are those Karpenter 1.14 resolves an alias by.
"""

import hashlib
import json
from pathlib import Path

from infra.versions import AL2023_RELEASE
from local.aws.eks_versions import KUBERNETES_VERSIONS

# Amazon's account for EKS images.
OWNER = "602401143452"
VARIANTS = {"x86_64": ("standard", "nvidia", "neuron"), "arm64": ("standard", "nvidia")}


def images() -> dict[str, tuple[str, str]]:
    """Image name to (architecture, SSM parameter folder), for every Kubernetes version, architecture and variant."""
    return {
        f"amazon-eks-node-al2023-{architecture}-{variant}-{kubernetes}-v{AL2023_RELEASE}": (
            architecture,
            f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/{architecture}/{variant}",
        )
        for kubernetes in KUBERNETES_VERSIONS
        for architecture, variants in VARIANTS.items()
        for variant in variants
    }


def image_id(name: str) -> str:
    """The same id in every region and process, made from the image's name."""
    return f"ami-{hashlib.sha256(name.encode()).hexdigest()[:17]}"


def parameters() -> dict[str, str]:
    """SSM parameter name to image id: by release, and under `recommended`."""
    found = {}
    for name, (_, folder) in images().items():
        found[f"{folder}/{name}/image_id"] = image_id(name)
        found[f"{folder}/recommended/image_id"] = image_id(name)
    return found


def write_catalogue(file: Path) -> None:
    """Write the images in the form that moto loads in place of its own thousand (environment variable MOTO_AMIS_PATH)."""
    release = f"{AL2023_RELEASE[:4]}-{AL2023_RELEASE[4:6]}-{AL2023_RELEASE[6:]}T00:00:00.000Z"
    catalogue = [
        {
            "ami_id": image_id(name),
            "name": name,
            "description": f"EKS-optimized Kubernetes node based on Amazon Linux 2023 ({architecture})",
            "owner_id": OWNER,
            "public": True,
            "architecture": architecture,
            "virtualization_type": "hvm",
            "hypervisor": "xen",
            "root_device_type": "ebs",
            "root_device_name": "/dev/xvda",
            "creation_date": release,
        }
        for name, (architecture, _) in images().items()
    ]
    file.write_text(json.dumps(catalogue))
