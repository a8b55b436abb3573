"""Volumes by the CSI drivers: who may mount them, and with which options."""

import re
from collections.abc import Mapping

from guardrails.csi import EBS_DRIVERS, EFS_DRIVER
from guardrails.facts import instance_types
from guardrails.lustre import LUSTRE_DRIVER
from guardrails.node import Node
from guardrails.placing import named_types
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import DAEMON_SET, PERSISTENT_VOLUME, POD, STORAGE_CLASS, VOLUME_CLAIM
from guardrails.volume import MANY, claims_of, class_name, efs_parts, maker_of

_OF_WINDOWS = r"(?:dir_mode|file_mode|uid|gid|username|domain|vers=[123]\.\d?0?)(?:=.*)?|mfsymlinks|forceuid|forcegid|nobrl"
_FOREIGN: Mapping[str, tuple[re.Pattern[str], str]] = {
    EFS_DRIVER: (re.compile(rf"{_OF_WINDOWS}|flock|localflock"), "an option of NFS 4.1: SMB and Lustre have this one, and the mount fails"),
    LUSTRE_DRIVER: (
        re.compile(rf"{_OF_WINDOWS}|nfsvers=.*|vers=.*|[rw]size=.*|timeo=.*|retrans=.*|noresvport|tls|iam|hard|accesspoint=.*"),
        "an option of Lustre, such as flock: NFS and SMB have this one, and the mount fails",
    ),
}
"""Driver -> options that its file system has not, and what is allowed."""
_SYSTEM = re.compile(r"fs-[0-9a-f]{8,40}")
_POINT = re.compile(r"fsap-[0-9a-f]{8,40}")
_HANDLES = "fs-..., fs-...:/folder, fs-...::fsap-... or fs-...:/folder:fsap-..., with efs: or s3files: before it or without"
_READ_ONLY = "ReadOnlyMany"
_SHARED = frozenset({MANY, _READ_ONLY})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_TRUTHS = _FALSE | {"1", "t", "T", "TRUE", "true", "True"}


def _mounts(program: Program, report: Report) -> None:
    for storage in program.of(STORAGE_CLASS):
        with report.part():
            _options(storage, storage.at("provisioner").text(), storage.at("mountOptions"), report)
    for volume in program.of(PERSISTENT_VOLUME):
        with report.part():
            _volume(volume, report)
    for claim in program.of(VOLUME_CLAIM):
        with report.part():
            _claim(program, claim, report)
    for resource in program.of(*sorted(POD_TYPES - {DAEMON_SET})):
        for template in pod_templates(resource):
            with report.part():
                _disks(program, resource, template, report)


def _options(resource: Resource, driver: str, place: Node, report: Report) -> None:
    if driver not in _FOREIGN:
        return
    foreign, allowed = _FOREIGN[driver]
    for option in place.elements():
        with report.part():
            if foreign.fullmatch(option.text()):
                report.refuse(resource, option, allowed=allowed)


def _volume(volume: Resource, report: Report) -> None:
    source, options = volume.at("spec", "csi"), volume.at("spec", "mountOptions")
    driver = source.at("driver").text()
    with report.part():
        _options(volume, driver, options, report)
    if driver != EFS_DRIVER:
        return
    # Ids that other resources give out are as AWS makes them; what is written by hand alone is certain to be wrong.
    if not volume.sources.get("spec"):
        with report.part():
            _handle(volume, source.at("volumeHandle"), options, report)
    with report.part():
        _encrypted(volume, source, options, report)
    with report.part():
        # The kubelet asks for the first alone.
        for mode in list(volume.at("spec", "accessModes").elements())[:1]:
            if mode.text() == _READ_ONLY:
                report.refuse(volume, mode, allowed="ReadWriteMany, with readOnly in the pod: the driver of EFS mounts for no other")


def _handle(volume: Resource, place: Node, options: Node, report: Report) -> None:
    kind, parts = efs_parts(place.text())
    system, folder, point = (*parts, "", "", "")[:3]
    if len(parts) > 3 or not _SYSTEM.fullmatch(system) or (point and not _POINT.fullmatch(point)):
        report.refuse(volume, place, allowed=f"{_HANDLES}; the driver of EFS mounts no other")
    elif _POINT.fullmatch(folder):
        meant = f"{kind}:{system}::{folder}" if kind else f"{system}::{folder}"
        # A folder may have any name.
        report.advise(volume, place, allowed=f"{meant}: after one colon it is a folder of the file system, not an access point")
    elif point:
        _one_point(volume, point, options, report)


