"""Volumes and the claims on them: which class, which claim, which file system is meant."""

import re
from collections.abc import Iterator

from guardrails.links import demand, indexed, named, targets
from guardrails.lustre import LUSTRE_DRIVER
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.template import PodTemplate
from guardrails.tokens import LUSTRE, PERSISTENT_VOLUME, STORAGE_CLASS, VOLUME_CLAIM
from guardrails.world import namespace

FILE_SYSTEM_ID = re.compile(r"(fs-[0-9a-f]{8,})(?![0-9A-Za-z])")
"""How a handle begins that names a file system, as the DNS name of one does."""
MANY = "ReadWriteMany"
"""The mode of a volume that pods on several nodes write to."""
_EFS_TYPES = ("efs", "s3files")
"""What the driver of EFS takes for the type of the file system where a handle begins with it."""
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def efs_parts(handle: str) -> tuple[str, list[str]]:
    """What a handle of the driver of EFS says: the type that it begins with, if any, and its parts: file system, folder, access point."""
    kind, *rest = parts = handle.split(":")
    return (kind, rest) if kind in _EFS_TYPES else ("", parts)


def class_name(resource: Resource) -> Node:
    """Where a volume or claim names its class: Kubernetes still reads the annotation of old first."""
    annotation = resource.at("metadata", "annotations", _CLASS_ANNOTATION)
    return annotation if annotation.present else resource.at("spec", "storageClassName")


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


def claims_of(program: Program, user: Resource, template: PodTemplate) -> Iterator[tuple[Node, Resource]]:
    """The volumes of a pod that are claims of the program, each with its claim. Raises `Undecided` as `claim_of` does."""
    for volume in template.spec.at("volumes").elements():
        claim = claim_of(program, user, volume.at("persistentVolumeClaim", "claimName").text())
        if claim is not None:
            yield volume, claim


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
    origins = origins_of(program, volume)
    if not origins and not volume.sources.get("spec"):
        for place in _id_places(volume):
            demand(place)
            if FILE_SYSTEM_ID.match(place.text()):
                break
    return origins


def origins_of(program: Program, volume: Resource) -> list[Resource]:
    """The Lustre file systems that the volume names by an id, which need not be all of its handle, or that its values come from."""
    for place in _id_places(volume):
        found = FILE_SYSTEM_ID.match(place.text()) if place.known else None
        if found:
            return targets(program, volume, "spec", LUSTRE, place=Node(found[1]))
    return [each for each in program.of(LUSTRE) if comes_from(volume, [each])]


def comes_from(volume: Resource, origins: list[Resource]) -> bool:
    """Whether the volume takes its values from one of the file systems, rather than naming it by its id."""
    return any(origin.urn in volume.sources.get("spec", ()) for origin in origins)


def _id_places(volume: Resource) -> list[Node]:
    """Where a volume may have the id of its file system: a handle is any text, and the driver mounts by the DNS name."""
    csi = volume.at("spec", "csi")
    attributes = csi.at("volumeAttributes")
    return [csi.at("volumeHandle"), attributes.at("dnsname") if attributes.known else attributes]
