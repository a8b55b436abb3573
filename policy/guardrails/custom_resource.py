"""Custom resources: the shape that the API server takes."""

import re
from collections.abc import Mapping
from typing import Any

from guardrails.facts import custom_resource_schemas
from guardrails.names import OBJECT_NAME
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.schema import Schemas
from guardrails.template import GPU
from guardrails.tokens import NODE_POOL, UNJUDGED, UNSERVED

_LONGEST_NAME = 253
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_LONGEST_LABEL = 63
_VOLCANO_JOBS = "batch.volcano.sh/"
_RELEASES = {
    "karpenter": "Karpenter 1.14.0",
    "kubeflow.org/v2beta1:": "MPI Operator 0.8.0",
    "volcano": "Volcano 1.14.1",
    "ray.io": "KubeRay 1.5.1",
    "kubeflow.org/v1:": "training operator 1.9.3",
}
"""Part of a type's token -> the release whose definition the facts have."""
_KINDS, _SHARED = custom_resource_schemas()
_SCHEMAS = Schemas(_SHARED)


def _shape(resource: Resource, report: Report) -> None:
    if resource.type == UNSERVED:
        _version(resource, report)
        return
    schema = _KINDS.get(resource.written or resource.type)
    # A RayCronJob is of a later release than the definition of the RayJobs that it makes.
    if schema is None:
        return
    with report.part():
        _below(resource, resource.properties, schema, report)
    with report.part():
        _name(resource, report)
    with report.part():
        _labels(resource, report)


def _version(resource: Resource, report: Report) -> None:
    """Of Volcano's jobs; other operators' rules tell of theirs."""
    _, version, kind = resource.written.split(":")
    if version.startswith(_VOLCANO_JOBS):
        allowed = f"{_VOLCANO_JOBS}v1alpha1, the only version of {kind} that {_RELEASES['volcano']} serves"
        report.refuse(resource, resource.at("apiVersion"), allowed=allowed, found=version)


def _below(resource: Resource, node: Node, schema: Mapping[str, Any], report: Report) -> None:
    """Judge `node` and then each member in a part of its own, so that an unknown one does not end the walk."""
    for wrong in _SCHEMAS.mismatches(node, schema):
        tell = report.advise if wrong.pruned else report.refuse
        allowed = f"{wrong.allowed}, where the operator is no newer than {_release(resource)}" if wrong.newer else wrong.allowed
        tell(resource, wrong.node, allowed=allowed, found=wrong.found, remark=wrong.remark)
    for member, below in _SCHEMAS.members(node, schema):
        with report.part():
            _below(resource, member, below, report)


def _release(resource: Resource) -> str:
    """Whose definition a custom resource is held against."""
    return next(release for part, release in _RELEASES.items() if part in resource.type)


def _name(resource: Resource, report: Report) -> None:
    name = resource.at("metadata", "name")
    if name.present and (len(name.text()) > _LONGEST_NAME or not OBJECT_NAME.fullmatch(name.text())):
        report.refuse(
            resource, name, allowed=f"at most {_LONGEST_NAME} lower-case letters, digits, - and ., with a letter or digit at both ends"
        )


def _labels(resource: Resource, report: Report) -> None:
    for _, label in resource.at("metadata", "labels").entries():
        with report.part():
            value = label.value
            if value is not None and not (isinstance(value, str) and len(value) <= _LONGEST_LABEL and _LABEL.fullmatch(value)):
                report.refuse(resource, label, allowed=f"a text of at most {_LONGEST_LABEL} letters, digits, -, _ and .")


def _kind(resource: Resource, report: Report) -> None:
    asked = ", ".join(sorted(key for key, _ in resource.properties.entries()))
    report.refuse(resource, resource.properties, allowed="devices in a kind whose pods the rules know", found=f"asking {asked}")


RULES = (
    Rule(
        id="KUB01",
        name="object-require-schema",
        title="A custom resource has the fields and values that its definition allows",
        types=frozenset(_KINDS) | {UNSERVED},
        check=_shape,
        why="the API server refuses the object when the rest is made, or drops an unknown field without a word.",
        fix="write the field as the definition has it; a misspelt one is dropped, so what it was to set stays at its default.",
        source=f"CustomResourceDefinitions of {', '.join(_RELEASES.values())}",
        valid=(Example("kubernetes:scheduling.volcano.sh/v1beta1:Queue", {"metadata": {"name": "training"}, "spec": {"weight": 1}}),),
        invalid=(Example(NODE_POOL, {"spec": {"template": {"spec": {"nodeClassRef": {"name": "p5"}, "requirements": []}}}}),),
    ),
    Rule(
        id="KUB03",
        name="object-require-known-pods",
        title="What asks for devices is of a kind whose pods the rules know",
        types=frozenset({UNJUDGED}),
        check=_kind,
        mandatory=False,
        why="no rule judges these pods: what is wrong with their ranks, devices or storage shows on paid nodes.",
        fix="check the pods' template as a Pod (trainyard policy check FILE), or use a kind that the rules know.",
        source="kinds that pods of training come in: docs/policies.md, POD rules",
        valid=(Example("kubernetes:example.com/v1:Trainer", {"spec": {"replicas": 4}}),),
        invalid=(Example("kubernetes:example.com/v1:Trainer", {"spec": {"pod": {"resources": {"limits": {GPU: 8}}}}}),),
    ),
)
