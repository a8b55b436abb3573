"""Where the ranks of several nodes meet: at rank 0, by a name that there is."""

import ipaddress
import re

from guardrails import command, environment, gang, pod_hosts
from guardrails.meeting_port import option_ports, variable_ports
from guardrails.node import Node
from guardrails.rule import Report, Resource
from guardrails.template import LEADER, PodTemplate, pod_templates
from guardrails.tokens import PYTORCH_JOB
from guardrails.training_operator import MASTER

# A name of the pod's own may have its domain behind it; what is made of the host's name with sed is another one's.
_OWN_ADDRESS = re.compile(
    r"(?:localhost|\$\(?\{?(?:POD_IP|MY_POD_IP|HOSTNAME|POD_NAME)\}?\)?"
    r"|(?:\$\(|`)hostname(?:\s+-+\w+)*(?:\s+-+[iI]\w*\s*\|[^|]*)?[)`])(?:\.[\w.-]+)?",
    re.I,
)
_REFERENCE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))(?:\.[\w.-]+)?")
_OWN_FIELDS = frozenset({"status.podIP", "status.podIPs", "metadata.name", "status.hostIP"})
_OF_MASTER = frozenset({"MASTER_ADDR", "PET_MASTER_ADDR"})
RANK_0 = "the name of rank 0's pod under the headless Service"
"""What is allowed in place of another address."""
# A variable that stands for one that stands for one, and so on.
_DEEPEST = 5
# What a script tells its pods apart by.
_CONDITION = re.compile(r"\[|\|\||\b(?:if|case|test)\b")
LEADER_ADDRESS = "LWS_LEADER_ADDRESS"
"""The variable that each pod of a LeaderWorkerSet has."""


def meeting_point(resource: Resource, report: Report) -> None:
    """JOB02: judge the addresses that pods of one run are told, of options and of variables."""
    for template in pod_templates(resource):
        _no_pods_names(resource, template, report)
        # A Master may call itself by any of its names; the Workers have to know it.
        if resource.type == PYTORCH_JOB and template.role == MASTER:
            continue
        for container in template.all_containers():
            with report.part():
                for call in _of_several_nodes(resource, template, container):
                    _own_option(resource, template, container, call, report)
                    option_ports(resource, container, call, report)
            with report.part():
                if gang.size(resource, template) > 1 or _of_several_nodes(resource, template, container):
                    variable_ports(resource, container, report)
            for name in _variables_read(resource, template, container):
                with report.part():
                    _own_variable(resource, template, container, name, report)


def _no_pods_names(resource: Resource, template: PodTemplate, report: Report) -> None:
    """Addresses that look like a pod's of the resource and are none."""
    if pod_hosts.looks_elsewhere(template):
        return
    for container in template.all_containers():
        with report.part():
            for call in _of_several_nodes(resource, template, container):
                told = ((name, call.option(name)) for name in _options_read(call, container))
                _judge_names(
                    resource, command.place(container), [(name, f"{name} {value}", value) for name, value in told if value], report
                )
        with report.part():
            _no_pods_variables(resource, template, container, report)


