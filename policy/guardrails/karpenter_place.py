"""Pods and pools: a restricted pool keeps other pods out, its own pods find it, and zones have one name."""

from guardrails.facts import load
from guardrails.node import Node
from guardrails.placing import all_templates, chooses_nodes, is_queued, pools_of, taints, tolerates, wanted_keys
from guardrails.pool import ZONE, is_training_pool, is_zone_by_other_key
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import GPU, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, NODE_POOL, POD, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET
from guardrails.world import trains_alone

_PLAIN = frozenset({POD, JOB, CRON_JOB, DEPLOYMENT, STATEFUL_SET, REPLICA_SET, REPLICATION_CONTROLLER})
"""Kubernetes' own kinds, which say nothing of training."""


def _places(program: Program, report: Report) -> None:
    for pool in program.of(NODE_POOL):
        with report.part():
            _keeps_out(pool, report)
        with report.part():
            _agents(pool, report)
    for resource, template in all_templates(program):
        with report.part():
            _zone_keys(resource, template, report)
        if resource.type != DAEMON_SET:
            with report.part():
                # Kueue brings the selector, the toleration or both.
                if not is_queued(resource, template):
                    _finds(program, resource, template, report)


def _keeps_out(pool: Resource, report: Report) -> None:
    if is_training_pool(pool) and not taints(pool):
        place = pool.at("spec", "template", "spec", "taints")
        report.refuse(pool, place, allowed="a taint such as nvidia.com/gpu:NoSchedule: other pods fill the accelerators' nodes else")


def _agents(pool: Resource, report: Report) -> None:
    known = load("karpenter")["agentTaints"]
    for taint in pool.at("spec", "template", "spec", "taints").elements():
        key = taint.at("key")
        if key.text() in known:
            allowed = "under startupTaints: the agent removes it, and Karpenter takes it for one that stays"
            report.refuse(pool, key, allowed=allowed)


def _zone_keys(resource: Resource, template: PodTemplate, report: Report) -> None:
    for key, place, values in wanted_keys(template):
        if is_zone_by_other_key(key, values):
            report.refuse(resource, place, allowed=f"{ZONE}: no other key pins a zone", found=key)


def _finds(program: Program, resource: Resource, template: PodTemplate, report: Report) -> None:
    if not template.devices():
        return
    tolerations = template.spec.at("tolerations")
    if not chooses_nodes(template):
        if not _is_alone(resource) or trains_alone(template):
            _unplaced(resource, template, report)
        return
    barred: list[tuple[Resource, list[Node]]] = []
    for pool in pools_of(program, template):
        missing = [taint for taint in taints(pool) if not tolerates(template, taint)]
        if not missing:
            return
        barred.append((pool, missing))
    if barred:
        pool, missing = barred[0]
        names = ", ".join(_written(taint) for taint in missing)
        report.refuse(resource, tolerations, allowed=f"a toleration of {names}, the taint of {pool.name} that it selects")


def _is_alone(resource: Resource) -> bool:
    """Whether it is one pod on one node, of a kind that may be anything: a test, a server, a notebook."""
    return resource.type in _PLAIN and sum(template.replicas for template in pod_templates(resource)) <= 1


def _unplaced(resource: Resource, template: PodTemplate, report: Report) -> None:
    permitted = next(template.spec.at("tolerations").elements(), None) is not None
    found, only = ("unset, with tolerations", " (a toleration only permits)") if permitted else ("unset", "")
    allowed = f"a selector of the pool or instance type: any other that has such devices takes the pod too{only}"
    report.refuse(resource, template.spec.at("nodeSelector"), allowed=allowed, found=found)


def _written(taint: Node) -> str:
    return f"{taint.at('key').text()}:{taint.at('effect').text()}"


def _pool() -> Example:
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}]
    taint = {"key": GPU, "effect": "NoSchedule"}
    spec = {"template": {"metadata": {"labels": {"pool": "p5"}}, "spec": {"requirements": requirements, "taints": [taint]}}}
    return Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": spec}, name="p5")


def _pod(**spec: object) -> Example:
    resources = {"limits": {GPU: 8}, "requests": {GPU: 8}}
    container = {"name": "trainer", "command": ["torchrun", "train.py"], "resources": resources}
    body = {"tolerations": [{"key": GPU, "operator": "Exists"}], "containers": [container], **spec}
    return Example("kubernetes:core/v1:Pod", {"metadata": {"name": "trainer"}, "spec": body}, name="trainer")


RULES = (
    StackRule(
        id="KRP11",
        name="pod-require-pool-and-toleration",
        title="A pool of accelerators is tainted, its pods both select it and tolerate it, and pods name zones by one key",
        types=POD_TYPES | {NODE_POOL},
        check=_places,
        why="pods without accelerators fill the nodes, ranks start on whatever type has devices, or the job stays Pending while Karpenter "
        "launches nodes it can't use, or none.",
        fix="taint the pool, give the pod its selector and a toleration of the taint, and choose zones by topology.kubernetes.io/zone.",
        source="karpenter 1.14.1 concepts/nodepools (taints and startupTaints); kubernetes-sigs/karpenter#2458",
        valid=(_pool(), _pod(nodeSelector={"pool": "p5"})),
        invalid=(_pool(), _pod()),
    ),
)
