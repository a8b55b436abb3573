"""Multi-node trainers on plain pods: ranks meet at one address, and each device has one process."""

import ipaddress
import re

from guardrails import command, environment, gang, pod_hosts
from guardrails.facts import load
from guardrails.node import Node, Undecided
from guardrails.placing import wanted_labels
from guardrails.pool import INSTANCE_TYPE
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, LEADER, NEURON, NEURON_CORE, POD_TYPES, PodTemplate, pod_templates
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
from guardrails.training_operator import MASTER, has_master, is_elastic
from guardrails.world import told_nodes, told_ranks

# A name of the pod's own may have its domain behind it; what is made of the host's name with sed is another one's.
_OWN_ADDRESS = re.compile(
    r"(?:localhost|\$\(?\{?(?:POD_IP|MY_POD_IP|HOSTNAME|POD_NAME)\}?\)?"
    r"|(?:\$\(|`)hostname(?:\s+-+\w+)*(?:\s+-+[iI]\w*\s*\|[^|]*)?[)`])(?:\.[\w.-]+)?",
    re.I,
)
_REFERENCE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))(?:\.[\w.-]+)?")
_OWN_FIELDS = frozenset({"status.podIP", "status.podIPs", "metadata.name", "status.hostIP"})
_MEETING = ("--master-addr", "--main-process-ip", "--rdzv-endpoint")
_RANK_0 = "the name of rank 0's pod under the headless Service"
# A variable that stands for one that stands for one, and so on.
_DEEPEST = 5
# Of <name>.<namespace>.svc the name is a Service's, of <name>.<service>.<namespace>.svc a pod's.
_POD_OF_SERVICE = re.compile(
    r"(.*(?:-[0-9]+|(?:HOSTNAME|hostname|POD_NAME).*[)}`]))\.[A-Za-z][\w-]*(?:\.(?!svc\b)[\w-]+(?:\.svc[\w.-]*)?)?"
)
# What a script tells its pods apart by.
_CONDITION = re.compile(r"\[|\|\||\b(?:if|case|test)\b")
_LEADER_ADDRESS = "LWS_LEADER_ADDRESS"
_BY_DEEPSPEED = "--deepspeed-multinode-launcher"
_SBATCH = re.compile(r"^#SBATCH\s+--?([a-z-]+)(?:[= ]([^\s#]+))?", re.M)
_WORKERS = re.compile(r"resources_per_worker\s*=\s*\{[^}]{0,200}['\"]GPU['\"]\s*:\s*([0-9]+(?:\.[0-9]+)?)")
_COMPILE = "neuron_parallel_compile"


def _indexed(job: Resource, report: Report) -> None:
    if job.type == JOB_SET:
        for spec, template in _jobs(job):
            with report.part():
                _completion_in_set(job, spec, template, report)
        return
    spec = gang.job_spec(job)
    pods = spec.at("parallelism").integer()
    if pods is None or pods < 2 or not _trains(job):
        return
    for check in (_completion, _address, _restart):
        with report.part():
            check(job, spec, pods, report)


def _trains(job: Resource) -> bool:
    """Whether the pods form one training run: they have devices, or a launcher of ranks, and do not work alone."""
    for template in pod_templates(job):
        computes = template.requested(GPU) or template.requested(NEURON) or any(gang.calls(one) for one in template.containers())
        if computes and gang.size(job, template) > 1:
            return True
    return False


def _completion(job: Resource, spec: Node, pods: int, report: Report) -> None:
    mode, completions = spec.at("completionMode"), spec.at("completions")
    if mode.text() != "Indexed":
        report.refuse(job, mode, allowed="Indexed: the index is the pod's rank")
    if completions.integer() != pods:
        report.refuse(job, completions, allowed=f"{pods}, the parallelism: all ranks run at once")


