"""Processes against devices and nodes against pods, and how the nodes find each other."""

import re
from collections.abc import Sequence

from guardrails import command, gang
from guardrails.batch_script import batch_script
from guardrails.indexed_job import at_once, jobs_of_set
from guardrails.launch_options import options
from guardrails.meeting import LEADER_ADDRESS, RANK_0, has_other_ranks, is_own
from guardrails.mpi_launch import each_of, launching
from guardrails.node import Node, Undecided
from guardrails.rule import Report, Resource
from guardrails.template import GPU, PodTemplate, pod_templates
from guardrails.tokens import (
    CONFIG_MAP,
    CRON_JOB,
    JOB,
    JOB_SET,
    LEADER_WORKER_SET,
    MPI_JOB,
    PYTORCH_JOB,
    STATEFUL_SET,
    VOLCANO_JOB,
)
from guardrails.training_operator import has_master, is_elastic
from guardrails.world import has_settings_file, told_nodes, told_ranks

_NUMBERED = re.compile(r"[a-z][a-z0-9-]*-[0-9]+(?=[.:]|$)")
"""How the address of a pod of a StatefulSet begins."""
_BY_DEEPSPEED = "--deepspeed-multinode-launcher"


def process_counts(resource: Resource, report: Report) -> None:
    """JOB03: judge each call of a launcher, and the Slurm scripts of a ConfigMap."""
    if resource.type == CONFIG_MAP:
        for _, text in resource.at("data").entries():
            with report.part():
                batch_script(resource, text, report)
        return
    for template in pod_templates(resource):
        for container in template.containers():
            with report.part():
                for call in gang.calls(container):
                    for check in (_processes, _node_count, _rendezvous, _alone, options):
                        with report.part():
                            check(resource, template, container, call, report)
            with report.part():
                _by_mpirun(resource, container, report)


