"""Lustre: the shapes that FSx accepts, whether asked for directly or through a StorageClass."""

from guardrails.facts import lustre_throughput
from guardrails.node import Node
from guardrails.rule import Report, Resource, Rule
from guardrails.tokens import LUSTRE, STORAGE_CLASS

_LUSTRE_PROVISIONER = "fsx.csi.aws.com"
_TYPES = frozenset({LUSTRE, STORAGE_CLASS})
# The provider and the API both fall back to this type when none is given.
_DEFAULT_DEPLOYMENT = "SCRATCH_1"


def _shape(resource: Resource) -> Node | None:
    """Where the Lustre settings stand: the resource itself, or the parameters of a class of the FSx driver."""
    if resource.type == LUSTRE:
        return resource.properties
    return resource.at("parameters") if resource.at("provisioner").text() == _LUSTRE_PROVISIONER else None


def _throughput_on_scratch(resource: Resource, report: Report) -> None:
    shape = _shape(resource)
    if shape is None:
        return
    deployment = shape.at("deploymentType").text() or _DEFAULT_DEPLOYMENT
    throughput = shape.at("perUnitStorageThroughput")
    if deployment.startswith("SCRATCH_") and throughput.present:
        report.refuse(resource, throughput, allowed=f"unset, because deploymentType is {deployment}", found=throughput.raw)


def _throughput_off_its_set(resource: Resource, report: Report) -> None:
    shape = _shape(resource)
    if shape is None:
        return
    deployment = shape.at("deploymentType").text() or _DEFAULT_DEPLOYMENT
    storage = shape.at("storageType").text() or "SSD"
    throughput = shape.at("perUnitStorageThroughput")
    if storage == "INTELLIGENT_TIERING":
        if throughput.present:
            report.refuse(resource, throughput, allowed="unset, because storageType is INTELLIGENT_TIERING (it takes throughputCapacity)")
        return
    legal = lustre_throughput().get(f"{deployment}/{storage}")
    if legal is not None and throughput.integer() not in legal:
        numbers = ", ".join(str(number) for number in legal)
        report.refuse(resource, throughput, allowed=f"{numbers} MB/s per TiB for {deployment} on {storage}")


RULES = (
    Rule(
        id="FSX02",
        name="lustre-disallow-scratch-throughput",
        title="A scratch Lustre file system takes no throughput setting",
        types=_TYPES,
        check=_throughput_on_scratch,
        why="FSx refuses the file system with BadRequest after the rest is made; through the CSI driver the claim stays Pending.",
        fix="remove perUnitStorageThroughput, or choose PERSISTENT_2 with 125, 250, 500 or 1000.",
        source="botocore 1.44.8 fsx model; kubernetes-sigs/aws-fsx-csi-driver#287",
    ),
    Rule(
        id="FSX03",
        name="lustre-require-legal-throughput",
        title="A persistent Lustre file system needs a throughput of its type",
        types=_TYPES,
        check=_throughput_off_its_set,
        why="FSx refuses the file system when it is created, or the claim stays Pending; the provider checks one flat set for all types.",
        fix="set perUnitStorageThroughput to one of the values allowed for this deployment and storage type.",
        source="botocore 1.44.8 fsx model; aws/aws-cdk#18626",
    ),
)
