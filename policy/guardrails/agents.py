"""System agents: DaemonSets that need the host, by what they are for."""

from guardrails.facts import load
from guardrails.rule import Resource
from guardrails.tokens import DAEMON_SET


def is_system_agent(resource: Resource) -> bool:
    """Whether the resource is a DaemonSet known to need the host: a CSI node, a device plug-in, the network's own agent."""
    if resource.type != DAEMON_SET:
        return False
    name = resource.at("metadata", "name")
    said = name.text() if name.present and name.known else resource.name
    return any(said == known or said.endswith(f"-{known}") or said.startswith(f"{known}-") for known in load("agents")["daemonSets"])
