"""EC2NodeClasses: one pinned image, one identity, disks, and fields that the installed Karpenter knows."""

import re
from collections.abc import Iterable, Iterator

from guardrails import boot_script
from guardrails.chart import CHART_TYPES, charts, version
from guardrails.facts import load
from guardrails.launch import pools_with, user_data, user_data_of
from guardrails.node import Node
from guardrails.placing import users_of
from guardrails.program import Program
from guardrails.quantity import gibibytes
from guardrails.rule import Example, Report, Resource, Rule, StackRule
from guardrails.template import POD_TYPES
from guardrails.tokens import CLUSTER, LAUNCH_TEMPLATE, NODE_CLASS, NODE_POOL

_NODE_CLASS = frozenset({NODE_CLASS})
_ALIAS = re.compile(r"(al2|al2023|bottlerocket|windows2019|windows2022|windows2025)@(\S+)")
_FAMILIES = {"al2": "AL2", "al2023": "AL2023", "bottlerocket": "Bottlerocket"}
_MOST_TERMS = 30
_WILDCARD = re.compile(r"(?<!\\)[*?]")
# A date or a version that stands whole: what a wildcard beside it leaves open is the architecture or a commit.
_RELEASE = re.compile(r"(?<![0-9])20[0-9]{6}(?![0-9*?])|\bv[0-9]+\.[0-9]+\.[0-9]+(?![0-9*?])")
_MOVING = re.compile(r"/(?:[^/]*-)?(?:latest|recommended)(?=/|$)(?!.*:[0-9]+$)")
_PARAMETER = "ssmParameter"
_TERM_KEYS = {
    "amiSelectorTerms": ("id", "name", "tags", "alias", "ssmParameter", "owner"),
    "subnetSelectorTerms": ("id", "tags"),
    "securityGroupSelectorTerms": ("id", "name", "tags"),
}
_RESERVED_TAGS = frozenset({"eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass"})
_RESERVED_TAG_PREFIX = "kubernetes.io/cluster"
# What an instance reads of itself is under /latest at these addresses.
_METADATA = r"(?:169\.254\.169\.254|\[fd00:ec2::254\])(?::[0-9]+)?/"
_LATEST = re.compile(rf"https?://(?!{_METADATA})\S*(?:[/_-]latest(?:[/._-]|$|\b)|/(?:main|master|HEAD)/)\S*", re.IGNORECASE)
_SHELL = r"(?<![\w.-])(?:ba|da|k|z)?sh(?![\w.-])"
# A command up to what ends it or hands its output on; a mark in quotes or after a backslash ends nothing.
_COMMAND = r"""(?:"[^"\n]*"|'[^'\n]*'|\$\([^()\n]*\)|\\.|[^\n|;&)"'\\])*+"""
_PIPE = r"\|(?!\|)&?"
# What an instance reads of itself may well be run.
_DOWNLOAD = r"\b(?:curl|wget)\b(?![^\n|;]*(?:169\.254\.169\.254|fd00:ec2::254))"
_BEFORE = r"(?:sudo\s+(?:-u\s+[a-z]\S*\s+|-\S+\s+)*|(?:/\S*/)?env\s+(?:-\S+\s+)*|exec\s+|nohup\s+|xargs\s+(?:-\S+\s+)*|\w+=\S*\s+|\(\s*)*"
_DOWNLOADED = rf"""["']?(?:\$\(|`)\s*{_DOWNLOAD}"""
# A download that a shell runs: at the end of a pipe (the line may go on after a backslash), as a file or as a text.
_PIPED = re.compile(
    rf"{_DOWNLOAD}{_COMMAND}(?:{_PIPE}{_COMMAND}){{0,3}}{_PIPE}\s*{_BEFORE}(?:/\S*/)?{_SHELL}"
    rf"|(?:{_SHELL}(?:\s+-\S+)*|\bsource|(?:^|[\s;&])\.)\s+<\(\s*{_DOWNLOAD}"
    rf"|(?:{_SHELL}(?:\s+-\S+)*\s+(?:-\w*c|<<<)|\bsource\s+/dev/stdin\s+<<<|\beval)\s+{_DOWNLOADED}",
    re.DOTALL,
)
_MOST_USER_DATA = 16 * 1024
"""Bytes; EC2 takes no more."""
_CLOCKS = re.compile(r"nvidia-smi\b[^\n]*(?:\s-ac\b|\s-lgc\b|--applications-clocks|--lock-gpu-clocks)")
_EFA_WORD = re.compile(r"(?<![a-z0-9])efa(?![a-z0-9])", re.IGNORECASE)
_ROOT_DISK = "/dev/xvda"
_POD_DISKS = {"Bottlerocket": "/dev/xvdb", "AL2023": _ROOT_DISK, "AL2": _ROOT_DISK}
"""Family -> the device that holds images and what pods write."""
_DEFAULT_ROOT_GIB = 20