def _processes(resource: Resource, _: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    devices = container.at("resources", "limits", GPU).integer() or 0
    each = told_ranks(call, container, told_nodes(call, container))
    if devices and each and each > devices:
        allowed = f"at most {devices} processes, the container's GPUs"
        report.refuse(resource, command.place(container), allowed=allowed, found=f"{each} processes per node")


def _by_mpirun(resource: Resource, container: Node, report: Report) -> None:
    """A torchrun in each process of mpirun that starts a process for each GPU; MPI02 judges those of an MPIJob."""
    if resource.type == MPI_JOB:
        return
    gpus = [(each.requested(GPU), each.replicas) for each in pod_templates(resource)]
    most, everyone = max((each for each, _ in gpus), default=0), sum(each * pods for each, pods in gpus)
    for started, call in launching(container):
        # The hosts that it names are the job's own where Volcano writes their list, and may be any elsewhere.
        if not everyone or (started.names_hosts and resource.type != VOLCANO_JOB):
            continue
        room, where = (everyone, "the job") if started.per_node is None else (most, "a pod")
        many, each = started.fullest(1), each_of(container, call, most)
        if each > 1 and many * each > room:
            found = f"{many} torchruns x {each} processes = {many * each} in {where}"
            allowed = f"at most {room}, the GPUs of {where}: one torchrun in each pod that starts {most}"
            report.refuse(resource, command.place(container), allowed=allowed, found=found)


def _node_count(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    if not gang.spreads(call, container) or (resource.type == PYTORCH_JOB and _is_told_a_range(resource, call)):
        return
    least, most = gang.nodes(call, container) or (0, 0)
    told = gang.addresses(container, call)
    counts, everyone = _node_counts(resource, template, told)
    several = resource.type == PYTORCH_JOB or counts != [1]
    name, place = gang.nodes_option(call), command.place(container)
    if call.launcher in command.DEEPSPEED and not call.flag("--no-ssh"):
        # One pod starts the ranks in all, by a list of hosts; a job of that pod alone reaches those of others.
        if everyone > 1 and most > everyone:
            report.refuse(resource, place, allowed=f"at most {name} {everyone}, the pods of the job", found=f"{name} {most}")
    elif not several and gang.rank(call, container) is not None:
        return
    elif not several and gang.meets(call, container):
        report.advise(
            resource, place, allowed=f"{name} 1, the pods of the job, unless there is a job for each node", found=f"{name} {most}"
        )
    elif counts and least == most not in counts:
        tell = report.advise if most > counts[-1] and _is_of_another_set(resource, told) else report.refuse
        allowed = f"{name} {' or '.join(map(str, counts))}, the pods of the job"
        tell(resource, place, allowed=allowed, found=f"{name} {most}")
    elif counts and least > counts[-1]:
        report.refuse(resource, place, allowed=f"at most {counts[-1]}, the pods of the job", found=f"{name} {least}:{most}")


def _node_counts(resource: Resource, template: PodTemplate, told: list[str]) -> tuple[list[int], int]:
    """How many pods may be the nodes of one run that meets where `told`, least first, and all; none and 0 where that can't be told."""
    if resource.type == JOB_SET:
        # One Job of the group, all of the group, one of each group, or all: each may be a run.
        groups = [(at_once(spec), each) for spec, each in jobs_of_set(resource) if gang.computes(each)]
        own = [number for number, each in groups if each.spec.path == template.spec.path]
        everyone = sum(each.replicas for _, each in groups)
        # A group beside them may serve or evaluate.
        spread = [(number, each) for number, each in groups if gang.is_spread(each)]
        sums = [total for some in (groups, spread) for total in (sum(number for number, _ in some), sum(each.replicas for _, each in some))]
        return _positive(*own, template.replicas, *sums), everyone
    if resource.type == LEADER_WORKER_SET:
        groups = resource.at("spec", "replicas").integer() or 1
        group = resource.at("spec", "leaderWorkerTemplate", "size").integer() or 1
        calling = _calling(resource) // groups
        # Who meets at the leader meets none of another group.
        beyond = 0 if any(LEADER_ADDRESS in address for address in told) else groups * group
        return _positive(calling, group, beyond), group
    pods, everyone = (template.replicas, template.replicas) if resource.type == STATEFUL_SET else _pods(resource)
    return _positive(pods), everyone


def _is_of_another_set(resource: Resource, told: Sequence[str]) -> bool:
    """Whether ranks of a StatefulSet meet at a pod that is none of its own: the set alone is not the run."""
    name = resource.at("metadata", "name").text()
    others = [_NUMBERED.match(each) is not None and not each.startswith(f"{name}-") for each in told]
    return resource.type == STATEFUL_SET and bool(name and others) and all(others)


def _positive(*counts: int) -> list[int]:
    return sorted({count for count in counts if count > 0})


def _calling(resource: Resource) -> int:
    """Pods whose command line calls a launcher."""
    return sum(template.replicas for template in pod_templates(resource) if any(gang.calls(one) for one in template.containers()))


def _is_told_a_range(job: Resource, call: command.Invocation) -> bool:
    """Whether the number of nodes is that of an elasticPolicy, by a variable: PTJ01 judges it."""
    return is_elastic(job) and call.option("--nnodes") is None


def _pods(resource: Resource) -> tuple[int, int]:
    """Pods that call a launcher, and all pods of the job; 0 where that can't be told."""
    if resource.type not in (JOB, CRON_JOB, PYTORCH_JOB, VOLCANO_JOB):
        return 0, 0
    templates = list(pod_templates(resource))
    if resource.type == PYTORCH_JOB:
        # The operator counts them all, also where a script calls the launcher.
        everyone = sum(template.replicas for template in templates)
        return everyone, everyone
    return _calling(resource), sum(template.replicas for template in templates)


def _rendezvous(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    if call.launcher not in command.TORCHRUN:
        if _ranks_are_told(call) and (gang.spreads(call, container) or call.launcher in command.DEEPSPEED):
            _own_rank(resource, template, container, call, report)
        return
    if not gang.spreads(call, container):
        return
    place, (_, most) = command.place(container), gang.nodes(call, container) or (0, 0)
    # A role, a group or a leader may well be told a rank of its own.
    pods = gang.copies(resource, template)
    rank = gang.rank(call, container)
    if not gang.meets(call, container):
        if resource.type == PYTORCH_JOB and not (has_master(resource) or is_elastic(resource)):
            return  # PTJ02 says that its operator can't tell where they meet.
        sources = container.at("envFrom")
        if any(sources.elements()):
            raise Undecided(sources.place)
        more = call.expand(call.program)
        if more.startswith("$"):
            raise Undecided(place.place)
        if more.startswith("-") and ("rdzv" in more or "rank" in more):
            return
        allowed = "--rdzv-backend=c10d and --rdzv-endpoint (or --node-rank and --master-addr)"
        report.refuse(resource, place, allowed=allowed, found=f"--nnodes {most} alone")
    elif gang.is_dynamic(call, container) or not rank or not rank.isdigit() or pods < 2:
        return
    elif not has_other_ranks(container, rank):
        report.refuse(
            resource,
            place,
            allowed="--node-rank of each pod's own, such as $JOB_COMPLETION_INDEX",
            found=f"--node-rank {rank} in {pods} pods",
        )


def _ranks_are_told(call: command.Invocation) -> bool:
    """Whether each node has a call of its own: DeepSpeed without ssh, accelerate unless it lets DeepSpeed reach the others."""
    if call.launcher in command.DEEPSPEED:
        return call.flag("--no-ssh")
    by_deepspeed = call.flag("--use-deepspeed") and call.option(_BY_DEEPSPEED) not in ("standard", "nossh")
    return not by_deepspeed and not call.flag("--cpu", "--tpu")


def _own_rank(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    """accelerate takes no rank for one that is missing, DeepSpeed an invalid one; neither has another way to learn it."""
    option, place = "--machine-rank" if call.launcher in command.ACCELERATE else "--node-rank", command.place(container)
    missing = [name for name in (option, *_address_option(call)) if not call.flag(name) and not _may_have(call, container, name)]
    rank, pods = call.option(option), gang.copies(resource, template)
    if missing:
        found = f"{call.launcher} for several nodes without {' and '.join(missing)}"
        told = {option: "each pod's own rank"}
        allowed = " and ".join(f"{name} with {told.get(name, RANK_0)}" for name in missing)
        report.refuse(resource, place, allowed=allowed, found=found)
    elif not rank or not rank.isdigit() or pods < 2 or not gang.spreads(call, container) or gang.is_dynamic(call, container):
        return
    elif all(gang.rank(each, container) == rank for each in gang.calls(container) if gang.spreads(each, container)):
        allowed = f"{option} of each pod's own, such as $JOB_COMPLETION_INDEX"
        report.refuse(resource, place, allowed=allowed, found=f"{option} {rank} in {pods} pods")


def _address_option(call: command.Invocation) -> tuple[str, ...]:
    """accelerate's option for the address of rank 0; DeepSpeed has that from its list of hosts."""
    return ("--main-process-ip",) if call.launcher in command.ACCELERATE and call.option(_BY_DEEPSPEED) != "nossh" else ()


def _may_have(call: command.Invocation, container: Node, name: str) -> bool:
    """Whether an option may come from accelerate's file or a variable. Raises `Undecided` where nobody can tell."""
    if call.launcher in command.ACCELERATE and has_settings_file(call, container):
        return True
    more = call.expand(call.program)
    if more.startswith("$"):
        raise Undecided(command.place(container).place)
    return name in more.replace("_", "-")


def _alone(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    """Without a number of nodes torchrun takes itself for the only one, whatever address it is given."""
    pods = max(gang.size(resource, template), _pods(resource)[0] if resource.type == VOLCANO_JOB else 0)
    # mpirun starts one for each node, and another call may be the one that trains on all.
    if pods < 2 or resource.type == MPI_JOB or any(command.invocations(command.commands(container), command.MPIRUN)):
        return
    others = any(gang.spreads(each, container) for each in gang.calls(container))
    if call.launcher not in command.TORCHRUN or call.flag("--standalone") or others or _is_told_nodes(call, container):
        return
    place, found = command.place(container), "torchrun without --nnodes, so 1 node"
    told = gang.addresses(container, call)
    if any(not is_own(container, address) for address in told):
        report.refuse(resource, place, allowed=f"--nnodes {pods}, the pods of the job", found=found)
    elif not told:
        report.advise(resource, place, allowed=f"--nnodes {pods} and an address, unless each pod trains alone", found=found)


def _is_told_nodes(call: command.Invocation, container: Node) -> bool:
    """Whether torchrun has a number of nodes, be it one that only the shell knows. Raises `Undecided` where that may be so."""
    if gang.setting(call, container, "--nnodes") is not None:
        return True
    program, sources = call.expand(call.program), container.at("envFrom")
    if program.startswith("$"):
        raise Undecided(command.place(container).place)
    if any(sources.elements()):
        raise Undecided(sources.place)
    return "nnodes" in program
