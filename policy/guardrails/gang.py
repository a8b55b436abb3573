"""Which pods train together: the launchers they call, with how many nodes, and where these meet."""

import re

from guardrails import command, environment
from guardrails.node import Node
from guardrails.placing import named_types
from guardrails.rule import Resource
from guardrails.template import GPU, WORKER, PodTemplate, pod_templates
from guardrails.tokens import (
    CRON_JOB,
    HYPERPOD_JOB,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    MPI_JOB,
    NODE_SET,
    PYTORCH_JOB,
    RAY_CLUSTER,
    RAY_JOB,
    VOLCANO_JOB,
)

# The pods of other kinds are copies of a server, or one for each node, unless their launcher says otherwise.
_TOGETHER = frozenset(
    {JOB, CRON_JOB, JOB_SET, LEADER_WORKER_SET, MPI_JOB, PYTORCH_JOB, HYPERPOD_JOB, VOLCANO_JOB, RAY_CLUSTER, RAY_JOB, NODE_SET}
)
# Their parts may be steps of one run, or runs of their own: which train together is what their launchers say.
_OF_PARTS = frozenset({JOB_SET, VOLCANO_JOB})
# Worker groups on one instance type are one set of workers in parts; on another type, they do something else.
_RAY = frozenset({RAY_CLUSTER, RAY_JOB})
_LOSSES = frozenset({"PodEvicted", "PodFailed", "*"})
"""Events of Volcano: one pod has gone."""
MEETING_VARIABLES = ("MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT")
"""The variables that say where ranks meet."""
ENDPOINT = "--rdzv-endpoint"
MEETING_OPTIONS = ("--master-addr", "--main-process-ip", ENDPOINT)
"""The options that do."""
_RENDEZVOUS = frozenset({*MEETING_VARIABLES, "WORLD_SIZE", "NNODES", "NODE_RANK", "PET_NODE_RANK"})
_NODES = {"accelerate": "--num-machines", "deepspeed": "--num-nodes"}
_RANGE = re.compile(r"([0-9]{1,9})(?::([0-9]{1,9}))?")


def calls(container: Node) -> list[command.Invocation]:
    """The calls of launchers in a container, with the values of the variables that it sets."""
    found = command.invocations(command.commands(container), command.RANKS, environment.expander(container))
    return list(found)


def setting(call: command.Invocation, container: Node, *names: str) -> str | None:
    """The option, or else the variable that torchrun reads in its place; empty where it is not literal, None where it is absent."""
    value = call.option(*names)
    if value is None and call.launcher in command.TORCHRUN:
        variable = environment.last(container, f"PET_{names[0].lstrip('-').replace('-', '_').upper()}")
        value = environment.expanded(container, variable.text) if variable else None
    return value


def number(call: command.Invocation, container: Node, *names: str) -> int | None:
    """The setting as a whole number; None where it is absent or none."""
    value = setting(call, container, *names)
    return int(value) if value is not None and re.fullmatch(r"[0-9]{1,9}", value) else None


def nodes_option(call: command.Invocation) -> str:
    """The launcher's option for the number of nodes."""
    return _NODES.get(call.launcher, "--nnodes")


def nodes(call: command.Invocation, container: Node) -> tuple[int, int] | None:
    """Least and most nodes that the launcher is told to wait for; None where it is told no number."""
    matched = _RANGE.fullmatch(setting(call, container, nodes_option(call)) or "")
    return (int(matched[1]), int(matched[2] or matched[1])) if matched else None


def spreads(call: command.Invocation, container: Node) -> bool:
    """Whether the launcher is told to start ranks on several nodes."""
    told = nodes(call, container)
    return told is not None and told[1] > 1


def meets(call: command.Invocation, container: Node) -> bool:
    """Whether torchrun's nodes find each other: by a backend that gives them ranks, or each knows its own and the address of node 0."""
    if is_dynamic(call, container):
        return setting(call, container, ENDPOINT) is not None
    told = (setting(call, container, name) for name in (ENDPOINT, "--master-addr"))
    return rank(call, container) is not None and any(address is not None for address in told)


def is_dynamic(call: command.Invocation, container: Node) -> bool:
    """Whether the rendezvous gives out ranks; torchrun's own choice, static, takes every node without --node-rank for node 0."""
    return setting(call, container, "--rdzv-backend") not in (None, "static")


def rank(call: command.Invocation, container: Node) -> str | None:
    """The rank of its node that a launcher is told; empty where it is not literal."""
    return setting(call, container, "--node-rank", "--machine-rank")


def size(resource: Resource, template: PodTemplate) -> int:
    """How many pods train together with one of a template, itself counted; 1 where each works alone, 0 where there is none."""
    own = copies(resource, template)
    return own and own + sum(copies(resource, each) for each in pod_templates(resource) if _trains_with(resource, template, each))


