"""Pods: what they may do on the host, and that no secret is written into them."""

import re
from collections.abc import Callable, Iterator

from guardrails.agents import is_system_agent
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import IN_PART, POD_TYPES, pod_templates
from guardrails.tokens import CONFIG_MAP, NODE_SET, POD

_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:TOKEN|SECRET|PASSPHRASE|CREDENTIALS?)$|PASSWORD$|PASSWD$|[_.-]PWD$|^(?:SSHPASS|REDISCLI_AUTH)$"
    r"|(?:^|[_.-])(?:API|ACCESS|SECRET|PRIVATE|AUTH|ENCRYPTION|SIGNING|LICENSE|MASTER)[_.-]?KEY$",
    re.IGNORECASE,
)
_VOCABULARY = re.compile(r"(?:^|[_.-])(?:PAD|EOS|BOS|UNK|MASK|SEP|CLS|STOP|SPECIAL|MAX|MIN|NUM)_TOKEN$", re.IGNORECASE)
# The second line is what stands in for a secret: servers of models take any key, and what is in brackets is yet to be written.
_NO_SECRET = re.compile(
    r"|[0-9]{1,4}|true|false|yes|no|on|off|none|null|x{3,}|\*{3,}|\.{3}"
    r"|dummy|empty|placeholder[\w .-]*|not[ _-]?needed|<[^<>]*>",
    re.IGNORECASE,
)
# No key of anything, but many a server's password.
_TO_CHANGE = re.compile(r"change[ _-]?me", re.IGNORECASE)
_PASSWORD = re.compile(r"PASSWORD$|PASSWD$|PWD$|PASSPHRASE$|^SSHPASS$|^REDISCLI_AUTH$", re.IGNORECASE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
# Other variables, commands that print the value, and where it is kept: a file, AWS Secrets Manager, a parameter, Vault.
_REFERENCE = re.compile(
    r".*(?:\$\(.*\)|\$\{.*\}|`).*|\$[A-Za-z_][A-Za-z0-9_]*|(?:~|\.{1,2})/\S*|/[a-z][\w.-]*(?:/[\w.@-]+)+/?"
    r"|arn:aws[a-z-]*:\S+|(?:file|vault|ssm|secretsmanager):\S+|\{\{.*\}\}",
    re.DOTALL,
)
# What a shell sets: a name in capitals at the beginning of a word, or any after `export`.
_SET_BY_SHELL = re.compile(
    r"(?:^|[\s;&|(])(?:export\s+([A-Za-z_]\w*)|([A-Z_][A-Z0-9_]*))=(\"[^\"]*\"|'[^']*'|[\w+/=.@:!#%^*$`{}~-]*)(?=$|[\s;&|)])"
)
_PATTERNS = {
    "an AWS access key id": re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    "a Hugging Face token": re.compile(r"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30,}"),
    "a GitHub token": re.compile(r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,}"),
    "a private key": re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
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
        with report.part():
            for name, value in resource.at("data").entries():
                with report.part():
                    _entry(resource, name, value, report)
        return
    for template in pod_templates(resource):
        for container in template.all_containers():
            with report.part():
                for variable in container.at("env").elements():
                    with report.part():
                        _named(resource, variable.at("name").text(), variable.at("value"), report)
            with report.part():
                for word in (*container.at("command").elements(), *container.at("args").elements()):
                    with report.part():
                        _set_in(resource, word, report)
        _patterns(resource, template.spec, report)
        for container in (*template.first, *template.sidecars, *template.beside):
            _patterns(resource, container, report)


def _named(resource: Resource, name: str, value: Node, report: Report) -> None:
    if _is_secret(name, value.text) and not _shape(value.text()):
        _refuse(resource, value, name, report)


def _entry(resource: Resource, name: str, value: Node, report: Report) -> None:
    """A key of a ConfigMap is a variable of its own, or a file."""
    if _is_secret(name, value.text) and not _shape(value.text()) and "\n" not in value.text().strip():
        _refuse(resource, value, name, report)
    else:
        _set_in(resource, value, report)


def _set_in(resource: Resource, text: Node, report: Report) -> None:
    for exported, name, value in _SET_BY_SHELL.findall(_COMMENT.sub("", text.text())):
        plain = value.strip("\"'")
        if _is_secret(exported or name, lambda plain=plain: plain) and not _shape(plain):
            _refuse(resource, text, exported or name, report)
            return


def _is_secret(name: str, value: Callable[[], str]) -> bool:
    """Whether a value of that name is a secret in plain text; it is only read where the name asks for it."""
    if not _SECRET_NAME.search(name) or _VOCABULARY.search(name):
        return False
    text = value().strip()
    if _TO_CHANGE.fullmatch(text) and not _PASSWORD.search(name):
        return False
    return not _NO_SECRET.fullmatch(text) and not _REFERENCE.fullmatch(text)


def _refuse(resource: Resource, place: Node, name: str, report: Report) -> None:
    report.refuse(resource, place, allowed="valueFrom.secretKeyRef, or a mounted Secret", found=f"a literal in {name} (not shown)")


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
        types=POD_TYPES | IN_PART | {CONFIG_MAP},
        check=_literal_secrets,
        why="it stays readable in the stack's state, in the API server and in logs, long after it was replaced.",
        fix="keep it in a Secret (or AWS Secrets Manager) and refer to it; replace the value that was written here.",
        source="CIS EKS benchmark 1.8 section 4.4",
        valid=(_with_variable(valueFrom={"secretKeyRef": {"name": "hub", "key": "token"}}),),
        invalid=(_with_variable(value="not-a-real-token"),),
    ),
)
