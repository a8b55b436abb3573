"""What a container runs: its words and commands, the launchers among them, and the launchers' options."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from guardrails import shell
from guardrails.facts import load
from guardrails.node import Node

TORCHRUN = frozenset({"torchrun", "torch.distributed.run", "torch.distributed.launch"})
MPIRUN = frozenset({"mpirun", "mpiexec", "orterun"})
DEEPSPEED = frozenset({"deepspeed"})
ACCELERATE = frozenset({"accelerate"})
RANKS = TORCHRUN | DEEPSPEED | ACCELERATE
"""Launchers that start the ranks of their own node, or of all."""
SHELL = re.compile(r"(?:ba|da|a|z|k|mk)?sh")
PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
"""Names of shells, and of what runs Python."""

_OTHER_NAMES: Mapping[str, str] = {
    "accelerate-launch": "accelerate",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "mpiexec.hydra": "mpiexec",
    "mpirun.openmpi": "mpirun",
    "mpiexec.openmpi": "mpiexec",
    "mpirun.mpich": "mpirun",
    "mpiexec.mpich": "mpiexec",
    "prterun": "mpirun",
}
_SHELL_OPTION = re.compile(r"[-+].*|pipefail|errexit|nounset")
_IS_TOLD = re.compile(r"-[a-z]*c[a-z]*")
_SCRIPT = re.compile(r".*\.sh|.*entrypoint.*")
_RUN = re.compile(r"[^-=][^=]*\.(?:py|sh)")
_WORDS_BEFORE = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "exec", "coproc"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_PYTHON_VALUES = frozenset({"-X", "-W", "--check-hash-based-pycs"})
_TRAINS = re.compile(r"train|tune|tuning|sft|dpo|grpo|run_[a-z]*lm", re.IGNORECASE)
_PREPARES = re.compile(r"prepare|preproc|data|tokeni|download|eval|export|convert|generat|merge", re.IGNORECASE)
_OF_HYDRA = frozenset({"genv", "env"})
# A shell in a shell in a shell is as deep as anybody writes.
_DEEPEST = 4


def _as_it_is(value: str) -> str:
    return value


def words(container: Node) -> list[str]:
    """Command and arguments as words, whatever command they are of; a shell's command line is split as the shell would."""
    found: list[str] = []
    for text in _texts(container):
        found += split(text) if _is_line(text) else [text]
    return found


def split(text: str) -> list[str]:
    """The words of all commands of a command line, without what stands between these."""
    return [word for command in shell.commands(text) for word in command]


def commands(container: Node) -> list[list[str]]:
    """Every command that the container runs, each alone: the one it names, and those of the scripts that this hands to a shell."""
    texts = list(_texts(container))
    # A line without a shell is meant for that of the image.
    lines = shell.commands(texts.pop(0)) if texts and _is_line(texts[0]) else []
    return [each for line in (*lines, texts) for each in with_scripts(line)]


def programs(container: Node, expand: Callable[[str], str] = _as_it_is) -> list["Invocation"]:
    """The commands that start ranks, with those of the scripts that they run; every command where none does. Each has all of its words."""
    every = commands(container)
    started = [each for line in every for each in _starting(line)]
    texts = set(_texts(container))
    found: list[Invocation] = []
    for line in started or every:
        call = Invocation("", tuple(_own_words(line, texts)), expand, _innermost(line))
        if call not in found:
            found.append(call)
    return found


def _starting(command: Sequence[str]) -> list[list[str]]:
    """A command that starts ranks, with its scripts; one that hands a script on which does so, for it may hand on arguments as well."""
    whole = list(with_scripts(command))
    if any(invocations(whole[:1], RANKS | MPIRUN)):
        return whole
    return whole[:1] if any(invocations(whole, RANKS | MPIRUN)) else []


def likely(calls: Sequence["Invocation"]) -> list["Invocation"]:
    """Those whose program says by its name that it trains; all where none does."""
    return [call for call in calls if is_of_training(base(call.program))] or list(calls)


def names_training(container: Node, expand: Callable[[str], str] = _as_it_is) -> bool:
    """Whether a program that the container runs, or a script among its words, says by its name that it trains."""
    scripts = [word for word in map(expand, words(container)) if _RUN.fullmatch(word)]
    called = [call.expand(call.program) for call in programs(container, expand)]
    return any(is_of_training(base(program)) for program in (*scripts, *called))


