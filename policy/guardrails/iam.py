"""IAM documents: what they allow on what, who may take a role, and what is attached to whom."""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from guardrails.iam_form import document, members, texts, well_formed
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.tokens import (
    IAM_ATTACHMENTS,
    IAM_GROUP_POLICY,
    IAM_POLICY,
    IAM_ROLE,
    IAM_ROLE_POLICY,
    IAM_USER_POLICY,
)

PODS, NODES, CONTROL_PLANE = "pods.eks.amazonaws.com", "ec2.amazonaws.com", "eks.amazonaws.com"
NEEDED: Mapping[str, tuple[str, ...]] = {
    PODS: ("sts:AssumeRole", "sts:TagSession"),
    NODES: ("sts:AssumeRole",),
    CONTROL_PLANE: ("sts:AssumeRole",),
}
"""A service of AWS -> the actions that it takes a role by."""
_ADMINISTRATOR = "AdministratorAccess"
_PASS_ROLE = "iam:PassRole"
_FEDERATED = "sts:AssumeRoleWithWebIdentity"
_POD = "system:serviceaccount:"
_SAME = frozenset({"stringequals", "stringequalsignorecase", "stringlike", "arnequals", "arnlike"})
"""Operators that hold only where the request has the key; with `IfExists`, `ForAllValues:` or a Not in them they hold without it too."""
_OWN = frozenset({"aws:principalorgid", "aws:principalorgpaths", "aws:principalarn", "aws:principalaccount"})
_ACCOUNT = re.compile(r"[0-9]{12}\*?")
"""A part of an ARN that is one account, whatever stands before it."""
_OF_CALLER = "${aws:principal"
_ORGANIZATION = re.compile(r"o-[a-z0-9]+/")
_OWNERS = {"repo:": "/", "project_path:": "/", "organization:": ":"}
"""How subjects of GitHub, GitLab and HCP Terraform begin, before the name of their owner, and what ends the name."""
_OF_OWNERS = ("token.actions.githubusercontent.com:", "gitlab.com:", "app.terraform.io:")
"""How the keys of their tokens begin: none of them is of pods."""
_WITHOUT_KEY = re.compile(r"forallvalues(?=:)|ifexists$")
_WRITTEN = {"forallvalues": "ForAllValues", "ifexists": "IfExists"}
_WITHOUT_SUBJECT = frozenset({"cognito-identity.amazonaws.com", "www.amazon.com", "graph.facebook.com"})
"""Providers that IAM knows by name and whose tokens are told apart by other keys than :sub."""


def statements(place: Node) -> Iterator[Node]:
    """The statements of a document, which is text or a mapping; nothing where it can't be read."""
    read = document(place)
    if read is not None:
        yield from members(read.at("Statement"))


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern with * and ? matches, in whatever case."""
    return fnmatchcase(text.lower(), pattern.lower().replace("[", "[[]"))


def _any(pattern: str) -> bool:
    """Whether a pattern matches any text, or any but the shortest."""
    return "*" in pattern and not pattern.strip("*?")


def covers(action: str) -> bool:
    """Whether a pattern of actions is for all of a service, or of all services."""
    return _any(action.partition(":")[2] or action)


def conditions(statement: Node) -> Iterator[tuple[str, str, list[str]]]:
    """Operator, key and values of each condition, operator and key in small letters."""
    for operator, pairs in statement.at("Condition").entries():
        for key, values in pairs.entries():
            yield operator.lower(), key.lower(), texts(values)


def of_everybody(statement: Node) -> bool:
    """Whether the statement is for every principal there is."""
    principal = statement.at("Principal")
    return principal.value == "*" or any(_any(each) for each in texts(principal.at("AWS")))


def _documents(resource: Resource, report: Report) -> None:
    for place in _attached(resource):
        with report.part():
            if place.text().rpartition("/")[2] == _ADMINISTRATOR:
                report.refuse(resource, place, allowed="a policy of what it needs")
    if resource.type == IAM_ROLE:
        place = resource.at("assumeRolePolicy")
        for check in (_form_of_trust, _trust, _pods_trust):
            with report.part():
                check(resource, place, report)
        for inline in resource.at("inlinePolicies").elements():
            _rights_in_form(resource, inline.at("policy"), report)
    elif resource.type not in IAM_ATTACHMENTS:
        _rights_in_form(resource, resource.at("policy"), report)


def _rights_in_form(resource: Resource, place: Node, report: Report) -> None:
    with report.part():
        well_formed(resource, place, trust=False, report=report)
    with report.part():
        _rights(resource, place, report)


def _form_of_trust(resource: Resource, place: Node, report: Report) -> None:
    well_formed(resource, place, trust=True, report=report)


def _pods_trust(resource: Resource, place: Node, report: Report) -> None:
    """EKS Pod Identity takes a role and tags the session, and is refused where it may do only one of the two."""
    if names_pods_in_vain(place):
        lacking = " and ".join(lacking_of(place, PODS))
        report.refuse(resource, place, allowed=f"{lacking} too for {PODS}", found=f"a trust of {PODS} without it")


def names_pods_in_vain(place: Node) -> bool:
    """Whether a trust names EKS Pod Identity and lets it do one of its two actions at most."""
    return bool(lacking_of(place, PODS)) and any(_is_of_service(each, PODS) for each in _allowing(place))


def lacking_of(place: Node, service: str) -> list[str]:
    """The actions that a service takes a role by and that the role's trust does not allow it."""
    names = (service, f"{service}.cn")  # In China services have their names and, of old, these.
    own = [each for each in _allowing(place) if of_everybody(each) or any(_is_of_service(each, name) for name in names)]
    return [action for action in NEEDED[service] if not any(_allows(statement, action) for statement in own)]