def _no_pods_variables(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    if gang.size(resource, template) < 2 and not _of_several_nodes(resource, template, container):
        return
    for name in _variables_read(resource, template, container):
        for variable in environment.settings(container, name):
            # Those that the training operator gives are none of the job's own, and right.
            if variable.literal is not None or resource.type != PYTORCH_JOB:
                text = environment.expanded(container, variable.text)
                _judge_names(resource, variable.value, [(name, f"{name}={variable.text}", text)], report)


def _judge_names(resource: Resource, place: Node, told: list[tuple[str, str, str]], report: Report) -> None:
    for name, found, address in told:
        allowed = pod_hosts.allowed_for(resource, host_of(address))
        if allowed:
            report.refuse(resource, place, allowed=f"{name} with {allowed}", found=found)


def _of_several_nodes(resource: Resource, template: PodTemplate, container: Node) -> list[command.Invocation]:
    """The calls of launchers whose ranks are on several nodes; one that is told no number of nodes is, where no other call is."""
    calls = gang.calls(container)
    told = [call for call in calls if gang.spreads(call, container)]
    if told or gang.size(resource, template) < 2:
        return told
    return [call for call in calls if gang.nodes(call, container) is None]


def _options_read(call: command.Invocation, container: Node) -> tuple[str, ...]:
    """The options that say where a call looks for others; torchrun reads the master's address for a static rendezvous alone."""
    return (gang.ENDPOINT,) if _meets_at_endpoint(call, container) else gang.MEETING_OPTIONS


def _variables_read(resource: Resource, template: PodTemplate, container: Node) -> list[str]:
    """As `_options_read`, of variables: whatever the master's address is, torchrun gives its ranks the one that it found."""
    calls = _of_several_nodes(resource, template, container)
    passed_over = _OF_MASTER if calls and all(_meets_at_endpoint(call, container) for call in calls) else ()
    return [name for name in gang.MEETING_VARIABLES if name not in passed_over]


def _meets_at_endpoint(call: command.Invocation, container: Node) -> bool:
    return call.launcher in command.TORCHRUN and gang.is_dynamic(call, container) and gang.meets(call, container)


def _is_rank_0(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation) -> bool:
    """Whether only rank 0, which the others look for, runs the call: it may know itself by any address that it has."""
    rank = gang.rank(call, container)
    if template.role == LEADER:
        return not (rank and rank.isdigit() and int(rank))
    if gang.is_dynamic(call, container) or rank != "0":
        return False
    return gang.copies(resource, template) < 2 or has_other_ranks(container, rank)


def has_other_ranks(container: Node, rank: str) -> bool:
    """Whether a script gives the rank to one pod, and another call of it others to the rest."""
    ranks = {gang.rank(call, container) for call in gang.calls(container)} - {None, rank}
    texts = (text for key in ("command", "args") for text in container.at(key).elements())
    return bool(ranks) and any(_CONDITION.search(text.text()) for text in texts)


def _own_option(resource: Resource, template: PodTemplate, container: Node, call: command.Invocation, report: Report) -> None:
    name = "<job>-master-0, or <job>-worker-0 where there is none" if resource.type == PYTORCH_JOB else "job-0.service"
    place, allowed = command.place(container), f"the address of rank 0's pod, such as {name}"
    for name in _options_read(call, container):
        value = call.option(name)
        if value and is_own(container, value) and not _is_rank_0(resource, template, container, call):
            report.refuse(resource, place, allowed=f"{name} with {allowed}", found=f"{name} {value}")
    if call.flag("--standalone"):
        report.refuse(resource, place, allowed=f"{gang.ENDPOINT} with {allowed}", found="--standalone")


def _own_variable(resource: Resource, template: PodTemplate, container: Node, name: str, report: Report) -> None:
    """An address that every setting of the variable makes the pod's own; rank 0 alone may well be told its own."""
    found = environment.settings(container, name)
    if not found or not (gang.size(resource, template) > 1 or _of_several_nodes(resource, template, container)):
        return
    if not all(_is_own_setting(container, variable) for variable in found) or _is_of_rank_0(resource, template, container):
        return
    field = found[0].source.at("fieldRef", "fieldPath")
    if field.present:
        report.refuse(resource, field, allowed=f"no field of the pod itself; {RANK_0}")
    else:
        written = f"{name}={found[0].text}" if found[0].literal is not None else None
        report.refuse(resource, found[0].value, allowed=RANK_0, found=written)


def _is_of_rank_0(resource: Resource, template: PodTemplate, container: Node) -> bool:
    """Whether rank 0 alone has the variables of the container."""
    if gang.copies(resource, template) > 1:
        return False
    calls = _of_several_nodes(resource, template, container)
    return all(_is_rank_0(resource, template, container, call) for call in calls) if calls else template.role == LEADER


def _is_own_setting(container: Node, variable: environment.Variable, depth: int = _DEEPEST) -> bool:
    if variable.literal is None and variable.source.present:
        return variable.source.at("fieldRef", "fieldPath").text() in _OWN_FIELDS
    return bool(variable.text) and is_own(container, variable.text, depth)


def is_own(container: Node, address: str, depth: int = _DEEPEST) -> bool:
    """Whether an address, with or without a port, is that of whoever asks; a variable may be set to one."""
    host = host_of(address)
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


def host_of(address: str) -> str:
    """An address without its port and brackets."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    # More than one colon without brackets is an IPv6 address.
    return re.sub(r":[0-9]+$", "", address) if len(re.findall(r":", address)) == 1 else address
