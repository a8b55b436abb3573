"""Helm: objects that no rule can see are told, never passed over in silence."""

from collections.abc import Iterator

from guardrails.decode import ASSET
from guardrails.document import DocumentError, read_yaml
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import RELEASE

# What charts call the place where a user may add objects of his own.
_OBJECT_KEYS = frozenset(
    word.lower()
    for word in (
        *("extraObjects", "extraManifests", "extraDeploy", "extraResources", "extraTemplates", "additionalManifests", "additionalObjects"),
        *("manifests", "rawManifests", "templates"),
    )
)
_TEMPLATE = "{{"
_DEEPEST = 40


def _unseen_objects(release: Resource, report: Report) -> None:
    with report.part():
        for node in _object_places(release.at("values"), 0):
            with report.part():
                _visible(release, node, report)
    with report.part():
        for file in release.at("valueYamlFiles").elements():
            if file.text().startswith(ASSET):
                report.refuse(release, file, allowed="values given in the program, or as an asset made of text")


def _object_places(node: Node, depth: int) -> Iterator[Node]:
    """The values under keys that carry objects, at any depth; reading an unknown value on the way lists it."""
    if depth > _DEEPEST:
        return
    for key, member in node.entries():
        if key.lower() in _OBJECT_KEYS:
            yield member
        elif isinstance(member.value, dict):
            yield from _object_places(member, depth + 1)


def _visible(release: Resource, node: Node, report: Report) -> None:
    value = node.value
    if isinstance(value, str):
        _text_visible(release, node, report)
    elif isinstance(value, list):
        for member in node.elements():
            with report.part():
                _visible(release, member, report)
    elif isinstance(value, dict):
        for _, member in node.entries():
            with report.part():
                _visible(release, member, report)


def _text_visible(release: Resource, node: Node, report: Report) -> None:
    text = node.text()
    if _TEMPLATE in text and "kind:" in text:
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
        title="Objects in the values of a Helm release can be read",
        types=frozenset({RELEASE}),
        check=_unseen_objects,
        mandatory=False,
        why="Helm renders them on the cluster, so a NodePool or job in there is judged by no rule.",
        fix="give the objects as resources of their own, or render the chart with helm.sh/v4:Chart, whose children are judged.",
        source="pulumi-kubernetes 4.34.2: Release against Chart",
        valid=(Example(RELEASE, {"chart": "app", "values": {"extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap"}]}}),),
        invalid=(Example(RELEASE, {"chart": "app", "values": {"extraObjects": ["kind: {{ .Values.kind }}"]}}),),
    ),
)
