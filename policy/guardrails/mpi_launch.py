"""What mpirun is told to start: processes in all and on each node, and the launchers among them that start more."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from guardrails import command, environment, gang
from guardrails.node import Node, Undecided

# Options of mpirun without their dashes; those of Open MPI are told apart by case (-n is not -N).
_PROCESSES = frozenset({"np", "n", "c"})
_PER_NODE = frozenset({"N", "npernode", "ppn", "perhost"})
_ONE_PER_NODE = "pernode"
_PER_RESOURCE = re.compile(r"ppr:([0-9]+):node")
_OVERSUBSCRIBE = "rmaps_base_oversubscribe"
_OVERSUBSCRIBED = re.compile(r"[:,]oversubscribe\b", re.I)
_YES = frozenset({"1", "true", "yes", "enabled"})
_MCA = frozenset({"mca", "gmca", "omca", "prtemca"})
_WHOLE = re.compile(r"[0-9]{1,9}")
_EVERY_DEVICE = frozenset({"gpu", "auto"})
_HOSTS = frozenset(
    {
        *("host", "H", "hosts", "hostfile", "machinefile", "machine", "default-hostfile", "add-host", "add-hostfile", "f"),
        # Files that may name them among other things, and machines that run already.
        *("rankfile", "rf", "tune", "am", "app", "appfile", "configfile", "dvm", "dvm-uri", "pset"),
    }
)
_FILE_OF_HOSTS = re.compile(r"hostfile|host_file|rankfile|rank_file", re.I)
"""In names of variables and parameters."""
_MAPPED_BY_FILE = re.compile(r"rankfile|[:,]file=", re.I)


@dataclass(frozen=True)
class Started:
    """What a call of mpirun asks for."""

    processes: str | None
    """In all."""
    per_node: str | None
    oversubscribes: bool
    """It is let start more processes than there are slots."""
    names_hosts: bool
    """It is told where to start them."""

    def fullest(self, pods: int) -> int:
        """Processes that one of so many pods has at least; 0 where that can't be told."""
        written, shared = (self.processes, pods) if self.per_node is None else (self.per_node, 1)
        return math.ceil(int(written) / shared) if written and shared and _WHOLE.fullmatch(written) else 0


def all_started(container: Node) -> list[Started]:
    """What each call of mpirun in a container asks for. Raises `Undecided` where only the shell knows."""
    return [started_by(container, call) for call in command.invocations(command.commands(container), command.MPIRUN)]


def launching(container: Node) -> Iterator[tuple[Started, command.Invocation]]:
    """Each call of torchrun that mpirun starts, and what it starts; of several programs of one call nobody knows which has how many."""
    expand = environment.expander(container)
    for line in command.commands(container):
        for call in command.invocations([line], command.MPIRUN):
            if len(command.parts(call)) == 1:
                for launched in command.invocations(list(command.with_scripts(line)), command.TORCHRUN, expand):
                    yield started_by(container, call), launched


def each_of(container: Node, call: command.Invocation, devices: int) -> int:
    """Processes that a call of torchrun starts at least; a word stands for the devices that it sees, all unless somebody hides some."""
    hidden = any("_VISIBLE_DEVICES" in word for word in command.words(container))
    if hidden and not (gang.setting(call, container, "--nproc-per-node") or "").isdecimal():
        return 0
    return processes_of(container, call, devices) or 0


def started_by(container: Node, call: command.Invocation) -> Started:
    """What one call of mpirun asks for. Raises `Undecided` where only the shell knows."""
    counts: list[str] = []
    per_node = None
    variable = environment.last(container, f"OMPI_MCA_{_OVERSUBSCRIBE}")
    more = variable is not None and variable.text.lower() in _YES
    for options in command.parts(call):
        for name, values in options:
            value = _number(container, values[0]) if values and name in _PROCESSES | _PER_NODE else next(iter(values), "")
            more = more or _oversubscribes(name, values)
            if name in _PROCESSES:
                counts.append(value)
            elif name in _PER_NODE:
                per_node = value
            elif name == _ONE_PER_NODE:
                per_node = "1"
            elif found := _PER_RESOURCE.search(value):
                per_node = found[1]
    everyone = next(iter(counts), None)
    if len(counts) > 1 and all(count.isdigit() for count in counts):
        everyone = str(sum(int(count) for count in counts))
    return Started(everyone, per_node, more, _names_hosts(container, call))


def _names_hosts(container: Node, call: command.Invocation) -> bool:
    if any(_FILE_OF_HOSTS.search(variable.name) for variable in environment.variables(container)):
        return True
    return any(_names_hosts_by(name, " ".join(values[:1])) for options in command.parts(call) for name, values in options)


def _names_hosts_by(name: str, value: str) -> bool:
    """Whether an option of mpirun says where it starts what it starts; of a parameter the value is its name."""
    if name in _MCA:
        return bool(_FILE_OF_HOSTS.search(value))
    return name in _HOSTS or (name == "map-by" and bool(_MAPPED_BY_FILE.search(value)))


def _oversubscribes(name: str, values: list[str]) -> bool:
    if name in _MCA:
        return values[:1] == [_OVERSUBSCRIBE] and values[-1].lower() in _YES
    return name == "oversubscribe" or (name == "map-by" and any(_OVERSUBSCRIBED.search(value) for value in values))


def _number(container: Node, written: str) -> str:
    value = environment.expanded(container, written)
    if "$" in value or "`" in value:
        raise Undecided(command.place(container).place)
    return value


def processes_of(container: Node, call: command.Invocation, devices: int) -> int | None:
    """Processes that a launcher starts on its node; None where only the shell knows."""
    if call.expand(call.program).startswith(("$", "-")):
        return None
    if call.launcher in command.TORCHRUN:
        written = gang.setting(call, container, "--nproc-per-node")
        return devices if written in _EVERY_DEVICE else _whole(written, unset=1)
    if call.launcher in command.DEEPSPEED:
        return _whole(call.option("--num-gpus", "--num-accelerators"), unset=devices)
    processes, machines = call.number("--num-processes"), _whole(call.option("--num-machines"), unset=1)
    return processes // machines if processes and machines else None


def _whole(written: str | None, *, unset: int) -> int | None:
    if written is None:
        return unset
    return int(written) if _WHOLE.fullmatch(written) else None
