"""Helm and lists: objects that no rule can see are told, never passed over in silence."""

import re
from collections.abc import Iterator

from guardrails.document import DocumentError, read_yaml
from guardrails.node import ASSET, Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import APPLICATION, RELEASE, UNSEEN
from guardrails.view import manifest

# What charts call the place where a user may add objects of his own.
_OBJECT_KEYS = frozenset(
    word.lower()
    for word in (
        *("extraObjects", "extraManifests", "extraDeploy", "extraResources", "extraTemplates", "additionalManifests", "additionalObjects"),
        *("manifests", "rawManifests", "templates"),
    )
)
_TEMPLATE = "{{"
# What values of a chart without it hold is no object.
_KIND = re.compile(r"\bkind[\"']?\s*:")
_DEEPEST = 40


def _unseen_objects(carrier: Resource, report: Report) -> None:
    if carrier.type == RELEASE:
        _release(carrier, report)
    elif carrier.type == APPLICATION:
        with report.part():
            spec = carrier.at("spec")
            for source in (spec.at("source"), *spec.at("sources").elements()):
                with report.part():
                    _source(carrier, source.at("helm"), report)
    elif carrier.properties.value is not None:
        report.refuse(carrier, carrier.properties, allowed="apiVersion and kind", found="an item without them")


def _source(application: Resource, helm: Node, report: Report) -> None:
    """The values of one source, as text or as a mapping."""
    with report.part():
        text = helm.at("values")
        if _TEMPLATE in text.text() and _KIND.search(text.text()):
            _text_visible(application, text, report)
    with report.part():
        _values(application, helm.at("valuesObject"), report)


def _values(carrier: Resource, values: Node, report: Report) -> None:
    for node in _object_places(values, 0, report):
        with report.part():
            _visible(carrier, node, report)


def _release(release: Resource, report: Report) -> None:
    with report.part():
        _values(release, release.at("values"), report)
    with report.part():
        for file in release.at("valueYamlFiles").elements():
            if file.text().startswith(ASSET):
                report.refuse(release, file, allowed="values given in the program, or as an asset made of text")


def _object_places(node: Node, depth: int, report: Report) -> Iterator[Node]:
    """The values under keys that carry objects, at any depth; an unknown value on the way is listed and ends nothing."""
    if depth > _DEEPEST:
        return
    if not node.known:
        with report.part():
            node.value  # noqa: B018 - reading it lists it
        return
    for key, member in node.entries():
        if key.lower() in _OBJECT_KEYS:
            yield member
        else:
            yield from _object_places(member, depth + 1, report)
    for member in node.elements():
        yield from _object_places(member, depth + 1, report)


def _visible(release: Resource, node: Node, report: Report) -> None:
    value = node.value
    if isinstance(value, str):
        _text_visible(release, node, report)
    elif isinstance(value, list):
        for member in node.elements():
            with report.part():
                _visible(release, member, report)
    elif isinstance(value, dict) and manifest(value) is None:
        # What is in an object is for the rules of its kind.
        for _, member in node.entries():
            with report.part():
                _visible(release, member, report)


def _text_visible(release: Resource, node: Node, report: Report) -> None:
    text = node.text()
    if _TEMPLATE in text:
        report.refuse(release, node, allowed="objects without template expressions, or as children of a rendered chart", found="a template")
        return
    try:
        read_yaml(text)
    except DocumentError as error:
        report.refuse(release, node, allowed="objects in YAML that can be read", found=f"text that can't be read ({error})")


RULES = (
    Rule(
        id="HLM01",
        name="release-require-visible-objects",
        title="Objects in the values of a chart and in lists can be read",
        types=frozenset({RELEASE, APPLICATION, UNSEEN}),
        check=_unseen_objects,
        mandatory=False,
        why="Helm renders them on the cluster, so a NodePool or job in there is judged by no rule.",
        fix="give the objects as resources of their own, or render the chart with helm.sh/v4:Chart, whose children are judged.",
        source="pulumi-kubernetes 4.34.2: Release against Chart",
        valid=(Example(RELEASE, {"chart": "app", "values": {"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap"}]}}),),
        invalid=(Example(RELEASE, {"chart": "app", "values": {"extraObjects": ["kind: {{ .Values.kind }}"]}}),),
    ),
)