def _images(resource: Resource, report: Report) -> None:
    terms = resource.at("spec", "amiSelectorTerms")
    members = list(terms.elements())
    if not members:
        report.refuse(resource, terms, allowed="at least one term, such as alias al2023@v20261120", found="empty")
    aliased = any(term.at("alias").present for term in members)
    if aliased and len(members) > 1:
        report.refuse(resource, terms, allowed="an alias alone", found=f"{len(members)} terms, one of them an alias")
    if members and not aliased and not resource.at("spec", "amiFamily").present:
        report.refuse(resource, resource.at("spec", "amiFamily"), allowed="set, because no term is an alias")
    for term in members:
        with report.part():
            _image_term(resource, term, report)


def _image_term(resource: Resource, term: Node, report: Report) -> None:
    given = [key for key in _TERM_KEYS["amiSelectorTerms"] if term.at(key).present]
    if not set(given) - {"owner"}:
        report.refuse(resource, term, allowed="an id, alias, name, tags or ssmParameter", found="empty")
    for alone in ("id", "alias"):
        others = [key for key in given if key not in (alone, _PARAMETER)]
        if alone in given and others:
            report.refuse(resource, term, allowed=f"{alone} alone", found=f"{alone} beside {', '.join(others)}")
    _parameter(resource, term, given, report)
    if term.at("alias").present:
        _alias(resource, term.at("alias"), report)
    elif "id" not in given:
        _moving(resource, term, given, report)


def _moving(resource: Resource, term: Node, given: list[str], report: Report) -> None:
    """Of the images that a term is for Karpenter takes the newest, and a parameter is followed wherever it goes."""
    parameter, name = term.at(_PARAMETER), term.at("name")
    if _PARAMETER in given:
        if _MOVING.search(parameter.text()):
            report.refuse(resource, parameter, allowed="an image id, an alias with a release, or a parameter of one release")
    elif "name" in given:
        if _WILDCARD.search(name.text()) and not _RELEASE.search(name.text()):
            report.refuse(resource, name, allowed="the name of one release: Karpenter takes the newest image that the pattern matches")
    elif "tags" in given:
        report.advise(resource, term, allowed="an image id or name: Karpenter takes the newest image with these tags", found="tags alone")


def _parameter(resource: Resource, term: Node, given: list[str], report: Report) -> None:
    """Karpenter takes an id or alias before a parameter, and a parameter before the rest, and passes over the others in silence."""
    if _PARAMETER not in given:
        return
    first = next((key for key in ("id", "alias") if key in given), _PARAMETER)
    for ignored in [_PARAMETER] if first != _PARAMETER else given:
        if ignored != first:
            report.advise(resource, term.at(ignored), allowed=f"unset beside {first}: Karpenter ignores it there")


def _alias(resource: Resource, alias: Node, report: Report) -> None:
    matched = _ALIAS.fullmatch(alias.text())
    windows = matched is not None and matched[1].startswith("windows")
    if windows and matched[2] != "latest":
        report.refuse(resource, alias, allowed=f"{matched[1]}@latest: Karpenter takes no other release of a Windows family")
    elif not matched or (matched[2] == "latest" and not windows):
        report.refuse(resource, alias, allowed="family@version with a release, such as al2023@v20261120")
    elif matched[1] == "al2":
        report.refuse(resource, alias, allowed="al2023 or bottlerocket (Amazon Linux 2 ends with Kubernetes 1.32)")
    if matched:
        _family_of(resource, matched[1], alias, report)


def _family_of(resource: Resource, name: str, alias: Node, report: Report) -> None:
    family, wanted = resource.at("spec", "amiFamily"), _FAMILIES.get(name, name.capitalize())
    if family.present and family.text() not in (wanted, "Custom"):
        report.refuse(resource, family, allowed=f"{wanted}, Custom or unset beside alias {alias.text()}")


