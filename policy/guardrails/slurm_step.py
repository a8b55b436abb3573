"""The steps of a Slurm batch script: tasks of a node, and the GPUs that it has, as far as options and simple variables tell."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from guardrails import command, shell
from guardrails.facts import load

_DIRECTIVE = "#SBATCH"
_WORD = re.compile(r"""(?:"[^"]*+"|'[^']*+'|[^\s"'])++""")
_NAMES = {"N": "nodes", "n": "ntasks", "G": "gpus", "m": "distribution", "a": "array", "tasks-per-node": "ntasks-per-node"}
_HETEROGENEOUS = frozenset({"hetjob", "packjob"})
# Where tasks go by these is the scheduler's matter, or the step has parts.
_PLACED_OTHERWISE = ("ntasks-per-gpu", "ntasks-per-core", "ntasks-per-socket", "distribution", "multi-prog", "het-group", *_HETEROGENEOUS)
_BOUND = ("gpu-bind", "tres-bind", "tres-per-task", "gpus-per-socket")
_GPUS = re.compile(r"(?:gres[/:])?gpu(?::[^:,()]+)??(?::([0-9]{1,6}))?(?:\([^)]*\))?")
_LAST_NUMBER = re.compile(r"(?:[^:]+:)?([0-9]{1,6})")
_REFERENCE = re.compile(r"\$\(\(([^()]{1,200})\)\)|\$\{(\w+)(?::?[?-][^{}$]*)?\}|\$(\w+)")
_CHAINS = (re.compile(r"\s*\w+(?:\s*[*/]\s*\w+)*\s*"), re.compile(r"\s*\w+(?:\s*[+-]\s*\w+)*\s*"))
_OPERANDS = re.compile(r"([*/+-]?)\s*(\w+)")
# One at the beginning of a line is in no branch, as people write.
_ASSIGNMENT = re.compile(
    rf"^(?:export[ \t]+)?([A-Za-z_]\w*)=({shell.DOUBLE_QUOTED}|{shell.SUBSTITUTION}|[^\s;&|\"'()]*)[ \t]*(?:#.*)?$", re.M
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_SETTING = re.compile(r"(?<![\w$-])([A-Za-z_]\w*)\+?=")
_READING = re.compile(r"\b(?:read|for|mapfile|readarray)\b[^\n;]*")
# Another script may set any variable of this one.
_READS_ANOTHER = re.compile(r"""(?:^|[;&|({"'`]|\b(?:then|do|else)[ \t])[ \t]*(?:source|\.|eval)[ \t]""", re.M)
# Slurm's variables that say how many tasks there are, and where; others, such as SLURM_CPU_BIND, may be what they like.
_COUNTS = r"(?:NTASKS|NPROCS|NNODES|JOB_NUM_NODES|TASKS_PER_NODE|GPU|(?:STEP_)?GRES|TRES|DISTRIBUTION|HET)"
_SET_ANEW = re.compile(rf"(?<![\w$])SLURM_{_COUNTS}\w*=")
_UNSET = re.compile(rf"SLURM(?:_{_COUNTS}|_?(?![A-Z_]))")
_OF_ONE_NODE = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\(|\$\{?(?:HOSTNAME|\w*POD_))")
"""In double quotes: what the shell of the script puts in, on the first node."""
_ANY_DOUBLE_QUOTED = re.compile(shell.DOUBLE_QUOTED)
_LARGEST = 10**9
_LONGEST = 1000
"""Characters of a value that is put in for a variable."""
_DEEPEST = 40
"""Variables in values of variables."""


@dataclass(frozen=True)
class Asked:
    """Options of a job or of a step, by their long names."""

    options: Mapping[str, str]

    def has(self, *names: str) -> bool:
        """Whether one of the options is given."""
        return any(name in self.options for name in names)

    def number(self, name: str) -> int | None:
        """An option as a whole number, of a type of GPUs or not; None where it is absent or none."""
        matched = _LAST_NUMBER.fullmatch(self.options.get(name, ""))
        return int(matched[1]) if matched else None

    @property
    def gpus(self) -> int | None:
        """GPUs of each node; None where they are not named so."""
        if self.has("gpus-per-node"):
            return self.number("gpus-per-node")
        parts = [_GPUS.fullmatch(part) for part in self.options.get("gres", "").split(",")]
        return sum(int(part[1] or 1) for part in parts if part) or None

    @property
    def tasks(self) -> int | None:
        """Tasks in all."""
        if self.has("ntasks"):
            return self.number("ntasks")
        each, nodes = self.number("ntasks-per-node"), self.number("nodes")
        return each * nodes if each and nodes else None

    @property
    def per_node(self) -> int | None:
        """Tasks that a node has, or the fullest where they can't be divided."""
        each, nodes = self.number("ntasks-per-node"), self.number("nodes")
        if not self.has("ntasks"):
            return each
        everyone = self.number("ntasks") or 0
        if each and not self.has("nodes"):
            nodes = math.ceil(everyone / each)
        return math.ceil(everyone / nodes) if nodes and everyone else None


@dataclass(frozen=True)
class Step:
    """One call of srun: its tasks, and what each of them runs."""

    tasks: int | None
    """In all."""
    per_node: int | None
    """Tasks that one node has at least; None where that can't be told."""
    nodes: int | None
    """All nodes of the job; None where jobs may train together."""
    gpus: int | None
    """GPUs of each node."""
    per_task: int | None
    """GPUs that Slurm gives to each task alone."""
    certain: bool
    """Slurm takes the options as they are written, whatever its release."""
    calls: Sequence[command.Invocation]
    """The calls of torchrun, with the values of the variables that job and step agree on."""
    own_calls: Sequence[command.Invocation]
    """Those of them that a shell on each node expands."""
    bound: bool
    """Which GPUs a task sees is told otherwise."""


def is_slurm(script: str) -> bool:
    """Whether a text is a script that starts tasks by Slurm."""
    return "srun" in script and "torch" in script


def steps(script: str) -> Iterator[Step]:
    """The steps that run torchrun; none of a script that sets Slurm's own variables, or has parts of several kinds."""
    job = _directives(script)
    if _sets_counts(script) or job.has(*_PLACED_OTHERWISE):
        return
    given, escaped = _assigned(script), _escaped(script)
    outside = _expander({**given, **_variables(job)})
    for line, commands in command.steps(script):
        own = _own(line, outside)
        if own is not None and not own.has(*_PLACED_OTHERWISE):
            quoted = [word for word in line if "torch" in word and (word in escaped or f"'{word}'" in script)]
            yield from _step(script, job, own, given, quoted, commands)


def _step(
    script: str, job: Asked, own: Asked, given: Mapping[str, str], quoted: Sequence[str], commands: Sequence[Sequence[str]]
) -> Iterator[Step]:
    whole = own if own.has("ntasks", "ntasks-per-node") else job
    nodes = own.number("nodes") if own.has("nodes") else job.number("nodes")
    moved = own.has("nodes") and job.number("nodes") not in (None, nodes)
    here = Asked({**{name: text for name, text in whole.options.items() if name != "nodes"}, **({"nodes": str(nodes)} if nodes else {})})
    if own.has("ntasks") and not nodes:
        here = Asked({})
    inside = _expander(_agreed({**given, **_variables(job)}, {**given, **_variables(here, job)}))
    calls = list(command.invocations(commands, command.TORCHRUN, inside))
    if not calls or (whole is job and moved):
        return
    per_task = (own if own.has("gpus-per-task") else job).number("gpus-per-task")
    per_node = here.per_node
    gpus = job.gpus or own.gpus or (per_task * per_node if per_task and per_node else None)
    # Elements of an array may be the nodes of one run.
    of_array = job.has("array") or "SLURM_ARRAY_" in script
    yield Step(
        tasks=here.tasks,
        per_node=per_node,
        nodes=None if of_array else job.number("nodes") if job.has("nodes") else nodes,
        gpus=gpus,
        per_task=per_task,
        # SLURM_NTASKS of the job goes before the tasks of a node that srun alone is told, in some releases.
        certain=own.has("ntasks") or whole is job or not job.has("ntasks", "ntasks-per-node") or job.per_node == per_node,
        calls=calls,
        own_calls=[call for word in quoted for call in command.invocations(command.scripted(word), command.TORCHRUN, inside)],
        bound=own.has(*_BOUND) or job.has(*_BOUND) or "CUDA_VISIBLE_DEVICES" in script,
    )


def _directives(script: str) -> Asked:
    """What the lines at the head say: sbatch reads none after the first command."""
    found: dict[str, str] = {}
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith(_DIRECTIVE):
            words = [word.replace('"', "").replace("'", "") for word in _WORD.findall(line.removeprefix(_DIRECTIVE).partition(" #")[0])]
            # What parts a heterogeneous job is a word, no option.
            found |= dict.fromkeys(_HETEROGENEOUS.intersection(words[:1]), "")
            found |= _options(words) or {}
    return Asked(found)


def _own(line: Sequence[str], expand: Callable[[str], str]) -> Asked | None:
    """The options of srun in a command; None where that is none, or a variable may hold more of them."""
    index = next((at for at, word in enumerate(line) if command.base(word) == "srun"), None)
    if index is None:
        return None
    options = _options(line[index + 1 :], expand)
    return None if options is None else Asked({name: expand(text) for name, text in options.items()})


def _options(written: Sequence[str], expand: Callable[[str], str] = str) -> dict[str, str] | None:
    """The options up to the program, by their long names; None where a variable in their place is not known."""
    flags = load("launchers")["srun"]["flags"]
    words, found, index = list(written), {}, 0
    while index < len(words) and words[index].startswith(("-", "$")):
        word, index = words[index], index + 1
        if word.startswith("$"):
            text = expand(word)
            if "$" in text:
                return None
            words[:index] = text.split()
            index = 0
            continue
        if word.startswith("--"):
            name, joined, value = word[2:].partition("=")
        else:
            name, value = word[1:2], word[2:]
            joined = value
        # An option that the list lacks has no value where another follows.
        if not joined and name not in flags and not next(iter(words[index : index + 1]), "").startswith("-"):
            value, index = next(iter(words[index : index + 1]), ""), index + 1
        found[_NAMES.get(name, name)] = value
    return found


def _variables(asked: Asked, job: Asked | None = None) -> dict[str, str]:
    """What Slurm sets for a job, or for a step of it."""
    each = asked.number("ntasks-per-node") or (job.number("ntasks-per-node") if job else None)
    nodes, tasks = asked.number("nodes"), asked.tasks
    named = {
        ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"): nodes,
        ("SLURM_NTASKS", "SLURM_NPROCS"): tasks,
        ("SLURM_NTASKS_PER_NODE",): each,
        ("SLURM_GPUS_ON_NODE",): (job or asked).gpus,
    }
    return {name: str(number) for names, number in named.items() if number for name in names}


def _agreed(job: Mapping[str, str], step: Mapping[str, str]) -> dict[str, str]:
    """Variables that have one value, whichever shell puts it in."""
    return {name: value for name, value in job.items() if step.get(name) == value}


def _assigned(script: str) -> dict[str, str]:
    """Variables that a script sets once, at the beginning of a line, and no script that it reads later on may set anew."""
    start = max((found.end() for found in _READS_ANOTHER.finditer(script)), default=0)
    count = Counter(_SETTING.findall(script))
    read = {name for line in _READING.findall(script) for name in _NAME.findall(line)}
    written = {name: text for name, text in _ASSIGNMENT.findall(script, start) if count[name] == 1 and name not in read and "`" not in text}
    return {name: shell.unquoted(text) for name, text in written.items()}


def _sets_counts(script: str) -> bool:
    """Whether a script sets or unsets what Slurm says of the number of tasks."""
    unset = (line.partition("unset")[2] for line in script.splitlines())
    return bool(_SET_ANEW.search(script)) or any(map(_UNSET.search, unset))


def _escaped(script: str) -> set[str]:
    """What stands in double quotes and leaves each node its own name, as in `bash -c "... \\$(hostname)"`."""
    if "\\$" not in script and "\\`" not in script:
        return set()
    return {shell.unquoted(text) for text in _ANY_DOUBLE_QUOTED.findall(script) if "\\" in text and not _OF_ONE_NODE.search(text)}


def _expander(known: Mapping[str, str]) -> Callable[[str], str]:
    """Puts values for names and sums; what it does not know stays as it is."""

    values: dict[str, str] = {}

    def named(name: str, depth: int) -> str:
        """The value of a variable, with `$` in it where it is not known whole."""
        if name not in values:
            values[name] = "$"
            text = expand(known.get(name, "$"), depth + 1)
            values[name] = text if len(text) <= _LONGEST else "$"
        return values[name]

    def value(found: re.Match[str], depth: int) -> str:
        if found[1]:
            return _sum(found[1], lambda name: named(name, depth)) or found[0]
        text = named(found[2] or found[3], depth)
        return found[0] if "$" in text else text

    def expand(text: str, depth: int = 0) -> str:
        return text if depth > _DEEPEST or len(text) > _LONGEST else _REFERENCE.sub(lambda found: value(found, depth), text)

    return expand


def _sum(text: str, value: Callable[[str], str]) -> str:
    """A product or sum of numbers and variables; empty where it is another, or not all of them are known."""
    plain = re.sub(r"\$\{?(\w+)\}?", r"\1", text)
    if not any(chain.fullmatch(plain) for chain in _CHAINS):
        return ""
    total = 0
    for operator, name in _OPERANDS.findall(plain):
        written = name if name.isdecimal() else value(name)
        if not re.fullmatch(r"[0-9]{1,9}", written) or (operator == "/" and int(written) == 0):
            return ""
        number = int(written)
        total = {"": number, "*": total * number, "/": total // (number or 1), "+": total + number, "-": total - number}[operator]
    return str(total) if 0 <= total <= _LARGEST else ""
