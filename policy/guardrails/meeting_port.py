"""The port at which ranks of several nodes meet."""

import re

from guardrails import command, environment, gang
from guardrails.node import Node
from guardrails.rule import Report, Resource

_OPTIONS = ("--master-port", "--main-process-port")
_VARIABLES = ("MASTER_PORT", "PET_MASTER_PORT")
_ENDPOINT = re.compile(r"[^:\s$]*:([^:\]]*)|\[[^\]]*\]:(.*)")
_LAST = 65535
_ALLOWED = f"a port from 1 to {_LAST}, the same in each pod"


def option_ports(resource: Resource, container: Node, call: command.Invocation, report: Report) -> None:
    """JOB02: judge the ports that one call of a launcher is told, alone or behind an address."""
    told = [(name, call.option(name)) for name in _OPTIONS]
    for name, port in (*told, (gang.ENDPOINT, _port_of(call.option(gang.ENDPOINT) or ""))):
        if port is not None and not _is_port(port):
            report.refuse(resource, command.place(container), allowed=f"{name} with {_ALLOWED}", found=f"{name} {call.option(name)}")


def variable_ports(resource: Resource, container: Node, report: Report) -> None:
    """JOB02: the same of variables."""
    for name in _VARIABLES:
        for variable in environment.settings(container, name):
            port = environment.expanded(container, variable.text)
            if port and not _is_port(port):
                report.refuse(resource, variable.value, allowed=_ALLOWED, found=f"{name}={variable.text}")


def _port_of(endpoint: str) -> str | None:
    """What stands for the port behind an address; None where there is none."""
    matched = _ENDPOINT.fullmatch(endpoint)
    return (matched[1] or matched[2] or "") if matched else None


def _is_port(text: str) -> bool:
    """Whether a text is a port; what the shell, a chart or a workflow has yet to fill in may be one."""
    if not text or any(each in text for each in "${`"):
        return True
    return text.isdecimal() and 1 <= int(text[:9]) <= _LAST
