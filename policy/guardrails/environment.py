"""Environment variables of pods: what overrides the tuning of the EFA plug-in, and interfaces that are not there."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from guardrails import command, shell
from guardrails.node import Node
from guardrails.rule import Example, Report, Resource, Rule
from guardrails.template import GPU, IN_PART, POD_TYPES, PodTemplate, pod_templates
from guardrails.tokens import CONFIG_MAP

_FORCED = frozenset(
    {
        *("NCCL_IB_DISABLE", "NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_CHANNELS", "NCCL_MIN_NCHANNELS", "NCCL_BUFFSIZE"),
        *("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE"),
    }
)
_VERBS = "RDMAV_"
_INVENTED = frozenset({"NCCL_EFA_ENABLE", "EFA_ENABLED"})
# NCCL takes a network by its own name, whatever its provider or library is called; the plug-in's is Libfabric, once AWS Libfabric.
_NETWORK, _NO_NETWORKS = "NCCL_NET", frozenset({"efa", "aws-ofi", "aws-ofi-nccl"})
_VALUE = rf"(?:{shell.DOUBLE_QUOTED}|{shell.SINGLE_QUOTED}|(?:{shell.SUBSTITUTION}|\$\{{[^{{}}]*+\}}|[^\s;&|\"'])*+)"
_ASSIGNED = re.compile(rf"(?<![A-Za-z0-9_$.-])([A-Za-z_][A-Za-z0-9_]*+)=({_VALUE})", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_PAIRS, _LISTS = frozenset({"genv", "env"}), frozenset({"genvlist", "envlist"})
# A variable that stands for one that stands for one, and so on.
_DEEPEST = 5
_LONGEST = 64 * 1024
"""Characters; what is longer is not put together any further."""
_SOCKETS, _GLOO = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"
_IDENTITY_LINK = "pod-id-link0"
# The VPC CNI names a pod's interfaces so; a node's own are ens5, enp39s0 and the like.
_POD_INTERFACES = re.compile(r"(eth[0-9]*|lo)")
_NODE_INTERFACES = re.compile(r"(en[a-z0-9]*|lo)")


@dataclass(frozen=True)
class Variable:
    """One variable that a container gets, or that a script sets."""

    name: str
    value: Node
    """Its value, or the place that sets it."""
    literal: str | None = None
    """What a command line sets it to."""

    @property
    def text(self) -> str:
        """The value as text; empty where it is not literal. Raises `Undecided` where it is unknown."""
        if self.literal is not None:
            return self.literal
        return "" if isinstance(self.value.raw, dict) else self.value.text()

    @property
    def source(self) -> Node:
        """Where an entry of `env` has its value from, if it says so."""
        return self.value.at("valueFrom")


def variables(container: Node) -> Iterator[Variable]:
    """The variables of a container: of `env`, and assignments in its command line."""
    for entry in container.at("env").elements():
        value = entry.at("value")
        yield Variable(entry.at("name").text(), value if value.present else entry)
    for word in (*container.at("command").elements(), *container.at("args").elements()):
        yield from assigned(word)
    yield from _given_by_mpirun(command.commands(container), command.place(container))


def assigned(place: Node) -> Iterator[Variable]:
    """The assignments in a text: export X=1, mpirun -x X=1, env X=1; not those in comments."""
    for matched in _ASSIGNED.finditer(shell.without_comments(place.text())):
        yield Variable(matched[1], place, shell.unquoted(matched[2]))


def handed_on(commands: Sequence[Sequence[str]], place: Node) -> Iterator[Variable]:
    """The variables that mpirun takes from its own environment for the ranks: -x X, -genvlist X,Y."""
    for name, values in _options_of_mpirun(commands):
        if name == "x" or name in _LISTS:
            for each in values[0].split(","):
                if _NAME.fullmatch(each):
                    yield Variable(each, place, "")


def _given_by_mpirun(commands: Sequence[Sequence[str]], place: Node) -> Iterator[Variable]:
    for name, values in _options_of_mpirun(commands):
        if name in _PAIRS and len(values) > 1:
            yield Variable(values[0], place, values[1])  # What is in one word is found as any other setting.


def _options_of_mpirun(commands: Sequence[Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    for call in command.invocations(commands, command.MPIRUN):
        for part in command.parts(call):
            yield from ((name, values) for name, values in part if values)


def settings(container: Node, name: str) -> list[Variable]:
    """What a variable may be: what the command line sets it to, maybe under conditions, or else the last entry of `env`."""
    return _counting([variable for variable in variables(container) if variable.name == name])


def _counting(found: Sequence[Variable]) -> list[Variable]:
    """Those of the settings of one variable that count."""
    return [variable for variable in found if variable.literal is not None] or list(found[-1:])


def last(container: Node, name: str) -> Variable | None:
    """The variable as it was set last."""
    return next(reversed(settings(container, name)), None)


def expanded(container: Node, text: str) -> str:
    """The text with values for the variables that the container sets to one literal; of others the name stays.

    Raises:
        Undecided: the value of one of them is unknown.
    """
    return expander(container)(text)


def expander(container: Node) -> Callable[[str], str]:
    """`expanded` for many texts of a container, whose variables are read once, when the first is asked for."""

    @cache
    def named() -> Mapping[str, list[Variable]]:
        found: dict[str, list[Variable]] = {}
        for variable in variables(container):
            found.setdefault(variable.name, []).append(variable)
        return found

    def value(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2] or reference[3]
        values = {variable.text for variable in _counting(named().get(name, []))}
        own = values.pop() if len(values) == 1 else ""
        into_itself = any(name in found.groups() for found in _REFERENCE.finditer(own))
        return reference[0] if not own or into_itself else own

    def expand(text: str) -> str:
        for _ in range(_DEEPEST):
            before = text
            if "$" in text and len(text) < _LONGEST:
                text = _REFERENCE.sub(value, text)
            if text == before:
                break
        return text

    return expand


def _forced(resource: Resource, report: Report) -> None:
    if resource.type == CONFIG_MAP:
        for name, text in resource.at("data").entries():
            with report.part():
                for variable in _of_file(name, text):
                    _judge(resource, variable, report)
        return
    for template in pod_templates(resource):
        for container in template.all_containers():
            with report.part():
                for variable in (*variables(container), *handed_on(command.commands(container), command.place(container))):
                    with report.part():
                        _judge(resource, variable, report)


def _of_file(name: str, text: Node) -> Iterator[Variable]:
    """The variables that a key of a ConfigMap is, for pods that take it as their environment, or that a script under it sets."""
    if _NAME.fullmatch(name):
        yield Variable(name, text)
    commands = command.scripted(text.text())
    yield from (*assigned(text), *_given_by_mpirun(commands, text), *handed_on(commands, text))


def _judge(resource: Resource, variable: Variable, report: Report) -> None:
    if not variable.name.startswith(_VERBS) and variable.name not in (_NETWORK, *_INVENTED, *_FORCED):
        return
    name, found = variable.name, f"{variable.name}={variable.text}"
    if name.startswith(_VERBS):
        report.refuse(resource, variable.value, allowed=f"no {_VERBS}* at all: libfabric decides by kernel and provider", found=found)
    elif name == _NETWORK and variable.text.strip().lower() in _NO_NETWORKS:
        allowed = "unset, or AWS Libfabric: no plug-in has a network of that name, and NCCL ends without the one that it is told"
        report.refuse(resource, variable.value, allowed=allowed, found=found)
    elif name in _INVENTED:
        allowed = "unset: neither NCCL nor libfabric reads it, the plug-in takes EFA by itself"
        report.advise(resource, variable.value, allowed=allowed, found=found)
    elif name in _FORCED:
        report.advise(resource, variable.value, allowed="unset: the EFA plug-in of NCCL chooses it by instance type", found=found)


def _interfaces(resource: Resource, report: Report) -> None:
    for template in pod_templates(resource):
        host = template.spec.at("hostNetwork")
        for container in template.all_containers():
            with report.part():
                _sockets(resource, container, host.value is True, report)
            with report.part():
                _visible(resource, template, container, report)


def _sockets(resource: Resource, container: Node, host: bool, report: Report) -> None:
    for variable in variables(container):
        if variable.name == _GLOO and variable.text.startswith("^"):
            allowed = "unset, or names as they are: Gloo knows no exclusion, and takes ^ for a part of the name"
            report.refuse(resource, variable.value, allowed=allowed, found=f"{_GLOO}={variable.text}")
        if variable.name != _SOCKETS or not variable.text:
            continue
        text = variable.text
        if text.startswith("^"):
            _excluded(resource, variable, text.removeprefix("^").removeprefix("="), report)
            continue
        known, words = (_NODE_INTERFACES, "ens* or enp*") if host else (_POD_INTERFACES, "eth0")
        for name in text.removeprefix("=").split(","):
            if not known.fullmatch(name):
                network = "the node's network" if host else "a pod's network of the VPC CNI"
                report.refuse(resource, variable.value, allowed=f"unset, or {words}: no other is in {network}", found=f"{_SOCKETS}={text}")
                break


def _excluded(resource: Resource, variable: Variable, names: str, report: Report) -> None:
    """NCCL otherwise takes the link that EKS Pod Identity adds to a pod, and is refused there."""
    if not any(_IDENTITY_LINK.startswith(name) for name in names.split(",") if name):
        report.refuse(resource, variable.value, allowed=f"a list with {_IDENTITY_LINK}, else NCCL takes it", found=f"{_SOCKETS}=^{names}")


def _visible(resource: Resource, template: PodTemplate, container: Node, report: Report) -> None:
    for variable in variables(container):
        if variable.name not in ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
            continue
        found = f"{variable.name}={variable.text}"
        if variable.name == "NVIDIA_VISIBLE_DEVICES" and variable.text == "all":
            report.refuse(resource, variable.value, allowed="unset: the device plug-in sets it to the pod's own devices", found=found)
        elif variable.name == "CUDA_VISIBLE_DEVICES" and variable.value.path.endswith("value") and template.requested(GPU):
            report.refuse(resource, variable.value, allowed="unset: the container has its own devices only, from 0 on", found=found)


def _pod(**variables_: str) -> tuple[Example, ...]:
    container = {
        "name": "trainer",
        "image": "registry.example/trainer:1",
        "env": [{"name": name, "value": value} for name, value in variables_.items()],
        "resources": {"limits": {GPU: 8}},
    }
    return (Example("kubernetes:core/v1:Pod", {"metadata": {"name": "trainer"}, "spec": {"containers": [container]}}, name="trainer"),)


RULES = (
    Rule(
        id="ENV01",
        name="environment-disallow-forced-tuning",
        title="Nothing overrides what the EFA plug-in of NCCL tunes itself",
        types=POD_TYPES | IN_PART | {CONFIG_MAP},
        check=_forced,
        why="settings copied from another type or release make collectives slow without an error; RDMAV_FORK_SAFE breaks on new kernels, "
        "and NCCL ends at a network that no plug-in has.",
        fix="remove the variable; NCCL_DEBUG=WARN is fine.",
        source="aws-ofi-nccl 1.21.1 doc/efa-env-var; NCCL: NCCL_NET; mpirun -x of Open MPI, -genv of MPICH",
        valid=_pod(NCCL_DEBUG="WARN"),
        invalid=_pod(RDMAV_FORK_SAFE="1"),
    ),
    Rule(
        id="ENV02",
        name="environment-require-own-devices",
        title="NCCL's interfaces are there, and a container sees its own devices only",
        types=POD_TYPES,
        check=_interfaces,
        mandatory=False,
        why="NCCL finds no interface, or one that refuses it; with NVIDIA_VISIBLE_DEVICES=all two jobs share devices unknowingly.",
        fix="leave the variables unset, or exclude lo, docker and pod-id-link0.",
        source="aws-ofi-nccl 1.21.1 doc/efa-env-var; aws-samples/aws-do-eks#51 and #54",
        valid=_pod(NCCL_SOCKET_IFNAME="eth0"),
        invalid=_pod(NVIDIA_VISIBLE_DEVICES="all"),
    ),
)