def _one_point(volume: Resource, point: str, options: Node, report: Report) -> None:
    for option in options.elements():
        with report.part():
            name, _, value = option.text().lower().partition("=")
            if name == "accesspoint" and value != point:
                report.refuse(volume, option, allowed=f"unset, or {point}, the access point of the volumeHandle: the driver refuses two")


def _encrypted(volume: Resource, source: Node, options: Node, report: Report) -> None:
    for name, value in source.at("volumeAttributes").entries():
        if name.lower() != "encryptintransit":
            continue
        if value.text() not in _TRUTHS:
            report.refuse(volume, value, allowed='"true" or "false"')
        elif value.text() in _FALSE and any(option.text().lower() == "tls" for option in options.elements()):
            report.refuse(
                volume, value, allowed='"true" or unset beside the mount option tls, or neither: the driver refuses the two together'
            )


def _claim(program: Program, claim: Resource, report: Report) -> None:
    """EBS has no file system that several nodes mount; as a block device some volumes are attached to several."""
    if not _is_disk(program, claim):
        return
    for mode in claim.at("spec", "accessModes").elements():
        if mode.text() in _SHARED:
            allowed = "ReadWriteOnce, or a class of Lustre or EFS: a file system on EBS is mounted on one node"
            report.refuse(claim, mode, allowed=allowed)


def _is_disk(program: Program, claim: Resource) -> bool:
    """Whether a claim gets a file system on EBS."""
    if not class_name(claim).text() or claim.at("spec", "volumeMode").text() == "Block":
        return False
    maker = maker_of(program, claim)
    return maker is not None and maker.at("provisioner").text() in EBS_DRIVERS


def _disks(program: Program, resource: Resource, template: PodTemplate, report: Report) -> None:
    """Pods of one template that mount the same disk are to find room on one node."""
    if template.replicas < 2:
        return
    alone = _fills_a_node(template)
    for volume, claim in claims_of(program, resource, template):
        if not _is_disk(program, claim):
            continue
        place = volume.at("persistentVolumeClaim", "claimName")
        allowed = "a claim on Lustre or EFS: a volume of EBS is attached to one node, and the other pods wait for it"
        found = f"{place.text()}, on EBS, in {template.replicas} pods"
        tell = report.refuse if alone else report.advise
        tell(resource, place, allowed=allowed if alone else f"{allowed}, unless all are on that node", found=found)


def _fills_a_node(template: PodTemplate) -> bool:
    """Whether no two of the pods are on one node: each has more than half of the accelerators of any type that it may run on."""
    types = [instance_types().get(name) for name in named_types(template)]
    return bool(types) and all(each is not None and 2 * template.requested(each.counted_as[0]) > each.count for each in types)


def _shared_claim(provisioner: str, mode: str) -> tuple[Example, ...]:
    spec = {"storageClassName": "shared", "accessModes": [mode], "resources": {"requests": {"storage": "100Gi"}}}
    return (
        Example(STORAGE_CLASS, {"metadata": {"name": "shared"}, "provisioner": provisioner}, name="shared"),
        Example(VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": spec}, name="data"),
        Example(POD, {"spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}}, name="trainer"),
    )


RULES = (
    StackRule(
        id="CSI08",
        name="volume-require-mount-of-its-kind",
        title="A volume is mounted by such a handle, by as many nodes, and with such options, as its driver and file system can",
        types=POD_TYPES | {STORAGE_CLASS, PERSISTENT_VOLUME, VOLUME_CLAIM},
        check=_mounts,
        why="the claim stays Pending, or pods of the gang wait in ContainerCreating while the others hold their nodes.",
        fix="share data by Lustre or EFS with ReadWriteMany, keep EBS for one pod, and use handles and options of that file system alone.",
        source="aws-ebs-csi-driver, access modes: kubernetes-sigs/aws-ebs-csi-driver#2178, #2176; aws-efs-csi-driver 3.4.1 node.go: "
        "kubernetes-sigs/aws-efs-csi-driver#147, #1614; mount.lustre(8), nfs(5)",
        valid=_shared_claim("ebs.csi.aws.com", "ReadWriteOnce"),
        invalid=_shared_claim("ebs.csi.aws.com", "ReadWriteMany"),
    ),
)
