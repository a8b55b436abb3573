"""EBS disks: encrypted, and of a size, IOPS and throughput that their type has."""

import math
from collections.abc import Mapping
from typing import Any

from guardrails.facts import load
from guardrails.lustre import flag
from guardrails.node import Node
from guardrails.quantity import gibibytes
from guardrails.rule import Report, Resource
from guardrails.tokens import NODE_CLASS, VOLUME


def disks(resource: Resource, report: Report) -> None:
    """SEC02: judge a volume, or the disks of a launch template or an EC2NodeClass."""
    if resource.type == VOLUME:
        _disk(resource, resource.properties, ("type", "size"), report)
        return
    place = resource.at("spec", "blockDeviceMappings") if resource.type == NODE_CLASS else resource.at("blockDeviceMappings")
    for mapping in place.elements():
        with report.part():
            if mapping.at("ebs").present:
                _disk(resource, mapping.at("ebs"), ("volumeType", "volumeSize"), report)


def _disk(resource: Resource, ebs: Node, keys: tuple[str, str], report: Report) -> None:
    kind, size = ebs.at(keys[0]), ebs.at(keys[1])
    with report.part():
        if flag(ebs.at("encrypted")) is not True:
            report.refuse(resource, ebs.at("encrypted"), allowed="true")
    with report.part():
        if not kind.present:
            return  # An image may say it.
        facts = load("security")["disks"].get(kind.text())
        if facts is not None:
            _of_kind(resource, ebs, size, {"name": kind.text(), **facts}, report)
        elif resource.type != NODE_CLASS:  # KUB01 says it of a class.
            report.refuse(resource, kind, allowed=", ".join(load("security")["disks"]))


def _of_kind(resource: Resource, ebs: Node, size: Node, kind: Mapping[str, Any], report: Report) -> None:
    for key in ("iops", "throughput"):
        with report.part():
            _rate(resource, ebs.at(key), key, kind, report)
    for check in (_size, _throughput, _ratio):
        with report.part():
            check(resource, ebs, size, kind, report)


def _rate(resource: Resource, place: Node, key: str, kind: Mapping[str, Any], report: Report) -> None:
    bounds, number, needed = kind.get(key), place.integer(), key in kind.get("needs", ())
    # The provider takes 0 for what a program doesn't say.
    if (number == 0 or not place.present) and not needed:
        return
    if bounds is None:
        report.refuse(resource, place, allowed=f"unset on {kind['name']}, which takes none")
        return
    least, most = bounds
    if number is None or not least <= number <= most:
        report.refuse(resource, place, allowed=f"{least} to {most} on {kind['name']}{', which has no default' if needed else ''}")


def _size(resource: Resource, _ebs: Node, size: Node, kind: Mapping[str, Any], report: Report) -> None:
    (least, most), gib = kind["gibibytes"], _gib(size)
    if gib is not None and gib > most:
        report.refuse(resource, size, allowed=f"at most {most} GiB on {kind['name']}")
    elif gib is not None and gib < least:
        report.refuse(resource, size, allowed=f"at least {least} GiB on {kind['name']}")


def _throughput(resource: Resource, ebs: Node, _size: Node, kind: Mapping[str, Any], report: Report) -> None:
    if "throughput" not in kind:
        return
    (least, most), given, moved = kind["iops"], _iops(ebs, kind), ebs.at("throughput").integer()
    if moved is None or moved > kind["throughput"][1] or not least <= given <= most:
        return  # That has been told.
    if moved > given * kind["throughputPerIops"]:
        needed = math.ceil(moved / kind["throughputPerIops"])
        allowed = f"at most {int(given * kind['throughputPerIops'])} with {given} IOPS; this takes {needed} IOPS"
        report.refuse(resource, ebs.at("throughput"), allowed=allowed)


def _ratio(resource: Resource, ebs: Node, size: Node, kind: Mapping[str, Any], report: Report) -> None:
    if "iops" not in kind:
        return
    (least, most), given = kind["iops"], _iops(ebs, kind)
    # Every disk may have the least, however small it is.
    if not least < given <= most:
        return
    gib = _gib(size)
    if gib is not None and given > gib * kind["iopsPerGibibyte"]:
        per = kind["iopsPerGibibyte"]
        report.refuse(resource, ebs.at("iops"), allowed=f"at most {max(least, int(gib * per))} on {gib:g} GiB: {per} for each GiB")


def _iops(ebs: Node, kind: Mapping[str, Any]) -> int:
    """The IOPS that a disk gets; 0 where it says something else than a number."""
    place = ebs.at("iops")
    number = place.integer() if place.present else 0
    return number or (kind["iops"][0] if number == 0 else 0)


def _gib(size: Node) -> float | None:
    """A class writes 200Gi, the others write GiB."""
    return gibibytes(size.text()) if isinstance(size.raw, str) and not size.text().isdigit() else size.integer()
