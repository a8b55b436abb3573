"""Whether the launcher of an MPIJob gets into its workers by ssh."""

from collections.abc import Iterator

from guardrails import command
from guardrails.node import Node
from guardrails.rule import Report, Resource
from guardrails.template import LAUNCHER

_HOME = "/root/.ssh"
"""Where the operator puts the keys unless told otherwise, there for root alone."""
_NEEDED = frozenset({"SYS_CHROOT", "CAP_SYS_CHROOT", "ALL"})
_IDLE = frozenset({"sleep", "tail", "cat", "true"})
"""Programs that answer no ssh, nor start what does."""


def check(job: Resource, report: Report) -> None:
    """MPI01: judge the keys' place, and what runs in the workers."""
    roles = job.at("spec", "mpiReplicaSpecs")
    for name, role in roles.entries():
        pod = role.at("template", "spec")
        for main in _main(pod):
            for judge in (_keys, _opened) if name == LAUNCHER else (_keys,):
                with report.part():
                    if _is_at_home(job):
                        judge(job, pod, main, report)
    for main in _main(roles.at("Worker", "template", "spec")):
        with report.part():
            _server(job, main, report)
        with report.part():
            _capabilities(job, roles.at("Worker", "template", "spec"), main, report)


def _main(pod: Node) -> Iterator[Node]:
    """The container that gets the keys."""
    yield from list(pod.at("containers").elements())[:1]


def _user(pod: Node, main: Node) -> Node:
    own = main.at("securityContext", "runAsUser")
    return own if own.present else pod.at("securityContext", "runAsUser")


def _is_at_home(job: Resource) -> bool:
    """Whether the keys are where the operator puts them by default."""
    return (job.at("spec", "sshAuthMountPath").text() or _HOME).rstrip("/") == _HOME


def _keys(job: Resource, pod: Node, main: Node, report: Report) -> None:
    user = _user(pod, main)
    if user.integer() and not pod.at("securityContext", "fsGroup").present:
        allowed = f"0, or spec.sshAuthMountPath in the user's home: in {_HOME} the keys are for root alone"
        report.refuse(job, user, allowed=allowed)


def _opened(job: Resource, pod: Node, main: Node, report: Report) -> None:
    """Of the keys only the launcher's own must be closed to others: a server lets a group read those that it takes."""
    user, group = _user(pod, main), pod.at("securityContext", "fsGroup")
    if group.present and not user.integer():
        # Which user the image has is not known where none is said.
        tell = report.refuse if user.present else report.advise
        tell(job, group, allowed="unset for root: the group may read the keys with it, and ssh takes none that others may read")


def _server(job: Resource, main: Node, report: Report) -> None:
    # Arguments alone are the image's to run, and a hook may start what else there is.
    if not main.at("command").present or main.at("lifecycle").present:
        return
    texts = [word.text() for key in ("command", "args") for word in main.at(key).elements()]
    named = [command.base(words[0]) for words in command.commands(main) if words]
    programs = [program for program in named if not command.SHELL.fullmatch(program)] or named
    if not programs or any("ssh" in text for text in texts):
        return
    if all(program in _IDLE | command.RANKS or command.PYTHON.fullmatch(program) for program in programs):
        allowed = "unset, so /usr/sbin/sshd -De: the launcher starts the ranks by ssh, which nothing answers here"
        # A program may start a server of its own.
        tell = report.refuse if _IDLE.issuperset(programs) else report.advise
        tell(job, command.place(main), allowed=allowed, found=f"{programs[0]} in each worker")


def _capabilities(job: Resource, pod: Node, main: Node, report: Report) -> None:
    """A server that runs as root shuts each session in before it lets anybody in."""
    given, user = main.at("securityContext", "capabilities"), _user(pod, main)
    dropped, added = ({each.text() for each in given.at(key).elements()} for key in ("drop", "add"))
    if not dropped & _NEEDED or added & _NEEDED or user.integer():
        return
    tell = report.refuse if user.present else report.advise
    tell(job, given.at("drop"), allowed="with SYS_CHROOT under add, which sshd of root can't do without, or another user than root")