def _identity(resource: Resource, report: Report) -> None:
    spec = resource.at("spec")
    with report.part():
        role, profile = spec.at("role"), spec.at("instanceProfile")
        given = [place.raw not in (None, "") for place in (role, profile)]
        if all(given):
            given = [bool(place.text()) for place in (role, profile)]
        if given[0] == given[1]:
            found = "both role and instanceProfile" if given[0] else "without role and instanceProfile"
            report.refuse(resource, spec, allowed="exactly one of role and instanceProfile", found=found)
    for key in ("subnetSelectorTerms", "securityGroupSelectorTerms"):
        with report.part():
            _terms(resource, spec.at(key), key, report)
    with report.part():
        for tag, place in spec.at("tags").entries():
            if tag in _RESERVED_TAGS or tag.startswith(_RESERVED_TAG_PREFIX) or not tag:
                report.refuse(resource, place, allowed="a tag of your own: Karpenter sets this one", found=f"a tag {tag}")
    with report.part():
        _disks(resource, spec.at("blockDeviceMappings"), report)


def _terms(resource: Resource, place: Node, key: str, report: Report) -> None:
    members = list(place.elements())
    if not 1 <= len(members) <= _MOST_TERMS:
        report.refuse(resource, place, allowed=f"1 to {_MOST_TERMS} terms", found=f"{len(members)} terms")
    for term in members:
        given = [name for name in _TERM_KEYS[key] if term.at(name).present]
        if not given:
            report.refuse(resource, term, allowed=f"one of {', '.join(_TERM_KEYS[key])}", found="empty")
        elif len(given) > 1 and (given[0] in ("id", "name")):
            report.refuse(resource, term, allowed=f"{given[0]} alone", found=f"{given[0]} beside {', '.join(given[1:])}")


def _disks(resource: Resource, place: Node, report: Report) -> None:
    members = list(place.elements())
    roots = [member for member in members if member.at("rootVolume").value is True]
    if len(roots) > 1:
        report.refuse(resource, place, allowed="one root volume", found=f"{len(roots)} root volumes")
    for member in members:
        ebs = member.at("ebs")
        if ebs.present and not ebs.at("volumeSize").present and not ebs.at("snapshotID").present:
            report.refuse(resource, ebs.at("volumeSize"), allowed="a size such as 200Gi, or a snapshotID")


def _user_data(resource: Resource, report: Report) -> None:
    place, text = user_data_of(resource), user_data(resource)[:_MOST_USER_DATA]
    floating = _LATEST.search(text) or _PIPED.search(text)
    said = floating[0].strip() if floating else boot_script.floating(text)
    if said:
        report.refuse(resource, place, allowed="pinned releases in the image or by version", found=f"a script with {said}")
    elif updated := boot_script.update(text):
        allowed = "a newer image: what the update takes on the day of each boot, but for repositories of one release, differs by node"
        report.advise(resource, place, allowed=allowed, found=f"a script with {updated}")
    clocks = _CLOCKS.search(text)
    if clocks:
        found = f"a script with {clocks[0].strip()}"
        report.advise(resource, place, allowed="no fixed clocks: they differ by device type, and most refuse them", found=found)


def _compatible(program: Program, report: Report) -> None:
    for resource in program.of(NODE_CLASS):
        with report.part():
            selector = resource.at("spec", "placementGroupSelector")
            if selector.present and selector.at("name").present == selector.at("id").present:
                report.refuse(
                    resource, selector, allowed="exactly one of name and id", found="both" if selector.at("id").present else "empty"
                )
    for chart in charts(program, "karpenter", "karpenter-crd"):
        with report.part():
            release = version(chart.version.text())
            if release is None:
                continue
            _fields(program, chart.resource, release, report)
            for cluster in program.of(CLUSTER) if chart.name == "karpenter" else ():
                with report.part():
                    _matrix(cluster, chart.version, chart.resource, release, report)


def _fields(program: Program, chart: Resource, release: tuple[int, int, int], report: Report) -> None:
    least = load("karpenter")["leastForField"]
    for resource in program.of(NODE_CLASS, NODE_POOL):
        with report.part():
            for field, place in _late_fields(resource, least):
                needed = version(least[field])
                if needed and release < needed:
                    found = f"{field}, which Karpenter {_written(release)} does not know"
                    allowed = f"Karpenter {least[field]} or later for {field} ({chart.name} installs it)"
                    report.refuse(resource, place, allowed=allowed, found=found)


def _late_fields(resource: Resource, least: Iterable[str]) -> Iterator[tuple[str, Node]]:
    """What the resource uses of the fields that not every Karpenter knows."""
    if resource.type == NODE_CLASS:
        yield from ((field, place) for field in least if (place := resource.at("spec", field)).present)
        return
    policy = resource.at("spec", "disruption", "consolidationPolicy")
    if policy.text() == "Balanced":
        yield "Balanced", policy


def _matrix(cluster: Resource, place: Node, chart: Resource, release: tuple[int, int, int], report: Report) -> None:
    kubernetes = cluster.at("version").text()
    least = load("karpenter")["leastForKubernetes"].get(kubernetes, "")
    needed = version(least)
    if needed and release < needed:
        report.refuse(chart, place, allowed=f"{least} or later for Kubernetes {kubernetes}")


