"""Pods: what they may do on the host, and that no secret is written into them."""

import re
from collections.abc import Iterator

from guardrails.agents import is_system_agent
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import POD_TYPES, pod_templates
from guardrails.tokens import CONFIG_MAP, NODE_SET, POD

_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$"
    r"|(?:^|_)(?:API|ACCESS|SECRET|PRIVATE|AUTH|ENCRYPTION|SIGNING|LICENSE|MASTER)_?KEY$",
    re.IGNORECASE,
)
_VOCABULARY = re.compile(r"(?:^|_)(?:PAD|EOS|BOS|UNK|MASK|SEP|CLS|STOP|SPECIAL)_TOKEN$", re.IGNORECASE)
_NO_SECRET = re.compile(r"|[0-9]{1,4}|true|false|yes|no|on|off|none|null|\$\([A-Za-z_][A-Za-z0-9_]*\)", re.IGNORECASE)
_PATTERNS = {
    "an AWS access key id": re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    "a Hugging Face token": re.compile(r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}"),
    "a GitHub token": re.compile(r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,}"),
    "a private key": re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY-----"),
}


def _host_access(resource: Resource, report: Report) -> None:
    if is_system_agent(resource):
        return
    for template in pod_templates(resource):
        for name in _HOST_NAMESPACES:
            with report.part():
                _disallow_true(resource, template.spec.at(name), report)
        for volume in template.spec.at("volumes").elements():
            with report.part():
                _host_path(resource, volume.at("hostPath"), report)
        for container in template.all_containers():
            for name in ("privileged", "allowPrivilegeEscalation"):
                # Slinky's operator makes its workers privileged anyhow: slurmd keeps jobs apart by cgroups.
                if resource.type == NODE_SET and container in template.beside:
                    continue
                with report.part():
                    _disallow_true(resource, container.at("securityContext", name), report)


def _disallow_true(resource: Resource, node: Node, report: Report) -> None:
    if node.value is True:
        report.refuse(resource, node, allowed="false")


def _host_path(resource: Resource, node: Node, report: Report) -> None:
    if node.value is not None:
        found = node.at("path").text() or "set"
        report.refuse(resource, node, allowed="a claim, or emptyDir (medium Memory for shared memory)", found=found)


def _literal_secrets(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        _patterns(resource, resource.at("data"), report)
        return
    for template in pod_templates(resource):
        for container in template.all_containers():
            for variable in container.at("env").elements():
                with report.part():
                    _variable(resource, variable, report)
        _patterns(resource, template.spec, report)


def _variable(resource: Resource, variable: Node, report: Report) -> None:
    name = variable.at("name").text()
    if not _SECRET_NAME.search(name) or _VOCABULARY.search(name):
        return
    value = variable.at("value")
    if not _NO_SECRET.fullmatch(value.text()) and not _shape(value.text()):
        allowed = "valueFrom.secretKeyRef, or a mounted Secret"
        report.refuse(resource, value, allowed=allowed, found=f"a literal in {name} (not shown)")


def _patterns(resource: Resource, node: Node, report: Report) -> None:
    for text in _texts(node, report):
        shape = _shape(text.raw)
        if shape:
            report.refuse(resource, text, allowed="a reference to a Secret", found=f"{shape} (not shown)")


def _shape(text: str) -> str:
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(text)), "")


def _texts(node: Node, report: Report) -> Iterator[Node]:
    """Every text below `node`; an unknown one is listed as not judged."""
    with report.part():
        if isinstance(node.value, str):
            yield node
        for member in node.elements():
            yield from _texts(member, report)
        for _, member in node.entries():
            yield from _texts(member, report)


def _pod(**spec: object) -> Example:
    return Example(POD, {"spec": {"containers": [{"name": "main", "image": "registry.example/trainer:9f2c4d1"}], **spec}})


def _with_variable(**variable: object) -> Example:
    container = {"name": "main", "image": "registry.example/trainer:9f2c4d1", "env": [{"name": "HF_TOKEN", **variable}]}
    return Example(POD, {"spec": {"containers": [container]}})


RULES = (
    Rule(
        id="POD01",
        name="pod-disallow-host-access",
        title="A pod stays off the host, unless it is a known system agent",
        types=POD_TYPES,
        check=_host_access,
        why="whoever can submit the job can read other jobs' data and the node's credentials, and change the node.",
        fix="remove the setting; shared memory is an emptyDir of medium Memory, data comes from a claim.",
        source="CIS EKS benchmark 1.8 section 4.2; EKS best practices: pod security",
        valid=(_pod(volumes=[{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}]),),
        invalid=(_pod(volumes=[{"name": "shm", "hostPath": {"path": "/dev/shm"}}]),),
    ),
    Rule(
        id="POD02",
        name="pod-disallow-literal-secret",
        title="No secret is written into a pod or a ConfigMap",
        types=POD_TYPES | {CONFIG_MAP},
        check=_literal_secrets,
        why="it stays readable in the stack's state, in the API server and in logs, long after it was replaced.",
        fix="keep it in a Secret (or AWS Secrets Manager) and refer to it; replace the value that was written here.",
        source="CIS EKS benchmark 1.8 section 4.4",
        valid=(_with_variable(valueFrom={"secretKeyRef": {"name": "hub", "key": "token"}}),),
        invalid=(_with_variable(value="not-a-real-token"),),
    ),
)