def is_of_training(name: str) -> bool:
    """Whether a program says by its name that it trains."""
    return bool(_TRAINS.search(name)) and not _PREPARES.search(name)


def _own_words(command: Sequence[str], texts: Set[str]) -> list[str]:
    """The words of a command, and of lines of which nobody knows who reads them; scripts that it hands on are commands of their own."""
    found: list[str] = []
    for index, word in enumerate(command):
        if not _is_line(word):
            found.append(word)
        elif not _is_for_a_shell(command, index) and not _is_handed_on(command, word):
            found += split(word) if word in texts else [word]
    return found


def _innermost(command: Sequence[str]) -> str:
    """The program that a command runs in the end; empty where it has none."""
    run = [command[index] for index in _programs(command)]
    run += [call.program for call in invocations([command], RANKS) if call.program]
    return run[-1] if run else ""


def scripted(text: str) -> list[list[str]]:
    """Every command of a script, and of the scripts in it."""
    return [each for _, commands in steps(text) for each in commands]


def steps(text: str) -> list[tuple[list[str], list[list[str]]]]:
    """Each command of a script, and that with those of the scripts that it hands on."""
    return [(line, list(with_scripts(line))) for line in shell.commands(text)]


def place(container: Node) -> Node:
    """Where the container says what it runs: `command`, or `args` where there is no command."""
    return container.at("command") if container.at("command").present else container.at("args")


def base(word: str) -> str:
    """A program's name without its folder; of a module named after its launcher (`tools.torchrun`), that launcher."""
    name = word.rpartition("/")[2]
    return "torchrun" if name.endswith(".torchrun") else _OTHER_NAMES.get(name, name)


@dataclass(frozen=True)
class Invocation:
    """One launcher and its own options: what follows its program is the program's."""

    launcher: str
    arguments: Sequence[str]
    expand: Callable[[str], str] = _as_it_is
    """Puts values of variables for their names."""
    program: str = ""
    """The word behind the options; a variable there may stand for more of them."""

    def option(self, *names: str) -> str | None:
        """The value of `--name value` or `--name=value`, dashes and underscores alike; empty where it has none, None where it is absent.

        Of several the last counts, as for argparse.
        """
        value = self._written(names)
        return None if value is None else self.expand(value)

    def number(self, *names: str) -> int | None:
        """The option as a whole number; None where it is absent or no number (a variable, a word such as `gpu`)."""
        value = self.option(*names)
        return int(value) if value is not None and re.fullmatch(r"[0-9]{1,9}", value) else None

    def flag(self, *names: str) -> bool:
        """Whether the option is given at all."""
        return self._written(names) is not None

    def _written(self, names: Sequence[str]) -> str | None:
        wanted, found = {_plain(name) for name in names}, None
        for index, word in enumerate(self.arguments):
            name, equals, joined = word.partition("=")
            if word.startswith("-") and _plain(name) in wanted:
                following = self.arguments[index + 1] if index + 1 < len(self.arguments) else ""
                found = joined if equals else following
        return found


def invocations(
    among: Sequence[Sequence[str]], launchers: frozenset[str], expand: Callable[[str], str] = _as_it_is
) -> Iterator[Invocation]:
    """Each call of one of `launchers` among the commands; a launcher's name that is no program there is no call."""
    for command in among:
        for index in _programs(command):
            name, arguments = base(command[index]), command[index + 1 :]
            if name in launchers and (own := _own_arguments(command[index], arguments)) is not None:
                yield Invocation(name, own[0], expand, own[1])


def parts(call: Invocation) -> list[list[tuple[str, list[str]]]]:
    """The options of a call of mpirun, of each of its programs (`mpirun -n 1 a : -n 7 b`): name without dashes, and values."""
    found: list[list[tuple[str, list[str]]]] = [[]]
    words, index, ended = call.arguments, 0, False
    while index < len(words):
        word, index = words[index], index + 1
        if word == ":":
            found, ended = [*found, []], False
        elif ended or not word.startswith("-"):
            ended = True
        else:
            name, equals, joined = word.lstrip("-").partition("=")
            count = 0 if equals else _values_of_mpirun(name, words[index:])
            found[-1].append((name, [joined] if equals else list(words[index : index + count])))
            index += count
    return found