def _written(release: tuple[int, int, int]) -> str:
    return ".".join(str(part) for part in release)


def _no_switch(program: Program, report: Report) -> None:
    for resource in program.of(NODE_CLASS):
        with report.part():
            _named_for_efa(resource, report)
        with report.part():
            _scratch(program, resource, report)
        with report.part():
            if not any(finding.resource is resource for finding in report.findings):
                _disk_of_pods(resource, report)


def _named_for_efa(resource: Resource, report: Report) -> None:
    """Karpenter attaches EFA for pods that ask for it, or by networkInterfaces; tags and RAID0 switch nothing on."""
    interfaces = resource.at("spec", "networkInterfaces").elements()
    if any(interface.at("interfaceType").text() == "efa-only" for interface in interfaces):
        return
    for term in resource.at("spec", "subnetSelectorTerms").elements():
        for key, tag in term.at("tags").entries():
            if _EFA_WORD.search(key) or _EFA_WORD.search(tag.text()):
                allowed = "networkInterfaces of type efa-only, or pods that ask for vpc.amazonaws.com/efa: a tag attaches nothing"
                report.refuse(resource, tag, allowed=allowed, found=f"{key}: {tag.text()}")
    place = resource.at("spec", "instanceStorePolicy")
    if place.text() == "RAID0" and _EFA_WORD.search(f"{resource.name} {resource.at('metadata', 'name').text()}"):
        allowed = "networkInterfaces of type efa-only beside it: RAID0 only joins the local disks"
        report.refuse(resource, place, allowed=allowed)


def _disk_of_pods(resource: Resource, report: Report) -> None:
    """A size on a device that the family does not use for pods leaves them the disk of the image."""
    family, devices = _family(resource), list(resource.at("spec", "blockDeviceMappings").elements())
    used = _POD_DISKS.get(family)
    if (
        not devices
        or used is None
        or any(each.at("deviceName").text() in ("", used) or each.at("rootVolume").value is True for each in devices)
    ):
        return
    # User data may format and mount what else there is, and RAID0 takes the local disks for pods.
    if resource.at("spec", "userData").present or resource.at("spec", "instanceStorePolicy").text() == "RAID0":
        return
    device, size = devices[0].at("deviceName"), gibibytes(devices[0].at("ebs", "volumeSize").text()) or 0
    if size > _DEFAULT_ROOT_GIB:
        allowed = f"{used}, where {family} has images and what pods write ({_DEFAULT_ROOT_GIB} GiB unless that device has a size)"
        report.refuse(resource, device, allowed=allowed, found=f"{device.text() or 'unset'}, of {size:g} GiB")


def _scratch(program: Program, resource: Resource, report: Report) -> None:
    if resource.at("spec", "instanceStorePolicy").text() == "RAID0":
        return
    volume, size = _scratch_disk(resource)
    for pool in pools_with(program, resource):
        for user, template in users_of(program, pool):
            asked = sum(_scratch_asked(container) for container in template.containers())
            if asked > size:
                found = f"a {volume} volume of {size:g} GiB, and pods of {user.name} that ask for {asked:g} GiB of ephemeral storage"
                place = resource.at("spec", "blockDeviceMappings")
                report.refuse(resource, place, allowed=f"a {volume} volume that holds it, or instanceStorePolicy RAID0", found=found)


def _scratch_asked(container: Node) -> float:
    """GiB that a container asks for; a limit alone is a request too."""
    request, limit = (container.at("resources", kind, "ephemeral-storage") for kind in ("requests", "limits"))
    return gibibytes((request if request.present else limit).text()) or 0


def _scratch_disk(resource: Resource) -> tuple[str, float]:
    """Which volume Karpenter counts as ephemeral storage, and its size: Bottlerocket's second one holds what pods write."""
    members = list(resource.at("spec", "blockDeviceMappings").elements())
    family = _family(resource)
    volume, device = "data" if family == "Bottlerocket" else "root", _POD_DISKS.get(family, _ROOT_DISK)
    roots = [member for member in members if member.at("rootVolume").value is True]
    own = members[-1:] if family == "Custom" else [each for each in members if each.at("deviceName").text() in ("", device)]
    for name, disk in (*(("root", disk) for disk in roots), *((volume, disk) for disk in own)):
        if size := gibibytes(disk.at("ebs", "volumeSize").text()):
            return name, size
    return volume, _DEFAULT_ROOT_GIB


