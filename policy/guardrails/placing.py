"""Which pool a pod goes to, as far as selectors say."""

from collections.abc import Iterable, Iterator, Mapping

from guardrails.launch import types_of
from guardrails.node import Node
from guardrails.pool import INSTANCE_TYPE, allowed_values, narrowed, normal_key, requirements
from guardrails.program import Program
from guardrails.rule import Resource
from guardrails.template import POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import (
    CRON_JOB,
    DEPLOYMENT,
    HYPERPOD_JOB,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    MPI_JOB,
    NODE_POOL,
    POD,
    PYTORCH_JOB,
    RAY_CLUSTER,
    RAY_JOB,
    RAY_SERVICE,
    SCALING_GROUP,
    STATEFUL_SET,
)

POOL_LABEL = "karpenter.sh/nodepool"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_SYSTEM = "kubernetes.io/os"
_GIVERS = ("kubernetes.io", "eks.amazonaws.com")
"""How the keys of labels begin that a node group's nodes have beside the group's own."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""By it Kueue knows what goes into which of its queues."""
_QUEUED = frozenset(
    {DEPLOYMENT, JOB, JOB_SET, LEADER_WORKER_SET, MPI_JOB, POD, PYTORCH_JOB, RAY_CLUSTER, RAY_JOB, RAY_SERVICE, STATEFUL_SET}
)
"""Kinds that Kueue manages by a label of their own; of others it may manage the pods."""
_PLACED = POD_TYPES - {HYPERPOD_JOB}
_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
# Labels that Karpenter gives nodes by itself: a pool that does not limit them has nodes with any value.
_WELL_KNOWN = ("karpenter.k8s.aws/", "topology.kubernetes.io/", "node.kubernetes.io/", "kubernetes.io/", "karpenter.sh/capacity-type")


def alternatives(template: PodTemplate) -> list[dict[str, list[str] | None]]:
    """Each way in which a node may suit the pod: label -> the values of which it must have one, None for any value.

    What a node must not have is left out.
    """
    own: dict[str, list[str] | None] = {normal_key(key): [value.text()] for key, value in template.spec.at("nodeSelector").entries()}
    return [_with_term(own, term) for term in _terms(template)] or [own]


def _with_term(own: Mapping[str, list[str] | None], term: Node) -> dict[str, list[str] | None]:
    wanted = dict(own)
    for expression in term.at("matchExpressions").elements():
        key, operator = normal_key(expression.at("key").text()), expression.at("operator").text()
        if operator == "In":
            named, before = [value.text() for value in expression.at("values").elements()], wanted.get(key)
            wanted[key] = named if before is None else [value for value in before if value in named]
        elif operator in ("Exists", "Gt", "Lt"):
            wanted.setdefault(key, None)
    return wanted


def wanted_labels(template: PodTemplate) -> dict[str, list[str]]:
    """Label -> values that a node must have one of, whichever alternative of the pod it suits."""
    first, *others = alternatives(template)
    wanted: dict[str, list[str]] = {}
    for key in first:
        named = [each.get(key) for each in (first, *others)]
        if None not in named:
            wanted[key] = list(dict.fromkeys(value for values in named for value in values or ()))
    return wanted


def named_types(template: PodTemplate) -> list[str]:
    """The instance types of which a node must be one; none where the pod names none."""
    return wanted_labels(template).get(INSTANCE_TYPE) or []


def wanted_keys(template: PodTemplate) -> Iterator[tuple[str, Node, Iterable[Node]]]:
    """Each label that a node must have, in one of the alternatives at least, where the pod says so, and the values it names."""
    for key, value in template.spec.at("nodeSelector").entries():
        yield key, value, [value]
    for term in _terms(template):
        for expression in term.at("matchExpressions").elements():
            if expression.at("operator").text() not in ("NotIn", "DoesNotExist"):
                yield expression.at("key").text(), expression.at("key"), expression.at("values").elements()


def _terms(template: PodTemplate) -> list[Node]:
    place = template.spec.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    return list(place.elements())


def chooses_nodes(template: PodTemplate) -> bool:
    """Whether the pod demands nodes of any kind; what it prefers alone keeps it from none."""
    return bool(wanted_labels(template)) or bool(_terms(template))


def is_queued(resource: Resource, template: PodTemplate) -> bool:
    """Whether Kueue gives the pods the node labels and tolerations of a ResourceFlavor once it lets them start."""
    places = [template.metadata]
    if resource.type in _QUEUED:
        places.append(resource.at("metadata"))
    elif resource.type == CRON_JOB:
        places.append(resource.at("spec", "jobTemplate", "metadata"))
    return any(place.at("labels", QUEUE_LABEL).text() for place in places)


def names_pools(template: PodTemplate) -> bool:
    """Whether the pod wants a label that only a pool's nodes have: other nodes may have those that every node gets."""
    return all(any(key == POOL_LABEL or not key.startswith(_WELL_KNOWN) for key in wanted) for wanted in alternatives(template))


