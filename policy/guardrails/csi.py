"""Volumes by the CSI drivers: classes that make file systems and disks, claims on them, and pods on access points."""

import math
import re

from guardrails import csi_static
from guardrails.facts import load
from guardrails.fsx import SHAPE_CHECKS
from guardrails.links import demand, targets
from guardrails.lustre import LUSTRE_DRIVER, Shape, capacity_grid, flag, grid_words, on_grid, storage_class
from guardrails.node import Node
from guardrails.program import Program
from guardrails.quantity import gibibytes
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import ACCESS_POINT, PERSISTENT_VOLUME, STORAGE_CLASS, VOLUME_CLAIM
from guardrails.volume import MANY, claims_of, class_name, efs_parts, maker_of, volume_of

EFS_DRIVER = "efs.csi.aws.com"
EBS_DRIVERS = frozenset({"ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "kubernetes.io/aws-ebs"})
"""The driver, that of EKS Auto Mode, and the name of old that Kubernetes hands over to the driver."""
_LATE = "WaitForFirstConsumer"
_CLASS = frozenset({STORAGE_CLASS})
_OCTAL = re.compile(r"[0-7]{3,4}")
_PROVISIONER_KEY = "csi.storage.k8s.io/"
_NUMBERS = ("perUnitStorageThroughput", "automaticBackupRetentionDays", "metadataIops")
_FLAGS = ("copyTagsToBackups", "efaEnabled")


def _class_shape(resource: Resource, report: Report) -> None:
    shape = storage_class(resource)
    if shape is None:
        return
    for check in SHAPE_CHECKS:
        with report.part():
            check(shape, report)
    for key in _NUMBERS:
        with report.part():
            if shape.at(key).present and shape.at(key).integer() is None:
                report.refuse(resource, shape.at(key), allowed="a whole number, as text")
    for key in _FLAGS:
        with report.part():
            if shape.at(key).present and flag(shape.at(key)) is None:
                report.refuse(resource, shape.at(key), allowed="true or false, as text")
    with report.part():
        for name, place in shape.settings.entries():
            if place.known and place.present and not isinstance(place.raw, str):
                report.refuse(resource, place, allowed=f'text: {name}: "..."', found=f"{place.text()}, which is no text")


def _class_keys(resource: Resource, report: Report) -> None:
    driver = resource.at("provisioner").text()
    known = {LUSTRE_DRIVER: load("lustre"), EFS_DRIVER: load("efs")}.get(driver)
    if known is None:
        return
    keys = known["csiParameters"]
    for key, place in resource.at("parameters").entries():
        if key in keys or key.startswith(_PROVISIONER_KEY):
            continue
        meant = next((name for name in keys if name.lower() == key.lower()), None)
        allowed = meant or ", ".join(keys)
        if key.lower() in (name.lower() for name in known.get("csiSecrets", ())):
            allowed = f"a secret with it, named by {_PROVISIONER_KEY}provisioner-secret-name and -namespace"
        report.refuse(resource, place, allowed=allowed, found=f"a parameter that {driver} does not read")


def _efs_classes(program: Program, report: Report) -> None:
    for storage in program.of(STORAGE_CLASS):
        with report.part():
            if storage.at("provisioner").text() != EFS_DRIVER:
                continue
            if storage.at("parameters").value:
                _efs_class(storage, report)
            elif program.whole and not _has_volume(program, storage):
                # It makes no volume, and is only the name by which claims and volumes that exist find each other.
                allowed = "provisioningMode and the like, unless volumes that exist already are of the class"
                report.advise(storage, storage.at("parameters"), allowed=allowed)


def _has_volume(program: Program, storage: Resource) -> bool:
    """Whether a volume of the program names the class."""
    own, names = storage.at("metadata", "name"), [class_name(volume) for volume in program.of(PERSISTENT_VOLUME)]
    if any(storage.urn and storage.urn in volume.sources.get("spec", ()) for volume in program.of(PERSISTENT_VOLUME)):
        return True
    if own.present and own.known and any(name.known and name.text() == own.text() for name in names):
        return True
    for name in names:
        demand(name)
        demand(own)
    return False


def _efs_class(resource: Resource, report: Report) -> None:
    settings = resource.at("parameters")
    with report.part():
        modes = load("efs")["provisioningModes"]
        mode = settings.at("provisioningMode")
        if mode.text() not in modes:
            report.refuse(resource, mode, allowed=" or ".join(modes))
    with report.part():
        names = ("fileSystemId", "fileSystemIdConfigRef", "fileSystemIdSecretRef")
        given = [name for name in names if settings.at(name).present]
        if len(given) != 1:
            found = ", ".join(given) or "none of them"
            report.refuse(resource, settings.at("fileSystemId"), allowed=f"exactly one of {', '.join(names)}", found=found)
    with report.part():
        _gid_range(resource, settings, report)
    with report.part():
        permissions = settings.at("directoryPerms")
        # The driver sends what is not there as an empty text, which EFS refuses.
        if not _OCTAL.fullmatch(permissions.text()):
            report.refuse(resource, permissions, allowed='3 or 4 octal digits, such as "0750"')
    for key in ("uid", "gid"):
        with report.part():
            number, most = settings.at(key).integer(), load("efs")["identityMost"]
            if settings.at(key).present and (number is None or not 0 <= number <= most):
                report.refuse(resource, settings.at(key), allowed=f"0 to {most}, as text")


def _gid_range(resource: Resource, settings: Node, report: Report) -> None:
    start, end = settings.at("gidRangeStart"), settings.at("gidRangeEnd")
    if start.present != end.present:
        missing = end if start.present else start
        report.refuse(resource, missing, allowed="gidRangeStart and gidRangeEnd together, or neither")
        return
    if not start.present:
        return
    low, high = start.integer(), end.integer()
    if low is None or low <= 0:
        report.refuse(resource, start, allowed="above 0")
    elif high is None or high <= low:
        report.refuse(resource, end, allowed=f"above gidRangeStart, which is {low}")


def _claim_rounding(program: Program, report: Report) -> None:
    for claim in program.of(VOLUME_CLAIM):
        with report.part():
            found = maker_of(program, claim)
            shape = storage_class(found) if found else None
            if shape is not None and not claim.at("spec", "volumeName").text():
                _rounded(claim, shape, report)


def _rounded(claim: Resource, shape: Shape, report: Report) -> None:
    place = claim.at("spec", "resources", "requests", "storage")
    grid, size = capacity_grid(shape), gibibytes(place.text())
    if grid is None or size is None or (size == int(size) and on_grid(int(size), grid)):
        return
    multiple = grid["step"] * max(1, math.ceil(size / grid["step"]))
    made = min(step for step in (*grid["single"], multiple) if step >= size)
    allowed = f"{grid_words(grid)} GiB, since the driver makes {made} GiB of it and FSx bills {made} GiB"
    report.refuse(claim, place, allowed=allowed)


def _late_binding(resource: Resource, report: Report) -> None:
    mode = resource.at("volumeBindingMode")
    if resource.at("provisioner").text() in EBS_DRIVERS and mode.text() != _LATE and not _is_of_one_zone(resource):
        found = mode.raw if mode.present else "unset, so Immediate"
        report.refuse(resource, mode, allowed=f"{_LATE}: a volume of EBS is in one zone, which the pod's node decides", found=found)


def _is_of_one_zone(resource: Resource) -> bool:
    """Whether the class itself says where its volumes are made, in a single zone."""
    terms = [
        expression for term in resource.at("allowedTopologies").elements() for expression in term.at("matchLabelExpressions").elements()
    ]
    zones = [value.text() for expression in terms if "zone" in expression.at("key").text() for value in expression.at("values").elements()]
    return len(set(zones)) == 1


def _access_point_users(program: Program, report: Report) -> None:
    for resource in program.of(*sorted(POD_TYPES)):
        with report.part():
            for template in pod_templates(resource):
                for volume, claim in claims_of(program, resource, template):
                    _user_of(program, resource, template, volume, claim, report)


def _user_of(program: Program, resource: Resource, template: PodTemplate, volume: Node, claim: Resource, report: Report) -> None:
    maker = maker_of(program, claim)
    if maker is not None and maker.at("provisioner").text() == EFS_DRIVER:
        for container in template.spec.at("initContainers").elements():
            place = _chown(container, volume.at("name").text())
            if place is not None:
                allowed = "no chown: the access point gives every file its own owner and refuses another"
                report.refuse(resource, place, allowed=allowed)
        return
    backing = volume_of(program, claim)
    point = _point_of(program, backing) if backing is not None else None
    if point is None:
        return
    owner = point.at("posixUser", "uid").integer()
    place = template.spec.at("securityContext", "runAsUser")
    if owner is not None and place.present and place.integer() != owner:
        report.refuse(resource, place, allowed=f"{owner}, which access point {point.name} acts as whoever asks")


def _chown(container: Node, volume: str) -> Node | None:
    """Where a container that mounts the volume says that it changes owners."""
    mounted = any(mount.at("name").text() == volume for mount in container.at("volumeMounts").elements())
    for place in (container.at("command"), container.at("args")) if mounted else ():
        if any(re.search(r"(?<![a-z])chown(?![a-z])", word.text()) for word in place.elements()):
            return place
    return None


def _point_of(program: Program, volume: Resource) -> Resource | None:
    if volume.at("spec", "csi", "driver").text() != EFS_DRIVER:
        return None
    point = handle = volume.at("spec", "csi", "volumeHandle")
    if not volume.sources.get("spec"):
        demand(handle)
    if handle.known:
        kind, parts = efs_parts(handle.text())
        point = Node(":".join(parts[2:]))
        # An access point of S3 Files is another thing, which says nothing of owners here.
        if kind == "s3files" or not point.raw:
            return None
    points = targets(program, volume, "spec", ACCESS_POINT, place=point)
    return points[0] if points else None


def _class(driver: str, **parameters: str) -> tuple[Example, ...]:
    return (Example(STORAGE_CLASS, {"metadata": {"name": "shared"}, "provisioner": driver, "parameters": parameters}, name="shared"),)


def _block(**options: str) -> tuple[Example, ...]:
    return (Example(STORAGE_CLASS, {"metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com", **options}, name="gp3"),)


def _claim(size: str) -> Example:
    spec = {"storageClassName": "shared", "accessModes": [MANY], "resources": {"requests": {"storage": size}}}
    return Example(VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": spec}, name="data")


_CHOWN = {"name": "own", "command": ["chown", "-R", "1000", "/data"], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}


def _pod(*init: dict) -> Example:
    spec = {
        "initContainers": list(init),
        "containers": [{"name": "trainer", "image": "registry.example/trainer:1"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    return Example("kubernetes:core/v1:Pod", {"metadata": {"name": "trainer"}, "spec": spec}, name="trainer")


_EFS = {"provisioningMode": "efs-ap", "fileSystemId": "fs-0123456789abcdef0", "directoryPerms": "0750"}

RULES = (
    Rule(
        id="CSI01",
        name="storage-class-require-legal-lustre",
        title="A class of the FSx driver asks for a file system that FSx makes",
        types=_CLASS,
        check=_class_shape,
        why="CreateVolume fails in a loop: the claim and every pod that mounts it stay Pending.",
        fix="write the parameters as for a file system of their own (rules FSX01 to FSX09), each as text.",
        source="aws-fsx-csi-driver 1.9.0 controller.go, cloud.go and dynamic provisioning; kubernetes-sigs/aws-fsx-csi-driver#287",
        valid=_class(LUSTRE_DRIVER, deploymentType="PERSISTENT_1", perUnitStorageThroughput="100"),
        invalid=_class(LUSTRE_DRIVER, deploymentType="SCRATCH_2", perUnitStorageThroughput="200"),
    ),
    Rule(
        id="CSI02",
        name="storage-class-disallow-unknown-parameter",
        title="A class has only parameters that its driver reads",
        types=_CLASS,
        check=_class_keys,
        why="the driver ignores the others without a word, and makes a file system of another kind than meant.",
        fix="spell the parameter as the driver does, or remove it.",
        source="aws-fsx-csi-driver 1.9.0 and aws-efs-csi-driver 3.4.1 controller.go",
        valid=_class(LUSTRE_DRIVER, deploymentType="SCRATCH_2"),
        invalid=_class(LUSTRE_DRIVER, deploymenttype="SCRATCH_2"),
    ),
    StackRule(
        id="CSI03",
        name="volume-claim-require-lustre-size",
        title="A claim on a Lustre class asks for a size that FSx has",
        check=_claim_rounding,
        types=frozenset({VOLUME_CLAIM, STORAGE_CLASS}),
        mandatory=False,
        early=True,
        why="the driver rounds up in silence, and the larger size is billed: 4800Gi on SCRATCH_1 becomes 7200 GiB.",
        fix="ask for the size that is made anyway, or for the one below it.",
        source="aws-fsx-csi-driver 1.9.0 util.go",
        valid=(*_class(LUSTRE_DRIVER, deploymentType="SCRATCH_1"), _claim("3600Gi")),
        invalid=(*_class(LUSTRE_DRIVER, deploymentType="SCRATCH_1"), _claim("4800Gi")),
    ),
    *csi_static.RULES,
    StackRule(
        id="CSI05",
        name="storage-class-require-legal-efs",
        title="A class of the EFS driver has the parameters that it needs, in pairs where they are pairs",
        types=_CLASS | {PERSISTENT_VOLUME},
        check=_efs_classes,
        early=True,
        why="CreateVolume fails with InvalidArgument: the claim and every pod that mounts it stay Pending.",
        fix="set provisioningMode efs-ap, one file system, directoryPerms, and gidRangeStart below gidRangeEnd or neither.",
        source="aws-efs-csi-driver 3.4.1 controller.go",
        valid=_class(EFS_DRIVER, **_EFS, gidRangeStart="1000", gidRangeEnd="9000"),
        invalid=_class(EFS_DRIVER, **_EFS, gidRangeStart="1000"),
    ),
    StackRule(
        id="CSI06",
        name="pod-require-access-point-user",
        title="A pod on an EFS access point is the user that the point acts as, and changes no owner",
        check=_access_point_users,
        types=POD_TYPES | {VOLUME_CLAIM, STORAGE_CLASS, PERSISTENT_VOLUME, ACCESS_POINT},
        mandatory=False,
        why="the access point replaces the pod's user, so chown and writes as another user fail with permission denied.",
        fix="run as the access point's uid, and remove the chown.",
        source="aws-efs-csi-driver 3.4.1, dynamic provisioning and node.go (parseVolumeId); EFS guide: access points",
        valid=(*_class(EFS_DRIVER, **_EFS), _claim("10Gi"), _pod()),
        invalid=(*_class(EFS_DRIVER, **_EFS), _claim("10Gi"), _pod(_CHOWN)),
    ),
    Rule(
        id="CSI07",
        name="storage-class-require-late-binding",
        title="A class of EBS waits for the pod before it makes the volume",
        types=_CLASS,
        check=_late_binding,
        why="the volume is made in a zone that the pod's pool does not have, and the pod stays Pending for ever.",
        fix="set volumeBindingMode to WaitForFirstConsumer.",
        source="Kubernetes: storage classes, volume binding mode; kubernetes-sigs/karpenter#2458",
        valid=_block(volumeBindingMode=_LATE),
        invalid=_block(),
    ),
)
