"""Volumes of Lustre file systems that exist already, and the claims on them."""

from guardrails.links import named
from guardrails.lustre import LUSTRE_DRIVER, file_system
from guardrails.node import Node, shown
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import LUSTRE, PERSISTENT_VOLUME, STORAGE_CLASS, VOLUME_CLAIM
from guardrails.volume import FILE_SYSTEM_ID, MANY, class_name, comes_from, origins_of, volume_of
from guardrails.world import namespace

_DEFAULT_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_LOSES = {
    "Delete": "with Delete the file system goes with the claim",
    "Recycle": "no volume of a CSI driver can be recycled, so it ends as Failed once its claim is gone",
}
"""What a reclaim policy makes of a volume that exists already."""


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
        _static_mount(volume, origins_of(program, volume), report)
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
    return bool((not place.known and comes_from(volume, origins)) or (place.present and place.text()))


def _is_called_fsx(origins: list[Resource]) -> bool:
    """Whether the file system has the mount name that the driver takes where it is told none."""
    return bool(origins) and all(file_system(origin).deployment == "SCRATCH_1" for origin in origins)


def _handle(volume: Resource, place: Node, origins: list[Resource], report: Report) -> None:
    if not place.known and comes_from(volume, origins):
        return
    if not place.text():
        report.refuse(volume, place, allowed="the id of a file system, fs-...")
    elif not comes_from(volume, origins) and not FILE_SYSTEM_ID.match(place.text()):
        report.advise(volume, place, allowed="the id of a file system, fs-..., though the driver mounts by dnsname and mountname alone")


def _mount_name(volume: Resource, place: Node, origins: list[Resource], report: Report) -> None:
    if not place.known and comes_from(volume, origins):
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
    if first is None or first.text() != MANY:
        report.refuse(volume, modes, allowed=f"{MANY} as the first: kubelet tells the driver no other")
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
    claims = program.of(VOLUME_CLAIM)
    return any(class_name(claim).text() == name and not claim.at("spec", "volumeName").text() for claim in claims)


def _class_names(program: Program, volume: Resource) -> set[str]:
    """The classes that the volume and the claims on it name."""
    bound = [claim for claim in program.of(VOLUME_CLAIM) if volume_of(program, claim) is volume]
    return {class_name(each).text() for each in (volume, *bound)} - {""}


def _static_claim(program: Program, claim: Resource, report: Report) -> None:
    volume = _named_volume(program, claim)
    if volume is None or volume.at("spec", "csi", "driver").text() != LUSTRE_DRIVER:
        return
    with report.part():
        _one_class(program, claim, volume, report)
    modes = claim.at("spec", "accessModes")
    if MANY not in [mode.text() for mode in modes.elements()]:
        report.refuse(claim, modes, allowed=MANY)


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
    if got == own:
        return
    found = wanted.raw if wanted.present else "unset (the default class is written in)"
    # A cluster need not have a default class, and one that it has may be another program's.
    tell = report.advise if got is None else report.refuse
    tell(claim, wanted, allowed=f"{shown(own)}, the class of {volume.name}, or the two are never bound", found=found)


def _default_class(program: Program) -> str | None:
    """The class that claims without one get, where the program makes it."""
    for storage in program.of(STORAGE_CLASS):
        if storage.at("metadata", "annotations", _DEFAULT_ANNOTATION).text() == "true":
            return storage.at("metadata", "name").text()
    return None


def _made_instead(program: Program, claim: Resource, report: Report) -> None:
    """A claim that names no volume may have its class make one before the volume that exists is there."""
    name, place = class_name(claim).text(), claim.at("spec", "volumeName")
    # No driver makes a volume for a claim that selects one.
    if not name or not place.known or place.text() or claim.at("spec", "selector").present:
        return
    meant = next((volume for volume in program.of(PERSISTENT_VOLUME) if _is_meant(program, volume, claim)), None)
    maker = named(program, name, STORAGE_CLASS) if meant is not None else None
    if meant is not None and maker is not None and maker.at("provisioner").text() == LUSTRE_DRIVER:
        allowed = f"the name of {meant.name}: class {name} makes the claim a file system of its own where it is there first"
        # Which of the two is there first depends on what waits for what.
        report.advise(claim, place, allowed=allowed)


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


def _example(mount_name: str) -> Example:
    spec = {
        "accessModes": [MANY],
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

RULES = (
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
        valid=(_FILES, _example("fndzdbev")),
        invalid=(_FILES, _example("fsx")),
    ),
)
