"""Which pool a pod goes to, as far as selectors say."""

from collections.abc import Iterator

from guardrails.node import Node
from guardrails.pool import narrowed, normal_key
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.template import POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import NODE_POOL

POOL_LABEL = "karpenter.sh/nodepool"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
# Labels that Karpenter gives nodes by itself: a pool that does not limit them has nodes with any value.
_WELL_KNOWN = ("karpenter.k8s.aws/", "topology.kubernetes.io/", "node.kubernetes.io/", "kubernetes.io/", "karpenter.sh/capacity-type")


def wanted_labels(template: PodTemplate) -> dict[str, list[str]]:
    """Label -> values that a node must have one of, from nodeSelector and required node affinity."""
    wanted = {normal_key(key): [value.text()] for key, value in template.spec.at("nodeSelector").entries()}
    terms = _terms(template)
    # Several terms are alternatives; only one is a demand.
    for expression in terms[0].at("matchExpressions").elements() if len(terms) == 1 else ():
        if expression.at("operator").text() == "In":
            wanted[normal_key(expression.at("key").text())] = [value.text() for value in expression.at("values").elements()]
    return wanted


def wanted_keys(template: PodTemplate) -> Iterator[tuple[str, Node, list[Node]]]:
    """Each label that a node must have, in one of the alternatives at least, where the pod says so, and the values it names."""
    for key, value in template.spec.at("nodeSelector").entries():
        yield key, value, [value]
    for term in _terms(template):
        for expression in term.at("matchExpressions").elements():
            if expression.at("operator").text() not in ("NotIn", "DoesNotExist"):
                yield expression.at("key").text(), expression.at("key"), list(expression.at("values").elements())


def _terms(template: PodTemplate) -> list[Node]:
    place = template.spec.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    return list(place.elements())


def chooses_nodes(template: PodTemplate) -> bool:
    """Whether the pod demands nodes of any kind; what it prefers alone keeps it from none."""
    return bool(wanted_labels(template)) or bool(_terms(template))


def names_pools(template: PodTemplate) -> bool:
    """Whether the pod wants a label that only a pool's nodes have: other nodes may have those that every node gets."""
    return any(key == POOL_LABEL or not key.startswith(_WELL_KNOWN) for key in wanted_labels(template))


def selects(template: PodTemplate, pool: Resource) -> bool:
    """Whether the pod demands nodes, and those of the pool are among them."""
    wanted = wanted_labels(template)
    return bool(wanted) and all(_offers(pool, key, values) for key, values in wanted.items())


def _offers(pool: Resource, key: str, values: list[str]) -> bool:
    if key == POOL_LABEL:
        return pool.at("metadata", "name").text() in values
    offered = narrowed(pool, key, values)
    return key.startswith(_WELL_KNOWN) if offered is None else bool(offered)


def pools_of(program: Program, template: PodTemplate) -> list[Resource]:
    """The pools of the program that the pod may go to; none where it names no nodes."""
    return [pool for pool in program.of(NODE_POOL) if selects(template, pool)]


def all_templates(program: Program) -> Iterator[tuple[Resource, PodTemplate]]:
    """Every pod template of the program with its resource."""
    for resource in program.of(*sorted(POD_TYPES)):
        for template in pod_templates(resource):
            yield resource, template


def users_of(program: Program, pool: Resource) -> Iterator[tuple[Resource, PodTemplate]]:
    """The pod templates that may go to `pool` by what they demand."""
    for resource, template in all_templates(program):
        if selects(template, pool):
            yield resource, template


def taints(pool: Resource, key: str = "taints") -> list[Node]:
    """The pool's taints that keep pods away."""
    found = pool.at("spec", "template", "spec", key).elements()
    return [taint for taint in found if taint.at("effect").text() in _EFFECTS]


def tolerates(template: PodTemplate, taint: Node) -> bool:
    """Whether a toleration of the pod matches the taint."""
    return any(_matches(toleration, taint) for toleration in template.spec.at("tolerations").elements())


def _matches(toleration: Node, taint: Node) -> bool:
    effect = toleration.at("effect").text()
    if effect and effect != taint.at("effect").text():
        return False
    key, exists = toleration.at("key").text(), toleration.at("operator").text() == "Exists"
    if not key:
        return exists
    if key != taint.at("key").text():
        return False
    return exists or toleration.at("value").text() == taint.at("value").text()
