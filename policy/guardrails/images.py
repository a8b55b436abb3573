"""Container images and charts: what runs tomorrow is what was reviewed today."""

import re
from collections.abc import Iterator

from guardrails.chart import CHART_TYPES
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, POD_TYPES, pod_templates
from guardrails.tokens import POD

_MOVING = frozenset({"latest", "main", "master", "nightly", "stable", "edge", "dev", "develop", "head", "current", "release", "lts"})
_MAJOR = re.compile(r"v?[0-9]+")
_MINOR = re.compile(r"v?[0-9]+\.[0-9]+")
# A commit or a content hash: nobody pushes another image under such a tag.
_HASH = re.compile(r"(?:.*[-_.])?[0-9a-f]{7,64}")
_LOCAL_CHART = re.compile(r"[./~].*|.*\.tgz")
_PINNED = "a digest (name@sha256:...) or a tag that is never moved, such as a full version"


def _images(resource: Resource, report: Report) -> None:
    if resource.type in CHART_TYPES:
        _chart(resource, report)
        return
    for template in pod_templates(resource):
        for container in template.all_containers():
            with report.part():
                _image(resource, container.at("image"), report, trains=bool(template.requested(GPU)))


def _image(resource: Resource, node: Node, report: Report, *, trains: bool) -> None:
    image = node.text()
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if not image or digest:
        return
    if not tag:
        report.refuse(resource, node, allowed=_PINNED, found=f"{image} (no tag, so latest)")
    elif _is_moving(tag):
        report.refuse(resource, node, allowed=_PINNED)
    elif _MINOR.fullmatch(tag):
        report.advise(resource, node, allowed=_PINNED, found=f"{image} (patch releases move it)")
    elif trains and not _HASH.fullmatch(tag):
        report.advise(resource, node, allowed=f"{image}@sha256:... (a registry lets a tag be pushed again unless tags are immutable)")


def _is_moving(tag: str) -> bool:
    parts = re.split(r"[-_]", tag.lower())
    if _HASH.fullmatch(tag):
        return False
    return parts[0] in _MOVING or parts[-1] == "latest" or bool(_MAJOR.fullmatch(tag))


def _chart(resource: Resource, report: Report) -> None:
    with report.part():
        chart, version = resource.at("chart"), resource.at("version")
        if chart.text() and not _LOCAL_CHART.fullmatch(chart.text()) and version.value is None:
            report.refuse(resource, version, allowed=f"the version of chart {chart.text()} that was reviewed")
    for name, value in _settings(resource.at("values"), report):
        with report.part():
            _setting(resource, name, value, report)


def _setting(resource: Resource, name: str, value: Node, report: Report) -> None:
    text = value.text()
    tag = text if name == "tag" else text.rpartition("/")[2].partition(":")[2]
    if "@" not in text and _is_moving(tag):
        report.refuse(resource, value, allowed=_PINNED)


def _settings(node: Node, report: Report) -> Iterator[tuple[str, Node]]:
    """Every text among the values of a chart that names an image or its tag."""
    with report.part():
        for name, member in node.entries():
            if name in ("tag", "image") and not isinstance(member.raw, dict):
                yield name, member
            else:
                yield from _settings(member, report)
        for member in node.elements():
            yield from _settings(member, report)


def _pod(image: str) -> Example:
    return Example(POD, {"spec": {"containers": [{"name": "main", "image": image}]}})


RULES = (
    Rule(
        id="POD03",
        name="image-require-fixed-version",
        title="Images and charts have a version that does not move",
        types=POD_TYPES | CHART_TYPES,
        check=_images,
        why="a node that joins later runs another image than its peers: ranks differ in versions, and a rerun is no rerun.",
        fix="pin the image by digest (or by an immutable full version), and the chart by its version.",
        source="CIS EKS benchmark 1.8 section 5.1; field guide sections on Ray and on images",
        valid=(_pod("registry.example/trainer@sha256:" + "4f" * 32),),
        invalid=(_pod("registry.example/trainer:latest"),),
    ),
)
