"""The form of IAM documents: what IAM answers with MalformedPolicyDocument."""

import re

from guardrails.document import DocumentError, read_json
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
    read = document(place)
    if read is None:
        report.refuse(resource, place, allowed="JSON", found="no JSON")
        return
    version = read.at("Version")
    with report.part():
        if version.present and version.text() not in _VERSIONS:
            report.refuse(resource, place, allowed=f"Version {' or '.join(_VERSIONS)}", found=f"of version {version.text()}")
    for statement in members(read.at("Statement")):
        with report.part():
            if isinstance(statement.value, dict):
                _statement(resource, place, statement, trust, report)


def document(place: Node) -> Node | None:
    """The document, which is text or a mapping; None where its text is no JSON."""
    text = place.value
    if not isinstance(text, str) or not text.strip():
        return place
    try:
        return Node(read_json(text), place.path, place.owner)
    except DocumentError:
        return None


def members(node: Node) -> list[Node]:
    """The members of a list, or the one value that stands for a list of one."""
    return list(node.elements()) if isinstance(node.value, list) else [node]


def texts(node: Node) -> list[str]:
    """The same as texts, those that are set."""
    return [member.text() for member in members(node) if member.present]


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
    for action in (each for key in _ACTIONS for each in texts(statement.at(key))):
        if not _ACTION.fullmatch(action):
            report.refuse(
                resource, place, allowed="actions with the prefix of their service, such as s3:GetObject", found=f"action {action}"
            )
    for arn in () if trust else (each for key in _RESOURCES for each in texts(statement.at(key))):
        if not _ARN.match(arn):
            report.refuse(resource, place, allowed="ARNs, or *", found=f"resource {arn}")