def _allowing(place: Node) -> list[Node]:
    return [each for each in statements(place) if each.at("Effect").text() == "Allow"]


def _is_of_service(statement: Node, service: str) -> bool:
    return service in texts(statement.at("Principal", "Service"))


def _attached(resource: Resource) -> Iterator[Node]:
    """Where the ARNs of managed policies stand."""
    yield resource.at("policyArn")
    for key in ("policyArns", "managedPolicyArns"):
        if resource.at(key).known:
            yield from resource.at(key).elements()
        else:
            yield resource.at(key)


def _rights(resource: Resource, place: Node, report: Report) -> None:
    for statement in statements(place):
        if statement.at("Effect").text() != "Allow":
            continue
        everything = next(_everything(statement), None)
        roles = next(_every_role(statement), None)
        for action in texts(statement.at("Action")):
            if everything and covers(action):
                report.refuse(resource, place, allowed="named actions, or named resources", found=f"{action} on {everything}")
            elif roles and matches(action, _PASS_ROLE):
                report.refuse(resource, place, allowed="the ARN of the role that is passed", found=f"{action} on {roles}")
        broad = everything or (roles if _allows(statement, _PASS_ROLE) else None)
        if broad and statement.at("NotAction").present:
            report.refuse(resource, place, allowed="named actions", found=f"NotAction on {broad}")


def _everything(statement: Node) -> Iterator[str]:
    """Each part of the statement that is about all resources, in words."""
    if statement.at("NotResource").present:
        yield "all but named resources"
    for resource in texts(statement.at("Resource")):
        parts = resource.split(":")
        # Partition and service tell no resource from another, for actions are of one service; the last part takes what is left out.
        if "*" in parts[-1] and not any(each.strip("*?/") for each in parts[min(3, len(parts) - 1) :]):
            yield resource


def _every_role(statement: Node) -> Iterator[str]:
    """As `_everything`, for all roles, be it of one account."""
    yield from _everything(statement)
    for resource in texts(statement.at("Resource")):
        parts = resource.split(":", 5)
        # What matches a name that nobody gives a role names none.
        if len(parts) > 5 and matches(parts[2], "iam") and matches(parts[5], f"role/{'~' * 64}"):
            yield resource


def _trust(resource: Resource, place: Node, report: Report) -> None:
    for statement in statements(place):
        if statement.at("Effect").text() != "Allow":
            continue
        everybody = of_everybody(statement) or statement.at("NotPrincipal").present
        if everybody and not any(_is_own(*each) for each in conditions(statement)):
            report.refuse(resource, place, allowed="a named principal", found="a trust of everybody")
        if _allows(statement, _FEDERATED) and any(_names_subjects(each) for each in texts(statement.at("Principal", "Federated"))):
            _subject(resource, place, statement, report)


def _is_own(operator: str, key: str, values: list[str]) -> bool:
    """Whether a condition leaves principals of named organizations, accounts or ARNs."""
    if not _demands(operator) or key not in _OWN:
        return False
    return bool(values) and all(_names_owner(each) for each in values)