def selects(template: PodTemplate, pool: Resource) -> bool:
    """Whether the pod demands nodes, and those of the pool are among them."""
    verdicts = pool.memo.setdefault("selected by", {})
    if id(template) not in verdicts:
        ways = alternatives(template)
        selected = any(bool(wanted) and all(is_offered(pool, key, values) for key, values in wanted.items()) for wanted in ways)
        # The template is kept beside the verdict, so that no other one gets its id.
        verdicts[id(template)] = (template, selected)
    return verdicts[id(template)][1]


def is_offered(pool: Resource, key: str, values: list[str] | None) -> bool:
    """Whether nodes of the pool may have the label with one of the values, or with any where there are none."""
    if key == POOL_LABEL:
        return values is None or pool.at("metadata", "name").text() in values
    if values is None:
        operators = [operator for name, operator, _ in requirements(pool) if name == key]
        has = allowed_values(pool, key) is not None or bool(operators)
        return "DoesNotExist" not in operators and (has or key.startswith(_WELL_KNOWN))
    # Karpenter gives a node the value that the pod wants where the pool leaves it open.
    offered = narrowed(pool, key, values)
    return key.startswith(_WELL_KNOWN) if offered is None else bool(offered)


def always_beside(agent: PodTemplate, guest: PodTemplate, instance_type: str, pool: Resource | None) -> bool:
    """Whether a DaemonSet's pod is sure to run on every node of the type (of the pool, where it is known) that takes `guest`."""
    if not _stays_beside(agent, guest, pool) or not all(_is_plain(term) for term in _terms(agent)):
        return False
    sure = {**wanted_labels(guest), INSTANCE_TYPE: [instance_type], _SYSTEM: ["linux"]}
    return any(all(_certain(key, values, sure, pool) for key, values in wanted.items()) for wanted in alternatives(agent))


def _stays_beside(agent: PodTemplate, guest: PodTemplate, pool: Resource | None) -> bool:
    """Whether no taint that the guest tolerates keeps the agent away."""
    tolerations = list(agent.spec.at("tolerations").elements())
    if any(_tolerates_all(toleration) for toleration in tolerations):
        return True
    if pool is not None:
        return all(tolerates(agent, taint) for taint in taints(pool))
    own = [_said(toleration) for toleration in tolerations]
    return all(_said(toleration) in own for toleration in guest.spec.at("tolerations").elements())


def _said(toleration: Node) -> tuple[str, ...]:
    key, value, effect = (toleration.at(part).text() for part in ("key", "value", "effect"))
    return key, value, effect, toleration.at("operator").text() or "Equal"


def _certain(key: str, values: list[str] | None, sure: Mapping[str, list[str]], pool: Resource | None) -> bool:
    """Whether each node has one of the values, by what is sure of it or by what its pool leaves."""
    had = sure.get(key) or (allowed_values(pool, key) if pool is not None else None)
    return bool(had) and (values is None or set(had) <= set(values))


def _is_plain(term: Node) -> bool:
    """Whether `alternatives` has all that the term says."""
    operators = {expression.at("operator").text() for expression in term.at("matchExpressions").elements()}
    return operators <= {"In", "Exists"} and not term.at("matchFields").present


def _tolerates_all(toleration: Node) -> bool:
    return not toleration.at("key").text() and not toleration.at("effect").text() and toleration.at("operator").text() == "Exists"


def pools_of(program: Program, template: PodTemplate) -> list[Resource]:
    """The pools of the program that the pod may go to; none where it names no nodes."""
    return [pool for pool in program.of(NODE_POOL) if selects(template, pool)]


def may_take(program: Program, group: Resource, template: PodTemplate) -> bool:
    """Whether nodes of a managed node group or an Auto Scaling group have the labels that the pod wants, as far as the group says."""
    types = types_of(program, group)
    for key, values in wanted_labels(template).items():
        label = group.at("labels", key)
        had = [label.text()] if label.present else types if key == INSTANCE_TYPE else []
        # What labels the nodes of an Auto Scaling group have is in their user data.
        given_by_others = group.type == SCALING_GROUP or key.partition("/")[0].endswith(_GIVERS)
        if not set(had) & set(values) and (had or not given_by_others):
            return False
    return True


def all_templates(program: Program) -> Iterator[tuple[Resource, PodTemplate]]:
    """Every pod template of the program with its resource, but for those whose nodes and plug-ins are SageMaker's."""
    for resource in program.of(*sorted(_PLACED)):
        for template in pod_templates(resource):
            yield resource, template


def users_of(program: Program, pool: Resource) -> Iterator[tuple[Resource, PodTemplate]]:
    """The pod templates that may go to `pool` by what they demand."""
    for resource, template in all_templates(program):
        if selects(template, pool):
            yield resource, template


def new_users_of(program: Program, pool: Resource) -> Iterator[tuple[Resource, PodTemplate]]:
    """As `users_of`, without those that were there together with the pool when it was judged before."""
    if program.is_news(pool):
        yield from users_of(program, pool)
        return
    for resource in program.news:
        if resource.type in _PLACED:
            yield from ((resource, template) for template in pod_templates(resource) if selects(template, pool))


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
