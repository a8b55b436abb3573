"""Container images and charts: what runs tomorrow is what was reviewed today."""

import re
from collections.abc import Iterator

from guardrails.chart import CHART_TYPES, HELM_TYPES, values_text
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, IN_PART, POD_TYPES, pod_templates
from guardrails.tokens import APPLICATION, POD

_MOVING = frozenset({"latest", "main", "master", "nightly", "stable", "edge", "dev", "develop", "head", "current", "release", "lts"})
_MAJOR = re.compile(r"v?[0-9]+")
_MAJOR_OF = re.compile(r"v?[0-9]{1,3}")
"""Before a suffix; a longer number counts builds."""
_MINOR = re.compile(r"v?[0-9]+\.[0-9]+")
_OPEN = re.compile(r"v?[0-9]+(?:\.[0-9]+)?\.[xX*]")
# A version down to the patch, or a day.
_WHOLE = re.compile(r"(?:^|[^0-9.])v?[0-9]+\.[0-9]+\.[0-9]+|[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CHART_VERSION = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+][0-9A-Za-z.+-]*)?")
# What the chart or another tool puts in.
_FILLED_IN = re.compile(r"\{\{|\$")
_TAG_KEY = re.compile(r"(?:.*[_-]?image[_-]?)?tag(?:[_-]?version)?", re.IGNORECASE)
_IMAGE_KEY = re.compile(r"(?:.*[_-])?image|[a-z]+Image")
# NVIDIA's catalogue names releases by month and does not push one again.
_BY_MONTH = "nvcr.io/nvidia/"
# A commit or a content hash: nobody pushes another image under such a tag.
_HASH = re.compile(r"(?:.*[-_.])?[0-9a-f]{7,64}")
_LOCAL_CHART = re.compile(r"[./~].*|.*\.tgz")
_PINNED = "a digest (name@sha256:...) or a tag that is never moved, such as a full version"


def _images(resource: Resource, report: Report) -> None:
    if resource.type in HELM_TYPES:
        _chart(resource, report)
        return
    if resource.type == APPLICATION:
        for source in (resource.at("spec", "source"), *resource.at("spec", "sources").elements()):
            _source(resource, source, report)
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
    elif _MINOR.fullmatch(_first(tag)) and not _WHOLE.search(tag) and not _HASH.fullmatch(tag) and not name.startswith(_BY_MONTH):
        report.advise(resource, node, allowed=_PINNED, found=f"{image} (patch releases move it)")
    elif trains and not _HASH.fullmatch(tag):
        report.advise(resource, node, allowed=f"{image}@sha256:... (a registry lets a tag be pushed again unless tags are immutable)")


def _first(tag: str) -> str:
    """The version of a tag such as 3.12-slim."""
    return re.split(r"[-_]", tag)[0]


def _is_moving(tag: str) -> bool:
    return not _HASH.fullmatch(tag) and (not any(letter.isdigit() for letter in tag) or _says_so(tag))


def _says_so(tag: str) -> bool:
    """Whether a word or the form of the tag says that it is moved."""
    parts = re.split(r"[-_]", tag.lower())
    if _HASH.fullmatch(tag):
        return False
    if parts[-1] == "latest":
        return True
    if _WHOLE.search(tag):
        return False
    return parts[0] in _MOVING or bool(_MAJOR.fullmatch(tag) or _MAJOR_OF.fullmatch(parts[0]) or _OPEN.fullmatch(parts[0]))


def _chart(resource: Resource, report: Report) -> None:
    with report.part():
        chart, version = resource.at("chart"), resource.at("version")
        if chart.text() and not _LOCAL_CHART.fullmatch(chart.text()) and "@sha256:" not in chart.text():
            _version(resource, chart, version, report)
    _values(resource, resource.at("values"), report)


def _version(resource: Resource, chart: Node, version: Node, report: Report) -> None:
    """Helm takes anything but one full version for a range, and nothing for the newest."""
    if version.value is None or not _CHART_VERSION.fullmatch(version.text().strip()):
        report.refuse(resource, version, allowed=f"the version of chart {chart.text()} that was reviewed")


def _source(resource: Resource, source: Node, report: Report) -> None:
    """Images that a source of an Application sets; its revision is ARG01's."""
    _values(resource, source.at("helm", "valuesObject"), report)
    with report.part():
        for document in values_text(source):
            _values(resource, document, report)
    with report.part():
        for parameter in source.at("helm", "parameters").elements():
            with report.part():
                name = parameter.at("name").text().rpartition(".")[2]
                if _TAG_KEY.fullmatch(name) or _IMAGE_KEY.fullmatch(name):
                    _setting(resource, name, parameter.at("value"), report)
    with report.part():
        for image in source.at("kustomize", "images").elements():
            with report.part():
                _setting(resource, "image", image, report)


def _values(resource: Resource, values: Node, report: Report) -> None:
    for name, value, of_image in _settings(values, report):
        with report.part():
            _setting(resource, name, value, report, of_image=of_image)


def _setting(resource: Resource, name: str, value: Node, report: Report, *, of_image: bool = True) -> None:
    text = value.text()
    tag = text if _TAG_KEY.fullmatch(name) else text.rpartition("/")[2].partition(":")[2]
    if tag and "@" not in text and not _FILLED_IN.search(tag) and (_is_moving(tag) if of_image else _says_so(tag)):
        report.refuse(resource, value, allowed=_PINNED)


def _settings(node: Node, report: Report, *, of_image: bool = False) -> Iterator[tuple[str, Node, bool]]:
    """Every text among the values of a chart that names an image or its tag, and whether that is sure: logs have tags too."""
    with report.part():
        # Beside a digest the tag is only a word.
        pinned = any(node.at(name).text() for name in ("digest", "sha"))
        sure = of_image or any(node.at(name).present for name in ("repository", "registry", "pullPolicy"))
        for name, member in node.entries():
            is_tag, is_image = bool(_TAG_KEY.fullmatch(name)), bool(_IMAGE_KEY.fullmatch(name))
            if not isinstance(member.raw, dict | list) and (is_image or (is_tag and not pinned)):
                yield name, member, sure or is_image or name != "tag"
            else:
                yield from _settings(member, report, of_image=is_image)
        for member in node.elements():
            yield from _settings(member, report)


def _pod(image: str) -> Example:
    return Example(POD, {"spec": {"containers": [{"name": "main", "image": image}]}})


RULES = (
    Rule(
        id="POD03",
        name="image-require-fixed-version",
        title="Images and charts have a version that does not move",
        types=POD_TYPES | IN_PART | CHART_TYPES,
        check=_images,
        why="a node that joins later runs another image than its peers: ranks differ in versions, and a rerun is no rerun.",
        fix="pin the image by digest (or by an immutable full version), and the chart by its version.",
        source="CIS EKS benchmark 1.8 section 5.1; field guide sections on Ray and on images",
        valid=(_pod("registry.example/trainer@sha256:" + "4f" * 32),),
        invalid=(_pod("registry.example/trainer:latest"),),
    ),
)