def _jobs(jobs: Resource) -> list[tuple[Node, PodTemplate]]:
    """The spec of the Jobs of each group of a JobSet, and the pods of all of them."""
    groups = (group.at("template", "spec") for group in jobs.at("spec", "replicatedJobs").elements())
    return list(zip(groups, pod_templates(jobs), strict=True))


def _completion_in_set(jobs: Resource, spec: Node, template: PodTemplate, report: Report) -> None:
    """As of a Job, but a JobSet makes its Jobs Indexed unless told otherwise."""
    pods, mode, completions = _at_once(spec), spec.at("completionMode"), spec.at("completions")
    if pods < 2 or not gang.meets_others(template):
        return
    if mode.present and mode.text() != "Indexed" and _needs_index(jobs, template):
        report.refuse(jobs, mode, allowed="Indexed: the index is the pod's rank")
    if completions.present and completions.integer() != pods:
        report.refuse(jobs, completions, allowed=f"{pods}, the parallelism: all ranks run at once")


def _needs_index(jobs: Resource, template: PodTemplate) -> bool:
    """Whether the pods' index is their rank or in their names: a backend elsewhere may give out ranks, to pods of any name."""
    calls = [(container, call) for container in template.containers() for call in gang.calls(container)]
    if not calls or any(not gang.is_dynamic(call, container) for container, call in calls):
        return True
    return any(_names_a_pod(jobs, address) for container, call in calls for address in gang.addresses(container, call))


def _at_once(spec: Node) -> int:
    parallelism = spec.at("parallelism").integer()
    return 1 if parallelism is None else parallelism


def _address(job: Resource, spec: Node, pods: int, report: Report) -> None:
    subdomain = spec.at("template", "spec", "subdomain")
    if subdomain.present:
        return
    allowed = f"the name of a headless Service, which gives the {pods} pods host names"
    containers = [container for template in pod_templates(job) for container in template.containers()]
    told = [address for container in containers for address in gang.addresses(container, *gang.calls(container))]
    if any(_names_a_pod(job, address) for address in told):
        report.refuse(job, subdomain, allowed=allowed)
    else:
        # A Service that selects the pods has their addresses without it.
        report.advise(job, subdomain, allowed=f"{allowed}, unless they find rank 0 by a Service that selects them")


def _names_a_pod(job: Resource, address: str) -> bool:
    """Whether the address is that of a pod of the job under a Service, such as <job>-0.<service>."""
    matched = _POD_OF_SERVICE.fullmatch(_host(address))
    if matched is None:
        return False
    names = (job.at("metadata", "name"), job.at("metadata", "generateName"))
    return "$" in matched[1] or "`" in matched[1] or any(name.present and matched[1].startswith(name.text()) for name in names)


def _restart(job: Resource, spec: Node, pods: int, report: Report) -> None:
    policy, limit = spec.at("template", "spec", "restartPolicy"), spec.at("backoffLimit")
    if policy.text() not in ("Never", "OnFailure"):
        report.refuse(job, policy, allowed="Never or OnFailure")
    if not limit.present and not spec.at("backoffLimitPerIndex").present:
        report.advise(job, limit, allowed=f"how many pods may fail in the run of {pods}", found="unset, so 6")