def _values_of_mpirun(name: str, following: Sequence[str]) -> int:
    """How many words belong to an option of mpirun; one that is not known has a value unless a program or option follows."""
    facts = load("launchers")["mpirun"]
    for count, kind in enumerate(("flags", "values", "pairs")):
        if name in facts[kind]:
            # Hydra takes a variable and its value in one word as well.
            return 1 if name in _OF_HYDRA and "=" in "".join(following[:1]) else count
    return int(len(following) > 1 and not following[0].startswith("-") and "/" not in following[0] and not _is_program(following[0]))


def _own_arguments(word: str, arguments: Sequence[str]) -> tuple[Sequence[str], str] | None:
    """The options of a launcher, and its program behind them; None where it is called for something else."""
    name = base(word)
    if name in MPIRUN:
        return arguments, ""
    if word.rpartition("/")[2] in ACCELERATE:
        if "launch" not in arguments[:1]:
            return None
        arguments = arguments[1:]
    flags = load("launchers")["flags"]["torchrun" if name in TORCHRUN else name]
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 1 if "=" in arguments[index] or _is_attached(arguments[index]) or _plain(arguments[index]) in flags else 2
    return arguments[:index], next(iter(arguments[index:]), "")


def _is_attached(word: str) -> bool:
    """Whether a short option has its value behind it, as in `-r3`."""
    return len(word) > len("-r") and word[1] != "-" and not word[2].isalpha()


def _programs(command: Sequence[str]) -> Iterator[int]:
    """Where the command's program is, and the one that this runs in turn, and so on."""
    index = next((at for at, word in enumerate(command) if word not in _WORDS_BEFORE and not _ASSIGNMENT.match(word)), None)
    while index is not None:
        yield index
        name, after = base(command[index]), index + 1
        if PYTHON.fullmatch(name):
            index = _run_by_python(command, after)
        elif _runs_another(name, command[after:]):
            index = next((at for at in range(after, len(command)) if _is_program(command[at])), None)
        else:
            return


def _runs_another(name: str, arguments: Sequence[str]) -> bool:
    facts = load("launchers")
    if name in facts["environments"]:
        return "run" in arguments or "exec" in arguments
    # Options alone are for the image's own program.
    return name in MPIRUN or name in facts["wrappers"] or name.startswith("-") or _SCRIPT.fullmatch(name) is not None


def _is_program(word: str) -> bool:
    """Whether a word is a program that runs others, or a launcher."""
    name = base(word)
    named = PYTHON.fullmatch(name) or SHELL.fullmatch(name)
    return bool(named) or name in RANKS | MPIRUN or name in load("launchers")["wrappers"]


def _run_by_python(command: Sequence[str], index: int) -> int | None:
    """The module or script that Python runs; None for a text of its own (-c)."""
    while index < len(command):
        word = command[index]
        if not word.startswith("-"):
            return index
        if word.startswith("-c"):
            return None
        if re.fullmatch(r"-[A-Za-z]*m", word):
            return index + 1 if index + 1 < len(command) else None
        index += 2 if word in _PYTHON_VALUES else 1
    return None


def with_scripts(command: Sequence[str], depth: int = 0) -> Iterator[list[str]]:
    """A command, and the commands of the scripts among its words."""
    yield list(command)
    for index, word in enumerate(command):
        if depth < _DEEPEST and _is_line(word) and (_is_for_a_shell(command, index) or _is_handed_on(command, word)):
            for inner in shell.commands(word):
                yield from with_scripts(inner, depth + 1)


def _is_for_a_shell(command: Sequence[str], index: int) -> bool:
    """Whether the word is what a shell before it is told to run, with options between them, as in `bash -euo pipefail -c`."""
    told = False
    for word in reversed(command[:index]):
        if SHELL.fullmatch(base(word)):
            return told
        if not _SHELL_OPTION.fullmatch(word):
            return False
        told = told or _IS_TOLD.fullmatch(word) is not None
    return False


def _is_handed_on(command: Sequence[str], line: str) -> bool:
    """Whether a launcher's command line is one word, and a program that runs others gets it."""
    program = next(_programs(command), None)
    runs = program is not None and _runs_another(base(command[program]), command[program + 1 :])
    return runs and base(line.split()[0]) in RANKS | MPIRUN


def _texts(container: Node) -> Iterator[str]:
    for node in (*container.at("command").elements(), *container.at("args").elements()):
        yield node.text()


def _is_line(text: str) -> bool:
    return len(text.split()) > 1


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-")
