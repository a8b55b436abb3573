"""EKS roles: the service that is to take a role is in its trust."""

import json
from collections.abc import Iterator, Sequence

from guardrails.iam import CONTROL_PLANE, NEEDED, NODES, PODS, lacking_of, names_pods_in_vain
from guardrails.links import demand
from guardrails.node import Node
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.tokens import ADDON, CLUSTER, IAM_ROLE, NODE_CLASS, NODE_GROUP, POD_IDENTITY

_ARN = "arn:"
_TAKEN = {
    POD_IDENTITY: (("roleArn",), PODS),
    NODE_GROUP: (("nodeRoleArn",), NODES),
    NODE_CLASS: (("spec", "role"), NODES),
    CLUSTER: (("roleArn",), CONTROL_PLANE),
}
"""What names a role -> where, and the service that takes it."""


def _trusts(program: Program, report: Report) -> None:
    for user in program.of(*_TAKEN, ADDON):
        with report.part():
            for key, place, service in _named_by(user):
                with report.part():
                    role = _role(program, user, key, place)
                    if role is not None and role.at("assumeRolePolicy").present:
                        _trust(user, place, role, service, report)


def _named_by(user: Resource) -> Iterator[tuple[str, Node, str]]:
    """The property that names a role, the part of it that does, and the service that takes the role."""
    if user.type != ADDON:
        keys, service = _TAKEN[user.type]
        yield keys[0], user.at(*keys), service
        return
    for association in user.at("podIdentityAssociations").elements():
        yield "podIdentityAssociations", association.at("roleArn"), PODS


def _role(program: Program, user: Resource, key: str, place: Node) -> Resource | None:
    """The role of this program that is named, if it is one; of several that an unknown value may come from, none."""
    if not place.present:
        return None
    roles, origins = list(program.of(IAM_ROLE)), user.sources.get(key, ())
    if place.known:
        return _called(place.text(), roles)
    if not origins:
        demand(place)
    made = [role for role in roles if role.urn in origins]
    return made[0] if len(made) == 1 else None


def _called(text: str, roles: Sequence[Resource]) -> Resource | None:
    """The role with a name or an ARN; none where several have the name, and it may be another account's."""
    name = text.rpartition("/")[2]
    for role in roles:
        demand(role.at("name"))
    found = [role for role in roles if name and role.at("name").raw == name]
    if len(found) != 1:
        return None
    own = found[0].at("arn")
    return found[0] if not text.startswith(_ARN) or not own.present or own.text() == text else None


def _trust(user: Resource, place: Node, role: Resource, service: str, report: Report) -> None:
    trust = role.at("assumeRolePolicy")
    if service == PODS and names_pods_in_vain(trust):
        return  # SEC03 says it of the role.
    lacking = lacking_of(trust, service)
    if lacking:
        allowed = f"a role that {service} may take ({' and '.join(NEEDED[service])})"
        # An account's number is not known of a role before it is made.
        tell = report.advise if place.known and place.text().startswith(_ARN) and not role.at("arn").present else report.refuse
        tell(user, place, allowed=allowed, found=f"role {role.name}, whose trust does not let it {' and '.join(lacking)}")


def _association(service: str) -> tuple[Example, ...]:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    arn = "arn:aws:iam::123456789012:role/trainer"
    identity = {"namespace": "jobs", "serviceAccount": "trainer", "roleArn": arn}
    return (
        Example(IAM_ROLE, {"name": "trainer", "arn": arn, "assumeRolePolicy": trust}, name="role"),
        Example(POD_IDENTITY, identity, name="trainer"),
    )


RULES = (
    StackRule(
        id="EKS09",
        name="role-require-service-trust",
        title="A role trusts the service that takes it: of nodes EC2, of pods EKS Pod Identity, of the cluster EKS",
        types=frozenset({*_TAKEN, ADDON, IAM_ROLE}),
        check=_trusts,
        why="EKS refuses the cluster, the node group or the association; Karpenter launches nodes that get no credentials and never join.",
        fix="let ec2.amazonaws.com, eks.amazonaws.com or pods.eks.amazonaws.com (with sts:TagSession) take the role that is for it.",
        source="EKS guide: node role, cluster role, Pod Identity role; hashicorp/terraform-provider-aws#41483",
        valid=_association(PODS),
        invalid=_association(NODES),
    ),
)