def _meeting_point(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        _no_pods_names(resource, template, report)
        # A Master may call itself by any of its names; the Workers have to know it.
        if resource.type == PYTORCH_JOB and template.role == MASTER:
            continue
        for container in template.all_containers():
            with report.part():
                for call in _of_several_nodes(resource, template, container):
                    _own_option(resource, template, container, call, report)
            for name in gang.MEETING_VARIABLES:
                with report.part():
                    _own_variable(resource, template, container, name, report)


def _no_pods_names(resource: Resource, template: PodTemplate, report: Report) -> None:
    """Addresses that look like a pod's of the resource and are none."""
    # Hosts of the pod's own making, and other places to look for names.
    if any(template.spec.at(*keys).present for keys in (("hostAliases",), ("dnsConfig", "searches"))):
        return
    for container in template.all_containers():
        with report.part():
            for call in _of_several_nodes(resource, template, container):
                told = ((name, call.option(name)) for name in _MEETING)
                _judge_names(
                    resource, command.place(container), [(name, f"{name} {value}", value) for name, value in told if value], report
                )
        with report.part():
            _no_pods_variables(resource, template, container, report)


def _no_pods_variables(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    if gang.size(resource, template) < 2 and not _of_several_nodes(resource, template, container):
        return
    for name in gang.MEETING_VARIABLES:
        for variable in environment.settings(container, name):
            # Those that the training operator gives are none of the job's own, and right.
            if variable.literal is not None or resource.type != PYTORCH_JOB:
                text = environment.expanded(container, variable.text)
                _judge_names(resource, variable.value, [(name, f"{name}={variable.text}", text)], report)


def _judge_names(resource: Resource, place: Node, told: list[tuple[str, str, str]], report: Report) -> None:
    for name, found, address in told:
        allowed = pod_hosts.allowed_for(resource, _host(address))
        if allowed:
            report.refuse(resource, place, allowed=f"{name} with {allowed}", found=found)


def _of_several_nodes(resource: Resource, template: PodTemplate, container: Node) -> list[command.Invocation]:
    """The calls of launchers whose ranks are on several nodes; one that is told no number of nodes is, where no other call is."""
    calls = gang.calls(container)
    told = [call for call in calls if gang.spreads(call, container)]
    if told or gang.size(resource, template) < 2:
        return told
    return [call for call in calls if gang.nodes(call, container) is None]


def _is_rank_0(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation) -> bool:
    """Whether only rank 0, which the others look for, runs the call: it may know itself by any address that it has."""
    rank = gang.rank(call, container)
    if template.role == LEADER:
        return not (rank and rank.isdigit() and int(rank))
    if gang.is_dynamic(call, container) or rank != "0":
        return False
    return gang.copies(resource, template) < 2 or _has_other_ranks(container, rank)


def _has_other_ranks(container: Node, rank: str) -> bool:
    """Whether a script gives the rank to one pod, and another call of it others to the rest."""
    ranks = {gang.rank(call, container) for call in gang.calls(container)} - {None, rank}
    texts = (text for key in ("command", "args") for text in container.at(key).elements())
    return bool(ranks) and any(_CONDITION.search(text.text()) for text in texts)


def _own_option(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    name = "<job>-master-0, or <job>-worker-0 where there is none" if resource.type == PYTORCH_JOB else "job-0.service"
    place, allowed = command.place(container), f"the address of rank 0's pod, such as {name}"
    for name in _MEETING:
        value = call.option(name)
        if value and _is_own(container, value) and not _is_rank_0(resource, template, container, call):
            report.refuse(resource, place, allowed=f"{name} with {allowed}", found=f"{name} {value}")
    if call.flag("--standalone"):
        report.refuse(resource, place, allowed=f"--rdzv-endpoint with {allowed}", found="--standalone")


def _own_variable(resource: Resource, template: PodTemplate, container: Node, name: str, report: Report) -> None:
    """An address that every setting of the variable makes the pod's own; rank 0 alone may well be told its own."""
    found = environment.settings(container, name)
    if not found or not (gang.size(resource, template) > 1 or _of_several_nodes(resource, template, container)):
        return
    if not all(_is_own_setting(container, variable) for variable in found) or _is_of_rank_0(resource, template, container):
        return
    field = found[0].source.at("fieldRef", "fieldPath")
    if field.present:
        report.refuse(resource, field, allowed=f"no field of the pod itself; {_RANK_0}")
    else:
        written = f"{name}={found[0].text}" if found[0].literal is not None else None
        report.refuse(resource, found[0].value, allowed=_RANK_0, found=written)


def _is_of_rank_0(resource: Resource, template: PodTemplate, container: Node) -> bool:
    """Whether rank 0 alone has the variables of the container."""
    if gang.copies(resource, template) > 1:
        return False
    calls = _of_several_nodes(resource, template, container)
    return all(_is_rank_0(resource, template, container, call) for call in calls) if calls else template.role == LEADER


def _is_own_setting(container: Node, variable: environment.Variable, depth: int = _DEEPEST) -> bool:
    if variable.literal is None and variable.source.present:
        return variable.source.at("fieldRef", "fieldPath").text() in _OWN_FIELDS
    return bool(variable.text) and _is_own(container, variable.text, depth)


def _is_own(container: Node, address: str, depth: int = _DEEPEST) -> bool:
    """Whether an address, with or without a port, is that of whoever asks; a variable may be set to one."""
    host = _host(address)
    reference = _REFERENCE.fullmatch(host)
    settings = environment.settings(container, reference[1] or reference[2] or reference[3]) if reference else []
    if settings:
        return depth > 0 and all(_is_own_setting(container, variable, depth - 1) for variable in settings)
    if _OWN_ADDRESS.fullmatch(host):
        return True
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        return False
    return number.is_loopback or number.is_unspecified


def _host(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    # More than one colon without brackets is an IPv6 address.
    return re.sub(r":[0-9]+$", "", address) if len(re.findall(r":", address)) == 1 else address


def _process_counts(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        for _, text in resource.at("data").entries():
            with report.part():
                _batch_script(resource, text, report)
        return
    for template in pod_templates(resource):
        for container in template.containers():
            with report.part():
                for call in gang.calls(container):
                    for check in (_processes, _node_count, _rendezvous, _alone):
                        with report.part():
                            check(resource, template, container, call, report)


def _processes(resource: Resource, _: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    devices = container.at("resources", "limits", GPU).integer() or 0
    each = told_ranks(call, container, told_nodes(call, container))
    if devices and each and each > devices:
        allowed = f"at most {devices} processes, the container's GPUs"
        report.refuse(resource, command.place(container), allowed=allowed, found=f"{each} processes per node")


def _node_count(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    if not gang.spreads(call, container) or (resource.type == PYTORCH_JOB and _scales(resource, call)):
        return
    least, most = gang.nodes(call, container) or (0, 0)
    counts, everyone = _node_counts(resource, template, gang.addresses(container, call))
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
        allowed = f"{name} {' or '.join(map(str, counts))}, the pods of the job"
        report.refuse(resource, place, allowed=allowed, found=f"{name} {most}")
    elif counts and least > counts[-1]:
        report.refuse(resource, place, allowed=f"at most {counts[-1]}, the pods of the job", found=f"{name} {least}:{most}")


def _node_counts(resource: Resource, template: PodTemplate, told: list[str]) -> tuple[list[int], int]:
    """How many pods may be the nodes of one run that meets where `told`, least first, and all; none and 0 where that can't be told."""
    if resource.type == JOB_SET:
        # One Job of the group, all of the group, one of each group, or all: each may be a run.
        groups = [(_at_once(spec), each) for spec, each in _jobs(resource) if gang.computes(each)]
        own = [number for number, each in groups if each.spec.path == template.spec.path]
        everyone = sum(each.replicas for _, each in groups)
        return _positive(*own, template.replicas, sum(number for number, _ in groups), everyone), everyone
    if resource.type == LEADER_WORKER_SET:
        groups = resource.at("spec", "replicas").integer() or 1
        group = resource.at("spec", "leaderWorkerTemplate", "size").integer() or 1
        calling = _calling(resource) // groups
        # Who meets at the leader meets none of another group.
        beyond = 0 if any(_LEADER_ADDRESS in address for address in told) else groups * group
        return _positive(calling, group, beyond), group
    pods, everyone = (template.replicas, template.replicas) if resource.type == STATEFUL_SET else _pods(resource)
    return _positive(pods), everyone


def _positive(*counts: int) -> list[int]:
    return sorted({count for count in counts if count > 0})


def _calling(resource: Resource) -> int:
    """Pods whose command line calls a launcher."""
    return sum(template.replicas for template in pod_templates(resource) if any(gang.calls(one) for one in template.containers()))


def _scales(job: Resource, call: command.Invocation) -> bool:
    """Whether an elasticPolicy says how many pods there are, at times another number: PTJ01 judges its range."""
    return is_elastic(job) and (call.option("--nnodes") is None or job.at("spec", "elasticPolicy", "metrics").present)


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
        allowed = "--rdzv-backend=c10d and --rdzv-endpoint (or --node-rank and --master-addr)"
        report.refuse(resource, place, allowed=allowed, found=f"--nnodes {most} alone")
    elif gang.is_dynamic(call, container) or not rank or not rank.isdigit() or pods < 2:
        return
    elif not _has_other_ranks(container, rank):
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
        allowed = " and ".join(f"{name} with {told.get(name, _RANK_0)}" for name in missing)
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
    if call.launcher in command.ACCELERATE:
        mounts = (mount.at("mountPath").text() for mount in container.at("volumeMounts").elements())
        if call.flag("--config-file") or any("accelerate" in mount for mount in mounts):
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
    if any(not _is_own(container, address) for address in told):
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


def _batch_script(resource: Resource, text: Node, report: Report) -> None:
    """A Slurm script in a ConfigMap: tasks of a node times processes of a task against the GPUs it asks for."""
    script = text.text()
    options = dict(_SBATCH.findall(script))
    tasks = _last_number(options.get("ntasks-per-node", ""))
    gpus = _last_number(options.get("gpus-per-node", "")) or _last_number(options.get("gres", ""))
    if not tasks or not gpus:
        return
    for call in command.invocations(command.scripted(script), command.TORCHRUN):
        each = call.number("--nproc-per-node")
        if each and tasks * each > gpus:
            found = f"{tasks} tasks x {each} processes = {tasks * each} per node"
            report.refuse(resource, text, allowed=f"at most {gpus}, the node's GPUs: one task that starts {gpus} processes", found=found)


def _last_number(text: str) -> int:
    matched = re.search(r"([0-9]{1,6})$", text.partition("(")[0])
    return int(matched[1]) if matched else 0


def _neuron(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        for _, text in resource.at("data").entries():
            with report.part():
                _ray_workers(resource, text, report)
        return
    for template in pod_templates(resource):
        for container in template.containers():
            with report.part():
                _compile_alone(resource, template, container, report)
            with report.part():
                _cores(resource, template, container, report)


def _compile_alone(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    programs = [command.base(word) for word in command.words(container)]
    if programs.count(_COMPILE) and template.replicas > 1:
        allowed = "the training command; compile beforehand, in a job of one pod"
        report.refuse(resource, command.place(container), allowed=allowed, found=f"{_COMPILE} in {template.replicas} pods")


def _cores(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    families = {name.split(".")[0] for name in wanted_labels(template).get(INSTANCE_TYPE, ())}
    family = families.pop() if len(families) == 1 else ""
    per_device = load("neuron")["coresPerDevice"].get(family)
    devices, cores = (container.at("resources", "limits", name) for name in (NEURON, NEURON_CORE))
    count = devices.integer()
    if per_device is None or not count:
        return
    most = count * per_device
    if cores.integer() and cores.integer() != most:
        report.refuse(resource, cores, allowed=f"{most}: {devices.text()} devices x {per_device} cores on {family}")
    for call in gang.calls(container):
        each = gang.number(call, container, "--nproc-per-node")
        if each and each > most:
            allowed = f"at most {most} processes, one for each core of {devices.text()} devices"
            report.refuse(resource, command.place(container), allowed=allowed, found=f"{each} processes per node")


def _ray_workers(resource: Resource, text: Node, report: Report) -> None:
    matched = _WORKERS.search(text.text())
    if matched and float(matched[1]) > 1:
        found = f'resources_per_worker with "GPU": {matched[1]}'
        report.advise(resource, text, allowed='"GPU": 1 for each worker, and as many workers as GPUs', found=found)


def _job(words: list[str], *, pods: int = 4, gpus: int = 8, env: list[object] | None = None, **spec: object) -> Example:
    container = {"name": "main", "command": words, "env": env or [], "resources": {"limits": {GPU: gpus}}}
    pod = {"subdomain": "ranks", "restartPolicy": "Never", "containers": [container]}
    settings = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 8}
    return Example(JOB, {"metadata": {"name": "pretrain"}, "spec": {**settings, **spec, "template": {"spec": pod}}})


def _torchrun(nodes: int, processes: int, endpoint: str = "pretrain-0.ranks:29500") -> list[str]:
    meeting = ("--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}")
    return ["torchrun", f"--nnodes={nodes}", f"--nproc-per-node={processes}", *meeting, "train.py"]


def _neuron_job(cores: int) -> Example:
    container = {"name": "main", "resources": {"limits": {NEURON: 16, NEURON_CORE: cores}}}
    spec = {"nodeSelector": {INSTANCE_TYPE: "trn1.32xlarge"}, "containers": [container]}
    return Example(JOB, {"spec": {"template": {"spec": spec}}})


RULES = (
    Rule(
        id="JOB01",
        name="job-require-indexed-ranks",
        title="A trainer over several pods of a Job is Indexed, whole and has host names",
        types=frozenset({JOB, CRON_JOB, JOB_SET}),
        check=_indexed,
        why="pods have no rank and no name for each other: each waits for peers that it can't find.",
        fix="set completionMode: Indexed, completions equal to parallelism, a headless Service as subdomain, and restartPolicy.",
        source="Kubernetes: Indexed Jobs with pod-to-pod communication; JobSet: Jobs are Indexed by default",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 8), completionMode="NonIndexed"),),
    ),
    Rule(
        id="JOB02",
        name="job-disallow-own-address",
        title="Ranks of several nodes meet at rank 0's address, not at their own",
        types=POD_TYPES,
        check=_meeting_point,
        why="every pod waits at its own address, or one of nobody, for the others until the time-out, with all nodes paid for.",
        fix="use the stable name of rank 0's pod, such as <job>-0.<service> (<job>-master-0 in a PyTorchJob).",
        source="field guide section on Indexed Jobs; torch 2.15 distributed/run.py, argparse_util.py, static_tcp_rendezvous.py",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 8, "localhost:29500")),),
    ),
    Rule(
        id="JOB03",
        name="job-require-process-per-device",
        title="Processes are as many as devices, nodes as many as pods",
        types=POD_TYPES | {CONFIG_MAP},
        check=_process_counts,
        why="several ranks share a GPU and run out of memory, or have the same rank and never meet.",
        fix="start one process for each GPU, once per pod, and give torchrun its rendezvous.",
        source="torch 2.15 distributed/run.py (--nnodes: 1:1); accelerate 1.15, DeepSpeed 0.19.8 launchers; field guide section on Slurm",
        valid=(_job(_torchrun(4, 8)),),
        invalid=(_job(_torchrun(4, 64)),),
    ),
    Rule(
        id="JOB04",
        name="job-require-accelerator-arithmetic",
        title="Neuron cores follow from devices, compiling is not training, a Ray worker is one GPU",
        types=POD_TYPES | {CONFIG_MAP},
        check=_neuron,
        why="nothing is trained, or one device of eight is used, without any error.",
        fix="count cores by the family (2 per device on trn1, 8 on trn2), train after compiling, give each Ray worker one GPU.",
        source="field guide sections on Neuron and Ray; Karpenter 1.14.1 instance-type reference",
        valid=(_neuron_job(32),),
        invalid=(_neuron_job(16),),
    ),
)