def _names_owner(pattern: str) -> bool:
    """Whether a pattern is of one organization or account, whatever it leaves open; a wildcard may stand for several parts of an ARN."""
    if _OF_CALLER in pattern.lower():
        return False  # Whoever asks is himself.
    named = any(_ACCOUNT.fullmatch(part) for part in pattern.split(":")) or _ORGANIZATION.match(pattern) is not None
    return named or not {"*", "?"} & set(pattern)


def _allows(statement: Node, action: str) -> bool:
    """Whether the statement is about `action`."""
    if statement.at("NotAction").present:
        return not any(matches(each, action) for each in texts(statement.at("NotAction")))
    return any(matches(each, action) for each in texts(statement.at("Action")))


def _demands(operator: str) -> bool:
    """Whether a condition of this operator fails where the request lacks the key."""
    return operator.removeprefix("foranyvalue:") in _SAME


def _names_subjects(provider: str) -> bool:
    """Whether the tokens of a federated provider name whom they are of by :sub."""
    return ":saml-provider/" not in provider and provider not in _WITHOUT_SUBJECT


def _subject(resource: Resource, place: Node, statement: Node, report: Report) -> None:
    demanded = [(key, values) for operator, key, values in conditions(statement) if _demands(operator)]
    named = [key for key, values in demanded if key.endswith(":sub") or not any(_any(each) for each in values)]
    for ending in (":sub", ":aud"):
        if not any(key.endswith(ending) for key in named):
            found = f"a trust of an OIDC provider {_lacking(statement, ending)}"
            report.refuse(resource, place, allowed=f"a condition on {ending}", found=found)
    subjects = [(key, values) for key, values in demanded if key.endswith(":sub")]
    # Conditions hold together, so one that names a subject is enough.
    if subjects and all(any(_wide(each) for each in values) for _, values in subjects):
        key, values = subjects[0]
        wide = next(each for each in values if _wide(each))
        pods = _of_pods(wide) and not key.startswith(_OF_OWNERS)
        allowed = "one namespace and service account" if pods else "subjects of a named owner"
        report.refuse(resource, place, allowed=allowed, found=f"a trust of {', '.join(values)}")


def _lacking(statement: Node, ending: str) -> str:
    """How the statement comes to demand nothing of a key: it says nothing of it, or in a way that holds without it too."""
    for operator, key, _ in conditions(statement):
        soft = _WITHOUT_KEY.search(operator) if key.endswith(ending) else None
        if soft:
            return f"with {ending} by {_WRITTEN[soft[0]]}, which holds without the key"
    return f"without {ending}"


def _start(subject: str) -> str:
    """The part of a pattern that is literal."""
    return re.split(r"[*?]", subject)[0]


def _of_pods(subject: str) -> bool:
    """Whether the pattern is, or may be, of service accounts."""
    return subject.startswith(_POD) or _POD.startswith(_start(subject))


def _wide(subject: str) -> bool:
    """Whether a pattern leaves open who it is: of pods, any wildcard does."""
    start = _start(subject)
    if start == subject:
        return False
    if _of_pods(subject) or any(owner.startswith(start) for owner in _OWNERS) or re.fullmatch(r"\w+:", start):
        return True
    # Anyone may register an owner whose name begins like that of another.
    return any(start.startswith(owner) and end not in start.removeprefix(owner) for owner, end in _OWNERS.items())


def _policy(*actions: str, resource: str = "*") -> tuple[Example, ...]:
    words = ", ".join(f'"{action}"' for action in actions)
    text = f'{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": [{words}], "Resource": "{resource}"}}]}}'
    return (Example(IAM_POLICY, {"policy": text}, name="trainer"),)


RULES = (
    Rule(
        id="SEC03",
        name="policy-disallow-everything",
        title="IAM documents name actions, resources, and who may take a role",
        types=IAM_ATTACHMENTS | {IAM_POLICY, IAM_ROLE_POLICY, IAM_USER_POLICY, IAM_GROUP_POLICY, IAM_ROLE},
        check=_documents,
        why="one leaked token of one pod is then the whole account; what is no document in form IAM refuses, after the rest was made.",
        fix="list the actions on the ARNs they are needed on; let a trust name audience, namespace and service account.",
        source="Checkov CKV_AWS_62 and CKV_AWS_63; CIS EKS 5.1; IAM reference: policy elements, grammar and condition operators; "
        "EKS guide: Pod Identity roles; hashicorp/terraform-provider-aws#41483",
        valid=_policy("s3:GetObject", resource="arn:aws:s3:::bucket/data/*"),
        invalid=_policy("s3:*"),
    ),
)
