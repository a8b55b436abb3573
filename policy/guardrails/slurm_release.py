"""Slurm's own release, of the images that Slinky's objects and chart run."""

import re

from guardrails.chart import Chart
from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Report, Resource
from guardrails.slurm_chart import members, slurm_charts

_FACTS = load("slurm")
# Slurm's releases are called by year and month; what else a tag says, such as the system, follows.
_RELEASE = re.compile(r"(?:v|slurm-)?([12][0-9]\.(?:02|05|08|11))(?![0-9])")
_PARTS = {"controller": ("slurmctld", "reconfigure"), "restapi": ("slurmrestd",), "accounting": ("slurmdbd",)}
"""Part of the chart's values -> containers whose images they set."""
_ALLOWED = f"Slurm {_FACTS['leastSlurm']} or later, the least that slurm-operator 1.0 to 1.2 work with"


def of_object(resource: Resource, report: Report) -> None:
    """Judge the images of one of Slinky's objects."""
    spec = resource.at("spec")
    if spec.at("external").value is True:
        return  # It runs elsewhere.
    for container in _FACTS["containers"].get(resource.type.rpartition(":")[2], ()):
        with report.part():
            _image(resource, spec.at(container, "image"), report)


def of_charts(resource: Resource, report: Report) -> None:
    """Judge the images that values set."""
    for chart in slurm_charts(resource):
        for part, containers in _PARTS.items():
            with report.part():
                if not _is_elsewhere(chart, part):
                    for container in containers:
                        _image(resource, chart.value(part, container, "image"), report)
        with report.part():
            for member in members(chart, "nodesets"):
                _image(resource, member.merged("slurmd", "image"), report)


def _is_elsewhere(chart: Chart, part: str) -> bool:
    """Whether the chart makes nothing of a part; accounting is off unless it is switched on."""
    unused = part == "accounting" and chart.value(part, "enabled").value is not True
    return unused or chart.value(part, "external").value is True


def _image(resource: Resource, place: Node, report: Report) -> None:
    """A text, or a mapping with a tag and, unless it is the chart's own, a repository."""
    tag = place.at("tag")
    if tag.present:
        repository, release = place.at("repository").text(), tag.text()
        ours = not repository or repository.rpartition("/")[2] in _FACTS["images"]
    else:
        tag = place
        name, _, release = place.text().partition("@")[0].rpartition("/")[2].partition(":")
        ours = name in _FACTS["images"]
    matched = _RELEASE.match(release) if ours else None
    if matched and matched[1] < _FACTS["leastSlurm"]:
        report.refuse(resource, tag, allowed=_ALLOWED)
