"""System agents: what needs the host, by what it is for."""

from guardrails.facts import load
from guardrails.rule import Resource
from guardrails.tokens import DAEMON_SET, DEPLOYMENT


def is_system_agent(resource: Resource) -> bool:
    """Whether the resource is known to need the host: a DaemonSet of a CSI node, a device plug-in or the network, or a CSI controller."""
    if resource.type not in (DAEMON_SET, DEPLOYMENT):
        return False
    name = resource.at("metadata", "name")
    said = name.text() if name.present and name.known else resource.name
    if resource.type == DEPLOYMENT:
        # Anything may be a Deployment, so only the very name counts that its maker's manifest has.
        return said in load("agents")["deployments"]
    return any(said == known or said.endswith(f"-{known}") or said.startswith(f"{known}-") for known in load("agents")["daemonSets"])