def copies(resource: Resource, template: PodTemplate) -> int:
    """How many pods of one template train together; 1 where each works alone."""
    if resource.type == LEADER_WORKER_SET:
        # Of the pods of a template each group has as many, and the groups are copies that know nothing of each other.
        groups = resource.at("spec", "replicas").integer()
        return template.replicas // (groups or 1)
    together = not _shares_work(resource, template) if resource.type in _TOGETHER else is_spread(template)
    return template.replicas if together else min(template.replicas, 1)


def _trains_with(resource: Resource, template: PodTemplate, other: PodTemplate) -> bool:
    """Whether the pods of another template of the resource train together with those of this one."""
    if other.spec.path == template.spec.path:
        return False
    if resource.type == PYTORCH_JOB:
        # A Master may call itself by any name that it has; who looks for it is each Worker.
        return template.role == WORKER
    if resource.type == LEADER_WORKER_SET:
        return computes(template) and computes(other)
    if resource.type in _OF_PARTS:
        return is_spread(template) and is_spread(other)
    if resource.type in _RAY:
        types = named_types(template)
        both = template.requested(GPU) > 0 and other.requested(GPU) > 0
        return both and bool(types) and types == named_types(other)
    return False


def computes(template: PodTemplate) -> bool:
    """Whether the pods have devices or start ranks."""
    return template.devices() > 0 or any(calls(container) for container in template.containers())


def starts_ranks(container: Node) -> bool:
    """Whether a container calls what starts ranks."""
    return bool(calls(container)) or any(command.invocations(command.commands(container), command.MPIRUN))


def runs_training(template: PodTemplate) -> bool:
    """Whether the pods start ranks, or run a program that says by its name that it trains."""
    return any(starts_ranks(container) or names_training(container) for container in template.containers())


def names_training(container: Node) -> bool:
    """Whether a program that the container runs, by a variable or not, says by its name that it trains."""
    return command.names_training(container, environment.expander(container))


def starts_over(job: Resource) -> bool:
    """Whether all pods of a job, with devices or not, begin anew when one of several goes."""
    if job.type not in (MPI_JOB, VOLCANO_JOB):
        return job.type == PYTORCH_JOB
    if any(map(runs_training, pod_templates(job))):
        return True
    places = (job.at("spec"), *job.at("spec", "tasks").elements())
    return any(_restarts_all(policy) for place in places for policy in place.at("policies").elements())


def _restarts_all(policy: Node) -> bool:
    events = {policy.at("event").text(), *(event.text() for event in policy.at("events").elements())}
    return policy.at("action").text() == "RestartJob" and not events.isdisjoint(_LOSSES)


def is_spread(template: PodTemplate) -> bool:
    """Whether a launcher in the pods is told to start ranks on several nodes."""
    return any(spreads(call, container) for container in template.containers() for call in calls(container))


def job_spec(job: Resource) -> Node:
    """The spec of a Job, or of those that a CronJob makes."""
    return job.at("spec", "jobTemplate", "spec") if job.type == CRON_JOB else job.at("spec")


def _shares_work(resource: Resource, template: PodTemplate) -> bool:
    """Whether the pods of a Job work alone: none meets another, and they take items of a queue, or nothing says that they train."""
    if resource.type not in (JOB, CRON_JOB) or meets_others(template):
        return False
    completions = job_spec(resource).at("completions").integer()
    return completions is None or completions > template.replicas or not _may_meet(resource, template)


def _may_meet(job: Resource, template: PodTemplate) -> bool:
    """Whether the pods of a Job that all run at once have names or ranks, or a program that is known to train."""
    indexed = job_spec(job).at("completionMode").text() == "Indexed"
    return indexed or template.spec.at("subdomain").present or runs_training(template)


def meets_others(template: PodTemplate) -> bool:
    """Whether a launcher or variables of the pods name others to meet."""
    return any(_meets_others(container) for container in template.containers())


def addresses(container: Node, *among: command.Invocation) -> list[str]:
    """Where calls of launchers and the container's variables say that ranks meet."""
    told = [value for call in among for name in MEETING_OPTIONS if (value := call.option(name))]
    variables = (each.text for name in MEETING_VARIABLES for each in environment.settings(container, name))
    return told + [environment.expanded(container, text) for text in variables if text]


def _meets_others(container: Node) -> bool:
    if any(variable.name in _RENDEZVOUS for variable in environment.variables(container)):
        return True
    return any(
        call.flag(*MEETING_OPTIONS) or (setting(call, container, nodes_option(call)) or "1") not in ("1", "1:1")
        for call in calls(container)
    )
