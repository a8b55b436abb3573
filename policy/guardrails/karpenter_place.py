"""Pods and pools: a restricted pool keeps other pods out, its own pods find it, and zones have one name."""

from guardrails.facts import load
from guardrails.node import Node
from guardrails.placing import all_templates, chooses_nodes, is_queued, pools_of, taints, tolerates, wanted_keys
from guardrails.pool import ZONE, is_training_pool, is_zone_by_other_key
from guardrails.program import Program
from guardrails.rule import Example, Report, Resource, StackRule
from guardrails.template import GPU, POD_TYPES, PodTemplate
from guardrails.tokens import DAEMON_SET, NODE_POOL


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
        found = "unset, with tolerations" if list(tolerations.elements()) else "unset"
        place = template.spec.at("nodeSelector")
        report.refuse(resource, place, allowed="a selector of the pool or instance type: a toleration only permits", found=found)
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


def _written(taint: Node) -> str:
    return f"{taint.at('key').text()}:{taint.at('effect').text()}"


def _pool() -> Example:
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}]
    taint = {"key": GPU, "effect": "NoSchedule"}
    spec = {"template": {"metadata": {"labels": {"pool": "p5"}}, "spec": {"requirements": requirements, "taints": [taint]}}}
    return Example(NODE_POOL, {"metadata": {"name": "p5"}, "spec": spec}, name="p5")


def _pod(**spec: object) -> Example:
    container = {"name": "trainer", "resources": {"limits": {GPU: 8}, "requests": {GPU: 8}}}
    body = {"tolerations": [{"key": GPU, "operator": "Exists"}], "containers": [container], **spec}
    return Example("kubernetes:core/v1:Pod", {"metadata": {"name": "trainer"}, "spec": body}, name="trainer")


RULES = (
    StackRule(
        id="KRP11",
        name="pod-require-pool-and-toleration",
        title="A pool of accelerators is tainted, its pods both select it and tolerate it, and pods name zones by one key",
        types=POD_TYPES | {NODE_POOL},
        check=_places,
        why="pods without accelerators fill the nodes, or the job stays Pending while Karpenter launches nodes it can't use, or none.",
        fix="taint the pool, give the pod its selector and a toleration of the taint, and choose zones by topology.kubernetes.io/zone.",
        source="karpenter 1.14.1 concepts/nodepools (taints and startupTaints); kubernetes-sigs/karpenter#2458",
        valid=(_pool(), _pod(nodeSelector={"pool": "p5"})),
        invalid=(_pool(), _pod()),
    ),
)
