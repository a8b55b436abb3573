"""Volumes by the CSI drivers: classes that make file systems, claims on them, and volumes of file systems that exist."""

import math
import re

from guardrails.facts import load
from guardrails.fsx import SHAPE_CHECKS
from guardrails.links import demand, indexed, named, targets
from guardrails.lustre import LUSTRE_DRIVER, Shape, capacity_grid, file_system, flag, grid_words, on_grid, storage_class
from guardrails.node import Node, shown
from guardrails.program import Program
from guardrails.quantity import gibibytes
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import ACCESS_POINT, LUSTRE, PERSISTENT_VOLUME, STORAGE_CLASS, VOLUME_CLAIM
from guardrails.world import namespace

EFS_DRIVER = "efs.csi.aws.com"
EBS_DRIVERS = frozenset({"ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "kubernetes.io/aws-ebs"})
"""The driver, that of EKS Auto Mode, and the name of old that Kubernetes hands over to the driver."""
_LATE = "WaitForFirstConsumer"
_CLASS = frozenset({STORAGE_CLASS})
_FILE_SYSTEM_ID = re.compile(r"(fs-[0-9a-f]{8,})(?![0-9A-Za-z])")
"""How a handle begins that names a file system, as the DNS name of one does."""
_EFS_TYPES = ("efs", "s3files")
"""What the driver of EFS takes for the type of the file system where a handle begins with it."""
_OCTAL = re.compile(r"[0-7]{3,4}")
_PROVISIONER_KEY = "csi.storage.k8s.io/"
_NUMBERS = ("perUnitStorageThroughput", "automaticBackupRetentionDays", "metadataIops")
_FLAGS = ("copyTagsToBackups", "efaEnabled")
_MANY = "ReadWriteMany"
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_LOSES = {
    "Delete": "with Delete the file system goes with the claim",
    "Recycle": "no volume of a CSI driver can be recycled, so it ends as Failed once its claim is gone",
}
"""What a reclaim policy makes of a volume that exists already."""


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
    own, names = storage.at("metadata", "name"), [volume.at("spec", "storageClassName") for volume in program.of(PERSISTENT_VOLUME)]
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
            name = claim.at("spec", "storageClassName").text()
            found = named(program, name, STORAGE_CLASS) if name else None
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


def _static_volumes(program: Program, report: Report) -> None:
    for volume in program.of(PERSISTENT_VOLUME):
        with report.part():
            if volume.at("spec", "csi", "driver").text() == LUSTRE_DRIVER:
                _static_volume(program, volume, report)
    for claim in program.of(VOLUME_CLAIM):
        with report.part():
            _static_claim(program, claim, report)
        with report.part():
            _made_instead(program, claim, report)


def _static_volume(program: Program, volume: Resource, report: Report) -> None:
    with report.part():
        _static_mount(volume, _origins(program, volume), report)
    with report.part():
        _static_rules(volume, report)
    with report.part():
        _mount_options(program, volume, report)


def _static_mount(volume: Resource, origins: list[Resource], report: Report) -> None:
    csi = volume.at("spec", "csi")
    with report.part():
        _handle(volume, csi.at("volumeHandle"), origins, report)
    for key in ("dnsname", "mountname"):
        with report.part():
            place = csi.at("volumeAttributes", key)
            if not _is_said(volume, place, origins) and not (key == "mountname" and _is_called_fsx(origins)):
                report.refuse(volume, place, allowed=f"the file system's {key}")
    with report.part():
        _mount_name(volume, csi.at("volumeAttributes", "mountname"), origins, report)


def _is_said(volume: Resource, place: Node, origins: list[Resource]) -> bool:
    """Whether there is a text, or will be once the file system is made; the driver takes an empty one for none."""
    return bool((not place.known and _comes_from(volume, origins)) or (place.present and place.text()))


def _is_called_fsx(origins: list[Resource]) -> bool:
    """Whether the file system has the mount name that the driver takes where it is told none."""
    return bool(origins) and all(file_system(origin).deployment == "SCRATCH_1" for origin in origins)


def _handle(volume: Resource, place: Node, origins: list[Resource], report: Report) -> None:
    if not place.known and _comes_from(volume, origins):
        return
    if not place.text():
        report.refuse(volume, place, allowed="the id of a file system, fs-...")
    elif not _comes_from(volume, origins) and not _FILE_SYSTEM_ID.match(place.text()):
        report.advise(volume, place, allowed="the id of a file system, fs-..., though the driver mounts by dnsname and mountname alone")


def _comes_from(volume: Resource, origins: list[Resource]) -> bool:
    """Whether the volume takes its values from one of the file systems, rather than naming it by its id."""
    return any(origin.urn in volume.sources.get("spec", ()) for origin in origins)


def _mount_name(volume: Resource, place: Node, origins: list[Resource], report: Report) -> None:
    if not place.known and _comes_from(volume, origins):
        return
    if place.text() != "fsx":
        return
    for origin in origins:
        deployment = file_system(origin).deployment
        if deployment != "SCRATCH_1":
            allowed = f"the mountName of {origin.name}: only SCRATCH_1 is called fsx, and this is {deployment}"
            report.refuse(volume, place, allowed=allowed)


def _static_rules(volume: Resource, report: Report) -> None:
    modes = volume.at("spec", "accessModes")
    first = next(modes.elements(), None)
    if first is None or first.text() != _MANY:
        report.refuse(volume, modes, allowed=f"{_MANY} as the first: kubelet tells the driver no other")
    policy = volume.at("spec", "persistentVolumeReclaimPolicy")
    if policy.present and policy.text() != "Retain":
        why = _LOSES.get(policy.text())
        report.refuse(volume, policy, allowed=f"Retain: {why}" if why else "Retain")


def _mount_options(program: Program, volume: Resource, report: Report) -> None:
    """Options of a class reach only the volumes that the class makes; one that makes some may be meant for those alone."""
    options = volume.at("spec", "mountOptions")
    if options.present and options.value != []:
        return
    with_options = [
        each
        for each in program.of(STORAGE_CLASS)
        if each.at("provisioner").text() == LUSTRE_DRIVER and list(each.at("mountOptions").elements())
    ]
    if not with_options:
        return
    names = _class_names(program, volume)
    linked = next((each for each in with_options if each.at("metadata", "name").text() in names), None)
    told = report.refuse if linked or not any(_makes_volumes(program, each) for each in with_options) else report.advise
    name = (linked or with_options[0]).name
    told(volume, options, allowed=f"the options themselves: those of class {name} do not reach a volume that exists already")


def _makes_volumes(program: Program, storage: Resource) -> bool:
    """Whether a claim of the program has the class make its volume."""
    name = storage.at("metadata", "name").text()
    claims = (claim.at("spec") for claim in program.of(VOLUME_CLAIM))
    return any(spec.at("storageClassName").text() == name and not spec.at("volumeName").text() for spec in claims)


def _class_names(program: Program, volume: Resource) -> set[str]:
    """The classes that the volume and the claims on it name."""
    bound = [claim for claim in program.of(VOLUME_CLAIM) if volume_of(program, claim) is volume]
    return {class_name(each).text() for each in (volume, *bound)} - {""}


def class_name(resource: Resource) -> Node:
    """Where a volume or claim names its class: Kubernetes still reads the annotation of old first."""
    annotation = resource.at("metadata", "annotations", _CLASS_ANNOTATION)
    return annotation if annotation.present else resource.at("spec", "storageClassName")


def _static_claim(program: Program, claim: Resource, report: Report) -> None:
    volume = _named_volume(program, claim)
    if volume is None or volume.at("spec", "csi", "driver").text() != LUSTRE_DRIVER:
        return
    with report.part():
        _one_class(program, claim, volume, report)
    modes = claim.at("spec", "accessModes")
    if _MANY not in [mode.text() for mode in modes.elements()]:
        report.refuse(claim, modes, allowed=_MANY)


def _named_volume(program: Program, claim: Resource) -> Resource | None:
    name = claim.at("spec", "volumeName")
    return volume_of(program, claim) if not name.known or name.text() else None


def _one_class(program: Program, claim: Resource, volume: Resource, report: Report) -> None:
    """Kubernetes binds a claim to the volume it names where both are of one class, which need not exist."""
    # A volume that names its claim is bound to that one whatever their classes are.
    if volume.at("spec", "claimRef").present:
        return
    wanted, own = class_name(claim), class_name(volume).text()
    got = wanted.text() if wanted.present else _default_class(program)
    if got != own:
        found = wanted.raw if wanted.present else "unset (the default class is written in)"
        report.refuse(claim, wanted, allowed=f"{shown(own)}, the class of {volume.name}, or the two are never bound", found=found)


def _default_class(program: Program) -> str | None:
    """The class that claims without one get, where the program makes it."""
    for storage in program.of(STORAGE_CLASS):
        if storage.at("metadata", "annotations", _DEFAULT_ANNOTATION).text() == "true":
            return storage.at("metadata", "name").text()
    return None


def _made_instead(program: Program, claim: Resource, report: Report) -> None:
    """A claim that names no volume may have its class make one before the volume that exists is there."""
    name, place = class_name(claim).text(), claim.at("spec", "volumeName")
    if not name or not place.known or place.text():
        return
    meant = next((volume for volume in program.of(PERSISTENT_VOLUME) if _is_meant(program, volume, claim)), None)
    maker = named(program, name, STORAGE_CLASS) if meant is not None else None
    if meant is not None and maker is not None and maker.at("provisioner").text() == LUSTRE_DRIVER:
        allowed = f"the name of {meant.name}: class {name} may make the claim a file system of its own else"
        report.refuse(claim, place, allowed=allowed)


def _is_meant(program: Program, volume: Resource, claim: Resource) -> bool:
    """Whether a claim that names no volume is the one for this: the volume names it, or has its class and no other claim."""
    if volume.at("spec", "csi", "driver").text() != LUSTRE_DRIVER:
        return False
    reserved = volume.at("spec", "claimRef")
    if reserved.present:
        home = reserved.at("namespace").text() or "default"
        return (reserved.at("name").text(), home) == (claim.at("metadata", "name").text(), namespace(claim))
    if class_name(volume).text() != class_name(claim).text():
        return False
    return not any(_named_volume(program, other) is volume for other in program.of(VOLUME_CLAIM))


def maker_of(program: Program, claim: Resource) -> Resource | None:
    """The class by which a claim gets its volume, where it names one of the program."""
    name = class_name(claim).text()
    return named(program, name, STORAGE_CLASS) if name else None


def claim_of(program: Program, user: Resource, name: str) -> Resource | None:
    """The claim that pods of `user` mount by its name. Raises `Undecided` where one with an unknown name might be it."""
    known, unknown = indexed(program, VOLUME_CLAIM, "metadata", "name")
    found = next((each for each in known.get(name, ()) if name and namespace(each) == namespace(user)), None)
    if name and found is None and unknown is not None:
        demand(unknown)
    return found


def volume_of(program: Program, claim: Resource) -> Resource | None:
    """The volume that a claim names."""
    found = program.source(claim, "spec", PERSISTENT_VOLUME)
    if found is not None:
        return found
    name = claim.at("spec", "volumeName")
    for volume in program.of(PERSISTENT_VOLUME):
        own = volume.at("metadata", "name")
        if name.present and own.present and name.text() == own.text():
            return volume
    return None


def lustre_of(program: Program, volume: Resource) -> list[Resource]:
    """The Lustre file systems that a volume is of: by a literal id, or by where its values come from.

    Raises:
        Undecided: it is of one, and neither says which.
    """
    if volume.at("spec", "csi", "driver").text() != LUSTRE_DRIVER:
        return []
    origins = _origins(program, volume)
    if not origins and not volume.sources.get("spec"):
        for place in _id_places(volume):
            demand(place)
            if _FILE_SYSTEM_ID.match(place.text()):
                break
    return origins


def _origins(program: Program, volume: Resource) -> list[Resource]:
    """The Lustre file systems that the volume names by an id, which need not be all of its handle, or that its values come from."""
    for place in _id_places(volume):
        found = _FILE_SYSTEM_ID.match(place.text()) if place.known else None
        if found:
            return targets(program, volume, "spec", LUSTRE, place=Node(found[1]))
    return [each for each in program.of(LUSTRE) if _comes_from(volume, [each])]


def _id_places(volume: Resource) -> list[Node]:
    """Where a volume may have the id of its file system: a handle is any text, and the driver mounts by the DNS name."""
    csi = volume.at("spec", "csi")
    attributes = csi.at("volumeAttributes")
    return [csi.at("volumeHandle"), attributes.at("dnsname") if attributes.known else attributes]


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
                for volume in template.spec.at("volumes").elements():
                    name = volume.at("persistentVolumeClaim", "claimName").text()
                    claim = claim_of(program, resource, name)
                    if claim is not None:
                        _user_of(program, resource, template, volume, claim, report)


def _user_of(program: Program, resource: Resource, template: PodTemplate, volume: Node, claim: Resource, report: Report) -> None:
    name = claim.at("spec", "storageClassName").text()
    maker = named(program, name, STORAGE_CLASS) if name else None
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
        # File system, folder and access point in one text, of which the last two may be missing: fs-...:/folder:fsap-...
        kind, *parts = handle.text().split(":")
        point = Node(":".join(parts[2:] if kind in _EFS_TYPES else parts[1:]))
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
    spec = {"storageClassName": "shared", "accessModes": [_MANY], "resources": {"requests": {"storage": size}}}
    return Example(VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": spec}, name="data")


def _volume(mount_name: str) -> Example:
    spec = {
        "accessModes": [_MANY],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "csi": {
            "driver": LUSTRE_DRIVER,
            "volumeHandle": "fs-0123456789abcdef0",
            "volumeAttributes": {"dnsname": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com", "mountname": mount_name},
        },
    }
    return Example(PERSISTENT_VOLUME, {"metadata": {"name": "data"}, "spec": spec}, name="data", sources={"spec": ["files"]})


_FILES = Example(LUSTRE, {"deploymentType": "PERSISTENT_2", "perUnitStorageThroughput": 250, "storageCapacity": 1200}, name="files")
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
    StackRule(
        id="CSI04",
        name="volume-require-static-lustre",
        title="A volume of an existing Lustre file system names it fully and keeps it",
        check=_static_volumes,
        types=frozenset({PERSISTENT_VOLUME, VOLUME_CLAIM, STORAGE_CLASS, LUSTRE}),
        why="the claim stays Pending or gets another file system, the mount fails in the pod, or the file system goes with the claim; "
        "options on a class do not reach the volume.",
        fix="take volumeHandle, dnsname and mountname from the file system, with ReadWriteMany and Retain, and have the claim name the "
        'volume and its storageClassName, such as "".',
        source="aws-fsx-csi-driver 1.9.0, static provisioning, node.go and controller.go; kubernetes csi_mounter.go, pv_controller.go and "
        "pv_helpers.go; kubernetes-sigs/aws-fsx-csi-driver#127",
        valid=(_FILES, _volume("fndzdbev")),
        invalid=(_FILES, _volume("fsx")),
    ),
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