def _family(resource: Resource) -> str:
    """The image family, which an alias says where nothing else does."""
    aliases = [term.at("alias").text().partition("@")[0] for term in resource.at("spec", "amiSelectorTerms").elements()]
    return resource.at("spec", "amiFamily").text() or next((_FAMILIES[alias] for alias in aliases if alias in _FAMILIES), "")


def _class(**spec: object) -> tuple[Example, ...]:
    body = {
        "role": "node",
        "amiSelectorTerms": [{"alias": "al2023@v20261120"}],
        "subnetSelectorTerms": [{"id": "subnet-0123456789abcdef0"}],
        "securityGroupSelectorTerms": [{"id": "sg-0123456789abcdef0"}],
        **spec,
    }
    return (Example(NODE_CLASS, {"metadata": {"name": "p5"}, "spec": body}, name="p5"),)


def _chart(release: str) -> Example:
    properties = {"chart": "oci://public.ecr.aws/karpenter/karpenter", "version": release, "values": {}}
    return Example("kubernetes:helm.sh/v3:Release", properties, name="karpenter")


RULES = (
    Rule(
        id="KRP06",
        name="node-class-require-pinned-image",
        title="An EC2NodeClass names one pinned machine image",
        types=_NODE_CLASS,
        check=_images,
        why="each new image release makes every node drift, and the fleet is replaced under running jobs.",
        fix="set amiSelectorTerms to one alias with a release, such as al2023@v20261120, or to image ids with amiFamily.",
        source="karpenter-provider-aws 1.14.1 ec2nodeclass.go and ami.go; EKS guide: retrieve recommended AMI ids",
        valid=_class(),
        invalid=_class(amiSelectorTerms=[{"alias": "al2023@latest"}]),
    ),
    Rule(
        id="KRP07",
        name="node-class-require-valid-identity",
        title="An EC2NodeClass has one identity, terms that select, tags of its own and disks with a size",
        types=_NODE_CLASS,
        check=_identity,
        why="the API server refuses the EC2NodeClass, so its pools are never ready.",
        fix="set role or instanceProfile, 1 to 30 terms that each name an id or tags, and volumeSize.",
        source="karpenter-provider-aws 1.14.1 ec2nodeclass.go (CEL rules)",
        valid=_class(),
        invalid=_class(instanceProfile="profile"),
    ),
    Rule(
        id="KRP12",
        name="user-data-disallow-floating-installer",
        title="Boot scripts install nothing that floats",
        types=frozenset({NODE_CLASS, LAUNCH_TEMPLATE}),
        check=_user_data,
        why="two nodes of one gang boot with different drivers; a job that ran last week does not run today, and nobody changed it.",
        fix="use a pinned machine image, or name the release in the address; leave clocks alone.",
        source="field guide: pinned node images",
        valid=_class(userData="#!/bin/sh\nsysctl -w vm.max_map_count=262144\n"),
        invalid=_class(userData="curl -O https://efa-installer.amazonaws.com/aws-efa-installer-latest.tar.gz\n"),
    ),
    StackRule(
        id="KRP13",
        name="karpenter-require-knowing-release",
        title="The installed Karpenter knows the fields that are used, and the cluster's Kubernetes",
        types=CHART_TYPES | {NODE_CLASS, NODE_POOL, CLUSTER},
        check=_compatible,
        early=True,
        why="the API server drops a field that the CRD does not have: the placement group or the interfaces are silently unused.",
        fix="install a Karpenter and its CRDs that know the field and the Kubernetes version.",
        source="karpenter-provider-aws 1.14.1 upgrading/compatibility and designs/placement-groups-support",
        valid=(*_class(placementGroupSelector={"name": "p5"}), _chart("1.14.1")),
        invalid=(*_class(placementGroupSelector={"name": "p5"}), _chart("1.8.2")),
    ),
    StackRule(
        id="KRP14",
        name="node-class-disallow-efa-by-name",
        title="RAID0 and tags are no EFA set-up, and pods' scratch space fits the node's disk",
        types=POD_TYPES | {NODE_CLASS, NODE_POOL},
        check=_no_switch,
        mandatory=False,
        why="nothing attaches an interface, and NCCL trains over TCP without an error; pods that ask for more disk stay Pending.",
        fix="list networkInterfaces of type efa-only (or let pods ask for EFA), and size the root volume or use RAID0.",
        source="karpenter-provider-aws 1.14.1 ec2nodeclass.go, amifamily; field guide: EFA on EKS; bottlerocket-os/bottlerocket#4663",
        valid=_class(instanceStorePolicy="RAID0"),
        invalid=_class(subnetSelectorTerms=[{"tags": {"efa-enabled": "true"}}]),
    ),
)
