"""The form of IAM documents: what IAM answers with MalformedPolicyDocument."""

import json
import re
from collections.abc import Iterator

from guardrails.node import Node
from guardrails.rule import Report, Resource

_VERSIONS = ("2012-10-17", "2008-10-17")
_EFFECTS = ("Allow", "Deny")
_ACTION = re.compile(r"\*|[A-Za-z0-9-]+:\S+")
_ARN = re.compile(r"[*?]|arn:")
_PRINCIPALS = ("Principal", "NotPrincipal")
_RESOURCES = ("Resource", "NotResource")
_ACTIONS = ("Action", "NotAction")


def well_formed(resource: Resource, place: Node, *, trust: bool, report: Report) -> None:
    """SEC03: judge a document, which is text or a mapping, of rights or, with `trust`, of who may take a role."""
    document = _read(place)
    if document is None:
        report.refuse(resource, place, allowed="JSON", found="no JSON")
        return
    version = document.at("Version")
    with report.part():
        if version.present and version.text() not in _VERSIONS:
            report.refuse(resource, place, allowed=f"Version {' or '.join(_VERSIONS)}", found=f"of version {version.text()}")
    statements = document.at("Statement")
    for statement in statements.elements() if isinstance(statements.value, list) else [statements]:
        with report.part():
            if isinstance(statement.value, dict):
                _statement(resource, place, statement, trust, report)


def _read(place: Node) -> Node | None:
    """The document; None where its text is no JSON."""
    text = place.value
    if not isinstance(text, str) or not text.strip():
        return place
    try:
        return Node(json.loads(text), place.path, place.owner)
    except (ValueError, RecursionError):
        return None


def _statement(resource: Resource, place: Node, statement: Node, trust: bool, report: Report) -> None:
    effect = statement.at("Effect").text()
    if effect not in _EFFECTS:
        report.refuse(resource, place, allowed="Effect Allow or Deny, in this spelling", found=f"Effect {effect or 'unset'}")
    needed, foreign = (_PRINCIPALS, _RESOURCES) if trust else (_RESOURCES, _PRINCIPALS)
    for keys in (_ACTIONS, needed):
        if not any(statement.at(key).present for key in keys):
            report.refuse(resource, place, allowed=f"{' or '.join(keys)} in each statement", found="a statement without one")
    of = "a trust" if trust else "what is attached to an identity"
    for key in foreign:
        if statement.at(key).present:
            report.refuse(resource, place, allowed=f"no {key}: that is not for {of}", found=f"a statement with {key}")
    for action in _texts(statement, _ACTIONS):
        if not _ACTION.fullmatch(action):
            report.refuse(
                resource, place, allowed="actions with the prefix of their service, such as s3:GetObject", found=f"action {action}"
            )
    for arn in () if trust else _texts(statement, _RESOURCES):
        if not _ARN.match(arn):
            report.refuse(resource, place, allowed="ARNs, or *", found=f"resource {arn}")


def _texts(statement: Node, keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        given = statement.at(key)
        yield from (each.text() for each in ([*given.elements()] if isinstance(given.value, list) else [given]) if each.present)
