"""Security group rules as sets of single permissions, so that AWS's grouping of them does not matter."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from local.plugins.aws.row import Described


@dataclass(frozen=True, order=True, slots=True)
class Permission:
    """One protocol and port range from (or to) one source."""

    protocol: str
    from_port: int
    to_port: int
    kind: str
    """Pulumi's field for the source: cidrBlocks, ipv6CidrBlocks, prefixListIds or securityGroups."""
    source: str
    description: str = ""


_SOURCES = {
    "cidrBlocks": ("IpRanges", "CidrIp"),
    "ipv6CidrBlocks": ("Ipv6Ranges", "CidrIpv6"),
    "prefixListIds": ("PrefixListIds", "PrefixListId"),
    "securityGroups": ("UserIdGroupPairs", "GroupId"),
}


def of_block(block: Mapping[str, Any], group_id: str) -> set[Permission]:
    """Permissions that a declared block means; `self` is the group's own id."""
    protocol = _protocol(block["protocol"])
    ports = (0, 0) if protocol == "-1" else (block["fromPort"], block["toPort"])
    sources = [(kind, source) for kind in _SOURCES for source in block.get(kind) or ()]
    if block.get("self"):
        sources.append(("securityGroups", group_id))
    return {Permission(protocol, *ports, kind, source, block.get("description") or "") for kind, source in sources}


def of_aws(permissions: Iterable[Described]) -> set[Permission]:
    """Permissions in a described group's IpPermissions."""
    found = set()
    for entry in permissions:
        protocol = entry["IpProtocol"]
        ports = (0, 0) if protocol == "-1" else (entry.get("FromPort", 0), entry.get("ToPort", 0))
        for kind, (ranges, field) in _SOURCES.items():
            for source in entry.get(ranges) or ():
                found.add(Permission(protocol, *ports, kind, source[field], source.get("Description") or ""))
    return found


def to_aws(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """The IpPermissions parameter that means the same."""
    entries = []
    for one in sorted(permissions):
        ranges, field = _SOURCES[one.kind]
        source = {field: one.source} | ({"Description": one.description} if one.description else {})
        entry: dict[str, Any] = {"IpProtocol": one.protocol, ranges: [source]}
        if one.protocol != "-1":
            entry |= {"FromPort": one.from_port, "ToPort": one.to_port}
        entries.append(entry)
    return entries


def to_blocks(live: set[Permission], declared: Iterable[Mapping[str, Any]], group_id: str) -> list[dict[str, Any]]:
    """Blocks in the program's own grouping where that still holds; whatever else is there, one block a port range."""
    left, blocks = set(live), []
    for block in declared:
        meant = of_block(block, group_id)
        if meant and meant <= left:
            blocks.append(dict(block))
            left -= meant
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in sorted(left):
        key = (one.protocol, one.from_port, one.to_port, one.description)
        block = groups.setdefault(key, {"protocol": one.protocol, "fromPort": one.from_port, "toPort": one.to_port})
        if one.description:
            block["description"] = one.description
        if one.kind == "securityGroups" and one.source == group_id:
            block["self"] = True
        else:
            block.setdefault(one.kind, []).append(one.source)
    return blocks + list(groups.values())


def _protocol(name: str) -> str:
    return "-1" if name == "all" else str(name).lower()
