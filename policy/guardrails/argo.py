"""Argo CD: what is applied is a version that was chosen, with values that the chart reads, and nothing is pruned by surprise."""

import re
from collections.abc import Sequence

from guardrails.chart import CHART_TYPES, Chart, charts_of, values_text, version
from guardrails.facts import load
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import APPLICATION

_BRANCHES = frozenset({"", "HEAD", "main", "master", "develop", "trunk"})
_PLACEHOLDER = "{{"
"""Where an ApplicationSet puts in what its generator finds."""
_RANGE = re.compile(r"[~^<>=*,|]|\s|(?:^|\.)[xX](?:\.|$)")
_VERSION = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]*)?|[0-9a-f]{40}")

# Up to the first dot or bracket that no backslash takes its meaning.
_FIRST_KEY = re.compile(r"(?:\\.|[^.\[\\])+")


def _application(resource: Resource, report: Report) -> None:
    with report.part():
        for chart in charts_of(resource):
            with report.part():
                _server(chart, report)
    if resource.type != APPLICATION:
        for chart in charts_of(resource):
            _known_keys(chart, resource.at("values"), report)
        return
    spec = resource.at("spec")
    for source in (*([spec.at("source")] if spec.at("source").present else []), *spec.at("sources").elements()):
        with report.part():
            _revision(resource, source, report)
        for values in (source.at("helm", "valuesObject"), *values_text(source)):
            with report.part():
                _known_keys(Chart(resource, source), values, report)
        with report.part():
            _known_parameters(Chart(resource, source), report)
    with report.part():
        _project(resource, spec, report)
    with report.part():
        _pruning(resource, spec, report)


def _revision(resource: Resource, source: Node, report: Report) -> None:
    revision = source.at("targetRevision")
    text = revision.text()
    if _PLACEHOLDER in text:
        return
    if text in _BRANCHES or text.startswith("refs/heads/"):
        report.refuse(resource, revision, allowed="a full version or a commit", found=f"{text or 'unset'} (a branch)")
    elif _VERSION.fullmatch(text):
        return
    elif _RANGE.search(text):
        report.refuse(resource, revision, allowed="one full version", found=f"{text} (a range)")
    else:
        report.advise(resource, revision, allowed="a full version or a commit: a tag or branch of another form can be moved")


def _known_keys(chart: Chart, values: Node, report: Report) -> None:
    """Keys that a chart does not read are set without effect; those of a training platform's charts are known."""
    for name, value in values.entries() if _known(chart) else ():
        _known_key(chart, name, value, report)


def _known_parameters(chart: Chart, report: Report) -> None:
    for parameter in chart.source.at("helm", "parameters").elements() if _known(chart) else ():
        with report.part():
            key = _FIRST_KEY.match(parameter.at("name").text())
            if key:
                _known_key(chart, key[0].replace("\\", ""), parameter.at("name"), report)


def _known_key(chart: Chart, name: str, place: Node, report: Report) -> None:
    known = _known(chart)
    if name in known or name == "global":
        return
    allowed = f"a key that chart {chart.address.text()} reads: {', '.join(known)}"
    if _is_of_known_release(chart):
        report.refuse(chart.resource, place, allowed=allowed, found="set, but the chart does not read it")
    else:
        found = f"set, but the chart's release {load('charts')['releases'][chart.name][1]} does not read it"
        report.advise(chart.resource, place, allowed=allowed, found=found)


def _known(chart: Chart) -> Sequence[str]:
    """The top-level keys that a chart reads; none where they are not known."""
    return () if chart.is_folder else load("charts")["topLevelValues"].get(chart.name, ())


def _is_of_known_release(chart: Chart) -> bool:
    """Whether the keys are those of the chart's release: earlier ones read others, and later ones may."""
    first, last = (version(release) or () for release in load("charts")["releases"][chart.name])
    given = version(chart.version.text())
    return given is None or (given >= first and given[:2] <= last[:2])


def _project(resource: Resource, spec: Node, report: Report) -> None:
    project = spec.at("project")
    if project.text() in ("", "default"):
        report.refuse(resource, project, allowed="a project that limits clusters, namespaces and kinds")


def _pruning(resource: Resource, spec: Node, report: Report) -> None:
    automated = spec.at("syncPolicy", "automated")
    prune = automated.at("prune")
    options = [option.text() for option in spec.at("syncPolicy", "syncOptions").elements()]
    if (
        prune.value is True
        and automated.at("enabled").value is not False
        and not any(option in options for option in ("Prune=false", "Prune=confirm"))
    ):
        allowed = "false, or syncOptions with Prune=confirm: a renamed file deletes claims and custom resources with all they hold"
        report.refuse(resource, prune, allowed=allowed)


def _server(chart: Chart, report: Report) -> None:
    if chart.name != "argo-cd" or chart.is_folder:
        return
    for name, allowed in (("admin.enabled", "false, with single sign-on"), ("exec.enabled", "false: it is a shell in any pod")):
        with report.part():
            setting = chart.value("configs", "cm", name)
            if setting.text() == "true":
                report.refuse(chart.resource, setting, allowed=allowed)


def _app(revision: str, **spec: object) -> Example:
    source = {"repoURL": "https://charts.example", "chart": "training", "targetRevision": revision}
    return Example(APPLICATION, {"metadata": {"name": "training"}, "spec": {"project": "ml", "source": source, **spec}})


RULES = (
    Rule(
        id="ARG01",
        name="argo-require-reviewed-state",
        title="Argo CD applies a fixed version with values that exist, and prunes only what was confirmed",
        types=CHART_TYPES,
        check=_application,
        why="a push to a branch changes the cluster, settings that no chart reads do nothing, or data is pruned.",
        fix="pin targetRevision, use keys of the chart's values, and confirm pruning.",
        source="Argo CD 3: application specification; argo-helm values; field guide section on Argo CD",
        valid=(_app("1.2.2"),),
        invalid=(_app("main"),),
    ),
)
